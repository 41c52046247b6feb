"""``harmonica explain``: every row of a large file, chunk by chunk, on any engine.

Each chunk of rows becomes one file of attributions in the output folder, written
whole or not at all; after a kill, ``--resume`` goes on with the chunks that are
missing, if the model, the data and the settings are still the same. Memory does not
depend on the number of rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from harmonica_compare.case import one_line
from harmonica_compare.manifest import open_folder
from harmonica_compare.masked_rows import (
    Explained,
    Task,
    answers,
    column_names,
    explain_rows,
    learn_from_rows,
    load_model,
)
from harmonica_compare.modules import source_files
from harmonica_compare.streams import (
    Source,
    content_hash,
    is_whole_part,
    need_writer,
    write_part,
)
from harmonica_compare.tasks import TaskError
from harmonica_compare.workers import check_jobs, end_with, start_workers
from harmonica_core import input_key
from harmonica_core._types import Floats
from harmonica_core.parallel import iterate_parallel
from harmonica_core.settings import check_budget, check_degree

_PROBED = 8  # rows whose outputs tell whether a model is still the same


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
        help="size of the largest terms; no limit",
    )
    add("--budget", default="auto", help="masks a row; auto")
    add("--seed", type=int, default=0)
    add("--batch", type=int, default=65536, help="model rows a call; 65536")
    add("--jobs", type=int, default=1, help="processes; -1 for every core")
    add("--format", choices=("parquet", "csv"), default="parquet")
    add("--resume", action="store_true", help="go on where an earlier run stopped")
    add(
        "--force",
        action="store_true",
        help="with --resume: keep the rows that are there although the model, the data "
        "or the settings have changed",
    )
    add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Explain a file; 0 when it is complete, 2 after an error, 130 after Ctrl-C."""
    try:
        job = Job.of(args)
        open_folder(args.out, job.made_from(), resume=args.resume, force=args.force)
        started = time.perf_counter()
        n_rows = job.run(args.jobs, progress=not args.quiet)
    except (TaskError, ValueError, TypeError, OSError) as error:
        return _leave(one_line(error), 2)
    except BrokenExecutor:
        return _leave(
            "a process died, perhaps for want of memory; --resume goes on from here, "
            "perhaps with a smaller --jobs or --batch",
            2,
        )
    except KeyboardInterrupt:
        return _leave("stopped; --resume goes on from here", 130)
    rate = n_rows / max(time.perf_counter() - started, 1e-9)
    print(f"{n_rows} rows explained ({rate:.0f} rows/s) in {args.out}")
    return 0


def _leave(message: str, code: int) -> int:
    print(f"harmonica explain: {message}", file=sys.stderr)
    return code


@dataclass(frozen=True)
class Job:
    """One file to explain, and where to.

    Attributes
    ----------
    source : Source
    task : Task
    out : Path
    chunk : int
        Rows a part.
    suffix : ".parquet" or ".csv"
    probe : float64 (n_rows, n_outputs)
        What the model says to a few rows.
    """

    source: Source
    task: Task
    out: Path
    chunk: int
    suffix: str
    probe: Floats

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Check everything that can be checked before the first model call."""
        if args.chunk < 1 or args.batch < 1:
            raise ValueError("--chunk and --batch: needed at least 1 row")
        _check_numbers(args)
        need_writer(args.format)
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
        first = next(source.chunks(args.chunk))[1]
        task = replace(task, prior=learn_from_rows(task, first))
        first = first[:_PROBED]
        probe = answers(task, np.concatenate([first, task.background[:_PROBED]]))
        return cls(source, task, args.out, args.chunk, f".{args.format}", probe)

    def made_from(self) -> dict[str, Any]:
        """Return what a resumed run must have in common with the first."""
        task = asdict(self.task)
        del task["folder"]  # the same rows from anywhere
        del task["prior"]  # learnt from the same rows
        task["background"] = input_key(task["background"])
        probe = self.probe.astype(object)
        probe[~np.isfinite(self.probe)] = None  # JSON has no NaN
        return {
            "data": self.source.path.name,
            "rows": content_hash(self.source.path),
            "code": content_hash(*source_files(self.task.model)),
            "answers": probe.tolist(),
            "features": self.source.features,
            "chunk": self.chunk,
            "format": self.suffix,
            **task,
        }

    def part(self, start: int) -> Path:
        """Return the file for the chunk that starts with this row."""
        return self.out / f"part-{start:012d}{self.suffix}"

    def missing(self, bar: Any) -> Iterator[tuple[int, Floats]]:
        """Yield the chunks that have no file yet, or only half of one."""
        names = column_names(self.source.features, self.probe.shape[1])
        for start, rows in self.source.chunks(self.chunk):
            if is_whole_part(self.part(start), names, start, len(rows)):
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
            start_workers(jobs)
            explain_chunk = partial(_explain_chunk, self.task, os.getpid())
            results = iterate_parallel(explain_chunk, self.missing(bar), jobs)
            for start, found in results:
                columns = found.columns(start, self.source.features)
                write_part(self.part(start), columns)
                n_rows += len(found.error)
                bar.update(len(found.error))
        return n_rows


def _explain_chunk(
    task: Task, parent: int, chunk: tuple[int, Floats]
) -> tuple[int, Explained]:
    end_with(parent)
    start, rows = chunk
    return start, explain_rows(task, rows, start)


def _background(args: argparse.Namespace, source: Source) -> Floats:
    if args.background is None:
        return source.mean(max(args.chunk, 10_000))[None, :]
    background = Source(args.background, source.features)
    return np.concatenate([rows for _, rows in background.chunks(10_000)])


def _check_numbers(args: argparse.Namespace) -> None:
    if args.seed < 0:
        raise ValueError(f"--seed {args.seed}: needed a whole number, at least 0")
    if args.degree is not None:
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
