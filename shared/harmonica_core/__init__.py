"""Harmonica's core: a sparse Fourier surrogate of any function of masks.

The flow, one direction: masks -> values -> terms -> coef -> `Surrogate`. Needs numpy,
scipy and scikit-learn only; never imports torch, captum or shap.

Examples
--------
>>> from harmonica_core import fit_surrogate
>>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])  # any model on masks
>>> g = fit_surrogate(f, n_features=3)
>>> g([[True, True, False]]), g.shapley_values(), g.error
(array([1.]), array([0.5, 0.5, 0. ]), 0 (exact))
"""

from harmonica_core import indices, metrics, registry
from harmonica_core.additive import from_attributions
from harmonica_core.anchored import AnchoredSurrogate
from harmonica_core.cache import ValueCache, input_key
from harmonica_core.estimate import Estimate
from harmonica_core.evaluate import Evaluated
from harmonica_core.family import (
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
)
from harmonica_core.fit import fit_surrogate, fit_surrogates
from harmonica_core.resilience import BatchSize
from harmonica_core.settings import auto_budget, draw_masks
from harmonica_core.surrogate import Surrogate

__all__ = [
    "AnchoredSurrogate",
    "BatchSize",
    "Estimate",
    "Evaluated",
    "Surrogate",
    "ValueCache",
    "auto_budget",
    "draw_masks",
    "fit_surrogate",
    "fit_surrogates",
    "from_attributions",
    "harmonica",
    "harmonica_anchor",
    "harmonica_anchor_constrained",
    "harmonica_local",
    "indices",
    "input_key",
    "low_degree",
    "metrics",
    "registry",
]
