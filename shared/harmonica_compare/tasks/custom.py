"""Your own model: ``--model module:function``.

The function is called without arguments and returns one of

- a value function with an attribute ``n_features`` (or a pair of both): bool masks
  ``(m, n)`` to values ``(m,)``;
- a fitted scikit-learn model or a torch module, together with ``--data``, a CSV of
  numeric inputs: the first rows are explained, a removed feature takes its column's
  mean.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harmonica_compare.case import Case
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_core._types import Floats, Masks


def load(options: TaskOptions) -> list[Case]:
    """Call the user's function and make cases of what it returns."""
    made = _call(options.model)
    if isinstance(made, tuple) and len(made) == 2:
        return [_value_case(made[0], made[1])]
    if callable(made) and hasattr(made, "n_features"):
        return [_value_case(made, made.n_features)]
    return _model_cases(made, options)


def _call(model: str | None) -> Any:
    if not model or ":" not in model:
        raise TaskError(f"--model {model}: needed module:function")
    module_name, _, function_name = model.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise TaskError(f"--model {model}: {error}") from error
    return function()


def _value_case(function: Any, n_features: Any) -> Case:
    if not callable(function) or not isinstance(n_features, (int, np.integer)):
        raise TaskError(
            "--model returned a pair that is not (value function, number of features)"
        )
    return Case("custom", int(n_features), function)


def _model_cases(model: Any, options: TaskOptions) -> list[Case]:
    import pandas as pd

    path = need_data(options, "a CSV of numeric inputs for the model")
    try:
        frame = pd.read_csv(path).select_dtypes("number")
    except (ValueError, UnicodeDecodeError, OSError) as error:
        raise TaskError(f"--data {path}: not a readable CSV ({error})") from error
    if options.label is not None:
        frame = frame.drop(columns=options.label, errors="ignore")
    inputs = frame.to_numpy(np.float64)
    baseline = np.nanmean(inputs, axis=0)
    predict = _predictor(model)

    def masked(row: Floats, masks: Masks) -> Floats:
        return predict(np.where(masks, row, baseline), row)

    return [
        Case(
            name=f"row {k}",
            n_features=inputs.shape[1],
            value_function=partial(masked, row),
            feature_names=tuple(map(str, frame.columns)),
        )
        for k, row in enumerate(inputs[: options.n_cases])
    ]


def _predictor(model: Any) -> Callable[[Floats, Floats], Floats]:
    """Output for inputs, of the class predicted for the row that is explained."""
    if hasattr(model, "predict_proba"):
        output: Callable[[Floats], Any] = model.predict_proba
    elif hasattr(model, "predict"):
        output = model.predict
    elif hasattr(model, "parameters"):
        output = _torch_output(model)
    else:
        raise TaskError(
            f"--model returned {type(model).__name__}; needed a value function with "
            "n_features, a scikit-learn model or a torch module"
        )

    def predict(inputs: Floats, row: Floats) -> Floats:
        found = np.asarray(output(inputs), dtype=np.float64)
        if found.ndim == 1 or found.shape[1] == 1:
            return found.reshape(len(inputs))
        k = int(np.asarray(output(row[None]))[0].argmax())
        return found[:, k]

    return predict


def _torch_output(model: Any) -> Callable[[Floats], Any]:
    import torch

    def output(inputs: Floats) -> Any:
        with torch.no_grad():
            return model(torch.tensor(inputs, dtype=torch.float32)).numpy()

    return output
