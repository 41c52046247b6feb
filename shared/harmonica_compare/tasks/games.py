"""Enumerated games: .npz files with ``values`` (n_games, 2**n), bit i = i is kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from harmonica_compare.case import About, Case
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_core._types import Floats, Masks
from harmonica_core.design.masks import mask_numbers
from harmonica_core.storage import read_arrays


def load(options: TaskOptions) -> list[Case]:
    """Return the first ``n_cases`` games of every file."""
    path = need_data(options, "a folder of .npz games, or one file")
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise TaskError(f"--data {path}: no .npz file in this folder")
    cases = [case for file in files for case in _read(file, options.n_cases)]
    if not cases:
        raise TaskError(f"--data {path}: no games in its files")
    return cases


def _read(path: Path, most: int) -> list[Case]:
    try:
        values = read_arrays(path)["values"]
    except (OSError, ValueError, KeyError) as error:
        raise TaskError(
            f"{path}: not a game file with an array 'values' ({error})"
        ) from error
    if values.dtype.kind not in "biuf":
        raise TaskError(f"{path}: values are {values.dtype}; needed real numbers")
    values = values.astype(np.float64)
    n = values.shape[-1].bit_length() - 1 if values.ndim == 2 else 0
    if values.ndim != 2 or n < 1 or values.shape[1] != 1 << n:
        raise TaskError(
            f"{path}: values have shape {values.shape}; needed (n_games, 2**n)"
        )
    values = values[:most]
    if not np.isfinite(values).all():
        raise TaskError(f"{path}: values with NaN or infinity; needed finite numbers")
    return [
        Case(
            name=f"{path.stem}, game {k}",
            n_features=n,
            value_function=partial(_look_up, game),
            no_gradient="a table of values has no gradients",
            about=About(path.name, "enumerated game", "its value", "as in the file"),
        )
        for k, game in enumerate(values)
    ]


def _look_up(values: Floats, masks: Masks) -> Floats:
    return np.asarray(values[mask_numbers(masks)])
