"""Model calls that fit into memory: halved when it runs out, and remembered."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from harmonica_core.resilience import BatchSize, is_out_of_memory, release_memory

Found = TypeVar("Found")


class CallSize:
    """Model rows per call: what is asked for, or less where memory ran out before."""

    def __init__(self) -> None:
        self._fits = BatchSize(sys.maxsize)

    def most(self, asked: int) -> int:
        """Return how many rows to put into one call, at most ``asked``."""
        return min(asked, self._fits.size)

    def run(self, call: Callable[[int], Found], asked: int) -> Found:
        """Return ``call(size)``, with half the size as long as it does not fit.

        Parameters
        ----------
        call : callable
            Takes the most model rows that it may put into one call of the model.
        asked : int
            Rows to begin with; no more than ``call`` has, or nothing is halved.
        """
        while True:
            size = self.most(asked)
            try:
                return call(size)
            except Exception as error:
                if not is_out_of_memory(error) or not self._fits.halve(size):
                    raise
            # Only here, after the exception has let go of the frames with the inputs.
            release_memory()


_of_maskers: weakref.WeakKeyDictionary[Any, CallSize] = weakref.WeakKeyDictionary()


def call_size_of(masker: Any) -> CallSize:
    """Return what is known of a masker's inputs: all of them share one `CallSize`."""
    try:
        return _of_maskers.setdefault(masker, CallSize())
    except TypeError:  # neither hashes nor weak references: known to one input only
        return CallSize()
