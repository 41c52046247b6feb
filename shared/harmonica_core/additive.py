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
from harmonica_core.indices import superset_sums
from harmonica_core.surrogate import Surrogate, check_feature_count

# Terms of the resulting polynomial, counted with repetition.
_MOST_TERMS = 1 << 22


def from_attributions(
    values: Any,
    base: Any,
    *,
    n_evaluations: int = 0,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
) -> Surrogate:
    """Return the additive surrogate of attribution scores.

    Parameters
    ----------
    values : (n_features,) or (n_features, n_outputs)
        Scores of one input from any method: KernelShap, Lime, Integrated Gradients,
        TreeSHAP. For pairs and more see `from_interactions`.
    base : float or (n_outputs,)
        The model's output with everything removed (SHAP's ``expected_value``).
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
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim not in (1, 2) or len(scores) == 0:
        raise ValueError(
            f"values have shape {scores.shape}; needed (n_features,) or (n_features, "
            "n_outputs), the scores of one input; for pairs use from_interactions"
        )
    table = np.arange(len(scores), dtype=np.int32)[:, None]
    found = _surrogate(len(scores), table, scores, base, n_evaluations)
    return found.with_names(feature_names, output_names)


def from_interactions(
    values: Mapping[Term, Any] | Any,
    base: Any = None,
    n_features: int | None = None,
    *,
    n_evaluations: int = 0,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
) -> Surrogate:
    """Return the surrogate ``g(mask) = base + sum_{S inside kept} I_S``.

    Parameters
    ----------
    values : {term: value} or (n_features, n_features) or (.., n_outputs)
        Interactions of one input, of any order, or a matrix in SHAP's layout: half of
        a pair's value in (i, j) and half in (j, i), single features on the diagonal.
    base : float or (n_outputs,), optional
        The model's output with everything removed; left out when ``values[()]`` is it.
    n_features : int, optional
        Needed for a mapping.
    n_evaluations, feature_names, output_names
        As in `from_attributions`.

    Examples
    --------
    >>> g = from_interactions({(0,): 0.5, (0, 1): 2.0}, base=1.0, n_features=3)
    >>> g([[True, True, False], [True, False, True]]).tolist()
    [3.5, 1.5]
    """
    if isinstance(values, Mapping):
        if n_features is None:
            raise ValueError("n_features is missing; needed to read {term: value}")
        n_features = check_feature_count(n_features)
        table, scores, base = _read_mapping(values, base, n_features)
    else:
        table, scores = _read_matrix(np.asarray(values, dtype=np.float64))
        n_features = len(np.asarray(values))
    if base is None:
        raise ValueError(
            "base is missing; needed the model's output with everything removed, as "
            "base= or as the value of the empty term ()"
        )
    found = _surrogate(n_features, table, scores, base, n_evaluations)
    return found.with_names(feature_names, output_names)


def _read_mapping(
    values: Mapping[Term, Any], base: Any, n_features: int
) -> tuple[Table, Floats, Any]:
    """Split off the empty term, which is the base value."""
    if () in values:
        if base is not None:
            raise ValueError(
                f"got base={base} and a value {values[()]} of the empty term (); "
                "needed one of them"
            )
        base = values[()]
    terms = [term for term in values if term != ()]
    checked = basis.check_terms(terms, n_features)
    if len(checked) != len(terms):
        raise ValueError("values name a term twice, in another order of its features")
    shape = np.shape(base)
    scores = np.array([values[term] for term in terms], dtype=np.float64)
    return basis.table_of(checked), scores.reshape(len(terms), *shape), base


def _read_matrix(matrix: Floats) -> tuple[Table, Floats]:
    """Diagonal and both halves of each pair as scores of terms."""
    if matrix.ndim not in (2, 3) or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"values have shape {matrix.shape}; needed (n_features, n_features) or "
            "(n_features, n_features, n_outputs) of one input, or {term: value}"
        )
    n = len(matrix)
    table = basis.terms_up_to(n, 2)[1:]
    i, j = table[n:].T if n > 1 else np.zeros((2, 0), dtype=np.int32)
    single = np.arange(n)
    scores = np.concatenate([matrix[single, single], matrix[i, j] + matrix[j, i]])
    return table, scores


def _surrogate(
    n_features: int, table: Table, scores: Floats, base: Any, n_evaluations: int
) -> Surrogate:
    """Turn sums over kept features into parities."""
    start = np.asarray(base, dtype=np.float64)
    if start.shape != scores.shape[1:]:
        raise ValueError(
            f"base has shape {start.shape}; needed {scores.shape[1:]}, one number per "
            "output"
        )
    sizes = basis.term_sizes(table)
    _check_size(sizes)
    degree = int(sizes.max(initial=0))
    columns = scores.reshape(len(table), start.size)
    weights = np.tile(0.5 ** np.arange(degree + 1), (degree + 1, 1))
    parities, coef = superset_sums(table, columns, weights)
    intercept = start.reshape(1, -1) + 0.5**sizes @ columns
    terms = np.pad(parities, ((1, 0), (0, 0)), constant_values=-1)
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
