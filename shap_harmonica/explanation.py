"""Surrogates -> `shap.Explanation`, shaped as SHAP's own explainers shape it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from harmonica_core import indices
from shap_harmonica._types import Values
from shap_harmonica.groups import spread
from shap_harmonica.masker_values import MaskedRow
from shap_harmonica.surrogates import Explained


@dataclass(frozen=True)
class Layout:
    """How the features of each row lie in the model's arguments.

    Of each row: ``shapes`` of the masks of the model's arguments, and ``feature_of``
    each mask column where columns are grouped. Of each argument: ``data`` that plots
    show, and ``names`` of features. ``base``: the base value, if not the surrogates'.
    """

    shapes: list[list[tuple[int, ...]]]
    feature_of: list[np.ndarray | None]
    data: list[Any]
    names: list[Any]
    base: Any = None

    @classmethod
    def of_table(
        cls, data: np.ndarray, names: list[Any], feature_of: Any, base: Any
    ) -> Layout:
        """Return that of rows with the same columns (or groups from the background)."""
        n = len(names) if feature_of is None else len(feature_of)
        shapes: list[list[tuple[int, ...]]] = [[(n,)]] * len(data)
        return cls(shapes, [feature_of] * len(data), [data], [names], base)

    @classmethod
    def of_masker(cls, masker: Any, rows: list[MaskedRow], names: Any) -> Layout:
        """Return that of inputs behind a masker, which may be ragged."""
        args = [row.args for row in rows]
        if hasattr(masker, "data_transform"):  # tokens instead of a string
            shown = [masker.data_transform(*one) for one in args]
        else:
            shown = args
        data = [_stacked(part) for part in zip(*shown, strict=True)]
        shapes = [row.shapes for row in rows]
        groups = [row.feature_of for row in rows]
        return cls(shapes, groups, data, _feature_names(masker, args, names))

    def part(self, row: int, argument: int) -> tuple[slice, tuple[int, ...]]:
        """Return a row's mask columns of one model argument, and their shape."""
        sizes = [int(np.prod(shape)) for shape in self.shapes[row]]
        start = sum(sizes[:argument])
        return slice(start, start + sizes[argument]), self.shapes[row][argument]

    def columns(self, argument: int, found: list[Values]) -> np.ndarray:
        """Return values of features as one argument's columns, a group's shared."""
        cells = []
        for row, values in enumerate(found):
            part, shape = self.part(row, argument)
            groups = self.feature_of[row]
            own = (values if groups is None else spread(values, groups))[part]
            cells.append(own.reshape(*shape, *own.shape[1:]))
        return pack(cells)

    def pairs(self, argument: int, found: list[Values]) -> np.ndarray:
        """Return pairs within one argument; of groups, all pairs."""
        cells = []
        for row, values in enumerate(found):
            part, _ = self.part(row, argument)
            cells.append(
                values if self.feature_of[row] is not None else values[part, part]
            )
        return pack(cells)


def explanations(
    found: list[Explained],
    layout: Layout,
    output_names: Any,
    index: str,
    cube: str | None,
    with_main_effects: bool,
) -> list[shap.Explanation]:
    """Return one explanation per model argument that has features.

    ``output_names`` are those of all outputs. ``index`` is "SV" or "BV"; with an index
    of pairs as ``cube``, values are ``(n_rows, n, n[, n_outputs])``.
    """
    surrogates = [row.surrogate for row in found]
    std = effects = None
    if cube is not None:
        values = [np.asarray(s.interaction_matrix(cube)) for s in surrogates]
    elif index == "SV":
        both = [s.shapley_values(return_std=True) for s in surrogates]
        values, std = [phi for phi, _ in both], [error for _, error in both]
    else:
        own = [own_polynomial(s) for s in surrogates]
        values = [np.asarray(indices.feature_values(one, index)) for one in own]
    if with_main_effects:
        effects = [main_effects(s) for s in surrogates]
    laid_out = layout.columns if cube is None else layout.pairs
    return [
        shap.Explanation(
            laid_out(argument, values),
            base_values=pack([_base(row, layout.base) for row in found]),
            data=layout.data[argument],
            feature_names=layout.names[argument],
            output_names=_output_names(found, output_names),
            error_std=None if std is None else layout.columns(argument, std),
            main_effects=None if effects is None else layout.columns(argument, effects),
        )
        for argument in range(len(layout.data))
        if any(np.prod(shapes[argument]) for shapes in layout.shapes)
    ]


def own_polynomial(surrogate: Any) -> Any:
    """Return what explains the input itself: of several pieces, its own."""
    return getattr(surrogate, "own", surrogate)


def main_effects(surrogate: Any) -> Values:
    """Return ``g(only i kept) - g(all removed)`` of each feature."""
    alone = surrogate(np.eye(surrogate.n_features, dtype=bool))
    return np.asarray(alone - own_polynomial(surrogate).base_value)


def pack(arrays: list[Any]) -> np.ndarray:
    """Stack rows of the same shape, or keep ragged rows as an object array."""
    if len({np.shape(array) for array in arrays}) == 1:
        return np.stack([np.asarray(array) for array in arrays])
    out = np.empty(len(arrays), dtype=object)
    for k, array in enumerate(arrays):
        out[k] = np.asarray(array)
    return out


def _base(row: Explained, base: Any) -> np.ndarray:
    if base is None:
        return np.asarray(own_polynomial(row.surrogate).base_value)
    return np.asarray(base if row.outputs is None else np.asarray(base)[row.outputs])


def _output_names(found: list[Explained], names: Any) -> Any:
    """Names of the explained outputs: a list, or one list per row if rows differ."""
    if names is None or own_polynomial(found[0].surrogate).one_output:
        return None
    if found[0].outputs is None:
        return [str(name) for name in names]
    per_row = [[str(names[k]) for k in row.outputs] for row in found]  # type: ignore[union-attr]
    same = all(labels == per_row[0] for labels in per_row)
    return per_row[0] if same else per_row


def _stacked(part: tuple[Any, ...]) -> Any:
    """One array per input where they have axes; tokens stay ragged, as SHAP has it."""
    if all(isinstance(value, list) for value in part):
        return tuple(np.asarray(value, dtype=object) for value in part)
    if all(hasattr(value, "shape") for value in part):
        return pack([np.asarray(value) for value in part])
    return list(part)


def _feature_names(masker: Any, args: list[tuple[Any, ...]], given: Any) -> list[Any]:
    n_args = len(args[0])
    names = getattr(masker, "feature_names", None)
    if callable(names):
        return [list(part) for part in zip(*(names(*one) for one in args), strict=True)]
    if given is None:
        return [None] * n_args
    nested = len(given) > 0 and isinstance(given[0], (list, tuple))
    return list(given) if nested else [given, *[None] * (n_args - 1)]
