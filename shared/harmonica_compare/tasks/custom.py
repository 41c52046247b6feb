"""Your own model: ``--model module:function``.

The function is called without arguments and returns one of

- a value function with an attribute ``n_features`` (or a pair of both): bool masks
  ``(m, n)`` to values ``(m,)``;
- a fitted scikit-learn model or a torch module, together with ``--data``, a CSV of
  numeric inputs: the first rows are explained, a removed feature takes its column's
  mean. A torch module is put into its evaluation mode and gives gradients.

Every case is tried on a few masks before anything is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from harmonica_compare.case import Case, told
from harmonica_compare.modules import call_function
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_compare.tasks.frames import read_frame
from harmonica_core._types import Floats, Masks
from harmonica_core.checks import is_whole
from harmonica_core.evaluate import check_values


def load(options: TaskOptions) -> list[Case]:
    """Call the user's function and make cases of what it returns."""
    made = call_function(options.model)
    if isinstance(made, tuple) and len(made) == 2:
        cases = [_value_case(made[0], made[1])]
    elif callable(made) and hasattr(made, "n_features") and not _is_torch(made):
        cases = [_value_case(made, made.n_features)]
    else:
        cases = _model_cases(made, options)
    for case in cases:
        _try(case)
    return cases


def _is_torch(made: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(made, torch.nn.Module)


def _value_case(function: Any, n_features: Any) -> Case:
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
    return Case("custom", int(n_features), _single(function))


def _single(function: Callable[[Masks], Any]) -> Callable[[Masks], Floats]:
    """Check a value function's results; a single column becomes a row."""

    def value(masks: Masks) -> Floats:
        values = check_values(function(masks), masks)
        if values.ndim == 2 and values.shape[1] != 1:
            raise ValueError(
                f"the value function returned shape {values.shape}; needed one value "
                f"a mask, ({len(masks)},): choose one output"
            )
        return values.reshape(len(masks))

    return value


def _try(case: Case) -> None:
    """Evaluate four masks: all kept, all removed, and every other feature."""
    masks = np.zeros((4, case.n_features), dtype=bool)
    masks[0], masks[2, ::2], masks[3, 1::2] = True, True, True
    try:
        case.value_function(masks)
    except Exception as error:  # someone else's model
        names = case.feature_names
        columns = "" if names is None else f" with columns {', '.join(names[:20])}"
        raise TaskError(
            f"--model fails on {case.name}{columns}: {told(error)}"
        ) from error


def _model_cases(model: Any, options: TaskOptions) -> list[Case]:
    if not _is_torch(model) and not hasattr(model, "predict"):
        raise TaskError(
            f"--model returned {type(model).__name__}; needed a value function with "
            "n_features, a scikit-learn model or a torch module"
        )
    names, inputs = _read_inputs(options)
    baseline = np.nanmean(inputs, axis=0)
    maker = _torch_case if _is_torch(model) else _predict_case
    return [
        maker(model, f"row {k}", row, baseline, names)
        for k, row in enumerate(inputs[: options.n_cases])
    ]


def _read_inputs(options: TaskOptions) -> tuple[tuple[str, ...], Floats]:
    """Names and values ``(n_rows, n_features)`` of the numeric columns."""
    path = need_data(options, "a CSV of numeric inputs for the model")
    frame = read_frame(path, "CSV")
    if not len(frame):
        raise TaskError(f"--data {path}: no rows; needed at least one to explain")
    frame = frame.select_dtypes(["number", "bool"])
    if options.label is not None:
        frame = frame.drop(columns=options.label, errors="ignore")
    names = tuple(map(str, frame.columns))
    if not names:
        raise TaskError(f"--data {path}: no column of numbers; needed the inputs")
    inputs = frame.to_numpy(np.float64)
    empty = np.isnan(inputs).all(axis=0)
    if empty.any():
        raise TaskError(
            f"--data {path}: column {names[int(empty.argmax())]} has no numbers; a "
            "removed feature takes its column's mean, so fill or remove the column"
        )
    return names, inputs


def _predict_case(
    model: Any, name: str, row: Floats, baseline: Floats, names: tuple[str, ...]
) -> Case:
    """Probability of the class predicted for ``row``, or the predicted number."""
    output = getattr(model, "predict_proba", model.predict)

    def value(masks: Masks) -> Any:
        found = np.asarray(output(np.where(masks, row, baseline)), dtype=np.float64)
        if found.ndim == 2 and found.shape[1] > 1:
            return found[:, int(np.asarray(output(row[None]))[0].argmax())]
        return found

    return Case(name, len(row), _single(value), feature_names=names)


def _torch_case(
    model: Any, name: str, row: Floats, baseline: Floats, names: tuple[str, ...]
) -> Case:
    """Output of the unit that is largest for ``row``, on fractional masks too."""
    import torch

    model.eval()
    first = next(model.parameters(), torch.empty(0))
    kept, gone = (torch.from_numpy(x).to(first) for x in (row, baseline))

    def relaxed(share: torch.Tensor) -> torch.Tensor:
        out = model(gone + share.to(first) * (kept - gone))
        if out.ndim == 2 and out.shape[1] > 1:
            with torch.no_grad():
                top = int(model(kept[None])[0].argmax())
            return out[:, top].cpu()
        return out.reshape(len(share)).cpu()

    def value(masks: Masks) -> Any:
        with torch.no_grad():
            return relaxed(torch.from_numpy(masks)).double().numpy()

    return Case(name, len(row), _single(value), relaxed, feature_names=names)
