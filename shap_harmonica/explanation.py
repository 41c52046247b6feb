"""Surrogates -> `shap.Explanation`, shaped as SHAP's own explainers shape it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import shap

from harmonica_core import indices
from shap_harmonica._types import Values
from shap_harmonica.groups import spread
from shap_harmonica.masker_values import MaskedRow
from shap_harmonica.surrogates import Explained


def own_polynomial(surrogate: Any) -> Any:
    """Return what explains the input itself: of several pieces, its own."""
    return getattr(surrogate, "own", surrogate)


def attributions(
    surrogates: list[Any], index: str
) -> tuple[list[Values], list[Values] | None]:
    """Return values of features and their standard deviations, one array a surrogate.

    Arrays are ``(n_features,)`` or ``(n_features, n_outputs)``. Deviations are known of
    Shapley values ("SV") only, otherwise None.
    """
    if index != "SV":
        own = [own_polynomial(surrogate) for surrogate in surrogates]
        return [np.asarray(indices.feature_values(one, index)) for one in own], None
    both = [surrogate.shapley_values(return_std=True) for surrogate in surrogates]
    return [np.asarray(phi) for phi, _ in both], [np.asarray(std) for _, std in both]


def base_value(surrogate: Any) -> Any:
    """Return what the attributions start from."""
    return np.asarray(own_polynomial(surrogate).base_value)


def main_effects(surrogate: Any) -> Values:
    """``g(only i kept) - g(all removed)`` of each feature."""
    alone = surrogate(np.eye(surrogate.n_features, dtype=bool))
    return np.asarray(alone - base_value(surrogate))


def explain_like_table(
    found: list[Explained],
    data: np.ndarray,
    base: Any,
    feature_names: list[str],
    output_names: Any,
    *,
    index: str,
    interaction_index: str | None,
    feature_of: np.ndarray | None,
    with_main_effects: bool,
) -> shap.Explanation:
    """Explanation of rows with the same features.

    Parameters
    ----------
    found : list of Explained, one per row
    data : (n_rows, n_columns)
    base : float or (n_outputs,)
        The expected value before any choice of outputs.
    interaction_index : str or None
        Given: values are the cube ``(n_rows, n, n[, n_outputs])``.
    feature_of : int (n_columns,) or None
        Share each group's value among its columns.
    """
    surrogates = [row.surrogate for row in found]
    std = None
    if interaction_index is None:
        values, errors = attributions(surrogates, index)
        cells = [_shared(part, feature_of) for part in values]
        if errors is not None:
            std = np.stack([_shared(part, feature_of) for part in errors])
    else:
        cells = [
            np.asarray(s.interaction_matrix(interaction_index)) for s in surrogates
        ]
    effects = None
    if with_main_effects:
        effects = np.stack([_shared(main_effects(s), feature_of) for s in surrogates])
    return shap.Explanation(
        np.stack(cells),
        base_values=np.stack([_chosen(base, row.outputs) for row in found]),
        data=data,
        feature_names=feature_names,
        output_names=_names(found, output_names),
        error_std=std,
        main_effects=effects,
    )


def explain_like_masker(
    found: list[Explained],
    rows: list[MaskedRow],
    masker: Any,
    feature_names: Any,
    output_names: Any,
    *,
    index: str,
    interaction_index: str | None,
    with_main_effects: bool,
) -> list[shap.Explanation]:
    """One explanation per model argument, ragged where the inputs are.

    Arguments without mask columns (shap.maskers.Fixed) have nothing to explain.
    """
    surrogates = [row.surrogate for row in found]
    bases = pack([base_value(surrogate) for surrogate in surrogates])
    names = _names(found, output_names)
    data = _transformed(masker, [row.args for row in rows])
    labels = _feature_labels(masker, [row.args for row in rows], feature_names)
    n_args = len(rows[0].args)
    out = []
    for argument in range(n_args):
        if not any(np.prod(row.shapes[argument]) for row in rows):
            continue
        laid_out = partial(_laid_out, rows, argument)
        std = None
        if interaction_index is not None:
            values = _cubes(found, rows, argument, interaction_index)
        else:
            cells, errors = attributions(surrogates, index)
            values = laid_out(cells)
            std = None if errors is None else laid_out(errors)
        effects = [main_effects(s) for s in surrogates] if with_main_effects else None
        out.append(
            shap.Explanation(
                values,
                base_values=bases,
                data=data[argument],
                feature_names=labels[argument],
                output_names=names,
                error_std=std,
                main_effects=None if effects is None else laid_out(effects),
            )
        )
    return out


def _laid_out(rows: list[MaskedRow], argument: int, found: list[Values]) -> np.ndarray:
    """Values of one model argument, each row's in the shape of its mask."""
    cells = []
    for values, row in zip(found, rows, strict=True):
        part, shape = _part(row, argument)
        own = _shared(values, row.feature_of)[part]
        cells.append(own.reshape(*shape, *own.shape[1:]))
    return pack(cells)


def _cubes(
    found: list[Explained], rows: list[MaskedRow], argument: int, index: str
) -> np.ndarray:
    """Pairs within one model argument; of groups, all pairs."""
    cells = []
    for explained, row in zip(found, rows, strict=True):
        part, _ = _part(row, argument)
        cube = np.asarray(explained.surrogate.interaction_matrix(index))
        cells.append(cube[part, part] if row.feature_of is None else cube)
    return pack(cells)


def pack(arrays: list[Any]) -> np.ndarray:
    """Stack rows of the same shape, or keep ragged rows as an object array."""
    if len({np.shape(array) for array in arrays}) == 1:
        return np.stack([np.asarray(array) for array in arrays])
    out = np.empty(len(arrays), dtype=object)
    for k, array in enumerate(arrays):
        out[k] = np.asarray(array)
    return out


def _shared(values: Values, feature_of: np.ndarray | None) -> Values:
    return values if feature_of is None else spread(values, feature_of)


def _chosen(base: Any, outputs: np.ndarray | None) -> np.ndarray:
    return np.asarray(base if outputs is None else np.asarray(base)[outputs])


def _names(found: list[Explained], names: Any) -> Any:
    """Names of the explained outputs: a list, or one list per row if rows differ."""
    if names is None or own_polynomial(found[0].surrogate).one_output:
        return None
    if found[0].outputs is None:
        return [str(name) for name in names]
    per_row = [[str(names[k]) for k in row.outputs] for row in found]  # type: ignore[union-attr]
    same = all(labels == per_row[0] for labels in per_row)
    return per_row[0] if same else per_row


def _part(row: MaskedRow, argument: int) -> tuple[slice, tuple[int, ...]]:
    """Mask columns of one model argument, and their shape."""
    sizes = [int(np.prod(shape)) for shape in row.shapes]
    start = sum(sizes[:argument])
    return slice(start, start + sizes[argument]), row.shapes[argument]


def _transformed(masker: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
    """Data per argument as the masker wants it shown (tokens instead of a string)."""
    if hasattr(masker, "data_transform"):
        shown = [masker.data_transform(*args) for args in rows]
        return [_stacked(part) for part in zip(*shown, strict=True)]
    return [_stacked(part) for part in zip(*rows, strict=True)]


def _stacked(part: tuple[Any, ...]) -> Any:
    """One array per input where they have axes; tokens stay ragged, as SHAP has it."""
    if all(isinstance(value, list) for value in part):
        return tuple(np.asarray(value, dtype=object) for value in part)
    if all(hasattr(value, "shape") for value in part):
        return pack([np.asarray(value) for value in part])
    return list(part)


def _feature_labels(masker: Any, rows: list[tuple[Any, ...]], given: Any) -> list[Any]:
    n_args = len(rows[0])
    names = getattr(masker, "feature_names", None)
    if callable(names):
        return [list(part) for part in zip(*(names(*a) for a in rows), strict=True)]
    if given is None:
        return [None] * n_args
    nested = len(given) > 0 and isinstance(given[0], (list, tuple))
    return list(given) if nested else [given, *[None] * (n_args - 1)]
