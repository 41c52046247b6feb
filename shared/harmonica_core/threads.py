"""One BLAS thread for our numeric sections, whatever the environment says.

Small matrices gain nothing from more threads, and threads that spin for a core that
another process holds make a fit a hundred times slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # Looking the libraries up takes milliseconds: once a process.
    import scipy.linalg  # noqa: F401  (its BLAS may be another one than numpy's)

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread; limits are restored after it."""
    return _controller().limit(limits=1, user_api="blas")
