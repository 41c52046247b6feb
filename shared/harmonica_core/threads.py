"""One BLAS thread for our numeric sections, whatever the environment says.

Small matrices gain nothing from more threads, and threads that spin for a core that
another process holds make a fit a hundred times slower.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import threadpoolctl


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    # Looking the libraries up takes milliseconds: once a process.
    import scipy.linalg  # noqa: F401  (its BLAS may be another one than numpy's)

    return threadpoolctl.ThreadpoolController()


class _Limit:
    """The limit of the process, and how many sections ask for it at the moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sections = 0
        self.set: Any = None


_LIMIT = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread; the last section that ends restores what was before.

    BLAS has one number of threads for the whole process, so sections of several Python
    threads share one limit.
    """
    with _LIMIT.lock:
        if _LIMIT.sections == 0:
            _LIMIT.set = _controller().limit(limits=1, user_api="blas")
            _release()
        _LIMIT.sections += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.sections -= 1
            if _LIMIT.sections == 0:
                _LIMIT.set.restore_original_limits()
                _release()


def _release() -> None:
    """Let other Python threads set limits: the one that ends last has to."""
    release = getattr(
        threadpoolctl.OpenBLASController, "clear_controlling_thread", None
    )
    if release is not None:  # threadpoolctl >= 3.8
        release()
