"""Masked model inputs for tables, built for many rows and masks at once.

Every builder answers the same two questions: which columns of a row differ from the
background (`differs`), and what the model sees when some columns are kept (`build`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse

from shap_harmonica._types import Masks
from shap_harmonica.background import Background, one_row_frame

# Cells compared at once while looking for features equal to the background.
_CELLS = 1 << 24


class Inputs(Protocol):
    """Rows to explain together with the background that replaces what is removed."""

    def differs(self) -> Masks:
        """Whether a column of a row differs from any background row: (R, n)."""

    def build(self, keep: Masks, rows: np.ndarray, part: slice) -> Any:
        """Return the model input of masks times the background rows in ``part``.

        ``keep (p, n_columns)`` are masks, ``rows (p,)`` the explained row of each.
        """


class ArrayInputs:
    """Columns of one dtype, as an array (or wrapped into a frame, or sparse)."""

    def __init__(
        self, background: Any, rows: Any, wrap: Callable[[Any], Any] | None = None
    ) -> None:
        self.background, self.rows = _common_dtype(background, rows)
        self.wrap = wrap

    def differs(self) -> Masks:
        """See `Inputs.differs`."""
        return _differs(self.rows, self.background)

    def build(self, keep: Masks, rows: np.ndarray, part: slice) -> Any:
        """See `Inputs.build`."""
        fill = self.background[part]
        if len(fill) == 1:
            out = np.where(keep, self.rows[rows], fill)
        else:
            out = np.where(keep[:, None, :], self.rows[rows][:, None, :], fill[None])
            out = out.reshape(-1, keep.shape[1])
        return out if self.wrap is None else self.wrap(out)


class FrameInputs:
    """Columns of any dtypes (categories, strings, dates), as a DataFrame."""

    def __init__(self, background: pd.DataFrame, rows: pd.DataFrame) -> None:
        self.names = list(background.columns)
        self.n_background = len(background)
        self.pools = [
            _pool(background.iloc[:, j], rows.iloc[:, j])
            for j in range(background.shape[1])
        ]

    def differs(self) -> Masks:
        """See `Inputs.differs`."""
        codes = np.stack([_codes(pool) for pool in self.pools], axis=1)
        return _differs(codes[self.n_background :], codes[: self.n_background])

    def build(self, keep: Masks, rows: np.ndarray, part: slice) -> Any:
        """See `Inputs.build`."""
        fill = np.arange(self.n_background)[part][None, :]
        own = (self.n_background + rows)[:, None]
        columns = [
            pool.take(np.where(keep[:, j, None], own, fill).ravel())
            for j, pool in enumerate(self.pools)
        ]
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index(self.names)
        return frame


def array_inputs(background: Background, rows: Any) -> Inputs:
    """Plain arrays for the model."""
    return ArrayInputs(_as_array(background.rows), _as_array(rows))


def sparse_inputs(background: Background, rows: Any) -> Inputs:
    """Sparse matrices for the model."""
    return ArrayInputs(background.rows, _as_array(rows), scipy.sparse.csr_matrix)


def frame_inputs(background: Background, rows: Any) -> Inputs:
    """DataFrames for the model, with the background's (or the rows') columns."""
    fill = background.rows
    names = list(rows.columns if background.names is None else background.names)
    if not isinstance(fill, pd.DataFrame):
        fill = pd.DataFrame(fill, columns=names)
    rows = _as_frame(rows, names)
    kinds = {*fill.dtypes, *rows.dtypes}
    if len(kinds) == 1 and getattr(kinds.pop(), "kind", "O") in "biuf":
        return ArrayInputs(
            fill.to_numpy(), rows.to_numpy(), lambda x: pd.DataFrame(x, columns=names)
        )
    return FrameInputs(fill, rows)


def _as_array(rows: Any) -> np.ndarray:
    """Two-dimensional array from whatever holds rows."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.toarray())
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().numpy()
    return np.atleast_2d(np.asarray(rows))


def _as_frame(rows: Any, names: list[Any]) -> pd.DataFrame:
    if isinstance(rows, pd.DataFrame):
        return rows.reset_index(drop=True)
    if isinstance(rows, pd.Series):
        return one_row_frame(rows)
    return pd.DataFrame(_as_array(rows), columns=names).infer_objects()


def _common_dtype(background: np.ndarray, rows: np.ndarray) -> tuple[Any, Any]:
    """Promote both, so that integer backgrounds do not truncate the rows."""
    if background.dtype == rows.dtype:
        return background, rows
    try:
        kind: Any = np.result_type(background.dtype, rows.dtype)
    except TypeError:
        kind = np.dtype(object)
    # numpy would turn numbers into text to meet strings half-way.
    if "U" in (background.dtype.kind, rows.dtype.kind) and kind.kind == "U":
        kind = kind if background.dtype.kind == rows.dtype.kind else np.dtype(object)
    return background.astype(kind), rows.astype(kind)


def _differs(rows: np.ndarray, background: np.ndarray) -> Masks:
    """Whether any background row differs, missing values being equal to each other."""
    out = np.zeros(rows.shape, dtype=bool)
    missing_rows, missing_fill = pd.isna(rows), pd.isna(background)
    step = max(1, _CELLS // max(1, background.size))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        unequal = rows[block, None, :] != background[None]
        both = missing_rows[block, None, :] & missing_fill[None]
        out[block] = (unequal.astype(bool) & ~both).any(axis=1)
    return out


def _pool(fill: pd.Series, own: pd.Series) -> Any:
    """Background and rows of one column end to end, in a dtype that holds both."""
    if isinstance(fill.dtype, pd.CategoricalDtype) and own.dtype != fill.dtype:
        known = fill.cat.categories
        new = [v for v in pd.unique(own.dropna()) if v not in known]
        kind: Any = pd.CategoricalDtype([*known, *new], fill.dtype.ordered)
        fill, own = fill.astype(kind), own.astype(kind)
    elif pd.api.types.is_extension_array_dtype(fill.dtype) and own.dtype != fill.dtype:
        own = own.astype(fill.dtype)
    pool = pd.concat([fill, own], ignore_index=True)
    return pool.to_numpy() if isinstance(pool.dtype, np.dtype) else pool.array


def _codes(pool: Any) -> np.ndarray:
    """One whole number per distinct value; missing values share -1."""
    return np.asarray(pd.factorize(pool)[0])
