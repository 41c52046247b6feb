"""Run methods on cases at equal budgets and judge all of them alike."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from importlib import metadata
from itertools import groupby
from threading import current_thread, main_thread
from typing import Any

from threadpoolctl import threadpool_limits

from harmonica_compare.case import Case, Counted, NotApplicableError, one_line, told
from harmonica_compare.explained import explained
from harmonica_compare.journal import Journal
from harmonica_compare.judge import judge, radius_name
from harmonica_compare.meter import Remembered, first_call, measured
from harmonica_compare.method import Method
from harmonica_compare.methods import METHODS, adapted
from harmonica_compare.results import Cell
from harmonica_compare.tasks import TaskError, TaskOptions, load_task
from harmonica_compare.truth import Truth, truth_kind, truth_of
from harmonica_compare.workers import start_workers
from harmonica_core import metrics, registry
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
    n_truth : model evaluations that the true Shapley values may take
    seeds : one run of every method for each
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
    n_truth: int = 32768
    seeds: tuple[int, ...] = (0,)
    other_methods: Mapping[str, Any] = field(default_factory=dict)
    other_metrics: Mapping[str, Any] = field(default_factory=dict)

    def method(self, name: str) -> Method:
        """Return a method of this plan."""
        if name in self.other_methods:
            return adapted(name, self.other_methods[name])
        return METHODS[name]

    def keys(self, case: str) -> list[Key]:
        """Cells of one case."""
        return [
            (case, method, budget, seed)
            for seed in self.seeds
            for budget in self.budgets
            for method in self.methods
        ]

    def weight(self, method: str, budget: int) -> float:
        """Return roughly how long a cell takes; only ratios matter."""
        return self.method(method).cost * (budget + 300)


@dataclass(frozen=True)
class Ready:
    """A case with all that its cells share."""

    case: Case
    model: Remembered
    truth: Truth
    known: EvaluationSet
    radii: Sequence[int | None]


def registered_metrics() -> dict[str, Any]:
    """Return other people's metrics: those that are not ours."""
    return {
        name: metric
        for name, metric in registry.metrics.items()
        if getattr(metrics, name, None) is not metric
    }


def run_plan(
    plan: Plan, done: set[Key], jobs: int = 1, journal: Journal | None = None
) -> Iterator[Cell]:
    """Yield the cells that are not ``done``, case by case.

    With ``jobs`` > 1 every process loads the task itself and takes whole cases; each
    cell is also in the journal as soon as it is known. A single case stays here.
    """
    names = [case.name for case in plan_cases(plan)]
    todo = [k for k, name in enumerate(names) if not done.issuperset(plan.keys(name))]
    if jobs == 1 or len(todo) == 1 or journal is None:
        for k in todo:
            yield from run_case(plan, plan_cases(plan)[k], done)
        return
    whole_case = partial(_run_whole_case, plan, done, os.getpid(), journal)
    start_workers(jobs, partial(warm_up, plan))
    for cells in iterate_parallel(whole_case, todo, jobs):
        yield from cells


def warm_up(plan: Plan) -> None:
    """Load the task and run every method once on a toy, in this process."""
    plan_cases(plan)
    for name in plan.methods:
        first_call(plan.method(name))


def plan_cases(plan: Plan) -> list[Case]:
    """Return the cases of the plan's task, loaded once in each process."""
    return _cases(plan.task, plan.options)


@lru_cache(maxsize=1)
def _cases(task: str, options: TaskOptions) -> list[Case]:
    try:
        return load_task(task, options)
    except (ValueError, OSError) as error:  # data that a model can not be trained on
        raise TaskError(f"--task {task}: {one_line(error)}") from error


def check_radii(plan: Plan, cases: list[Case]) -> None:
    """Refuse radii that exceed the features of every case."""
    most = max(case.n_features for case in cases)
    if not _radii(plan, most):
        shown = ",".join(map(radius_name, plan.radii))
        raise TaskError(
            f"--radii {shown}: the inputs have at most {most} features; needed a "
            "radius up to that, or inf"
        )


def _radii(plan: Plan, n_features: int) -> list[int | None]:
    return [r for r in plan.radii if r is None or r <= n_features]


def _run_whole_case(
    plan: Plan, done: set[Key], parent: int, journal: Journal, number: int
) -> list[Cell]:
    if os.getpid() != parent and current_thread() is main_thread():
        # Ctrl-C reaches every process; the parent alone answers, and ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    cells = []
    for cell in run_case(plan, plan_cases(plan)[number], done):
        journal.write(cell)
        cells.append(cell)
    return cells


def run_case(plan: Plan, case: Case, done: set[Key]) -> Iterator[Cell]:
    """Yield the missing cells of one case; a failing method costs only its cell."""
    todo = [key for key in plan.keys(case.name) if key not in done]
    radii = _radii(plan, case.n_features)
    if not radii:
        reason = f"no radius up to its {case.n_features} features"
        yield from (Cell(*key, status="not applicable", message=reason) for key in todo)
        return
    with threadpool_limits(limits=1):
        ready = _ready(plan, case, radii)
    for key in todo:
        with threadpool_limits(limits=1):  # own times of one thread, for every method
            cell = _run_cell(plan, ready, key)
        yield cell


def _ready(plan: Plan, case: Case, radii: Sequence[int | None]) -> Ready:
    """Find the truth, and the model's values where every method is measured."""
    model = Remembered(case.value_function)
    seed = plan.seeds[0] + 1  # not the masks that any method draws
    try:
        known = EvaluationSet.draw(
            model,
            case.n_features,
            radii,
            max_evaluations=plan.n_evaluations,
            seed=seed,
        )
        truth = truth_of(case, model, plan.n_truth, seed)
    except Exception as error:  # without the model there is nothing to measure
        raise TaskError(f"the model fails on {case.name}: {told(error)}") from error
    return Ready(case, model, truth, known, radii)


def _run_cell(plan: Plan, ready: Ready, key: Key) -> Cell:
    _, name, budget, seed = key
    case, model = ready.case, ready.model
    counted, method = Counted(model, budget), plan.method(name)
    first = first_call(method)
    cell = partial(Cell, *key)
    try:
        found, cost = measured(lambda: _with_values(method, case, counted, seed), model)
        said = explained(found, case.n_features)
        others = plan.other_metrics
        numbers = judge(said, ready.truth, ready.known, ready.radii, model, others)
    except NotApplicableError as reason:
        return cell(status="not applicable", message=one_line(reason))
    # One method's crash, or its way to leave, must not cost the others.
    except (Exception, SystemExit) as error:
        return cell(status="failed", message=told(error), n_calls=counted.n_calls)
    numbers["first_seconds"] = [first, 0.0]
    numbers["truth_error"] = [ready.truth.standard_error, 0.0]
    if cost.peak_mb is not None:
        numbers["peak_mb"] = [cost.peak_mb, 0.0]
    return cell(
        status="ok", n_calls=counted.n_calls, seconds=cost.seconds, numbers=numbers
    )


def _with_values(method: Method, case: Case, counted: Counted, seed: int) -> Any:
    """Run a method to its Shapley values, also where they are computed when asked."""
    found = method.run(case, counted, seed)
    if hasattr(found, "shapley_values"):
        found.shapley_values()
    return found


def describe(plan: Plan, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return what the cases are, those alike together, for the report."""
    groups = []
    for (about, n, how), members in groupby(
        cases, lambda c: (c.about, c.n_features, truth_kind(c, plan.n_truth))
    ):
        alike = list(members)
        names = [case.name for case in alike]
        features = list(alike[0].feature_names or ())[:60]
        group = {**asdict(about), "n_features": n, "truth": how, "cases": names}
        # The words of one text are its own; columns are those of all rows.
        same = all(case.feature_names == alike[0].feature_names for case in alike)
        groups.append({**group, "features": features if same else []})
    return groups


def versions() -> dict[str, str]:
    """Return versions of everything that takes part, and what it runs on."""
    names = ["harmonica-xai", "numpy", "scipy", "scikit-learn", "torch", "captum"]
    found = {"Python": platform.python_version()}
    for name in [*names, "shap", "shapiq", "lightgbm", "scikit-image"]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {**found, "machine": machine}
