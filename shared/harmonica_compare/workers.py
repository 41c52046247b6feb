"""Processes that run the work, and who answers Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any

import joblib
from joblib.parallel import get_active_backend


def check_jobs(jobs: int) -> None:
    """Say what ``--jobs`` takes, before any model is loaded."""
    if jobs == 0:
        raise ValueError("--jobs 0: needed 1 or more processes, or -1 for every core")


def start_workers(jobs: int, first: Callable[[], Any] = int) -> None:
    """Start joblib's processes deaf to Ctrl-C: the parent alone answers it.

    Each of them runs ``first()`` before anything else. What it imports counts as the
    process's own memory; joblib restarts a process that grows much beyond that.

    Ctrl-C reaches every process of the terminal, also one that still imports. What a
    process ignores its children ignore too, so they are started while this one does.
    Nothing is started for one job, or when the user chose another engine (Dask,
    threads, ...).
    """
    if not _starts_processes(jobs) or current_thread() is not main_thread():
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _quiet_trackers():
            parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
            n_workers = joblib.effective_n_jobs(jobs)
            settle = joblib.delayed(_settle)(os.getpid(), first)
            started = parallel(settle for _ in range(n_workers))
    finally:
        signal.signal(signal.SIGINT, before)
    list(started)


@cache
def end_with(parent: int) -> None:
    """End this process soon after ``parent`` is gone, if it is a worker of that one.

    Without, the workers of a killed run keep their memory until they have been idle for
    minutes.
    """
    if os.getppid() == parent:
        Thread(target=_wait_for_the_end, args=(parent,), daemon=True).start()


def _settle(parent: int, first: Callable[[], Any]) -> None:
    """First task of a worker; long enough for the others to get one, too."""
    if os.getppid() != parent:  # killed while we were starting
        os._exit(1)
    end_with(parent)
    first()
    time.sleep(0.1)


def _wait_for_the_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _quiet_trackers() -> Iterator[None]:
    """Start the processes that tidy up after workers without their warnings.

    When a worker was killed they would tell the terminal how many semaphores they
    removed.
    """
    given = os.environ.get("PYTHONWARNINGS")
    ours = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = ours if not given else f"{given},{ours}"
    try:
        resource_tracker.ensure_running()
        yield
    finally:
        if given is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = given


def _starts_processes(jobs: int) -> bool:
    backend, _ = get_active_backend()
    is_loky = type(backend).__name__ == "LokyBackend"
    return is_loky and bool(joblib.effective_n_jobs(jobs) > 1)
