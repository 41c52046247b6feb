"""The cells of a running comparison: counted once, shown, and saved now and then."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from harmonica_compare.case import Case
from harmonica_compare.results import Cell, Results
from harmonica_compare.runner import Key, Plan, describe


class Collected:
    """Cells as they come, from the journal's thread or from here: each counts once."""

    def __init__(
        self, old: Results, plan: Plan, cases: list[Case], bar: Any, out: Path | None
    ) -> None:
        self.plan, self.bar, self.out = plan, bar, out
        settings = {**old.settings, "about": describe(plan, cases)}
        self.empty = Results(settings, old.versions)
        self.order = {case.name: k for k, case in enumerate(cases)}
        bar.desc = "Starting"  # libraries are imported, methods run once on a toy
        keys = [key for case in cases for key in plan.keys(case.name)]
        bar.total = sum(plan.weight(method, budget) for _, method, budget, _ in keys)
        self.cells: dict[Key, Cell] = {}
        self.lock, self.next_save = Lock(), 0.0
        for cell in old.cells:
            self._keep(cell)
        self.n_old = len(self.cells)

    def add(self, cell: Cell) -> None:
        """Take a cell in, move the bar, and save now and then."""
        with self.lock:
            if cell.key in self.cells:
                return
            if len(self.cells) == self.n_old:
                self._start_clock()
            self._keep(cell)
            self.bar.set_postfix_str(f"{cell.method} on {cell.case}", refresh=False)
            if self.out is not None and time.monotonic() >= self.next_save:
                start = time.monotonic()
                self.results().save(self.out / "results.json")
                # A long file takes a while to write; that stays a small share.
                end = time.monotonic()
                self.next_save = end + max(0.5, 20 * (end - start))

    def _start_clock(self) -> None:
        """Estimate what is left from here on: starting up says nothing about it."""
        done = self.bar.n
        self.bar.reset()
        self.bar.desc, self.bar.initial, self.bar.n = "Comparing", done, done

    def _keep(self, cell: Cell) -> None:
        self.cells[cell.key] = cell
        if cell.method in self.plan.methods:
            self.bar.update(self.plan.weight(cell.method, cell.budget))

    def results(self, complete: bool = False) -> Results:
        """Return what there is, in the order of the cases."""
        last = len(self.order)
        cells = sorted(self.cells.values(), key=lambda c: self.order.get(c.case, last))
        return replace(self.empty, cells=tuple(cells), complete=complete)
