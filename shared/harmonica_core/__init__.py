"""Harmonica's core: a Fourier surrogate of any function of masks.

The flow, one direction: `Settings` -> `Design` -> `evaluate` -> engine -> `Surrogate`
-> `harmonica_core.indices`, `harmonica_core.metrics`, plots, pages. Needs numpy, scipy
and scikit-learn only; never imports torch, captum or shap.

Examples
--------
>>> from harmonica_core import fit_surrogate
>>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])  # any model on masks
>>> g = fit_surrogate(f, n_features=3)
>>> g([[True, True, False]]), g.shapley_values(), g.error
(array([1.]), array([0.5, 0.5, 0. ]), 0 (exact))
"""

from harmonica_core import metrics, registry
from harmonica_core.basis.kernel import Prior
from harmonica_core.cache import ValueCache, input_key
from harmonica_core.design.draw import Design, draw_design
from harmonica_core.engine.choose import fit_functions, learn_prior
from harmonica_core.evaluate import Evaluated, evaluate
from harmonica_core.family import (
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
)
from harmonica_core.fit import Calls, fit_surrogate, fit_surrogates, fit_with
from harmonica_core.parallel import iterate_parallel
from harmonica_core.resilience import BatchSize
from harmonica_core.result import indices
from harmonica_core.result.additive import from_attributions
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.relabel import lift
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.settings import Settings, auto_budget, check_budget

__all__ = [
    "AnchoredSurrogate",
    "BatchSize",
    "Calls",
    "Design",
    "Estimate",
    "Evaluated",
    "Prior",
    "Settings",
    "Surrogate",
    "ValueCache",
    "auto_budget",
    "check_budget",
    "draw_design",
    "evaluate",
    "fit_functions",
    "fit_surrogate",
    "fit_surrogates",
    "fit_with",
    "from_attributions",
    "harmonica",
    "harmonica_anchor",
    "harmonica_anchor_constrained",
    "harmonica_local",
    "indices",
    "input_key",
    "iterate_parallel",
    "learn_prior",
    "lift",
    "low_degree",
    "metrics",
    "registry",
]
