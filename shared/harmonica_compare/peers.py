"""Peers from Captum, SHAP and scikit-learn, each on the same function of masks.

Scores are extended to all masks as in the paper: ``g(mask) = f(all removed) + sum of
the scores of what is kept``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from harmonica_compare.case import Case, Counted, NotApplicableError
from harmonica_compare.explained import Explained, explained
from harmonica_compare.method import Method
from harmonica_core import from_attributions
from harmonica_core._types import Floats, Masks


def captum(case: Case, f: Counted, seed: int, name: str, n_samples: int) -> Any:
    """Run Captum's attribution of this name, with its defaults but the samples."""
    import torch
    from captum import attr

    from harmonica_compare.training import seeded

    def forward(masks: Any) -> Any:
        return torch.from_numpy(f(masks.numpy())).float()

    if n_samples < 2:
        raise NotApplicableError(f"needs more than {f.budget} evaluations")
    base = float(f(np.zeros((1, case.n_features)))[0])
    ones = torch.ones(1, case.n_features)
    with seeded(seed):  # Captum draws from the global generator
        scores = getattr(attr, name)(forward).attribute(
            ones,
            torch.zeros_like(ones),
            n_samples=n_samples,
            perturbations_per_eval=min(512, n_samples),
        )
    return from_attributions(scores[0].double().numpy(), base)


def captum_regression(case: Case, f: Counted, seed: int, name: str) -> Any:
    """Lime or KernelShap: one call a sample, and three for the ends."""
    return captum(case, f, seed, name, f.budget - 3)


def captum_sampling(case: Case, f: Counted, seed: int) -> Any:
    """ShapleyValueSampling: a sample is a permutation, one call a feature."""
    n_samples = (f.budget - 4) // case.n_features
    return captum(case, f, seed, "ShapleyValueSampling", n_samples)


@contextmanager
def _global_numpy_seed(seed: int) -> Iterator[None]:
    """SHAP's KernelExplainer draws from numpy's global generator; put it back."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def shap_kernel(case: Case, f: Counted, seed: int) -> Any:
    """SHAP's KernelExplainer."""
    import shap

    ones = np.ones((1, case.n_features))
    with _global_numpy_seed(seed):
        explainer = shap.KernelExplainer(f, np.zeros_like(ones))
        scores = explainer.shap_values(
            ones, nsamples=f.budget - 4, l1_reg=0, silent=True
        )
    return from_attributions(np.ravel(scores), float(explainer.expected_value))


def shap_permutation(case: Case, f: Counted, seed: int) -> Explained:
    """SHAP's PermutationExplainer; its spread over permutations states an error."""
    import shap

    need = 2 * case.n_features + 1
    if f.budget < need + 2:
        raise NotApplicableError(f"needs {need + 2} evaluations")
    ones = np.ones((1, case.n_features))
    explainer = shap.PermutationExplainer(f, np.zeros_like(ones), seed=seed)
    max_evals = f.budget - 2
    found = explainer(ones, max_evals=max_evals, error_bounds=True, silent=True)
    base = float(np.ravel(found.base_values)[0])
    said = explained(from_attributions(found.values[0], base), case.n_features)
    n_permutations = max_evals // need
    if n_permutations < 2 or found.error_std is None:
        return said  # one permutation has no spread
    # The spread is over single passes, two a permutation; the mean's is smaller.
    std = np.ravel(found.error_std[0]) / np.sqrt(2 * n_permutations - 1)
    return replace(said, shapley_std=std)


def shap_exact(case: Case, f: Counted, seed: int) -> Any:
    """SHAP's ExactExplainer, where the budget covers all masks."""
    import shap

    n = case.n_features
    if n > 20 or f.budget < 2**n + 2:
        raise NotApplicableError(f"needs all 2^{n} evaluations")
    ones = np.ones((1, n))
    masker = shap.maskers.Independent(np.zeros_like(ones))
    found = shap.ExactExplainer(f, masker)(ones, silent=True)
    return from_attributions(found.values[0], float(np.ravel(found.base_values)[0]))


def shap_tree(case: Case, f: Counted, seed: int) -> Any:
    """SHAP's TreeExplainer: exact values from inside the trees, one call."""
    if case.tree_shapley is None:
        raise NotApplicableError("the model is no tree that TreeExplainer can read")
    base = float(f(np.zeros((1, case.n_features)))[0])
    return from_attributions(case.tree_shapley(), base)


def gradient(case: Case, f: Counted, seed: int, hessian: bool) -> Any:
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
    run = gradients.integrated_hessians if hessian else gradients.integrated_gradients
    return from_attributions(run(case.relaxed, n, steps), base)


def lasso_cv(case: Case, f: Counted, seed: int, degree: int) -> Any:
    """scikit-learn's LassoCV on all parities up to a degree, from uniform masks."""
    from sklearn.linear_model import LassoCV

    n = case.n_features
    n_terms = sum(comb(n, k) for k in range(1, min(degree, n) + 1))
    if n_terms > 4 * f.budget:
        raise NotApplicableError(
            f"{n_terms} terms from {f.budget} evaluations: a lower degree is better"
        )
    masks = np.random.default_rng(seed).random((f.budget, n)) < 0.5
    terms = [t for k in range(1, min(degree, n) + 1) for t in combinations(range(n), k)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the ends of its path do not converge
        fitted = LassoCV(cv=5, eps=1e-4, tol=1e-4).fit(
            _parities(masks, terms), f(masks)
        )
    return _polynomial(n, terms, fitted.coef_, float(fitted.intercept_))


def _parities(masks: Masks, terms: list[tuple[int, ...]]) -> Floats:
    x = np.where(masks, 1.0, -1.0)
    columns = np.empty((len(x), len(terms)), order="F")
    for k, term in enumerate(terms):
        columns[:, k] = x[:, list(term)].prod(axis=1)
    return columns


def _polynomial(n: int, terms: Any, coef: Floats, intercept: float) -> Any:
    """Return the surrogate with these coefficients of parities."""
    scores: dict[tuple[int, ...], float] = {}
    # x_i = 2 kept_i - 1, so a parity is a sum over its subsets.
    for term, value in zip(terms, coef.tolist(), strict=True):
        for size in range(len(term) + 1 if value else 0):
            for part in combinations(term, size):
                sign = (-1) ** (len(term) - size)
                scores[part] = scores.get(part, 0.0) + sign * 2**size * value
    base = intercept + scores.pop((), 0.0)
    for i in range(n):
        scores.setdefault((i,), 0.0)
    return from_attributions(scores, base, n_features=n)


def context_cite(case: Case, f: Counted, seed: int) -> Any:
    """ContextCite's recipe: LASSO 0.01 on the logit of a probability, degree 1."""
    from sklearn.linear_model import Lasso

    if not case.probability:
        raise NotApplicableError("the output is no probability")
    masks = np.random.default_rng(seed).random((f.budget, case.n_features)) < 0.5
    values = np.clip(f(masks), 1e-6, 1 - 1e-6)
    centre, scale = masks.mean(axis=0), np.maximum(masks.std(axis=0), 1e-9)
    fitted = Lasso(alpha=0.01).fit(
        (masks - centre) / scale, np.log(values / (1 - values))
    )

    def answer(masks: Masks) -> Floats:
        logit = fitted.predict((np.asarray(masks) - centre) / scale)
        return np.asarray(1 / (1 + np.exp(-logit)))

    return answer


_TORCH, _SHAP, _SKLEARN = ("torch", "captum.attr"), ("shap",), ("sklearn.linear_model",)
_IG, _IH = (partial(gradient, hessian=hessian) for hessian in (False, True))
_PARITIES = "all parities, uniform masks, 5 folds, eps=1e-4"


def _captum(name: str, label: str) -> Method:
    run = partial(captum_regression, name=label)
    return Method(name, f"Captum {label}", run, needs=_TORCH)


def _lasso(degree: int) -> Method:
    name, run = f"lassocv-{degree}", partial(lasso_cv, degree=degree)
    cost = (1, 3, 20)[degree - 1]
    return Method(name, f"LassoCV {degree}", run, "peer", _PARITIES, cost, _SKLEARN)


PEERS = (
    _captum("lime", "Lime"),
    _captum("kernelshap", "KernelShap"),
    Method("sampling", "Captum ShapleyValueSampling", captum_sampling, needs=_TORCH),
    Method("shap-kernel", "SHAP Kernel", shap_kernel, "peer", "l1_reg=0", 1, _SHAP),
    Method("shap-permutation", "SHAP Permutation", shap_permutation, needs=_SHAP),
    Method("shap-exact", "SHAP Exact", shap_exact, needs=_SHAP),
    Method("shap-tree", "SHAP Tree", shap_tree, "inside", "interventional", 1, _SHAP),
    Method("ig", "Integrated Gradients", _IG, "inside", "<= 500 steps", 1, _TORCH),
    Method("ih", "Integrated Hessians", _IH, "inside", "<= 50 steps", 3, _TORCH),
    *map(_lasso, (1, 2, 3)),
    Method("contextcite", "ContextCite", context_cite, "peer", "LASSO 0.01 on logits"),
)
