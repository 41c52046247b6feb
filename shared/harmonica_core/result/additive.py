"""Surrogates of any method's scores, so that everything here applies to them too.

Scores promise that a mask's value is the base value plus the scores of what it keeps,
``g(mask) = base + sum_{S inside kept} I_S``. That is a polynomial: feature i is kept
with ``(1 + z_i) / 2``, so ``a_R = sum_{S superset of R} 2^-|S| I_S``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table, Term
from harmonica_core.checks import check_feature_count
from harmonica_core.result.indices import superset_sums
from harmonica_core.result.surrogate import Surrogate

# Terms of the resulting polynomial, counted with repetition.
_MOST_TERMS = 1 << 22


def from_attributions(
    values: Mapping[Term, Any] | Any,
    base: Any = None,
    n_features: int | None = None,
    *,
    n_evaluations: int = 0,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
) -> Surrogate:
    """Return the surrogate ``g(mask) = base + sum_{S inside kept} I_S`` of scores.

    Parameters
    ----------
    values : (n_features,), (n_features, n_features) or {term: value}
        Scores of one input from any method (KernelShap, Lime, Integrated Gradients,
        TreeSHAP, ...): of single features; of pairs in SHAP's layout (half of a pair
        in (i, j), half in (j, i), single features on the diagonal); or of any terms.
        For several outputs arrays have one more axis, and values are rows.
    base : float or (n_outputs,)
        The model's output with everything removed (SHAP's ``expected_value``). Its
        shape tells pairs from several outputs. Left out when ``values[()]`` is it.
    n_features : int, optional
        Needed for {term: value}.
    n_evaluations : int
        Model evaluations that the scores cost.
    feature_names, output_names : iterable of str, optional

    Examples
    --------
    >>> g = from_attributions([0.5, -0.2], base=1.0)
    >>> g([[True, True], [True, False]]).round(6).tolist()
    [1.3, 1.5]
    >>> g.shapley_values().round(6).tolist()
    [0.5, -0.2]
    >>> g = from_attributions({(0,): 0.5, (0, 1): 2.0}, base=1.0, n_features=3)
    >>> g([[True, True, False], [True, False, True]]).tolist()
    [3.5, 1.5]
    """
    if isinstance(values, Mapping):
        base = _base_of(values, base)
        n_features = check_feature_count(n_features)
        table, scores = _read_mapping(values, np.shape(base), n_features)
    else:
        array = _real(values, "values")
        table, scores = _read_array(array, np.shape(_given(base)))
        if n_features not in (None, len(array)):
            raise ValueError(
                f"n_features={n_features}, but values of {len(array)} features; needed "
                "one value for each feature, or {term: value}"
            )
        n_features = len(array)
    found = _surrogate(n_features, table, scores, base, n_evaluations)
    return found.with_names(feature_names, output_names)


def _real(numbers: Any, what: str) -> Floats:
    array = np.asarray(numbers)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} have dtype {array.dtype}; needed real numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} have NaN or infinite entries; needed finite numbers")
    return array.astype(np.float64)


def _given(base: Any) -> Any:
    if base is None:
        raise ValueError(
            "base is missing; needed the model's output with everything removed, as "
            "base= or as the value of the empty term ()"
        )
    return base


def _base_of(values: Mapping[Term, Any], base: Any) -> Any:
    """Return the base value, which may be that of the empty term."""
    if () not in values:
        return _given(base)
    if base is not None:
        raise ValueError(
            f"got base={base} and a value {values[()]} of the empty term (); needed "
            "one of them"
        )
    return values[()]


def _read_mapping(
    values: Mapping[Term, Any], row: tuple[int, ...], n_features: int
) -> tuple[Table, Floats]:
    terms = [term for term in values if term != ()]
    checked = basis.check_terms(terms, n_features)
    if len(checked) != len(terms):
        raise ValueError(
            "values name a term twice, in another order of its features; needed each "
            "term once"
        )
    wrong = [term for term in terms if np.shape(values[term]) != row]
    if wrong:
        raise ValueError(
            f"the value of {wrong[0]} has shape {np.shape(values[wrong[0]])} and the "
            f"base {row}; needed the same, one number per output"
        )
    scores = _real([values[term] for term in terms], "values")
    return basis.table_of(checked), scores.reshape(len(terms), *row)


def _read_array(array: Floats, row: tuple[int, ...]) -> tuple[Table, Floats]:
    """Tell single features from pairs by the shape of the base value."""
    head = array.shape[: array.ndim - len(row)]
    fits = len(head) in (1, 2) and len(set(head)) == 1 and array.size > 0
    if not fits or array.shape[len(head) :] != row:
        raise ValueError(
            f"values have shape {array.shape} and base {row}; needed scores of one "
            "input, (n_features,) or (n_features, n_features), with one more axis for "
            "several outputs, and then as many base values"
        )
    n = len(array)
    table = basis.terms_up_to(n, len(head))[1:]
    if len(head) == 1:
        return table, array
    i, j = table[n:].T if n > 1 else np.zeros((2, 0), dtype=np.int32)
    single = np.arange(n)
    return table, np.concatenate([array[single, single], array[i, j] + array[j, i]])


def _surrogate(
    n_features: int, table: Table, scores: Floats, base: Any, n_evaluations: int
) -> Surrogate:
    """Turn sums over kept features into parities."""
    start = _real(base, "base")
    sizes = basis.term_sizes(table)
    _check_size(sizes)
    degree = int(sizes.max(initial=0))
    columns = scores.reshape(len(table), start.size)
    weights = np.tile(0.5 ** np.arange(degree + 1), (degree + 1, 1))
    parities, coef = superset_sums(table, columns, weights)
    intercept = start.reshape(1, -1) + 0.5**sizes @ columns
    terms = basis.with_empty_term(parities)
    coef = np.concatenate([intercept, coef])
    return Surrogate(
        n_features,
        terms,
        coef[:, 0] if start.ndim == 0 else coef,
        n_evaluations=n_evaluations,
        max_degree=degree,
    )


def _check_size(sizes: np.ndarray) -> None:
    if float((2.0**sizes).sum()) > _MOST_TERMS:
        raise ValueError(
            f"the largest term has {int(sizes.max())} features, and all of its subsets "
            "are too many for an explicit polynomial; leave the largest terms out"
        )
