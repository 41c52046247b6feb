"""Backgrounds: everything that SHAP takes for "these rows stand for removed"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import shap
from shap.maskers._tabular import Tabular
from shap.utils._legacy import DenseData, SparseData

from shap_harmonica._types import Floats


@dataclass(frozen=True, eq=False)
class Background:
    """Rows that replace removed features, with their weights.

    A removed feature takes its value in each of the ``rows`` (an array or a DataFrame);
    outputs are averaged with the ``weights``, which sum to 1. ``sparse``: the model is
    given sparse matrices. ``groups``: columns of each feature (DenseData).
    """

    rows: Any
    weights: Floats
    names: tuple[Any, ...] | None = None
    sparse: bool = False
    groups: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, given: Any) -> Background | None:
        """Read a background or a tabular masker; None when it is neither."""
        if isinstance(given, Background):
            return given
        if type(given).__call__ is Tabular.__call__ and isinstance(given, Tabular):
            return _of_masker(given)
        if isinstance(given, DenseData):
            return _of_dense_data(given)
        if isinstance(given, SparseData):
            return _weighted(given.data.toarray(), sparse=True)
        if scipy.sparse.issparse(given):
            return _weighted(given.toarray(), sparse=True)
        if isinstance(given, pd.Series):
            return _weighted(one_row_frame(given), names=tuple(given.index))
        if isinstance(given, pd.DataFrame):
            return _weighted(given.reset_index(drop=True), names=tuple(given.columns))
        if hasattr(given, "detach"):  # a torch tensor
            given = given.detach().cpu().numpy()
        if isinstance(given, np.ndarray):
            return _weighted(np.atleast_2d(np.asarray(given)))
        return None

    def as_masker(self) -> Any:
        """Return the SHAP masker of these rows, all of them (weights are not in it)."""
        rows = self.rows
        if self.sparse:
            rows = scipy.sparse.csr_matrix(rows)
        return shap.maskers.Independent(rows, max_samples=max(1, self.rows.shape[0]))

    @property
    def n_columns(self) -> int:
        """Number of columns of the model's input."""
        return int(self.rows.shape[1])


def one_row_frame(series: pd.Series) -> pd.DataFrame:
    """Return a Series as a frame of one row whose columns find their own dtypes."""
    return series.to_frame().T.infer_objects().reset_index(drop=True)


def _weighted(
    rows: Any, *, names: tuple[Any, ...] | None = None, sparse: bool = False
) -> Background:
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(
            f"the background has shape {rows.shape}; needed (n_rows, n_features) with "
            "at least one row and one feature"
        )
    weights = np.full(rows.shape[0], 1 / rows.shape[0])
    return Background(rows, weights, names, sparse)


def _of_masker(masker: Any) -> Background:
    data = masker.data
    if scipy.sparse.issparse(data):
        return _weighted(data.toarray(), sparse=True)
    if masker.output_dataframe:
        names = tuple(masker.feature_names)
        frame = pd.DataFrame(data, columns=list(names)).infer_objects()
        return _weighted(frame, names=names)
    return _weighted(np.asarray(data))


def _of_dense_data(given: Any) -> Background:
    if given.transposed:
        raise ValueError(
            "the background is a transposed DenseData; needed rows along the first axis"
        )
    groups = tuple(np.asarray(group) for group in given.groups)
    plain = all(len(group) == 1 for group in groups)
    return Background(
        np.asarray(given.data),
        np.asarray(given.weights, dtype=np.float64) / np.sum(given.weights),
        tuple(given.group_names),
        groups=None if plain else groups,
    )
