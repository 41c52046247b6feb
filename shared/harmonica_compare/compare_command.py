"""``harmonica compare``: every method side by side, at equal model evaluations."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path
from pickle import PicklingError
from typing import Any

from tqdm.auto import tqdm

from harmonica_compare import answer
from harmonica_compare.case import one_line
from harmonica_compare.collect import Collected
from harmonica_compare.journal import watched
from harmonica_compare.judge import radius_name
from harmonica_compare.methods import METHODS, ON_REQUEST
from harmonica_compare.modules import load_module, look_in
from harmonica_compare.results import Results
from harmonica_compare.runner import (
    Plan,
    check_radii,
    plan_cases,
    registered_metrics,
    run_plan,
    versions,
)
from harmonica_compare.tasks import TASKS, TaskError, TaskOptions
from harmonica_compare.workers import check_jobs
from harmonica_core import registry

_BUDGETS, _RADII = "100,300,1000", "1,2,4,8,16,32,inf"
_FILES = ("results.json", "tables.csv", "report.html")
_BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--task", choices=TASKS, default="tabular")
    add("--methods", help=f"comma-separated, or all; known: {', '.join(METHODS)}")
    add(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="module or .py file to import first (again for several); the methods and "
        "metrics that it registers in harmonica_core.registry take part: the methods "
        "by --methods, the metrics always",
    )
    add(
        "--budget",
        default=_BUDGETS,
        help=f"model evaluations a method; several make a curve, the last is the main; "
        f"default {_BUDGETS}",
    )
    add("--radii", default=_RADII, help=f"default {_RADII}")
    add("--data", type=Path, help="file or folder with your own data")
    add("--label", help="column to predict (tabular)")
    add("--model", help="module:function (custom)")
    add("--features", help="comma-separated columns of the inputs (custom)")
    add("--background", type=Path, help="rows for removed features (custom)")
    add("--unit", choices=("word", "sentence"), default="word", help="text features")
    add("--superpixels", type=int, default=16)
    add("--baseline", choices=("zero", "mean", "blur"), default="zero")
    add("--cases", type=int, default=2, help="inputs to explain, per model; 2")
    add("--seeds", type=int, default=1, help="runs of every method; 1")
    add("--evaluations", type=int, default=4096, help="masks to measure on; 4096")
    add(
        "--truth",
        type=int,
        help="model evaluations for the true Shapley values: all masks where there are "
        "no more, else a tree's own values or a sample; 32768, for pictures 2048",
    )
    add("--seed", type=int, default=0, help="the first one; 0")
    add("--jobs", type=int, default=2, help="processes; -1 for every core; 2")
    add("--cache", type=Path, help="folder for trained models")
    add("--out", type=Path, help="folder for results.json, tables.csv, report.html")
    add("--resume", action="store_true", help="continue from --out/results.json")


def run(args: argparse.Namespace) -> int:
    """Run the comparison; 0 when it is complete, 130 after Ctrl-C, 2 for bad input."""
    try:
        results = _collect(*_prepare(args), args)
        _finish(results, args.out)
    except (TaskError, OSError) as error:
        return _leave(one_line(error), 2)
    except PicklingError as error:  # what was registered goes to other processes
        return _leave(f"{one_line(error)} Use --jobs 1.", 2)
    except BrokenExecutor:
        return _leave("a process died, perhaps for want of memory; use --jobs 1", 2)
    except KeyboardInterrupt:
        return _leave("stopped", 130)
    return 0 if results.complete else 130


def _leave(message: str, code: int) -> int:
    print(f"harmonica compare: {message}", file=sys.stderr)
    return code


def _prepare(args: argparse.Namespace) -> tuple[Plan, Results]:
    """Check everything that can be checked before the task is loaded."""
    for name in args.plugin:
        _load_plugin(name)
    try:
        plan = _plan(args)
        _check_out(args.out)
        return plan, _results(plan, _old_results(args, plan))
    except ValueError as error:
        raise TaskError(str(error)) from error


def _load_plugin(name: str) -> None:
    """Import a module by name, or a .py file from its folder."""
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise TaskError(f"--plugin {name}: no such file; needed a module or file")
        look_in(str(path.parent.resolve()))  # other processes look there too
        load_module(path.stem, f"--plugin {name}")
    else:
        load_module(name, f"--plugin {name}")


def _plan(args: argparse.Namespace) -> Plan:
    options = TaskOptions(
        data=args.data,
        label=args.label,
        model=args.model,
        features=args.features,
        background=args.background,
        unit=args.unit,
        superpixels=_at_least(args.superpixels, 2, "--superpixels"),
        baseline=args.baseline,
        n_cases=_at_least(args.cases, 1, "--cases"),
        cache=args.cache,
        seed=_seed(args.seed),
    )
    check_jobs(args.jobs)
    methods = _methods(args.methods)
    return Plan(
        task=args.task,
        options=options,
        methods=methods,
        budgets=_budgets(args.budget),
        radii=_radii(args.radii),
        n_evaluations=_at_least(args.evaluations, 16, "--evaluations"),
        n_truth=_at_least(args.truth or _truth(args.task), 64, "--truth"),
        seeds=tuple(range(args.seed, args.seed + _at_least(args.seeds, 1, "--seeds"))),
        other_methods={m: registry.methods[m] for m in methods if m not in METHODS},
        other_metrics=registered_metrics(),
    )


def _truth(task: str) -> int:
    return 2048 if task == "image" else 32768  # a picture takes 40 ms


def _seed(seed: int) -> int:
    # More seeds and the masks to measure on take the next numbers; SHAP takes 32 bits.
    if not 0 <= seed < 2**31:
        raise ValueError(f"--seed {seed}: needed 0 to {2**31 - 1}")
    return seed


def _check_out(out: Path | None) -> None:
    """Refuse a folder that can not be written to, before the work and not after it."""
    if out is None:
        return
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"--out {out}: {there} is not a folder; choose another --out")
    if not os.access(there, os.W_OK):
        raise ValueError(
            f"--out {out}: {there} can not be written to; choose another --out"
        )
    for name in _FILES:
        if (out / name).is_dir():
            raise ValueError(f"{out / name} is a folder; choose another --out")


def _at_least(number: int, least: int, name: str) -> int:
    if number < least:
        raise ValueError(f"{name} {number}: needed at least {least}")
    return number


def _whole(parts: list[str], option: str) -> list[int]:
    """Whole numbers of texts; the complaint names the option."""
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise ValueError(
            f"{option}: needed whole numbers separated by commas"
        ) from None


def _parts(text: str) -> list[str]:
    """Parts of a text such as ``250,1000``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _budgets(text: str) -> tuple[int, ...]:
    option = f"--budget {text}"
    found = _whole(_parts(text) or [text], option)
    return tuple(sorted({_at_least(number, 10, "--budget") for number in found}))


def _radii(text: str) -> tuple[int | None, ...]:
    parts = _parts(text)
    finite = _whole([part for part in parts if part != "inf"], f"--radii {text}")
    if not parts or any(r < 1 for r in finite):
        raise ValueError(f"--radii {text}: needed numbers >= 1, or inf")
    return (*sorted(set(finite)), *([None] if "inf" in parts else []))


def _methods(text: str | None) -> tuple[str, ...]:
    twice = ", ".join(name for name in registry.methods if name in METHODS)
    if twice:
        raise ValueError(
            f"the registered method {twice} has the name of a built-in one; register "
            "it under another name"
        )
    known = [*METHODS, *registry.methods]
    if text is None:
        return tuple(name for name in known if name not in ON_REQUEST)
    if text == "all":
        return tuple(known)
    names = tuple(dict.fromkeys(_parts(text)))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ValueError(
            f"--methods {', '.join(unknown) or text}: unknown; needed some of "
            f"{', '.join(known)}"
        )
    return names


def _settings(plan: Plan) -> dict[str, Any]:
    options = plan.options
    return {
        "task": plan.task,
        "methods": list(plan.methods),
        "budgets": list(plan.budgets),
        "radii": [radius_name(radius) for radius in plan.radii],
        "n_evaluations": plan.n_evaluations,
        "n_truth": plan.n_truth,
        "seeds": list(plan.seeds),
        # The name alone: where it lies is nobody else's business.
        "data": None if options.data is None else options.data.name,
        "label": options.label,
        "model": options.model,
        "features": options.features,
        "background": None if options.background is None else options.background.name,
        "unit": options.unit,
        "superpixels": options.superpixels,
        "baseline": options.baseline,
        "n_cases": options.n_cases,
    }


def _old_results(args: argparse.Namespace, plan: Plan) -> Results | None:
    """Earlier results to go on from.

    Nothing is overwritten but a finished run of the very same settings.
    """
    if args.out is None:
        if args.resume:
            raise ValueError("--resume needs --out, the folder with results.json")
        return None
    path = args.out / "results.json"
    if not path.exists():
        return None
    old, new = Results.load(path), _settings(plan)
    if not args.resume and not old.complete:
        raise ValueError(
            f"{path} holds an unfinished run; continue it with --resume, or choose "
            "another --out"
        )
    may_grow = {"methods", "budgets", "n_cases", "seeds"} if args.resume else set()
    changed = [k for k in new if k not in may_grow and new[k] != old.settings.get(k)]
    if changed:
        raise ValueError(
            f"{path} was made with other settings ({', '.join(changed)}); use the same "
            "ones or choose another --out"
        )
    return old if args.resume else None


def _results(plan: Plan, old: Results | None) -> Results:
    cells = () if old is None else tuple(c for c in old.cells if c.status != "failed")
    return Results(_settings(plan), versions(), cells)


def _collect(plan: Plan, results: Results, args: argparse.Namespace) -> Results:
    """Add the missing cells; after Ctrl-C return what there is."""
    name = f"Loading {plan.task}"
    with tqdm(total=1, desc=name, bar_format=_BAR, smoothing=0, mininterval=0.5) as bar:
        # The clock ticks from the start, whatever takes its time.
        with watched(lambda cell: collected.add(cell), bar.refresh) as journal:
            cases = plan_cases(plan)
            check_radii(plan, cases)
            if args.out is not None:
                args.out.mkdir(parents=True, exist_ok=True)
            collected = Collected(results, plan, cases, bar, args.out)
            try:
                for cell in run_plan(plan, set(collected.cells), args.jobs, journal):
                    collected.add(cell)
            except KeyboardInterrupt:
                print("\nstopped; what was measured is kept", file=sys.stderr)
                return collected.results()
    return collected.results(complete=True)


def _finish(results: Results, out: Path | None) -> None:
    print(answer.terminal(results))
    if out is None:
        return
    results.save(out / "results.json")
    answer.write_csv(results, out / "tables.csv")
    try:
        from harmonica_compare import report
    except ImportError as error:
        raise TaskError(
            f"{out}/results.json and tables.csv are written, but report.html needs "
            f'{error.name}: pip install "harmonica-xai[compare]"'
        ) from error
    (out / "report.html").write_text(report.build(results), encoding="utf-8")
    print(f"written: {out}/results.json, tables.csv, report.html")
