"""A named method of the comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harmonica_compare.case import Case, Counted

Run = Callable[[Case, Counted, int], Any]


@dataclass(frozen=True)
class Method:
    """A named method.

    Attributes
    ----------
    name : str
        As given to ``--methods``.
    label : str
        As shown in tables.
    run : callable (case, counted value function, seed)
        Returns a surrogate, a function of masks, or an `Explained`.
    kind : "ours", "published" (ours, as in the paper), "peer", "inside" (a peer that
        looks inside the model instead of calling it) or "plugin"
    settings : str
        What differs from the library's defaults, shown in the report.
    cost : float
        Rough own time relative to a quick method, for the progress bar only.
    needs : tuple of str
        Modules that are imported before its time is taken.
    """

    name: str
    label: str
    run: Run
    kind: str = "peer"
    settings: str = "defaults"
    cost: float = 1.0
    needs: tuple[str, ...] = ()
