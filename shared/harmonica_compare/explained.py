"""What a method says about one input, in one form for all methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core._types import Floats, Masks
from harmonica_core.basis.transform import spectrum_of_values
from harmonica_core.design.masks import all_masks

# A function without a spectrum of its own is enumerated up to so many features.
_MOST_ENUMERATED = 14


@dataclass(frozen=True)
class Explained:
    """Answers of one explanation; None where a method gives none.

    Attributes
    ----------
    answer : callable, bool (m, n) -> float64 (m,)
        The value at any mask: the answer to a what-if question.
    shapley : float64 (n,), optional
    pairs : float64 (n * (n - 1) / 2,), optional
        Shapley interaction index of each pair, in the order of `pair_order`.
    shapley_std, pairs_std : like the two above, optional
        Their stated standard deviations.
    answer_std : callable, optional
        Stated standard deviation of the answer at each mask.
    stated : float, optional
        The I_2 over all masks that the method states for itself.
    source : object
        What the method returned.
    """

    answer: Callable[[Masks], Floats]
    shapley: Floats | None = None
    pairs: Floats | None = None
    shapley_std: Floats | None = None
    pairs_std: Floats | None = None
    answer_std: Callable[[Masks], Floats] | None = None
    stated: float | None = None
    source: Any = None


def pair_order(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return first and second features of all pairs: (0, 1), (0, 2), ..."""
    return np.triu_indices(n_features, 1)


def exact_indices(values: Floats) -> tuple[Floats, Floats]:
    """Return Shapley values and pair interactions (SII) of ``values`` at all masks.

    With ``a`` the spectrum, kept = +1 (each feature is kept with the
    same probability p, uniform on [0, 1], so a parity of r features averages to
    1 / (r + 1) for even r and to 0 for odd r):

        phi_i  = 2 sum_{T with i, |T| odd} a_T / |T|
        SII_ij = 4 sum_{T with i and j, |T| even} a_T / (|T| - 1)
    """
    spectrum = spectrum_of_values(values)
    n = len(spectrum).bit_length() - 1
    members = all_masks(n).astype(np.float64)
    size = members.sum(axis=1)
    odd = np.where(size % 2 == 1, spectrum / np.maximum(size, 1), 0.0)
    even = np.where((size % 2 == 0) & (size > 0), spectrum / np.maximum(size - 1, 1), 0)
    matrix = 4 * members.T @ (even[:, None] * members)
    return 2 * odd @ members, np.asarray(matrix[pair_order(n)])


def explained(found: Any, n_features: int) -> Explained:
    """Return what a method returned (a surrogate, or any function) as `Explained`."""
    if isinstance(found, Explained):
        return found
    if not hasattr(found, "shapley_values"):
        return _of_function(found, n_features)
    shapley, shapley_std = _with_std(found.shapley_values)
    pairs, pairs_std = _pairs(found, n_features)
    return Explained(
        answer=found,
        shapley=np.asarray(shapley, dtype=np.float64),
        pairs=pairs,
        shapley_std=shapley_std,
        pairs_std=pairs_std,
        answer_std=_answer_std(found, n_features),
        stated=_stated(found),
        source=found,
    )


def _of_function(function: Callable[[Masks], Any], n_features: int) -> Explained:
    def answer(masks: Masks) -> Floats:
        return np.asarray(function(masks), dtype=np.float64)

    if n_features > _MOST_ENUMERATED:
        return Explained(answer, source=function)
    shapley, pairs = exact_indices(answer(all_masks(n_features)))
    return Explained(answer, shapley, pairs, source=function)


def _takes_std(method: Callable[..., Any]) -> bool:
    return "return_std" in inspect.signature(method).parameters


def _with_std(method: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """Return values and standard deviations; None for those that are not stated.

    Zeros only are no statement: scores read as a polynomial have them, too.
    """
    if not _takes_std(method):
        return method(*args), None
    values, std = method(*args, return_std=True)
    listed = list(std.values()) if hasattr(std, "values") else std
    return values, std if np.any(np.asarray(listed, dtype=float) > 0) else None


def _answer_std(surrogate: Any, n_features: int) -> Callable[[Masks], Floats] | None:
    """Return the function that states errors of answers; None where none does."""
    predict = getattr(surrogate, "predict", None)
    if predict is None or not _takes_std(predict):
        return None
    tried = np.random.default_rng(0).random((32, n_features)) < 0.5
    if not np.any(predict(tried, return_std=True)[1] > 0):
        return None
    return lambda masks: np.asarray(predict(masks, return_std=True)[1])


def _pairs(surrogate: Any, n_features: int) -> tuple[Floats | None, Floats | None]:
    limit = getattr(surrogate, "max_degree", None)
    if n_features < 2 or (limit is not None and limit < 2):
        return None, None  # it says nothing about pairs, rather than zero
    found, std = _with_std(surrogate.interactions, 2, "SII")
    order = list(zip(*pair_order(n_features), strict=True))
    return _listed(found, order), None if std is None else _listed(std, order)


def _listed(found: Any, order: list[tuple[Any, Any]]) -> Floats:
    return np.array([float(found.get((int(i), int(j)), 0.0)) for i, j in order])


def _stated(surrogate: Any) -> float | None:
    error = getattr(surrogate, "error", None)
    value = getattr(error, "value", error)
    return None if value is None or np.ndim(value) else float(value)
