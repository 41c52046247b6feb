"""``harmonica explain``: every row of a large file, chunk by chunk, on any engine.

Each chunk of rows becomes one file of attributions in the output folder, written
whole or not at all; after a kill, ``--resume`` goes on with the chunks that are
missing. Memory does not depend on the number of rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from harmonica_compare.case import one_line
from harmonica_compare.masked_rows import Task, explain_rows, load_model
from harmonica_compare.streams import Source, write_part
from harmonica_compare.tasks import TaskError
from harmonica_compare.workers import check_jobs, start_workers
from harmonica_core import input_key
from harmonica_core._types import Floats
from harmonica_core.parallel import iterate_parallel
from harmonica_core.settings import check_budget, check_degree

_MANIFEST = "explain.json"
_LEFTOVERS = ".part-*.tmp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "--model",
        required=True,
        metavar="MODULE:FUNCTION",
        help="takes float (m, n_features), returns (m,) or (m, n_outputs)",
    )
    add("--data", required=True, type=Path, help=".csv, .csv.gz or .parquet")
    add("--out", required=True, type=Path, help="folder for the attributions")
    add("--features", help="comma-separated columns, in the model's order; all")
    add(
        "--background",
        type=Path,
        help="file with rows that stand for removed features, averaged over; "
        "default: one row, the mean of the data",
    )
    add("--chunk", type=int, default=1000, help="rows a file; 1000")
    add(
        "--degree",
        type=int,
        default=3,
        help="size of the largest terms; 3. From 3 on, exact with all masks",
    )
    add("--budget", default="auto", help="masks a row; auto")
    add("--seed", type=int, default=0)
    add("--batch", type=int, default=65536, help="model rows a call; 65536")
    add("--jobs", type=int, default=1, help="processes; -1 for every core")
    add("--format", choices=("parquet", "csv"), default="parquet")
    add("--resume", action="store_true", help="go on where an earlier run stopped")
    add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Explain a file; 0 when it is complete, 2 for bad input, 130 after Ctrl-C."""
    try:
        job = Job.of(args)
        job.open_folder(resume=args.resume)
        started = time.perf_counter()
        n_rows = job.run(args.jobs, progress=not args.quiet)
    except (TaskError, ValueError, TypeError, OSError) as error:
        print(f"harmonica explain: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("harmonica explain: stopped; --resume goes on from here", file=sys.stderr)
        return 130
    rate = n_rows / max(time.perf_counter() - started, 1e-9)
    print(f"{n_rows} rows explained ({rate:.0f} rows/s) in {args.out}")
    return 0


@dataclass(frozen=True)
class Job:
    """One file to explain, and where to."""

    source: Source
    task: Task
    out: Path
    chunk: int
    suffix: str

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Check everything that can be checked before the first model call."""
        if args.chunk < 1 or args.batch < 1:
            raise ValueError("--chunk and --batch: needed at least 1 row")
        _check_numbers(args)
        load_model(args.model)
        names = None if args.features is None else args.features.split(",")
        source = Source(args.data, names)
        task = Task(
            model=args.model,
            background=_background(args, source),
            degree=args.degree,
            budget=_budget(args.budget, len(source.features)),
            seed=args.seed,
            batch=args.batch,
        )
        return cls(source, task, args.out, args.chunk, f".{args.format}")

    def settings(self) -> dict[str, Any]:
        """Return what a resumed run must have in common with the first."""
        task = asdict(self.task)
        del task["folder"]  # the same rows from anywhere
        task["background"] = input_key(task["background"])
        return {
            "data": self.source.path.name,
            "bytes": self.source.path.stat().st_size,
            "features": self.source.features,
            "chunk": self.chunk,
            "format": self.suffix,
            **task,
        }

    def open_folder(self, resume: bool) -> None:
        """Make the folder, or check that it is the one to go on with."""
        manifest = self.out / _MANIFEST
        wanted = self.settings()
        if self._nothing_in_it(wanted):
            self.out.mkdir(parents=True, exist_ok=True)
            manifest.write_text(json.dumps(wanted, indent=1) + "\n")
        elif not resume:
            raise ValueError(
                f"{self.out} exists and is not empty; nothing was changed: add "
                "--resume to go on with it, or give --out another folder"
            )
        else:
            _check_same(manifest, wanted)
        for leftover in self.out.glob(_LEFTOVERS):
            leftover.unlink(missing_ok=True)

    def _nothing_in_it(self, wanted: dict[str, Any]) -> bool:
        """Whether there is no folder yet, or one without a single explained row."""
        if not self.out.exists():
            return True
        if not self.out.is_dir():
            return False
        manifest = self.out / _MANIFEST
        leftovers = set(self.out.glob(_LEFTOVERS))
        found = [path for path in self.out.iterdir() if path not in leftovers]
        return not found or (found == [manifest] and _is_manifest(manifest, wanted))

    def part(self, start: int) -> Path:
        """Return the file for the chunk that starts with this row."""
        return self.out / f"part-{start:012d}{self.suffix}"

    def missing(self, bar: Any) -> Iterator[tuple[int, Floats]]:
        """Yield the chunks that have no file yet."""
        for start, rows in self.source.chunks(self.chunk):
            if self.part(start).exists():
                bar.update(len(rows))
            else:
                yield start, rows

    def run(self, jobs: int, progress: bool) -> int:
        """Explain what is missing; return the number of rows that were."""
        n_rows = 0
        with tqdm(
            total=self.source.n_rows(),
            desc="Harmonica",
            unit=" rows",
            disable=not progress,
        ) as bar:
            task = self.task
            start_workers(jobs)
            results = iterate_parallel(
                lambda chunk: (chunk[0], explain_rows(task, chunk[1], chunk[0])),
                self.missing(bar),
                jobs,
            )
            for start, found in results:
                columns = found.columns(start, self.source.features)
                write_part(self.part(start), columns)
                n_rows += len(found.error)
                bar.update(len(found.error))
        return n_rows


def _background(args: argparse.Namespace, source: Source) -> Floats:
    if args.background is None:
        return source.mean(max(args.chunk, 10_000))[None, :]
    background = Source(args.background, source.features)
    return np.concatenate([rows for _, rows in background.chunks(10_000)])


def _check_numbers(args: argparse.Namespace) -> None:
    if args.seed < 0:
        raise ValueError(f"--seed {args.seed}: needed a whole number, at least 0")
    _check_option("--degree", args.degree, check_degree)
    check_jobs(args.jobs)


def _check_option(name: str, value: Any, check: Callable[[Any], Any]) -> Any:
    """Return ``check(value)``; its complaint names the option."""
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"{name} {value}: {error}") from None


def _budget(text: str, n_features: int) -> int:
    budget: Any = text
    if text != "auto":
        budget = _check_option("--budget", text, int)
    return int(_check_option("--budget", budget, lambda b: check_budget(b, n_features)))


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(manifest.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{manifest.parent} was not made by harmonica explain ({error}); nothing "
            "was changed: give --out another folder"
        ) from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{manifest} is damaged; nothing was changed: give --out another folder"
        )
    return found


def _is_manifest(manifest: Path, wanted: dict[str, Any]) -> bool:
    """Whether it is from an earlier run, of whatever settings."""
    try:
        return set(_read_manifest(manifest)) == set(wanted)
    except ValueError:
        return False


def _check_same(manifest: Path, wanted: dict[str, Any]) -> None:
    found = _read_manifest(manifest)
    other = [name for name in wanted if found.get(name) != wanted[name]]
    if other:
        name = other[0]
        raise ValueError(
            f"{manifest.parent} holds an explanation with other settings ({name}: "
            f"{found.get(name)!r}, now {wanted[name]!r}); nothing was changed: use the "
            "same settings, or give --out another folder"
        )
