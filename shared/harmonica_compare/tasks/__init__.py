"""Tasks: where the inputs of a comparison come from. One module a task.

To add a task, write a module with ``load(options) -> list[Case]`` and list it in
`TASKS`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from harmonica_compare.case import Case

TASKS = ("tabular", "text", "image", "games", "custom")


@dataclass(frozen=True)
class TaskOptions:
    """What the command line says about a task.

    Attributes
    ----------
    data : path, optional
        CSV (tabular), TSV (text), folder of pictures (image), folder or file of .npz
        games, CSV or Parquet of inputs (custom).
    label : str, optional
        Column to predict (tabular).
    model : str, optional
        ``module:function`` (custom).
    features : str, optional
        Columns of the inputs, separated by commas (custom).
    background : path, optional
        File of rows that stand for removed features (custom).
    unit : "word" or "sentence"
        Features of a text.
    superpixels : int
    baseline : "zero", "mean" or "blur"
        What a removed superpixel looks like.
    n_cases : int
        Inputs to explain, for each model of the task.
    cache : path, optional
        Folder for trained models.
    seed : int
    """

    data: Path | None = None
    label: str | None = None
    model: str | None = None
    features: str | None = None
    background: Path | None = None
    unit: str = "word"
    superpixels: int = 16
    baseline: str = "zero"
    n_cases: int = 5
    cache: Path | None = None
    seed: int = 0


class TaskError(Exception):
    """Something is wrong with what the user pointed at; one clear line."""


def load_task(name: str, options: TaskOptions) -> list[Case]:
    """Return the cases of a task."""
    module = importlib.import_module(f"harmonica_compare.tasks.{name}")
    cases: list[Case] = module.load(options)
    return cases


def need_data(options: TaskOptions, what: str) -> Path:
    """Return the path given by --data, which must exist."""
    if options.data is None:
        raise TaskError(f"this task needs --data: {what}")
    if not options.data.exists():
        raise TaskError(f"--data {options.data}: no such file or folder ({what})")
    return options.data
