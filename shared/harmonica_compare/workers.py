"""Processes that run the work, and who answers Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
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
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
        n_workers = joblib.effective_n_jobs(jobs)
        started = parallel(joblib.delayed(first)() for _ in range(n_workers))
    finally:
        signal.signal(signal.SIGINT, before)
    list(started)


def _starts_processes(jobs: int) -> bool:
    backend, _ = get_active_backend()
    is_loky = type(backend).__name__ == "LokyBackend"
    return is_loky and bool(joblib.effective_n_jobs(jobs) > 1)
