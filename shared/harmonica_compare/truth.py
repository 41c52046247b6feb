"""What is true of a case: Shapley values and pair interactions, exact where possible.

All masks are evaluated where there are few enough of them. A tree model gives its
exact Shapley values from the inside. What is left is sampled, without bias: a
polynomial takes out most of the variance, permutations average what it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harmonica_compare.case import Case
from harmonica_compare.explained import all_masks, exact_indices
from harmonica_core._types import Floats, Masks, ValueFunction


@dataclass(frozen=True)
class Truth:
    """True Shapley values, and true pairs (SII) where they are known.

    Attributes
    ----------
    shapley : float64 (n,)
    pairs : float64 (n * (n - 1) / 2,), optional
    how : "enumerated", "TreeSHAP" or "sampled"
    standard_error : float
        RMS standard error of the Shapley values, relative to their RMS.
    """

    shapley: Floats
    pairs: Floats | None
    how: str
    standard_error: float = 0.0


def truth_kind(case: Case, budget: int) -> str:
    """Return how the truth of a case is found: see `Truth`."""
    if case.n_features <= 24 and 1 << case.n_features <= budget:
        return "enumerated"
    return "sampled" if case.tree_shapley is None else "TreeSHAP"


def truth_of(case: Case, model: ValueFunction, budget: int, seed: int) -> Truth:
    """Return the truth of a case from at most ``budget`` model calls."""
    n, how = case.n_features, truth_kind(case, budget)
    if how == "enumerated":
        return Truth(*exact_indices(model(all_masks(n))), how)
    if case.tree_shapley is not None:
        return Truth(case.tree_shapley(), None, how)
    shapley, standard_errors = sampled_shapley(model, n, budget, seed)
    relative = relative_error(standard_errors, np.zeros(n), scale=shapley)
    return Truth(shapley, None, how, relative)


def relative_error(found: Floats, true: Floats, scale: Floats | None = None) -> float:
    """Return RMS(found - true) / RMS(true): 0 when equal, inf when only true is 0."""
    reference = true if scale is None else scale
    gap = float(np.sqrt(np.mean((found - true) ** 2)))
    size = float(np.sqrt(np.mean(reference**2)))
    if gap <= 1e-12 * size:
        return 0.0
    return gap / size if size > 0 else np.inf


def sampled_shapley(
    model: ValueFunction, n_features: int, budget: int, seed: int
) -> tuple[Floats, Floats]:
    """Return unbiased Shapley values ``(n,)`` and their standard errors.

    ``phi(f) = phi(q) + phi(f - q)``: q is a least-squares polynomial of degree 2 (1
    where there are too many pairs) on masks drawn as Shapley values weigh them, so its
    phi is known; the rest is averaged over permutations, each with its reverse.
    """
    rng = np.random.default_rng(seed)
    n_fit = budget // 3
    masks = _shapley_weighted(n_features, n_fit, rng)
    columns = _quadratic if n_features**2 < n_fit else _linear
    fitted = np.linalg.lstsq(columns(masks), model(masks), rcond=None)
    coef = np.asarray(fitted[0], dtype=np.float64)
    n_pairs = max(2, (budget - n_fit) // (2 * (n_features + 1)))
    steps = np.stack(
        [
            _both_ways(lambda m: model(m) - columns(m) @ coef, order)
            for order in (rng.permutation(n_features) for _ in range(n_pairs))
        ]
    )
    shapley = 2 * coef[1 : 1 + n_features] + steps.mean(axis=0)
    return shapley, steps.std(axis=0, ddof=1) / np.sqrt(n_pairs)


def _shapley_weighted(n: int, n_masks: int, rng: np.random.Generator) -> Masks:
    """Masks whose features are kept with one probability each, uniform on [0, 1]."""
    return np.asarray(rng.random((n_masks, n)) < rng.random((n_masks, 1)))


def _linear(masks: Masks) -> Floats:
    """Columns 1, x_i of masks as -1 and +1."""
    return np.hstack([np.ones((len(masks), 1)), np.where(masks, 1.0, -1.0)])


def _quadratic(masks: Masks) -> Floats:
    """Columns 1, x_i, x_i x_j of masks as -1 and +1."""
    x = np.where(masks, 1.0, -1.0)
    first, second = np.triu_indices(masks.shape[1], 1)
    return np.hstack([_linear(masks), x[:, first] * x[:, second]])


def _both_ways(rest: ValueFunction, order: np.ndarray) -> Floats:
    """Steps of a function along a permutation and its reverse, averaged, by feature."""
    n = len(order)
    kept = np.tri(n + 1, n, -1, dtype=bool)  # row k: the first k of the order
    total = np.zeros(n)
    for path in (order, order[::-1]):
        masks = np.zeros((n + 1, n), dtype=bool)
        masks[:, path] = kept
        total[path] += np.diff(rest(masks)) / 2
    return total
