"""Every method of the comparison: a case and a budget in, a function of masks out.

Each peer is the real implementation, run on the same function of masks. Attribution
scores are extended to all masks as in the paper: ``g(mask) = f(all removed) + sum of
the scores of what is kept``. To add a method, write a function like those below and
list it in `METHODS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from harmonica_compare.case import Case, Counted, NotApplicableError
from harmonica_core import family, fit_surrogate, from_attributions
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.result.surrogate import Surrogate

# Share of masks near the input, as in an adaptive fit.
_NEAR = 0.1

Explained = Surrogate | AnchoredSurrogate
Run = Callable[[Case, Counted, int], Explained]


@dataclass(frozen=True)
class Method:
    """A named method.

    Attributes
    ----------
    name : str
        As given to ``--methods``.
    label : str
        As shown in tables.
    run : callable (case, counted value function, seed) -> surrogate
    ours : bool
    """

    name: str
    label: str
    run: Run
    ours: bool = False


def harmonica(case: Case, f: Counted, seed: int, degree: int) -> Explained:
    """Algorithm 1: the LASSO on all terms up to a degree, some masks near the input.

    The published one draws uniform masks only.
    """
    return family.harmonica(f, case.n_features, degree, f.budget, seed=seed, near=_NEAR)


def harmonica_auto(case: Case, f: Counted, seed: int) -> Explained:
    """The readable set grows where the samples support it."""
    return fit_surrogate(f, case.n_features, budget=f.budget, seed=seed, terms="auto")


def harmonica_local(case: Case, f: Counted, seed: int) -> Explained:
    """Algorithm 2, on the ball of radius 4."""
    radius = min(4, case.n_features)
    return family.harmonica_local(
        f, case.n_features, budget=f.budget, seed=seed, radius=radius
    )


def harmonica_anchor(case: Case, f: Counted, seed: int, anchors: int) -> Explained:
    """Algorithm 3: one polynomial per anchor, or the adaptive one and a correction."""
    return family.harmonica_anchor(
        f, case.n_features, budget=f.budget, seed=seed, anchors=anchors
    )


def harmonica_constrained(case: Case, f: Counted, seed: int) -> Explained:
    """Algorithm 4: five anchors, pulled together."""
    return family.harmonica_anchor_constrained(
        f, case.n_features, 2, f.budget, seed=seed, anchors=5, consistency=1.0
    )


def low_degree(case: Case, f: Counted, seed: int) -> Explained:
    """Algorithm 5: empirical Fourier coefficients up to degree 3."""
    return family.low_degree(f, case.n_features, budget=f.budget, seed=seed)


def captum_sampled(case: Case, f: Counted, seed: int, name: str) -> Explained:
    """Captum's Lime or KernelShap, with their defaults."""
    import torch
    from captum import attr

    from harmonica_compare.training import seeded

    def forward(masks: Any) -> Any:
        return torch.from_numpy(f(masks.numpy())).float()

    base = float(f(np.zeros((1, case.n_features)))[0])
    ones = torch.ones(1, case.n_features)
    with seeded(seed):  # Captum draws from the global generator
        scores = getattr(attr, name)(forward).attribute(
            ones,
            torch.zeros_like(ones),
            n_samples=f.budget - 3,
            perturbations_per_eval=min(512, f.budget - 3),
        )
    return from_attributions(scores[0].double().numpy(), base)


def shap_kernel(case: Case, f: Counted, seed: int) -> Explained:
    """SHAP's KernelExplainer, without its default cut to ten features."""
    import shap

    rng = np.random.RandomState(seed)  # noqa: NPY002 - shap takes no Generator
    ones = np.ones((1, case.n_features))
    state = np.random.get_state()  # noqa: NPY002 - put back below
    try:
        np.random.set_state(rng.get_state())  # noqa: NPY002 - shap draws from it
        explainer = shap.KernelExplainer(f, np.zeros_like(ones))
        scores = explainer.shap_values(
            ones, nsamples=f.budget - 4, l1_reg=0, silent=True
        )
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return from_attributions(np.ravel(scores), float(explainer.expected_value))


def shap_permutation(case: Case, f: Counted, seed: int) -> Explained:
    """SHAP's PermutationExplainer."""
    import shap

    need = 2 * case.n_features + 1
    if f.budget < need + 2:
        raise NotApplicableError(f"needs {need + 2} evaluations")
    ones = np.ones((1, case.n_features))
    explainer = shap.PermutationExplainer(f, np.zeros_like(ones), seed=seed)
    found = explainer(ones, max_evals=f.budget - 2, silent=True)
    return from_attributions(found.values[0], float(np.ravel(found.base_values)[0]))


def gradient(case: Case, f: Counted, seed: int, hessian: bool) -> Explained:
    """Integrated gradients (500 steps) or Hessians (50 steps), within the budget."""
    if case.relaxed is None:
        raise NotApplicableError(case.no_gradient)
    from harmonica_compare import gradients

    n = case.n_features
    base = float(f(np.zeros((1, n)))[0])
    cost = n + 1 if hessian else 1
    steps = min(50 if hessian else 500, (f.budget - 1) // cost)
    if steps < 2:
        raise NotApplicableError(f"needs {2 * cost + 1} evaluations")
    f.charge(steps * cost)
    if not hessian:
        scores = gradients.integrated_gradients(case.relaxed, n, steps)
        return from_attributions(scores, base)
    return from_attributions(
        gradients.integrated_hessians(case.relaxed, n, steps), base
    )


def shapiq_index(case: Case, f: Counted, seed: int, name: str, **kw: Any) -> Explained:
    """Interaction index estimated by shapiq, of order 2 unless it says otherwise."""
    import shapiq

    maker = getattr(shapiq, name, None) or getattr(shapiq.approximator, name)
    settings = {"n": case.n_features, "max_order": 2, "random_state": seed, **kw}
    approximator = maker(**settings)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = approximator.approximate(f.budget - 1, f)
    for warning in said:
        if "too small to perform" in str(warning.message):
            raise NotApplicableError(str(warning.message))
    base = float(f(np.zeros((1, case.n_features)))[0])
    scores = {t: float(found[t]) for t in found.interaction_lookup if len(t)}
    return from_attributions(scores, base, n_features=case.n_features)


_OURS = (
    ("harmonica-2", "Harmonica 2", partial(harmonica, degree=2)),
    ("harmonica-3", "Harmonica 3", partial(harmonica, degree=3)),
    ("harmonica-auto", "Harmonica auto", harmonica_auto),
    ("local", "Harmonica-local (r=4)", harmonica_local),
    ("anchor-3", "Harmonica-anchor 3", partial(harmonica_anchor, anchors=3)),
    ("anchor-5", "Harmonica-anchor 5", partial(harmonica_anchor, anchors=5)),
    ("anchor-9", "Harmonica-anchor 9", partial(harmonica_anchor, anchors=9)),
    ("constrained", "Harmonica-constrained 5", harmonica_constrained),
    ("low-degree", "Low-degree 3", low_degree),
)
_SII = partial(shapiq_index, name="KernelSHAPIQ", index="k-SII")
_STII = partial(shapiq_index, name="PermutationSamplingSTII")
_PEERS = (
    ("lime", "Captum Lime", partial(captum_sampled, name="Lime")),
    ("kernelshap", "Captum KernelShap", partial(captum_sampled, name="KernelShap")),
    ("shap-kernel", "SHAP KernelExplainer", shap_kernel),
    ("shap-permutation", "SHAP Permutation", shap_permutation),
    ("ig", "Integrated Gradients", partial(gradient, hessian=False)),
    ("ih", "Integrated Hessians", partial(gradient, hessian=True)),
    ("sii", "Shapley interaction index", _SII),
    ("shapley-taylor", "Shapley-Taylor", _STII),
    ("faith-shap", "Faith-Shap", partial(shapiq_index, name="RegressionFSII")),
    ("proxyspex", "ProxySPEX", partial(shapiq_index, name="ProxySPEX", max_order=None)),
)
METHODS: dict[str, Method] = {
    **{name: Method(name, label, run, ours=True) for name, label, run in _OURS},
    **{name: Method(name, label, run) for name, label, run in _PEERS},
}
