"""Any SHAP masker (text, images, custom, composite) as a function of masks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import shap

from shap_harmonica._types import Floats, Masks, Values
from shap_harmonica.groups import feature_of_columns, patches
from shap_harmonica.links import Link, apply_link
from shap_harmonica.model_function import Model, as_rows, call_size_of
from shap_harmonica.surrogates import Advance, Rows

# Bytes of masked inputs in one "auto" call, and the most inputs in it.
_CALL_BYTES = 1 << 25
_CALL_INPUTS = 256


class MaskedRow:
    """One input behind a masker: a function of masks of its features.

    The masker is called as ``masker(mask, *args)`` (SHAP's protocol) with the model's
    arguments for this input. ``groups`` are mask columns to remove together, see
    `groups.feature_of_columns`.
    """

    def __init__(
        self, model: Model, masker: Any, link: Link, args: tuple[Any, ...], groups: Any
    ) -> None:
        check_masker(masker)
        if getattr(masker, "text_data", False) and not isinstance(args[0], str):
            shape = np.shape(args[0])
            raise TypeError(
                f"got an input of shape {shape} for a {type(masker).__name__} masker; "
                "needed strings: for rows of a table pass background rows instead of "
                "the masker"
            )
        self.model, self.masker, self.link, self.args = model, masker, link, args
        self.call_size = call_size_of(masker)
        self.shapes = mask_shapes(masker, args)
        self.n_columns = int(sum(np.prod(shape) for shape in self.shapes))
        if groups is None and getattr(masker, "image_data", False):
            groups = patches(np.shape(args[0]))
        self.has_own_features = callable(groups) or getattr(masker, "text_data", False)
        self.feature_of = (
            None
            if groups is None
            else feature_of_columns(groups, args[0], self.n_columns)
        )

    @property
    def n_features(self) -> int:
        """Number of features (mask columns, or groups of them)."""
        if self.feature_of is None:
            return self.n_columns
        return int(self.feature_of.max()) + 1

    def varying(self) -> np.ndarray:
        """Features whose removal changes the input: int (v,), ascending."""
        columns = ~self._invariant_columns()
        if self.feature_of is None:
            return np.flatnonzero(columns)
        return np.unique(self.feature_of[columns])

    def _invariant_columns(self) -> Masks:
        invariants = getattr(self.masker, "invariants", None)
        if callable(invariants):
            return np.asarray(np.all(invariants(*self.args), axis=0))
        fixed = getattr(self.masker, "mask_value", None)
        if getattr(self.masker, "image_data", False) and isinstance(fixed, np.ndarray):
            return np.asarray(np.ravel(np.asarray(self.args[0])) == fixed)
        return np.zeros(self.n_columns, dtype=bool)

    def values(
        self, varying: np.ndarray, masks: Masks, batch_size: int | str
    ) -> Values:
        """Values ``(m,)`` or ``(m, n_outputs)`` of masks ``(m, len(varying))``."""
        averages: list[Floats] = []
        batch: list[tuple[Any, ...]] = []
        for mask in masks:
            batch.append(self._masked(varying, mask))
            if len(batch) >= self._batch_masks(batch[0], batch_size):
                averages.extend(self._in_calls(batch))
                batch = []
        averages.extend(self._in_calls(batch))
        return apply_link(self.link, np.concatenate(averages))

    def _masked(self, varying: np.ndarray, mask: np.ndarray) -> tuple[Any, ...]:
        keep = np.ones(self.n_features, dtype=bool)
        keep[varying] = mask
        columns = keep if self.feature_of is None else keep[self.feature_of]
        out = self.masker(columns, *self.args)
        if not getattr(self.masker, "immutable_outputs", False):
            out = copy.deepcopy(out)
        return out if isinstance(out, tuple) else (out,)

    def _batch_masks(self, first: tuple[Any, ...], batch_size: int | str) -> int:
        """Masks per call: ``batch_size`` counts rows of the model's input."""
        n_rows = max(1, len(first[0]))
        if batch_size != "auto":
            return max(1, int(batch_size) // n_rows)
        size = max(1, getattr(first[0], "nbytes", 1))
        return int(np.clip(_CALL_BYTES // size, 1, max(1, _CALL_INPUTS // n_rows)))

    def _in_calls(self, batch: list[tuple[Any, ...]]) -> Iterator[Floats]:
        """Averages of a batch of masks: one call, or several where memory is short."""
        while batch:
            n_rows = sum(len(masked[0]) for masked in batch)
            found = self.call_size.run(partial(self._first_averages, batch), n_rows)
            yield found
            batch = batch[len(found) :]

    def _first_averages(self, batch: list[tuple[Any, ...]], size: int) -> Floats:
        """Averages of as many masks as fit into ``size`` rows: (p,) or (p, K)."""
        ends = np.cumsum([len(masked[0]) for masked in batch])
        batch = batch[: max(1, int(np.searchsorted(ends, size, side="right")))]
        counts = [len(masked[0]) for masked in batch]
        joined = [_join(parts) for parts in zip(*batch, strict=True)]
        output = self._outputs(joined, sum(counts), size)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        sums = np.add.reduceat(output, starts, axis=0)
        return np.asarray((sums.T / counts).T)

    def _outputs(self, joined: list[Any], n_rows: int, size: int) -> Floats:
        """Outputs of all rows; those of one mask can be more than a call may have."""
        if n_rows <= size or any(len(argument) != n_rows for argument in joined):
            return as_rows(self.model(*joined), n_rows)
        outputs = []
        for start in range(0, n_rows, size):
            part = slice(start, min(n_rows, start + size))
            raw = self.model(*[_take(argument, part) for argument in joined])
            outputs.append(as_rows(raw, part.stop - part.start))
        return np.concatenate(outputs)


def masked_functions(
    inputs: list[MaskedRow], batch_size: Any, everything: bool
) -> Rows:
    """Return inputs as functions of masks of the features that vary, or of all.

    Words of texts and segments found for each image mean something else in every
    input, so those share no prior.
    """
    features = [np.arange(x.n_features) if everything else x.varying() for x in inputs]

    def evaluate(numbers: Any, masks: Masks, advance: Advance) -> list[Values]:
        out = []
        for i in numbers:
            out.append(inputs[i].values(features[i], masks, batch_size))
            advance(len(masks))
        return out

    counts = [x.n_features for x in inputs]
    own = any(x.has_own_features for x in inputs) or len(set(counts)) > 1
    return Rows(evaluate, features, counts, alike=not own)


def check_masker(masker: Any) -> None:
    """Refuse what is neither a background nor a masker."""
    if not callable(masker):
        raise TypeError(
            f"masker={masker!r}; needed a background (array, DataFrame), a SHAP masker "
            "or a function masker(mask, x): pass it after the model, such as "
            "HarmonicaExplainer(model.predict, X_background)"
        )


def mask_shapes(masker: Any, args: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Shape of the mask of each model argument."""
    if isinstance(masker, shap.maskers.Composite):
        return _composite_shapes(masker, args)
    if callable(getattr(masker, "mask_shapes", None)):
        return [tuple(shape) for shape in masker.mask_shapes(*args)]
    if not hasattr(masker, "shape") or getattr(masker, "image_data", False):
        return [np.shape(arg) for arg in args]
    shape = masker.shape(*args) if callable(masker.shape) else masker.shape
    return [(int(shape[1]),), *[(0,)] * (len(args) - 1)]


def _composite_shapes(masker: Any, args: tuple[Any, ...]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    position = 0
    for part, count in zip(masker.maskers, masker.arg_counts, strict=True):
        out.extend(mask_shapes(part, args[position : position + count]))
        position += count
    return out


def _join(parts: tuple[Any, ...]) -> Any:
    """Rows of several masks as one batch, of the kind the masker made."""
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in parts])


def _take(argument: Any, part: slice) -> Any:
    return argument.iloc[part] if hasattr(argument, "iloc") else argument[part]
