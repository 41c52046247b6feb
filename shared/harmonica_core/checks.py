"""Checks of arguments that many modules share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

# Masks of more features than this fill the memory by the hundred.
MOST_FEATURES = 1_000_000


def is_whole(number: object) -> TypeGuard[int]:
    """Whether this is an integer; True, 2.0 and "2" are not.

    Examples
    --------
    >>> is_whole(2), is_whole(np.int64(2)), is_whole(True), is_whole(2.0)
    (True, True, False, False)
    """
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def check_count(number: object, what: str) -> int:
    """Return a whole number >= 0."""
    if not is_whole(number) or number < 0:
        raise ValueError(f"{what}={number!r}; needed a whole number >= 0")
    return int(number)


def check_feature_count(n_features: object) -> int:
    """Return the number of features, a whole number >= 1."""
    if not is_whole(n_features):
        raise ValueError(
            f"n_features={n_features!r}; needed a whole number of features, >= 1"
        )
    if n_features < 1:
        raise ValueError(f"n_features={n_features}; needed at least 1 feature")
    if n_features > MOST_FEATURES:
        raise ValueError(
            f"n_features={n_features}; needed at most {MOST_FEATURES}: let one "
            "feature stand for a group, such as a superpixel or a sentence"
        )
    return int(n_features)


def check_unmasked(array: Any, what: str) -> None:
    """Refuse a masked array with masked entries: numpy would read what lies below.

    Examples
    --------
    >>> check_unmasked(np.ma.array([1.0, 2.0], mask=[False, False]), "values")
    """
    hidden = int(np.sum(np.ma.getmaskarray(array))) if np.ma.isMA(array) else 0
    if hidden:
        raise ValueError(
            f"{what}: got a masked array with {hidden} masked "
            "entries; needed plain numbers: fill them (`array.filled(...)`) or leave "
            "those rows out"
        )


def check_names(
    names: Iterable[Any] | None, needed: int, what: str
) -> tuple[str, ...] | None:
    """Return names as a tuple of the right length, or None.

    Examples
    --------
    >>> check_names(["age", "sex"], 2, "feature_names")
    ('age', 'sex')
    """
    if names is None:
        return None
    found = tuple(str(name) for name in names)
    if len(found) != needed:
        raise ValueError(f"got {len(found)} {what}; needed {needed}")
    return found
