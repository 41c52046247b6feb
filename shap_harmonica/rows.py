"""From rows to surrogates: group, evaluate in bounded memory, fit together, lift."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from harmonica_core._types import Values
from harmonica_core.evaluate import check_values
from harmonica_core.result.relabel import lift
from harmonica_core.parallel import iterate_parallel
from shap_harmonica.fitting import Method, Plan
from shap_harmonica.masked import MaskedRow
from shap_harmonica.outputs import select
from shap_harmonica.value_function import Table, call_rows

# Bytes of values that one multi-target fit may hold.
_FIT_BYTES = 1 << 27
# Rows of one multi-target fit. Fewer rows are halved where each half has at least so
# many values, so that a second worker finds something to do.
_BLOCK_ROWS, _FEWEST_BLOCKS, _WORTH_A_BLOCK = 32, 2, 4096
# SHAP's own bars appear only after this many seconds.
_BAR_DELAY = 10


@dataclass(frozen=True)
class Task:
    """What one call of an explainer asks for.

    Attributes
    ----------
    method : Method
    max_evals : int or "auto"
    batch_size : int or "auto"
        Model rows per call.
    outputs, output_names
        See `outputs.select`.
    n_jobs : int
    silent : bool
    title : str
        Of the progress bar.
    """

    method: Method
    max_evals: Any = "auto"
    batch_size: Any = "auto"
    outputs: Any = None
    output_names: Any = None
    n_jobs: int = 1
    silent: bool = True
    title: str = "Harmonica"


@dataclass(frozen=True)
class Explained:
    """One row's result: its surrogate and which model outputs it is about."""

    surrogate: Any
    outputs: np.ndarray | None


Job = Callable[[Callable[[int], None]], list[tuple[int, Explained]]]


def explain_table(table: Table, rows: Any, task: Task) -> list[Explained]:
    """Explain every row of a table.

    Rows with the same number of features that differ from the background share masks
    and design; model calls run across rows.
    """
    n_outputs = np.size(table.expected_value(rows, task.batch_size))
    bound = table.inputs(rows)
    differs = table.varying(bound) | task.method.names_features
    batch_size = call_rows(table, task.batch_size)
    jobs: list[Job] = []
    total = 0
    for n_varying, members in _by_count(differs.sum(axis=1)):
        plan = task.method.plan(n_varying, task.max_evals)
        total += len(members) * len(plan.masks)
        for block in _blocks(members, len(plan.masks) * n_outputs):
            varying = np.nonzero(differs[block])[1].reshape(len(block), n_varying)

            def job(
                advance: Callable[[int], None],
                block: np.ndarray = block,
                varying: np.ndarray = varying,
                plan: Plan = plan,
            ) -> list[tuple[int, Explained]]:
                values = table.values(
                    bound, block, varying, plan.masks, batch_size, advance
                )
                found = _fit(task, plan, values, varying, table.n_features)
                return list(zip(block.tolist(), found, strict=True))

            jobs.append(job)
    return _run(jobs, total, len(differs), task)


def explain_masked(rows: list[MaskedRow], task: Task) -> list[Explained]:
    """Explain inputs behind any masker; those of the same shape are fitted together."""
    features = [_features(row, task) for row in rows]
    counts = np.array([len(varying) for varying in features], dtype=int)
    jobs: list[Job] = []
    total = 0
    for n_varying, members in _by_count(counts):
        plan = task.method.plan(n_varying, task.max_evals)
        total += len(members) * len(plan.masks)
        for block in _blocks(members, len(plan.masks)):

            def job(
                advance: Callable[[int], None],
                block: np.ndarray = block,
                plan: Plan = plan,
            ) -> list[tuple[int, Explained]]:
                values = {}
                for i in block.tolist():
                    values[i] = rows[i].values(features[i], plan.masks, task.batch_size)
                    advance(len(plan.masks))
                return _fit_alike(task, plan, values, features, rows)

            jobs.append(job)
    return _run(jobs, total, len(rows), task)


def _features(row: MaskedRow, task: Task) -> np.ndarray:
    """Features to remove: those that change the input, or all if terms name some."""
    everything = task.method.names_features
    return np.arange(row.n_features) if everything else row.varying()


def _fit_alike(
    task: Task,
    plan: Plan,
    values: dict[int, Values],
    features: list[np.ndarray],
    rows: list[MaskedRow],
) -> list[tuple[int, Explained]]:
    """Fit rows together whose values have the same shape (text may be ragged)."""
    alike: dict[Any, list[int]] = {}
    for i, found in values.items():
        alike.setdefault((found.shape, rows[i].n_features), []).append(i)
    out: list[tuple[int, Explained]] = []
    for (_, n_features), members in alike.items():
        stacked = np.stack([values[i] for i in members], axis=1)
        varying = np.stack([features[i] for i in members])
        fitted = _fit(task, plan, stacked, varying, n_features)
        out.extend(zip(members, fitted, strict=True))
    return out


def _fit(
    task: Task, plan: Plan, values: Values, varying: np.ndarray, n_features: int
) -> list[Explained]:
    for k in range(values.shape[1]):
        check_values(values[:, k], plan.masks)
    values, chosen = select(task.outputs, plan.masks, values, task.output_names)
    lifted = lift(task.method.fit(plan, values), varying, n_features)
    numbers = [None] * len(lifted) if chosen is None else list(chosen)
    return [Explained(s, k) for s, k in zip(lifted, numbers, strict=True)]


def _by_count(counts: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows with the same number of varying features."""
    for count in np.unique(counts):
        yield int(count), np.flatnonzero(counts == count)


def _blocks(members: np.ndarray, per_row: int) -> list[np.ndarray]:
    """Split rows into blocks whose values fit in memory, several where work allows.

    The number of workers has no say: the last bit of a product depends on the rows
    multiplied together, and results are to be the same on any number of workers.
    """
    n_rows, n_values = len(members), len(members) * per_row
    by_memory = -(-n_values * 8 // _FIT_BYTES)
    by_rows = -(-n_rows // _BLOCK_ROWS)
    by_work = min(_FEWEST_BLOCKS, n_values // _WORTH_A_BLOCK)
    return np.array_split(members, min(n_rows, max(by_memory, by_rows, by_work, 1)))


def _run(jobs: list[Job], total: int, n_rows: int, task: Task) -> list[Explained]:
    found: dict[int, Explained] = {}
    with tqdm(
        total=total, desc=task.title, disable=task.silent, delay=_BAR_DELAY, unit="eval"
    ) as bar:
        if task.n_jobs == 1:
            for job in jobs:
                found.update(job(bar.update))
        else:
            for part in iterate_parallel(_silently, jobs, task.n_jobs):
                found.update(part)
                bar.update(total * len(part) // max(1, n_rows))
    return [found[i] for i in range(n_rows)]


def _silently(job: Job) -> list[tuple[int, Explained]]:
    return job(_ignore)


def _ignore(count: int) -> None:
    """Progress is told by whole blocks when jobs run in other processes."""
