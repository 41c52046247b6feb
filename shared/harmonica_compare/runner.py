"""Run methods on cases at equal budgets and measure all of them on the same masks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from typing import Any

import numpy as np

from harmonica_compare.case import Case, Counted, NotApplicableError
from harmonica_compare.methods import METHODS, Method
from harmonica_compare.results import Cell
from harmonica_compare.tasks import TaskOptions, load_task
from harmonica_core import metrics, registry
from harmonica_core._types import Floats, Masks, ValueFunction
from harmonica_core.anchored import AnchoredSurrogate
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
    """

    task: str
    options: TaskOptions
    methods: tuple[str, ...]
    budgets: tuple[int, ...]
    radii: tuple[int | None, ...]
    n_evaluations: int = 4096
    seed: int = 0

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
    if name in METHODS:
        return METHODS[name]
    entry: Any = registry.methods[name]

    def run(case: Case, f: Counted, seed: int) -> Any:
        return entry(f, case.n_features, budget=f.budget, seed=seed)

    return Method(name, name, run)


def run_plan(plan: Plan, done: set[Key], jobs: int = 1) -> Iterator[Cell]:
    """Yield the cells that are not ``done``, case by case.

    With ``jobs`` > 1 every process loads the task itself and takes whole cases.
    """
    cases = [case.name for case in _cases(plan.task, plan.options)]
    todo = [k for k, name in enumerate(cases) if not done.issuperset(plan.keys(name))]
    if jobs == 1:
        for k in todo:
            yield from run_case(plan, k, done)
        return
    whole_case = partial(_run_whole_case, plan, done)
    for cells in iterate_parallel(whole_case, todo, jobs):
        yield from cells


@lru_cache(maxsize=1)
def _cases(task: str, options: TaskOptions) -> list[Case]:
    return load_task(task, options)


def count_cells(plan: Plan) -> int:
    """Return how many cells the whole plan has."""
    per_case = len(plan.methods) * len(plan.budgets)
    return len(_cases(plan.task, plan.options)) * per_case


def _run_whole_case(plan: Plan, done: set[Key], number: int) -> list[Cell]:
    return list(run_case(plan, number, done))


def run_case(plan: Plan, number: int, done: set[Key]) -> Iterator[Cell]:
    """Yield the missing cells of one case; a failing method costs only its cell."""
    case = _cases(plan.task, plan.options)[number]
    todo = [key for key in plan.keys(case.name) if key not in done]
    model = Remembered(case.value_function)
    radii = [r for r in plan.radii if r is None or r <= case.n_features]
    known = EvaluationSet.draw(
        model,
        case.n_features,
        radii,
        max_evaluations=plan.n_evaluations,
        seed=plan.seed + 1,  # not the masks that any method draws
    )
    for _, method, budget, seed in todo:
        yield _run_cell(case, model, known, radii, method, budget, seed)


def _run_cell(
    case: Case,
    model: Remembered,
    known: EvaluationSet,
    radii: list[int | None],
    method: str,
    budget: int,
    seed: int,
) -> Cell:
    counted = Counted(model, budget)
    before, start = model.seconds, time.perf_counter()
    cell = partial(Cell, case=case.name, method=method, budget=budget, seed=seed)
    try:
        explained = find_method(method).run(case, counted, seed)
        seconds = time.perf_counter() - start - (model.seconds - before)
        numbers = _measure(explained, model, known, radii)
    except NotApplicableError as reason:
        return cell(status="not applicable", message=str(reason))
    except Exception as error:  # one method's crash must not cost the others
        message = f"{type(error).__name__}: {error}"
        return cell(status="failed", message=message, n_calls=counted.n_calls)
    return cell(status="ok", n_calls=counted.n_calls, seconds=seconds, numbers=numbers)


def radius_name(radius: float | None) -> str:
    """Return how a radius is written in names and tables."""
    return "inf" if radius is None else f"{radius:g}"


def _measure(
    g: Any, model: Remembered, known: EvaluationSet, radii: list[int | None]
) -> dict[str, list[float]]:
    """All numbers of one cell, each with its standard error."""
    n = known.n_features
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
    pairs = {name: _pair(number) for name, number in found.items()}
    # What is undefined (R2 of a constant) is left out; JSON has no word for it.
    return {name: pair for name, pair in pairs.items() if np.isfinite(pair).all()}


def _pair(number: Any) -> list[float]:
    if isinstance(number, (int, float)):
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
