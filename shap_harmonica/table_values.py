"""Model + background + rows -> functions of masks, batched across rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from shap_harmonica import inputs as kinds
from shap_harmonica._types import Floats, Masks, Values
from shap_harmonica.background import Background
from shap_harmonica.groups import feature_of_columns
from shap_harmonica.inputs import Inputs
from shap_harmonica.links import Link, apply_link
from shap_harmonica.model_function import (
    Model,
    as_rows,
    call_strictly,
    new_call_size,
)
from shap_harmonica.surrogates import Advance, Rows

# Bytes of masked rows in one "auto" call of the model, and its smallest and largest.
_CALL_BYTES = 1 << 23
_CALL_ROWS = (256, 1 << 16)

_FORMS = {
    "array": kinds.array_inputs,
    "frame": kinds.frame_inputs,
    "sparse": kinds.sparse_inputs,
}


class Table:
    """A model on a table: columns removed by a background, outputs averaged.

    ``value(mask) = link(sum_b w_b model(x where kept, background_b elsewhere))``.

    A feature is a column, or a group of columns: of ``groups`` (see
    `groups.feature_of_columns`) or the background's own.
    """

    def __init__(
        self, model: Model, background: Background, link: Link, groups: Any = None
    ) -> None:
        self.model, self.background, self.link = model, background, link
        self.feature_of = _feature_of(background, groups)
        self.call_size = new_call_size()
        self.form: str | None = None
        self._expected: Any = None

    @property
    def n_features(self) -> int:
        """Number of features (columns, or groups of columns)."""
        if self.feature_of is None:
            return self.background.n_columns
        return int(self.feature_of.max()) + 1

    def expected_value(self, rows: Any = None, batch_size: int | str = "auto") -> Any:
        """``link(E model(background))``: a float, or (n_outputs,) float64.

        The first evaluation also settles what the model wants its input to be; the
        ``rows`` only lend their column names to a background without any.
        """
        if self._expected is not None:
            return self._expected
        nothing = np.zeros((1, self.background.n_columns), dtype=bool)
        first = np.zeros(1, dtype=int)
        n_rows = min(call_rows(self, batch_size), len(self.background.weights))
        errors: list[Exception] = []
        for form, strict in self._attempts(rows):
            bound = _FORMS[form](self.background, _head(self.background.rows, rows))
            average = partial(self._average, bound, nothing, first, strict)
            try:
                mean = self.call_size.run(average, n_rows)[0]
            except Exception as error:
                errors.append(error)
                continue
            self.form = form
            linked = apply_link(self.link, np.asarray(mean))
            self._expected = float(linked) if linked.ndim == 0 else linked
            return self._expected
        raise errors[0]

    def _attempts(self, rows: Any) -> list[tuple[str, bool]]:
        """Forms to try, most natural first; strictly at first, then as it comes."""
        forms = ["array"]
        if self.background.sparse:
            forms = ["sparse", "array"]
        elif isinstance(self.background.rows, pd.DataFrame):
            forms = ["frame", "array"]
        elif self.background.groups is None and (
            self.background.names or hasattr(rows, "columns")
        ):
            forms = ["array", "frame"]
        return [(form, strict) for strict in (True, False) for form in forms]

    def inputs(self, rows: Any) -> Inputs:
        """Bind the rows to explain."""
        if self.form is None:
            self.expected_value(rows)
        return _FORMS[self.form or "array"](self.background, rows)

    def varying(self, bound: Inputs) -> Masks:
        """Whether a feature of a row differs from the background: bool (R, n)."""
        differs = bound.differs()
        if self.feature_of is None:
            return differs
        out = np.zeros((self.n_features, len(differs)), dtype=bool)
        np.logical_or.at(out, self.feature_of, differs.T)
        return out.T

    def as_functions(self, rows: Any, batch_size: Any, everything: bool) -> Rows:
        """Return rows as functions of masks of the features that vary, or of all."""
        base = np.asarray(self.expected_value(rows, batch_size))
        bound = self.inputs(rows)
        differs = self.varying(bound) | everything
        features = [np.flatnonzero(row) for row in differs]
        size = call_rows(self, batch_size)

        def evaluate(numbers: Any, masks: Masks, advance: Advance) -> list[Values]:
            some = masks.any(axis=1)  # without any feature it is the background
            out = np.empty((len(masks), len(numbers), *base.shape))
            out[~some] = base
            if some.any():
                varying = np.stack([features[i] for i in numbers])
                out[some] = self.values(
                    bound, numbers, varying, masks[some], size, advance
                )
            return [out[:, k] for k in range(len(numbers))]

        return Rows(evaluate, features, [self.n_features] * len(differs), base.size)

    def values(
        self,
        bound: Inputs,
        rows: np.ndarray,
        varying: np.ndarray,
        masks: Masks,
        batch_size: int,
        advance: Advance,
    ) -> Values:
        """Return values ``(m, R[, n_outputs])`` of the same masks for R rows.

        ``varying (R, v)`` are the features that the columns of ``masks (m, v)`` stand
        for; all others are kept. A call has ``batch_size`` model rows, or fewer where
        memory is short; ``advance`` is told the number of finished masks.
        """
        n_pairs, n_fill = len(rows) * len(masks), len(self.background.weights)
        averages: Any = None
        done = 0
        while done < n_pairs:
            left = range(done, n_pairs)
            first = partial(self._first_pairs, bound, rows, varying, masks, left)
            found = self.call_size.run(first, min(batch_size, len(left) * n_fill))
            if averages is None:
                averages = np.empty((n_pairs, *found.shape[1:]))
            averages[done : done + len(found)] = found
            advance(len(found))
            done += len(found)
        linked = apply_link(self.link, averages)
        return np.swapaxes(
            linked.reshape(len(rows), len(masks), *linked.shape[1:]), 0, 1
        )

    def _first_pairs(
        self,
        bound: Inputs,
        rows: np.ndarray,
        varying: np.ndarray,
        masks: Masks,
        left: range,
        size: int,
    ) -> Floats:
        """Averages of the first of the (row, mask) pairs left, within ``size`` rows."""
        pairs = np.array(left[: max(1, size // len(self.background.weights))])
        which, mask = np.divmod(pairs, len(masks))
        keep = np.ones((len(pairs), self.n_features), dtype=bool)
        np.put_along_axis(keep, varying[which], masks[mask], axis=1)
        if self.feature_of is not None:
            keep = keep[:, self.feature_of]
        return self._average(bound, keep, rows[which], False, size)

    def _average(
        self, bound: Inputs, keep: Masks, rows: np.ndarray, strict: bool, size: int
    ) -> Floats:
        """Weighted average over the background for each mask: (p,) or (p, K)."""
        total: Any = 0.0
        weights = self.background.weights
        for start in range(0, len(weights), size):
            part = slice(start, start + size)
            data = bound.build(keep, rows, part)
            raw = call_strictly(self.model, data) if strict else self.model(data)
            output = as_rows(raw, data.shape[0])
            if len(weights) == 1:
                return output
            blocks = output.reshape(len(keep), -1, *output.shape[1:])
            total = total + np.einsum("pb...,b->p...", blocks, weights[part])
        return np.asarray(total)


def _feature_of(background: Background, groups: Any) -> np.ndarray | None:
    if groups is not None:
        row = np.asarray(background.rows)[0]
        return feature_of_columns(groups, row, background.n_columns)
    if background.groups is None:
        return None
    out = np.zeros(background.n_columns, dtype=int)
    for feature, columns in enumerate(background.groups):
        out[columns] = feature
    return out


def _head(background: Any, rows: Any) -> Any:
    """Any one row, with the column names of ``rows`` when those are given."""
    return background[:1] if rows is None else rows[:1]


def call_rows(table: Table, batch_size: int | str) -> int:
    """Model rows per call; "auto" bounds the memory of one call."""
    if batch_size != "auto":
        return int(batch_size)
    low, high = _CALL_ROWS
    return int(np.clip(_CALL_BYTES // (8 * table.background.n_columns), low, high))
