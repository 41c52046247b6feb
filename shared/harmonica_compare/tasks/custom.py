"""Your own model: ``--model module:name``.

What the name stands for is one of

- a function of rows, as ``harmonica explain`` takes it: float (m, n_features) to (m,)
  or (m, n_outputs);
- a function without arguments that returns such a function, a fitted scikit-learn
  model, a torch module, or a value function with an attribute ``n_features`` (or a
  pair of both): bool masks ``(m, n)`` to values ``(m,)``.

All but a value function need ``--data``, a CSV or Parquet file of numeric inputs: the
first rows are explained. A removed feature takes its column's mean, or is averaged
over the rows of ``--background``. A torch module gives gradients.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from harmonica_compare.case import About, Case
from harmonica_compare.modules import call_function, find_function
from harmonica_compare.row_cases import Rows, is_torch, row_cases, single, try_case
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_compare.tasks.frames import read_frame
from harmonica_core._types import Floats
from harmonica_core.checks import is_whole


def load(options: TaskOptions) -> list[Case]:
    """Make cases of the user's model."""
    function = find_function(options.model)
    made = function if _takes_rows(function) else call_function(options.model)
    if isinstance(made, tuple) and len(made) == 2:
        return [_value_case(made[0], made[1], options)]
    if callable(made) and hasattr(made, "n_features") and not is_torch(made):
        return [_value_case(made, made.n_features, options)]
    if not (is_torch(made) or hasattr(made, "predict") or _takes_rows(made)):
        raise TaskError(
            f"--model returned {type(made).__name__}; needed a value function with "
            "n_features, a function of rows, a scikit-learn model or a torch module"
        )
    return row_cases(made, _rows(options))


def _takes_rows(function: Any) -> bool:
    """Whether a function can not be called without an argument."""
    if isinstance(function, type) or not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions do not tell
        return False
    alone = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in alone and p.default is p.empty for p in parameters)


def _value_case(function: Any, n_features: Any, options: TaskOptions) -> Case:
    if not callable(function) or not is_whole(n_features):
        raise TaskError(
            f"--model returned {type(function).__name__} with {n_features!r} features; "
            "needed a value function and its number of features"
        )
    if n_features < 1:
        raise TaskError(
            f"--model returned a value function of {n_features} features; needed at "
            "least 1"
        )
    about = About("none", str(options.model), "its value", "up to the value function")
    case = Case("custom", int(n_features), single(function), about=about)
    try_case(case)
    return case


def _rows(options: TaskOptions) -> Rows:
    path = need_data(options, "a CSV or Parquet file of numeric inputs for the model")
    names, inputs = _read(options, path, options.features)
    if options.background is None:
        empty = np.isnan(inputs).all(axis=0)
        if empty.any():
            raise TaskError(
                f"--data {path}: column {names[int(empty.argmax())]} has no numbers; a "
                "removed feature takes its column's mean, so fill or remove the column"
            )
        background, removed = np.nanmean(inputs, axis=0)[None], "its column's mean"
    else:
        background = _read(options, options.background, ",".join(names))[1]
        removed = f"averaged over {len(background)} rows of {options.background.name}"
    about = About(path.name, str(options.model), "the output largest for it", removed)
    return Rows(inputs[: options.n_cases], background, names, about)


def _read(
    options: TaskOptions, path: Any, features: str | None
) -> tuple[tuple[str, ...], Floats]:
    """Names and values ``(n_rows, n_features)`` of the numeric columns, or of some."""
    frame = read_frame(path, "CSV")
    if not len(frame):
        raise TaskError(f"--data {path}: no rows; needed at least one to explain")
    if features is not None:
        wanted = [name.strip() for name in features.split(",")]
        missing = [name for name in wanted if name not in frame.columns]
        if missing:
            has = ", ".join(map(str, frame.columns[:20]))
            raise TaskError(f"{path} has no column {', '.join(missing)}; it has {has}")
        frame = frame[wanted]
    frame = frame.select_dtypes(["number", "bool"])
    if options.label is not None:
        frame = frame.drop(columns=options.label, errors="ignore")
    names = tuple(map(str, frame.columns))
    if not names:
        raise TaskError(f"--data {path}: no column of numbers; needed the inputs")
    return names, frame.to_numpy(np.float64)
