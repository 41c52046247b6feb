"""Explain many rows of numbers together: shared masks, one design, few model calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from harmonica_compare.case import told
from harmonica_compare.modules import find_function, look_in
from harmonica_compare.tasks import TaskError
from harmonica_core import (
    Design,
    Prior,
    Settings,
    draw_design,
    evaluate,
    fit_functions,
    learn_prior,
)
from harmonica_core._types import Floats, Masks
from harmonica_core.checks import check_unmasked
from harmonica_core.parallel import row_chunks
from harmonica_core.resilience import BatchSize

# Rows that the shared prior is learnt from.
_LEARNT_FROM = 32


class ModelError(TaskError):
    """The model raised, or returned something else than numbers."""


@dataclass(frozen=True)
class Task:
    """How rows are explained.

    Attributes
    ----------
    model : str
        ``module:function``; workers import it themselves.
    background : float64 (n_background, n_features)
        Rows that stand for removed features; the model is averaged over them.
    degree : int or None
    budget, seed : int
    batch : int
        Model rows per call.
    prior : Prior, optional
        What the rows have in common, learnt before.
    folder : str
        Where the model is looked for; a worker may have been started elsewhere.
    """

    model: str
    background: Floats
    degree: int | None
    budget: int
    seed: int
    batch: int
    prior: Prior | None = None
    folder: str = field(default_factory=os.getcwd)


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
        ends = np.stack([self.base, self.error], axis=1)
        numbers = np.concatenate([ends, self.phi], axis=1)
        n_rows, n_columns, n_outputs = numbers.shape
        columns = numbers.transpose(2, 1, 0).reshape(n_outputs * n_columns, n_rows)
        names = column_names(features, n_outputs)
        rows = start + np.arange(n_rows)
        return dict(zip(names, [rows, *columns], strict=True))


def column_names(features: list[str], n_outputs: int) -> list[str]:
    """Return the names of an explanation's columns.

    Examples
    --------
    >>> column_names(["age"], 1)
    ['row', 'base_value', 'error', 'phi_age']
    """
    ends = [""] if n_outputs == 1 else [f".{k}" for k in range(n_outputs)]
    kinds = ["base_value", "error", *(f"phi_{name}" for name in features)]
    return ["row", *(kind + end for end in ends for kind in kinds)]


@cache
def load_model(spec: str) -> Callable[[Floats], Any]:
    """Import ``module:function``; modules in the working directory count."""
    return find_function(spec)


def answers(task: Task, rows: Floats) -> Floats:
    """Return the model's outputs ``(n_rows, n_outputs)`` for a few rows as they are."""
    parts = row_chunks(len(rows), task.batch)
    outputs = np.concatenate([_outputs(task.model, rows[part]) for part in parts])
    return outputs.reshape(len(rows), -1).astype(np.float64)


def explain_rows(task: Task, rows: Floats, first_row: int = 0) -> Explained:
    """Explain ``rows (n_rows, n_features)`` with the same masks for all.

    Parameters
    ----------
    task : Task
    rows : float64 (n_rows, n_features)
    first_row : int
        Number of the first row in the data, for messages.
    """
    look_in(task.folder)
    n_features = rows.shape[1]
    settings, design = _plan(task, n_features)
    values = _all_values(task, design, rows, first_row)
    # One surrogate whose outputs are all rows' outputs: no loop over rows.
    flat = values.reshape(len(values), 1, -1)
    (together,) = fit_functions(design, flat, settings, task.prior)
    shape = values.shape[1:]
    phi = together.shapley_values().reshape(n_features, *shape)
    return Explained(
        base=together.base_value.reshape(shape),
        phi=phi.transpose(1, 0, 2),
        error=np.asarray(together.error).reshape(shape),
    )


def learn_from_rows(task: Task, rows: Floats) -> Prior | None:
    """Return what a few dozen of ``rows`` have in common, for all rows of the data."""
    look_in(task.folder)
    settings, design = _plan(task, rows.shape[1])
    chosen = np.unique(np.linspace(0, len(rows) - 1, _LEARNT_FROM).astype(int))
    values = _all_values(task, design, rows[chosen], 0)
    return learn_prior(design, values, settings)


def _plan(task: Task, n_features: int) -> tuple[Settings, Design]:
    settings = Settings(degree=task.degree)
    return settings, draw_design(settings, n_features, task.budget, task.seed)


def _all_values(task: Task, design: Design, rows: Floats, first_row: int) -> Floats:
    """Values ``(n_masks, n_rows, n_outputs)``, a block of rows at a time."""
    block = max(1, task.batch // len(task.background))
    return np.concatenate(
        [
            _values(task, rows[part], design.masks, first_row + part.start)
            for part in row_chunks(len(rows), block)
        ],
        axis=1,
    )


def _values(task: Task, rows: Floats, masks: Masks, first_row: int) -> Floats:
    """Values ``(n_masks, n_rows, n_outputs)``: the model averaged over backgrounds."""
    background = task.background

    def value_function(batch: Masks) -> Floats:
        inputs = np.where(
            batch[:, None, None, :], rows[None, :, None, :], background[None, None]
        )
        outputs = _outputs(task.model, inputs.reshape(-1, rows.shape[1]))
        shaped = outputs.reshape(len(batch), len(rows), len(background), -1)
        _check_finite(task.model, shaped, batch, first_row)
        return np.asarray(shaped.mean(axis=2).reshape(len(batch), -1))

    batch_size = max(1, task.batch // (len(rows) * len(background)))
    values = evaluate(value_function, masks, batch_size=batch_size)
    return values.reshape(len(masks), len(rows), -1)


def _check_finite(spec: str, outputs: Floats, masks: Masks, first_row: int) -> None:
    """Name the row and the mask of the first output that is no finite number.

    ``outputs`` is (n_masks, n_rows, n_background, n_outputs).
    """
    bad = ~(np.abs(outputs) <= 1e300)  # as in `evaluate`, which knows of no rows
    if bad.any():
        mask, row, *rest = np.argwhere(bad)[0]
        kept = np.flatnonzero(masks[mask]).tolist()
        raise ModelError(
            f"--model {spec} returned {outputs[mask, row][tuple(rest)]} for row "
            f"{first_row + row} of the data (the first is row 0) with columns {kept} "
            "kept and the others from the background; needed finite numbers up to "
            "1e300: fix the row or the model, or give another --background"
        )


@cache
def rows_that_fit(spec: str) -> BatchSize:
    """Model rows per call, less where memory ran out before in this process."""
    return BatchSize(sys.maxsize)


def _outputs(spec: str, inputs: Floats) -> Floats:
    """Outputs of all rows: in one call, or in several where memory is short."""
    found: list[Floats] = []
    done = 0
    while done < len(inputs):
        found.append(_first_outputs(spec, inputs[done:]))
        done += len(found[-1])
    return np.concatenate(found)


def _first_outputs(spec: str, inputs: Floats) -> Floats:
    """Outputs of as many of the first rows as fit into memory."""

    def call(n_rows: int) -> tuple[int, Floats]:
        outputs = load_model(spec)(inputs[:n_rows])
        check_unmasked(outputs, "its outputs")
        return n_rows, np.asarray(outputs)

    try:
        n_rows, outputs = rows_that_fit(spec).run(call, len(inputs))
    except Exception as error:
        raise ModelError(f"--model {spec} raised {told(error)}") from error
    _check_outputs(spec, outputs, n_rows)
    return outputs


def _check_outputs(spec: str, outputs: np.ndarray, n_rows: int) -> None:
    numbers = outputs.dtype.kind in "biuf" and outputs.size > 0
    if not numbers or outputs.ndim not in (1, 2) or len(outputs) != n_rows:
        raise ModelError(
            f"--model {spec} returned {outputs.dtype} {outputs.shape} for {n_rows} "
            f"rows; needed numbers ({n_rows},) or ({n_rows}, n_outputs)"
        )
