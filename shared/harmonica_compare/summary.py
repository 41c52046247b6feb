"""Means, ranks and intervals over cases and seeds; calls that an error takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harmonica_compare.methods import kind_of
from harmonica_compare.results import Cell, Results

# {method: {case: mean over seeds}}
Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Measure:
    """One thing that methods are judged on.

    Attributes
    ----------
    name : str
        Of the number in `Cell.numbers`.
    title : str
        Heads a panel and a column.
    phrase : str
        Its place in a sentence: "... is off <phrase> 3%".
    """

    name: str
    title: str
    phrase: str


@dataclass(frozen=True)
class Interval:
    """A mean over cases with its 95% interval (bootstrap over cases)."""

    mean: float
    low: float
    high: float
    n_cases: int


def ok_cells(results: Results, budget: int) -> dict[str, list[Cell]]:
    """``{method: cells that worked}`` at a budget."""
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in results.cells:
        if cell.status == "ok" and cell.budget == budget:
            found[cell.method].append(cell)
    return found


def scores(results: Results, name: str, budget: int) -> Scores:
    """Return a number by method and case, averaged over seeds."""
    found: Scores = {}
    for method, cells in ok_cells(results, budget).items():
        by_case: dict[str, list[float]] = defaultdict(list)
        for cell in cells:
            if name in cell.numbers:
                by_case[cell.case].append(cell.numbers[name][0])
        if by_case:
            found[method] = {c: float(np.mean(v)) for c, v in by_case.items()}
    return found


def interval(by_case: dict[str, float]) -> Interval:
    """Return the mean over cases with its 95% interval."""
    values = np.array([by_case[case] for case in sorted(by_case)])
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, mean, mean, len(values))
    means = values[_resamples(len(values))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(mean, float(low), float(high), len(values))


@lru_cache(maxsize=8)
def _resamples(n_cases: int) -> np.ndarray:
    """Cases drawn with replacement: the same draws for every method."""
    return np.random.default_rng(0).integers(n_cases, size=(2000, n_cases))


def complete(found: Scores) -> Scores:
    """Return the methods with a number on every case: only they are ranked.

    A mean over some of the cases, perhaps the easy ones, is no match for one over all.
    """
    most = max((len(by_case) for by_case in found.values()), default=0)
    return {m: by_case for m, by_case in found.items() if len(by_case) == most}


def ranks(tables: Sequence[Scores]) -> dict[str, Interval]:
    """Return mean ranks over cases of the methods that are complete in all tables.

    A case's ranks are averaged over the tables (the budgets) first: they are no cases
    of their own. 1 is the smallest number.
    """
    placed = [_case_ranks(found) for found in tables if found]
    methods = [m for m in (placed[0] if placed else {}) if all(m in p for p in placed)]
    return {
        m: interval(
            {c: float(np.mean([p[m][c] for p in placed])) for c in placed[0][m]}
        )
        for m in methods
    }


def _case_ranks(found: Scores) -> Scores:
    """Return each complete method's rank in every case."""
    from scipy.stats import rankdata

    whole = {m: s for m, s in complete(found).items() if kind_of(m) != "inside"}
    if not whole:
        return {}
    cases = sorted(next(iter(whole.values())))
    table = np.array([[by_case[c] for c in cases] for by_case in whole.values()])
    placed = rankdata(table, axis=0)
    return {
        method: dict(zip(cases, row.tolist(), strict=True))
        for method, row in zip(whole, placed, strict=True)
    }


def leaders(found: Scores, n_peers: int = 2) -> list[str]:
    """Return "harmonica" and the peers with the smallest means, in that order."""
    whole = complete(found)
    peers = [m for m in whole if kind_of(m) in ("peer", "plugin")]
    peers.sort(key=lambda m: float(np.mean(list(whole[m].values()))))
    return [*(m for m in ("harmonica",) if m in whole), *peers[:n_peers]]


def radii_of(results: Results) -> list[str]:
    """Return the radii at which anything was measured (some exceed the features)."""
    seen = {name for cell in results.cells for name in cell.numbers}
    return [r for r in results.settings["radii"] if f"L2@{r}" in seen]


def measures(results: Results) -> list[Measure]:
    """Return what this comparison judges errors by: what any method has a number of."""
    finite = [r for r in radii_of(results) if r != "inf"]
    near = next((r for r in finite if int(r) >= 2), finite[-1] if finite else None)
    close = f"up to {near} removed" if near != "1" else "one removed"
    known = [
        Measure("shapley", "Shapley values", "in its Shapley values by"),
        Measure("pairs", "Pair interactions", "in its pair interactions by"),
        Measure(f"whatif@{near}", f"What-if, {close}", f"in what-ifs with {close} by"),
        Measure("whatif@inf", "What-if, any removal", "in its what-if answers by"),
    ]
    seen = {name for cell in results.cells for name in cell.numbers}
    return [measure for measure in known if measure.name in seen]


def curve(results: Results, name: str) -> dict[str, dict[int, Interval]]:
    """Return ``{method: {budget: mean}}`` where a method ran on every case."""
    found: dict[str, dict[int, Interval]] = defaultdict(dict)
    for budget in results.settings["budgets"]:
        for method, by_case in scores(results, name, budget).items():
            found[method][budget] = interval(by_case)
    most = max((i.n_cases for line in found.values() for i in line.values()), default=0)
    return {
        method: {b: i for b, i in line.items() if i.n_cases == most}
        for method, line in found.items()
        if any(i.n_cases == most for i in line.values())
    }


def calls_for(line: dict[int, Interval], target: float) -> tuple[str, float]:
    """Return how many calls take an error to ``target``: as text, and to sort by.

    Between two budgets the error is taken to be a power of the number of calls.
    """
    budgets = sorted(line)
    if not budgets:
        return "–", np.inf
    if line[budgets[0]].mean <= target:
        return f"≤ {budgets[0]}", float(budgets[0])
    for a, b in zip(budgets, budgets[1:], strict=False):
        high, low = line[a].mean, line[b].mean
        if low <= target < high:
            share = 1.0 if low <= 0 else np.log(high / target) / np.log(high / low)
            calls = float(a * (b / a) ** share)
            return f"{calls:.0f}", calls
    return f"> {budgets[-1]}", np.inf


def reason(results: Results, method: str, budget: int) -> str:
    """Return why a method has no numbers."""
    for cell in results.cells:
        if cell.method == method and cell.budget == budget:
            return f"{cell.status}: {cell.message}"
    return "not run"
