"""Run methods on cases at equal budgets and measure all of them on the same masks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import metadata
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from harmonica_compare.case import (
    Case,
    Counted,
    NotApplicableError,
    one_line,
    told,
)
from harmonica_compare.methods import METHODS, Method
from harmonica_compare.results import Cell
from harmonica_compare.tasks import TaskError, TaskOptions, load_task
from harmonica_compare.workers import start_workers
from harmonica_core import metrics, registry
from harmonica_core._types import Floats, Masks, ValueFunction
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.metrics import EvaluationSet
from harmonica_core.parallel import iterate_parallel

Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    task : str
    options : TaskOptions
    methods : names, in the order of the tables
    budgets : model evaluations; the last one is the main one
    radii : numbers of removed features; None = all masks
    n_evaluations : masks on which every method is measured
    seed : int
    other_methods, other_metrics : registered callables by name
        They travel with the plan, because other processes have registries of their
        own.
    """

    task: str
    options: TaskOptions
    methods: tuple[str, ...]
    budgets: tuple[int, ...]
    radii: tuple[int | None, ...]
    n_evaluations: int = 4096
    seed: int = 0
    other_methods: Mapping[str, Any] = field(default_factory=dict)
    other_metrics: Mapping[str, Any] = field(default_factory=dict)

    def method(self, name: str) -> Method:
        """Return a method of this plan."""
        if name in self.other_methods:
            return _adapted(name, self.other_methods[name])
        return METHODS[name]

    def keys(self, case: str) -> list[Key]:
        """Cells of one case."""
        return [
            (case, method, budget, self.seed)
            for budget in self.budgets
            for method in self.methods
        ]


class Remembered:
    """A value function that evaluates no mask twice and times the model.

    Methods are compared on the same function, so what one of them has paid for is
    not computed again for the next; each one's own count is kept by `Counted`.
    """

    def __init__(self, value_function: ValueFunction) -> None:
        self.value_function = value_function
        self.known: dict[bytes, float] = {}
        self.seconds = 0.0

    def __call__(self, masks: Masks) -> Floats:
        """Values ``(m,)`` of the masks."""
        start = time.perf_counter()
        packed = np.packbits(masks, axis=1)
        keys = [row.tobytes() for row in packed]
        new = {key: k for k, key in enumerate(keys) if key not in self.known}
        if new:
            values = self.value_function(masks[list(new.values())])
            self.known.update(zip(new, np.asarray(values).tolist(), strict=True))
        found = np.array([self.known[key] for key in keys])
        self.seconds += time.perf_counter() - start
        return found


def find_method(name: str) -> Method:
    """Return a built-in method, or one registered in `harmonica_core.registry`."""
    return METHODS.get(name) or _adapted(name, registry.methods[name])


def _adapted(name: str, entry: Any) -> Method:
    """Return a registered method in the form of the built-in ones."""

    def run(case: Case, f: Counted, seed: int) -> Any:
        return entry(f, case.n_features, budget=f.budget, seed=seed)

    return Method(name, name, run)


def registered_metrics() -> dict[str, Any]:
    """Return other people's metrics: those that are not ours."""
    return {
        name: metric
        for name, metric in registry.metrics.items()
        if getattr(metrics, name, None) is not metric
    }


def run_plan(plan: Plan, done: set[Key], jobs: int = 1) -> Iterator[Cell]:
    """Yield the cells that are not ``done``, case by case.

    With ``jobs`` > 1 every process loads the task itself and takes whole cases; a
    single case stays here, where each of its cells can be saved.
    """
    cases = [case.name for case in _cases(plan.task, plan.options)]
    todo = [k for k, name in enumerate(cases) if not done.issuperset(plan.keys(name))]
    if jobs == 1 or len(todo) == 1:
        for k in todo:
            yield from run_case(plan, k, done)
        return
    whole_case = partial(_run_whole_case, plan, done, os.getpid())
    start_workers(jobs)
    for cells in iterate_parallel(whole_case, todo, jobs):
        yield from cells


@lru_cache(maxsize=1)
def _cases(task: str, options: TaskOptions) -> list[Case]:
    try:
        return load_task(task, options)
    except (ValueError, OSError) as error:  # data that a model can not be trained on
        raise TaskError(f"--task {task}: {one_line(error)}") from error


def count_cells(plan: Plan) -> int:
    """Return how many cells the whole plan has."""
    per_case = len(plan.methods) * len(plan.budgets)
    return len(_cases(plan.task, plan.options)) * per_case


def check_radii(plan: Plan) -> None:
    """Refuse radii that exceed the features of every case."""
    most = max(case.n_features for case in _cases(plan.task, plan.options))
    if not _radii(plan, most):
        shown = ",".join(map(radius_name, plan.radii))
        raise TaskError(
            f"--radii {shown}: the inputs have at most {most} features; needed a "
            "radius up to that, or inf"
        )


def _radii(plan: Plan, n_features: int) -> list[int | None]:
    return [r for r in plan.radii if r is None or r <= n_features]


def _run_whole_case(plan: Plan, done: set[Key], parent: int, number: int) -> list[Cell]:
    if os.getpid() != parent and current_thread() is main_thread():
        # Ctrl-C reaches every process; the parent alone answers, and ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return list(run_case(plan, number, done))


def run_case(plan: Plan, number: int, done: set[Key]) -> Iterator[Cell]:
    """Yield the missing cells of one case; a failing method costs only its cell."""
    case = _cases(plan.task, plan.options)[number]
    todo = [key for key in plan.keys(case.name) if key not in done]
    if not _radii(plan, case.n_features):
        reason = f"no radius up to its {case.n_features} features"
        yield from (Cell(*key, status="not applicable", message=reason) for key in todo)
        return
    model = Remembered(case.value_function)
    known = _known(plan, case, model)
    for key in todo:
        yield _run_cell(plan, case, model, known, key)


def _known(plan: Plan, case: Case, model: Remembered) -> EvaluationSet:
    """The model's values on the masks on which every method is measured."""
    try:
        return EvaluationSet.draw(
            model,
            case.n_features,
            _radii(plan, case.n_features),
            max_evaluations=plan.n_evaluations,
            seed=plan.seed + 1,  # not the masks that any method draws
        )
    except Exception as error:  # without the model there is nothing to measure
        raise TaskError(f"the model fails on {case.name}: {told(error)}") from error


def _run_cell(
    plan: Plan, case: Case, model: Remembered, known: EvaluationSet, key: Key
) -> Cell:
    _, method, budget, seed = key
    counted = Counted(model, budget)
    before, start = model.seconds, time.perf_counter()
    cell = partial(Cell, *key)
    try:
        explained = plan.method(method).run(case, counted, seed)
        seconds = time.perf_counter() - start - (model.seconds - before)
        numbers = _measure(plan, explained, model, known)
    except NotApplicableError as reason:
        return cell(status="not applicable", message=one_line(reason))
    # One method's crash, or its way to leave, must not cost the others.
    except (Exception, SystemExit) as error:
        return cell(status="failed", message=told(error), n_calls=counted.n_calls)
    return cell(status="ok", n_calls=counted.n_calls, seconds=seconds, numbers=numbers)


def radius_name(radius: float | None) -> str:
    """Return how a radius is written in names and tables."""
    return "inf" if radius is None else f"{radius:g}"


def _measure(
    plan: Plan, g: Any, model: Remembered, known: EvaluationSet
) -> dict[str, list[float]]:
    """All numbers of one cell, each with its standard error."""
    n = known.n_features
    radii = _radii(plan, n)
    found: dict[str, Any] = {}
    profile = metrics.profile(known, {"g": g}, n, radii)
    for _, radius, p, error in profile.rows():
        norm = p if isinstance(p, str) else f"L{p:g}"
        found[f"{norm}@{radius_name(radius)}"] = error
    if None in radii:
        for degree in range(1, min(3, n) + 1):
            found[f"truthful@{degree}"] = metrics.truthful_gap(
                known, g, n, degree=degree
            )
        found["R2"] = metrics.r_squared(known, g, n)
    found["efficiency_gap"] = metrics.efficiency_gap(model, g, n)
    if isinstance(g, AnchoredSurrogate):
        parts = metrics.inconsistency(known, g, n)
        found["log_k"], found["I_total"] = parts.log_k, parts.I_total
        found["D_total"] = parts.D_total
    if hasattr(g, "shapley_values"):
        curves = metrics.insertion_deletion(model, g, n)
        found["insertion"] = curves.insertion_auc
        found["deletion"] = curves.deletion_auc
    pairs = _others(plan, g, model, n)
    pairs.update({name: _pair(number) for name, number in found.items()})
    # What is undefined (R2 of a constant) is left out; JSON has no word for it.
    return {name: pair for name, pair in pairs.items() if np.isfinite(pair).all()}


def _others(plan: Plan, g: Any, model: Remembered, n: int) -> dict[str, list[float]]:
    """Numbers of registered metrics; one that fails costs only its number."""
    found = {}
    for name, metric in plan.other_metrics.items():
        try:
            number = metric(model, g, n)
            if number is not None:
                found[name] = _pair(number)
        except Exception:  # noqa: S112 - its absence from the cell tells
            continue
    return found


def _pair(number: Any) -> list[float]:
    if isinstance(number, (int, float, np.number)):
        return [float(number), 0.0]
    value, standard_error = number
    return [float(value), float(standard_error)]


def versions() -> dict[str, str]:
    """Versions of everything that takes part."""
    names = ["harmonica-xai", "numpy", "scipy", "scikit-learn", "torch", "captum"]
    found = {}
    for name in [*names, "shap", "shapiq", "lightgbm", "scikit-image"]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
