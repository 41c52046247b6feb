"""Explain many rows of numbers together: shared masks, one design, few model calls."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from harmonica_core import draw_masks, fit_surrogates
from harmonica_core._types import Floats, Masks
from harmonica_core.evaluate import evaluate
from harmonica_core.parallel import row_chunks
from harmonica_core.resilience import is_out_of_memory


class ModelError(Exception):
    """The model could not be loaded, or raised."""


@dataclass(frozen=True)
class Task:
    """How rows are explained.

    Attributes
    ----------
    model : str
        ``module:function``; workers import it themselves.
    background : float64 (n_background, n_features)
        Rows that stand for removed features; the model is averaged over them.
    degree, budget, seed : int
    batch : int
        Model rows per call.
    """

    model: str
    background: Floats
    degree: int
    budget: int
    seed: int
    batch: int


@dataclass(frozen=True)
class Explained:
    """Attributions of some rows.

    Attributes
    ----------
    base : float64 (n_rows, n_outputs)
        Value with everything removed.
    phi : float64 (n_rows, n_features, n_outputs)
        Shapley values of each row's surrogate.
    error : float64 (n_rows, n_outputs)
        I_2 of each surrogate: root mean square error over all removals.
    """

    base: Floats
    phi: Floats
    error: Floats

    def columns(self, start: int, features: list[str]) -> dict[str, Any]:
        """Return a table: row, base_value, error, and ``phi_<feature>``.

        With several outputs each name ends in the output's number: ``phi_age.1``.
        """
        n_outputs = self.phi.shape[2]
        table: dict[str, Any] = {"row": start + np.arange(len(self.base))}
        for k in range(n_outputs):
            end = "" if n_outputs == 1 else f".{k}"
            table[f"base_value{end}"] = self.base[:, k]
            table[f"error{end}"] = self.error[:, k]
            for i, name in enumerate(features):
                table[f"phi_{name}{end}"] = self.phi[:, i, k]
        return table


@cache
def load_model(spec: str) -> Callable[[Floats], Any]:
    """Import ``module:function``; modules in the working directory count."""
    name, _, attribute = spec.partition(":")
    if not name or not attribute:
        raise ModelError(f"--model {spec}: needed module:function")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ModelError(
            f"--model {spec} can not be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ModelError(f"--model {spec} is {type(found).__name__}; needed a function")
    model: Callable[[Floats], Any] = found
    return model


def explain_rows(task: Task, rows: Floats) -> Explained:
    """Explain ``rows (n_rows, n_features)`` with the same masks for all."""
    n_features = rows.shape[1]
    rng = np.random.default_rng(task.seed)
    masks = draw_masks(n_features, task.budget, rng, ends=True)
    block = max(1, task.batch // len(task.background))
    values = np.concatenate(
        [_values(task, rows[part], masks) for part in row_chunks(len(rows), block)],
        axis=1,
    )
    # One surrogate whose outputs are all rows' outputs: no loop over rows.
    (together,) = fit_surrogates(
        masks,
        values.reshape(len(masks), 1, -1),
        task.degree,
        seed=task.seed,
        terms="auto" if len(masks) == 1 << n_features else None,
        ends=True,
    )
    shape = values.shape[1:]
    phi = together.shapley_values().reshape(n_features, *shape)
    return Explained(
        base=together.base_value.reshape(shape),
        phi=phi.transpose(1, 0, 2),
        error=np.asarray(together.error).reshape(shape),
    )


def _values(task: Task, rows: Floats, masks: Masks) -> Floats:
    """Values ``(n_masks, n_rows, n_outputs)``: the model averaged over backgrounds."""
    model = load_model(task.model)
    background = task.background

    def value_function(batch: Masks) -> Floats:
        inputs = np.where(
            batch[:, None, None, :], rows[None, :, None, :], background[None, None]
        )
        outputs = _call(model, task.model, inputs.reshape(-1, rows.shape[1]))
        shape = (len(batch), len(rows), len(background), -1)
        return np.asarray(outputs.reshape(shape).mean(axis=2).reshape(len(batch), -1))

    batch_size = max(1, task.batch // (len(rows) * len(background)))
    values = evaluate(value_function, masks, batch_size=batch_size)
    return values.reshape(len(masks), len(rows), -1)


def _call(model: Callable[[Floats], Any], spec: str, inputs: Floats) -> Floats:
    try:
        outputs = np.asarray(model(inputs))
    except Exception as error:
        if is_out_of_memory(error):  # `evaluate` tries a smaller batch
            raise
        raise ModelError(
            f"--model {spec} raised {type(error).__name__}: {error}"
        ) from error
    if outputs.dtype.kind not in "biuf" or outputs.shape[:1] != (len(inputs),):
        raise ModelError(
            f"--model {spec} returned {outputs.dtype} {outputs.shape} for "
            f"{len(inputs)} rows; needed numbers ({len(inputs)},) or "
            f"({len(inputs)}, n_outputs)"
        )
    return outputs
