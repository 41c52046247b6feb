"""Consistency metrics: how well any explanation g fits a function f of masks.

Most metrics take ``(f, g, n_features)``:

- f is a value function, the array of its values on all masks, or an `EvaluationSet`
  (f evaluated once, for any number of methods and radii);
- g is a `Surrogate`, any callable on masks (attribution scores become one through
  `harmonica_core.result.additive`), or an array;

and return an `Estimate`: value, standard error, number of evaluations, and whether it
is exact. `insertion_deletion` needs f itself and returns `Curves`, `profile` a
`Profile`, `inconsistency` three Estimates; `spectrum_distance` compares two
explanations. Metrics are exact when the masks in question number at most
``max_evaluations`` and sampled beyond (see `Sampling`). Several outputs give arrays.

A neighbourhood of radius r holds all masks with 1 to r features removed, each equally
likely, so radius n is the cube without the full mask; None is the whole cube.

Examples
--------
>>> from harmonica_core import fit_surrogate, from_attributions, metrics
>>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
>>> g = fit_surrogate(f, n_features=3)
>>> metrics.interpretation_error(f, g, n_features=3)
0 (exact)
>>> additive = from_attributions(g.shapley_values(), g.base_value)
>>> metrics.interpretation_error(f, additive, n_features=3)
0.354 (exact)
"""

from harmonica_core.metrics.curves import Curves, insertion_deletion
from harmonica_core.metrics.evaluations import EvaluationSet, Sampling
from harmonica_core.metrics.fidelity import efficiency_gap, infidelity, r_squared
from harmonica_core.metrics.interpretation import (
    error_difference,
    interpretation_error,
)
from harmonica_core.metrics.local_models import Inconsistency, inconsistency
from harmonica_core.metrics.profiles import PUBLISHED_RADII, Profile, profile
from harmonica_core.metrics.spectrum import spectrum_distance
from harmonica_core.metrics.truthful import truthful_gap

__all__ = [
    "PUBLISHED_RADII",
    "Curves",
    "EvaluationSet",
    "Inconsistency",
    "Profile",
    "Sampling",
    "efficiency_gap",
    "error_difference",
    "inconsistency",
    "infidelity",
    "insertion_deletion",
    "interpretation_error",
    "profile",
    "r_squared",
    "spectrum_distance",
    "truthful_gap",
]
