"""Groups of mask columns that are removed together: superpixels, or any grouping."""

from __future__ import annotations

from typing import Any

import numpy as np

from shap_harmonica._types import Floats

# An image without groups is cut into at most this many patches along each side.
_PATCHES = 7


def feature_of_columns(groups: Any, row: Any, n_columns: int) -> np.ndarray:
    """Return the feature of each mask column: int (n_columns,), 0 to n_features - 1.

    ``groups`` are labels of any values, shaped like the explained ``row`` or like it
    without its last axis (one label per pixel for all channels), or a function that
    returns such labels of a row.
    """
    labels = np.asarray(groups(row) if callable(groups) else groups)
    shape = np.shape(row)
    if labels.size != n_columns and labels.shape == shape[:-1]:
        labels = np.broadcast_to(labels[..., None], shape)
    if labels.size != n_columns:
        raise ValueError(
            f"groups have shape {labels.shape} for an input of shape {shape}; needed "
            "one label per mask column: the input's shape, or without its channels"
        )
    return np.asarray(np.unique(labels.ravel(), return_inverse=True)[1]).ravel()


def patches(shape: tuple[int, ...]) -> np.ndarray:
    """Labels of a regular grid of up to 7 x 7 patches: int ``shape[:2]``."""
    rows, cols = (np.arange(side) * min(side, _PATCHES) // side for side in shape[:2])
    return np.asarray(rows[:, None] * _PATCHES + cols[None, :])


def spread(values: Floats, feature_of: np.ndarray) -> Floats:
    """Share each feature's value equally among its columns: (n_columns, ...).

    The sum over columns stays the sum over features.
    """
    sizes = np.bincount(feature_of)
    shares = values / sizes.reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(shares[feature_of])
