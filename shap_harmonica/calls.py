"""Model rows that fit into one call: found out once, remembered for a masker."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from harmonica_core.resilience import BatchSize

_of_maskers: weakref.WeakKeyDictionary[Any, BatchSize] = weakref.WeakKeyDictionary()


def new_call_size() -> BatchSize:
    """Model rows per call: any number, until memory runs out."""
    return BatchSize(sys.maxsize)


def call_size_of(masker: Any) -> BatchSize:
    """Return what is known of a masker's inputs: all of them share one size."""
    try:
        return _of_maskers.setdefault(masker, new_call_size())
    except TypeError:  # neither hashes nor weak references: known to one input only
        return new_call_size()
