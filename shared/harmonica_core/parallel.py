"""Many explanations side by side, on whatever engine joblib is told to use.

`run_parallel` and `iterate_parallel` go through `joblib.Parallel`, so processes,
threads, Dask, Ray or Spark are chosen outside, without a change here::

    with joblib.parallel_config(backend="dask"):
        run_parallel(explain_chunk, chunks)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import joblib
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from harmonica_core.checks import is_whole

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_parallel(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_jobs: int | None = None,
    *,
    threads: int | None = None,
    progress: bool = False,
    description: str = "Harmonica",
) -> list[Result]:
    """``[function(item) for item in items]``, on ``n_jobs`` workers.

    Parameters
    ----------
    function : callable
        Takes one item. For workers in other processes it must be picklable by
        cloudpickle, which includes lambdas and closures.
    items : iterable
        For instance row chunks from `row_chunks`; one item should be worth several
        milliseconds of work.
    n_jobs : int, optional
        joblib's convention: -1 is every core; None is 1, or whatever an enclosing
        ``joblib.parallel_config`` says.
    threads : int, optional
        BLAS and OpenMP threads that each task may use. None: 1 when several tasks
        run at a time (the workers are the parallelism), untouched otherwise. Pass 1
        when the last bit must not depend on ``n_jobs``.
    progress : bool
        Show a bar (tqdm).

    Returns
    -------
    list, in the order of the items

    Examples
    --------
    >>> run_parallel(lambda rows: rows.stop - rows.start, row_chunks(10, 4))
    [4, 4, 2]
    """
    items = list(items)
    results = iterate_parallel(function, items, n_jobs, threads=threads)
    return list(tqdm(results, total=len(items), desc=description, disable=not progress))


def iterate_parallel(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_jobs: int | None = None,
    *,
    threads: int | None = None,
) -> Iterator[Result]:
    """Like `run_parallel`, but lazy at both ends: for streams larger than memory.

    About two items per worker are in flight; results come in the order of the items.

    Examples
    --------
    >>> list(iterate_parallel(len, ["ab", "c"]))
    [2, 1]
    """
    n_jobs = check_n_jobs(n_jobs)
    n_workers = joblib.effective_n_jobs(n_jobs)
    if threads is None and n_workers > 1:
        threads = 1
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
    # One tuple per task: Dask's backend scatters bare arrays to a worker's memory,
    # and what was scattered is lost when that worker dies; a tuple travels with the
    # task, which is then run again elsewhere.
    tasks = (joblib.delayed(_run_task)((function, item, threads)) for item in items)
    return _held(parallel, tasks, threads)


def _held(
    parallel: joblib.Parallel, tasks: Iterable[Any], threads: int | None
) -> Iterator[Any]:
    """Run the tasks, and hold the limit here too while results come in.

    BLAS has one limit per process. When the workers are threads of this process they
    must find it set: each of them setting and restoring it would leave the others
    without a limit, or this process with one for good.
    """
    with threadpool_limits(limits=threads):
        yield from parallel(tasks)


def row_chunks(n_rows: int, size: int) -> list[slice]:
    """Split ``n_rows`` rows into slices of at most ``size``.

    Examples
    --------
    >>> row_chunks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if size < 1:
        raise ValueError(f"chunks of {size} rows; needed at least 1 row a chunk")
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def check_n_jobs(n_jobs: object) -> int | None:
    """Return joblib's number of workers: None, positive, or -1, -2, ..."""
    if n_jobs is None:
        return None
    if not is_whole(n_jobs):
        raise ValueError(
            f"n_jobs={n_jobs!r}; needed a whole number of workers, -1 for every core, "
            "or None"
        )
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; needed 1 or more, or -1 for all")
    return int(n_jobs)


def _run_task(task: tuple[Callable[[Any], Result], Any, int | None]) -> Result:
    function, item, threads = task
    with threadpool_limits(limits=threads):
        return function(item)
