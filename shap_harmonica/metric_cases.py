"""Rows as functions of masks, beside what an explanation of any SHAP explainer says.

An explanation's row is read as a function of masks: ``g(mask) = base + sum of the kept
features' values``, and for an interaction cube the sum over kept pairs as well. A list
of surrogates (``explainer.surrogates``) is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import shap

from harmonica_core import Estimate, from_attributions
from shap_harmonica._types import Masks, Values
from shap_harmonica.arguments import check_rows, masked_arguments
from shap_harmonica.background import Background
from shap_harmonica.links import check_link
from shap_harmonica.masker_values import MaskedRow
from shap_harmonica.model_function import as_function
from shap_harmonica.table_values import Table, call_rows


class How(TypedDict, total=False):
    """Keywords of every metric.

    Attributes
    ----------
    link : callable or name
        Of the explainer that made the explanation; identity by default.
    groups : labels or callable
        Of the explainer that made the explanation.
    outputs : sequence of int
        The outputs that were explained; all by default.
    max_evaluations : int
        Masks per row: up to so many are enumerated, beyond that sampled.
    seed : int, Generator or None
        Of the sampled masks; default 0.
    batch_size : int or "auto"
        Model rows per call.
    return_standard_error : bool
        Return a pair: the values and their standard errors.

    Examples
    --------
    >>> from shap_harmonica.metrics import interpretation_error
    >>> how: How = {"link": "logit", "max_evaluations": 1000, "seed": 1}
    >>> phi = shap.Explanation(np.zeros((1, 2)), np.zeros(1), np.ones((1, 2)))
    >>> interpretation_error(lambda X: 0.5 + 0 * X[:, 0], np.zeros((1, 2)), phi, **how)
    array([0.])
    """

    link: Any
    groups: Any
    outputs: Any
    max_evaluations: int
    seed: int | np.random.Generator | None
    batch_size: Any
    return_standard_error: bool


@dataclass(frozen=True)
class Game:
    """One row as a function of masks.

    Attributes
    ----------
    function : callable, bool (m, n_features) -> (m,) or (m, n_outputs)
    n_features : int
    feature_of : int (n_columns,) or None
        Feature of each column of the explanation, when columns are grouped.

    Examples
    --------
    >>> (game,) = games(lambda X: X.sum(axis=1), np.zeros((1, 2)), np.ones((1, 2)))
    >>> game.n_features
    2
    """

    function: Callable[[Masks], Values]
    n_features: int
    feature_of: np.ndarray | None


def games(model: Any, masker: Any, X: Any, **how: Unpack[How]) -> list[Game]:
    """Every row of X as a function of masks, with the model's link applied.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> (game,) = games(f, np.zeros((1, 2)), np.array([[2.0, 3.0]]))
    >>> game.function(np.array([[True, True], [True, False]]))
    array([6., 0.])
    """
    unknown = sorted(set(how) - set(How.__annotations__))
    if unknown:
        known = ", ".join(sorted(How.__annotations__))
        raise TypeError(f"unknown keywords {unknown}; needed some of {known}")
    function = as_function(model)
    link = check_link(how.get("link", shap.links.identity))
    background = Background.of(masker)
    batch_size, groups = how.get("batch_size", "auto"), how.get("groups")
    if background is None:
        rows = [
            MaskedRow(function, masker, link, args, groups)
            for args in masked_arguments(X if isinstance(X, tuple) else (X,))
        ]
        return [_masked_game(row, batch_size, how.get("outputs")) for row in rows]
    table = Table(function, background, link, groups)
    checked, _ = check_rows(X, background)
    table.expected_value(checked)
    bound = table.inputs(checked)
    every = np.arange(table.n_features)[None]
    feature_of = None if groups is None else table.feature_of

    def game(row: int) -> Game:
        def value(masks: Masks) -> Values:
            n_rows, which = call_rows(table, batch_size), np.array([row])
            found = table.values(bound, which, every, masks, n_rows, lambda n: None)
            return _chosen(found[:, 0], how.get("outputs"))

        return Game(value, table.n_features, feature_of)

    return [game(row) for row in range(len(checked))]


def _masked_game(row: MaskedRow, batch_size: Any, outputs: Any) -> Game:
    every = np.arange(row.n_features)

    def value(masks: Masks) -> Values:
        return _chosen(row.values(every, masks, batch_size), outputs)

    return Game(value, row.n_features, row.feature_of)


def _chosen(values: Values, outputs: Any) -> Values:
    return values if outputs is None else values[:, np.atleast_1d(outputs)]


def per_row(
    metric: Callable[..., Estimate],
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any,
    how: How,
) -> Any:
    """Return a metric of every row: ``(n_rows,)`` or ``(n_rows, n_outputs)``."""
    rows = games(model, masker, _data(explanation) if X is None else X, **how)
    functions = _functions(explanation, rows)
    sampling: dict[str, Any] = {
        name: how[name] for name in ("max_evaluations", "seed") if name in how
    }
    found = [
        metric(row.function, g, row.n_features, **sampling)
        for row, g in zip(rows, functions, strict=True)
    ]
    values = np.stack([np.asarray(estimate.value) for estimate in found])
    if not how.get("return_standard_error", False):
        return values
    return values, np.stack([np.asarray(estimate.standard_error) for estimate in found])


def _data(explanation: Any) -> Any:
    data = getattr(explanation, "data", None)
    if data is None:
        raise ValueError("the explanation holds no data; pass the explained rows as X=")
    return data


def _functions(explanation: Any, rows: list[Game]) -> list[Any]:
    """One g per row: the surrogates given, or what the values say."""
    if not isinstance(explanation, shap.Explanation):
        given = list(explanation)
    else:
        values, base = explanation.values, explanation.base_values
        if len(rows) == 1 and len(np.shape(values)) and len(values) != 1:
            values, base = [values], [base]
        bases = np.broadcast_to(base, len(values)) if np.ndim(base) == 0 else base
        if len(values) != len(rows):
            raise ValueError(
                f"got {len(values)} explained rows for {len(rows)} of X; pass X= the "
                "explained rows"
            )
        given = [_additive(*cell) for cell in zip(values, bases, rows, strict=True)]
    if len(given) != len(rows):
        raise ValueError(
            f"got {len(given)} surrogates for {len(rows)} rows of X; pass X= the "
            "explained rows"
        )
    return given


def _additive(values: Any, base: Any, game: Game) -> Any:
    """Return the surrogate of one row's values, however its outputs are shaped."""
    array, base = np.asarray(values, dtype=np.float64), np.asarray(base)
    dropped = base.shape == (1,) and array.shape[-1] != 1
    if dropped:  # SHAP drops a single output's axis
        base = base[0]
    tail = base.shape
    if _holds_columns(array.shape[: array.ndim - len(tail)], game):
        array = _summed(array.reshape(-1, *tail), game)
    found = from_attributions(array, base if tail else float(base))
    return _as_column(found) if dropped else found


def _holds_columns(head: tuple[int, ...], game: Game) -> bool:
    """Whether these are values of mask columns (of pixels) and not of pairs."""
    n = game.n_features if game.feature_of is None else len(game.feature_of)
    return bool(np.prod(head) == n)


def _summed(columns: np.ndarray, game: Game) -> np.ndarray:
    """Values of features: the sums over their columns."""
    if game.feature_of is None:
        return columns
    out = np.zeros((game.n_features, *columns.shape[1:]))
    np.add.at(out, game.feature_of, columns)
    return out


def _as_column(surrogate: Any) -> Callable[[Masks], Values]:
    return lambda masks: surrogate(masks)[:, None]
