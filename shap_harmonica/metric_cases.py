"""Rows as functions of masks, beside what an explanation of any SHAP explainer says.

A row of values is read as ``g(mask) = base + sum of the kept features' values``, for an
interaction cube the sum over kept pairs as well. Surrogates are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import shap

from harmonica_core import from_attributions
from shap_harmonica._types import Masks, Values
from shap_harmonica.arguments import check_rows, masked_arguments
from shap_harmonica.background import Background
from shap_harmonica.links import check_link
from shap_harmonica.masker_values import MaskedRow, masked_functions
from shap_harmonica.model_function import as_function
from shap_harmonica.table_values import Table


class How(TypedDict, total=False):
    """Keywords of every metric, beside those of the core's metric of that name.

    Attributes
    ----------
    link, groups
        Of the explainer that made the explanation.
    outputs : sequence of int
        The outputs that were explained; all by default.
    batch_size : int or "auto"
        Model rows per call.
    return_standard_error : bool
        Return a pair: the values and their standard errors.
    """

    link: Any
    groups: Any
    outputs: Any
    batch_size: Any
    return_standard_error: bool


@dataclass(frozen=True)
class Game:
    """One row as a function of masks; ``feature_of`` columns that are grouped."""

    function: Callable[[Masks], Values]
    n_features: int
    feature_of: np.ndarray | None


def games(model: Any, masker: Any, X: Any, **how: Unpack[How]) -> list[Game]:
    """Return every row of X as a function of masks, with the model's link applied.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> (game,) = games(f, np.zeros((1, 2)), np.array([[2.0, 3.0]]))
    >>> game.function(np.array([[True, True], [True, False]]))
    array([6., 0.])
    """
    unknown = sorted(set(how) - set(How.__annotations__))
    if unknown:
        known = sorted(How.__annotations__)
        raise TypeError(f"unknown arguments {unknown}; needed some of {known}")
    function, groups = as_function(model), how.get("groups")
    link = check_link(how.get("link", shap.links.identity))
    size, background = how.get("batch_size", "auto"), Background.of(masker)
    if background is None:
        args = masked_arguments(X if isinstance(X, tuple) else (X,))
        inputs = [MaskedRow(function, masker, link, one, groups) for one in args]
        rows = masked_functions(inputs, size, everything=True)
        columns = [one.feature_of for one in inputs]
    else:
        table = Table(function, background, link, groups)
        checked, _ = check_rows(X, background)
        rows = table.as_functions(checked, size, everything=True)
        columns = [None if groups is None else table.feature_of] * len(checked)

    def value_function(row: int) -> Callable[[Masks], Values]:
        def values(masks: Masks) -> Values:
            (found,) = rows.evaluate(np.array([row]), masks, lambda count: None)
            chosen = how.get("outputs")
            return found if chosen is None else found[:, np.atleast_1d(chosen)]

        return values

    return [
        Game(value_function(row), n_features, columns[row])
        for row, n_features in enumerate(rows.n_features)
    ]


def explained(explanation: Any, rows: list[Game]) -> list[Any]:
    """Return one g per row: the surrogates given, or what the values say."""
    if not isinstance(explanation, shap.Explanation):
        given, kind = list(explanation), "surrogates"
    else:
        given, base, kind = (
            explanation.values,
            explanation.base_values,
            "explained rows",
        )
        if len(rows) == 1 and len(np.shape(given)) and len(given) != 1:
            given, base = [given], [base]
        base = np.broadcast_to(base, len(given)) if np.ndim(base) == 0 else base
    if len(given) != len(rows):
        raise ValueError(
            f"got {len(given)} {kind} for {len(rows)} rows of X; pass X= the "
            "explained rows"
        )
    if kind == "surrogates":
        return list(given)
    return [_additive(*cell) for cell in zip(given, base, rows, strict=True)]


def _additive(values: Any, base: Any, game: Game) -> Any:
    """Return the surrogate of one row's values, however its outputs are shaped."""
    array, base = np.asarray(values, dtype=np.float64), np.asarray(base)
    dropped = base.shape == (1,) and array.shape[-1] != 1
    if dropped:  # SHAP drops a single output's axis
        base = base[0]
    tail = base.shape
    head = array.shape[: array.ndim - len(tail)]
    columns = game.n_features if game.feature_of is None else len(game.feature_of)
    if np.prod(head) == columns:  # of mask columns (pixels), not of pairs
        array = array.reshape(-1, *tail)
        if game.feature_of is not None:
            features = np.zeros((game.n_features, *tail))
            np.add.at(features, game.feature_of, array)
            array = features
    found = from_attributions(array, base if tail else float(base))
    return (lambda masks: found(masks)[:, None]) if dropped else found
