"""The answer in words, and the main table: what a person reads first."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_compare import summary
from harmonica_compare.methods import kind_of, label_of
from harmonica_compare.results import Results
from harmonica_compare.summary import Interval, Measure

OURS = "harmonica"
DASH = "–"


def percent(value: float) -> str:
    """Return a share with two significant digits: 0.0312 is "3.1%"."""
    number = 100 * value
    if 0 < number < 0.01:
        return "<0.01%"
    if number == 0 or number >= 9.95:
        return f"{number:.0f}%"
    return f"{number:.1f}%" if number >= 0.095 else f"{number:.1g}%"


def sentence(results: Results) -> str:
    """Return the answer: ours and the best peer at the main budget, in one sentence."""
    budget = results.settings["budgets"][-1]
    ours, theirs = [], []
    for measure in headline_measures(results):
        found = summary.scores(results, measure.name, budget)
        first = summary.leaders(found, 1)
        if len(first) == 2 and first[0] == OURS:
            mine, peer = (percent(summary.interval(found[m]).mean) for m in first)
            ours.append(f"{measure.phrase} {mine}")
            theirs.append(f"{peer} ({label_of(first[1])})")
    if not ours:
        return _plain(results, budget)
    n_cases = len({cell.case for cell in results.cells})
    inputs = "this input" if n_cases == 1 else f"these {n_cases} inputs"
    return (
        f"On {inputs}, at {budget} model calls, Harmonica is off {' and '.join(ours)}; "
        f"the best peer by {' and by '.join(theirs)}."
    )


def headline_measures(results: Results) -> list[Measure]:
    """Return the two measures that come first: values and what-ifs of any size."""
    known = {measure.name: measure for measure in summary.measures(results)}
    wanted = [known[name] for name in ("shapley", "whatif@inf") if name in known]
    return wanted or list(known.values())[:2]


def _plain(results: Results, budget: int) -> str:
    """What can be said without ours, or without peers, beside each other."""
    for measure in summary.measures(results):
        found = summary.complete(summary.scores(results, measure.name, budget))
        if found:
            best = min(found, key=lambda m: summary.interval(found[m]).mean)
            error = percent(summary.interval(found[best]).mean)
            return (
                f"At {budget} model calls, {label_of(best)} is off "
                f"{measure.phrase} {error}, the least of {len(found)} methods."
            )
    return "No method could be measured; the tables say why."


def not_first(results: Results) -> list[str]:
    """Return, in words, where ours is not the first: budgets and measures."""
    found = []
    for measure in summary.measures(results):
        for budget in results.settings["budgets"]:
            by_method = summary.complete(summary.scores(results, measure.name, budget))
            if OURS not in by_method:
                continue
            ours = summary.interval(by_method[OURS]).mean
            for rival in summary.leaders(by_method, 1)[1:]:
                theirs = summary.interval(by_method[rival]).mean
                if theirs < ours:
                    found.append(
                        f"{measure.title}, {budget} calls: {label_of(rival)} "
                        f"{percent(theirs)}, Harmonica {percent(ours)}"
                    )
    return found


@dataclass(frozen=True)
class Column:
    """A column of the main table: a number of cells, and how it is shown."""

    name: str
    title: str
    help: str
    percent: bool = True
    smaller: bool | None = True


@dataclass(frozen=True)
class Entry:
    """One field of the table."""

    text: str
    note: str = ""
    best: bool = False


@dataclass(frozen=True)
class Line:
    """One method's line of the table; a reason instead of entries where it has none."""

    method: str
    label: str
    kind: str
    entries: list[Entry] = field(default_factory=list)
    reason: str = ""


def main_columns(results: Results) -> list[Column]:
    """Return the columns of the main table, those that any method fills."""
    errors = [Column(m.name, m.title, _ERROR) for m in summary.measures(results)]
    columns = [*errors, *_COLUMNS]
    seen = {name for cell in results.cells for name in cell.numbers} | {"seconds"}
    return [column for column in columns if column.name in seen]


_ERROR = "RMS error relative to the truth's RMS, mean over cases, 95% interval"
_COLUMNS = (
    Column(
        "R2",
        "R²",
        "share of the variance over all masks that is explained",
        False,
        False,
    ),
    Column(
        "coverage", "95% intervals that hold", "Shapley values inside them", True, None
    ),
    Column("sharpness", "their half-width", "relative to the values' RMS", True, None),
    Column("coverage_pairs", "… for pairs", "pairs inside them", True, None),
    Column("coverage_whatif", "… for what-ifs", "answers inside them", True, None),
    Column("stated_over_true", "stated / true I₂", "1 is honest", False, None),
    Column("seconds", "own s", "without the model's time and imports, warm", False),
    Column(
        "first_seconds", "first call s", "on a toy, imports not counted", False, None
    ),
    Column("peak_mb", "peak MB", "memory beside what was there", False, None),
)


def table(results: Results, columns: list[Column], budget: int) -> list[Line]:
    """Return the lines of a table, in the order of the first column's means."""
    found = {column.name: _column(results, column.name, budget) for column in columns}
    n_cases = len({cell.case for cell in results.cells})
    ok = summary.ok_cells(results, budget)
    lines = []
    for method in results.settings["methods"]:
        if method not in ok:
            why = summary.reason(results, method, budget)
            lines.append(Line(method, label_of(method), kind_of(method), reason=why))
            continue
        ran = len({cell.case for cell in ok[method]})
        label = label_of(method) + (
            "" if ran == n_cases else f" ({ran}/{n_cases} cases)"
        )
        entries = [_entry(found[c.name], method, c) for c in columns]
        lines.append(Line(method, label, kind_of(method), entries))
    first = found[columns[0].name] if columns else {}
    return sorted(lines, key=lambda line: _place(line, first, n_cases))


def _column(results: Results, name: str, budget: int) -> summary.Scores:
    if name != "seconds":
        return summary.scores(results, name, budget)
    found: summary.Scores = {}
    for method, cells in summary.ok_cells(results, budget).items():
        found[method] = {
            case: float(np.mean([c.seconds for c in cells if c.case == case]))
            for case in {c.case for c in cells}
        }
    return found


def _place(line: Line, first: summary.Scores, n_cases: int) -> tuple[int, float]:
    """Complete methods by their mean, then those of fewer cases, then the others."""
    if line.method not in first:
        return 2 if line.entries else 3, 0.0
    by_case = first[line.method]
    return int(len(by_case) < n_cases), float(np.mean(list(by_case.values())))


def _entry(found: summary.Scores, method: str, column: Column) -> Entry:
    if method not in found:
        return Entry(DASH)
    here = summary.interval(found[method])
    whole = {m: s for m, s in summary.complete(found).items() if kind_of(m) != "inside"}
    best = False
    if column.smaller is not None and method in whole:
        sign = 1 if column.smaller else -1
        means = [sign * summary.interval(s).mean for s in whole.values()]
        best = sign * here.mean <= min(means)
    show = percent if column.percent else _short
    wide = here.high > here.low and column.name not in ("seconds", "first_seconds")
    note = f"{show(here.low)} to {show(here.high)}" if wide else ""
    return Entry(show(here.mean), note, best)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"


def rank_rows(results: Results) -> list[tuple[str, list[str]]]:
    """Return mean ranks by method and measure, over all budgets, best sum first."""
    columns = [_all_ranks(results, measure) for measure in summary.measures(results)]
    methods = [m for m in results.settings["methods"] if any(m in c for c in columns)]
    methods.sort(key=lambda m: (-sum(m in c for c in columns), _sum(m, columns)))
    return [(m, [_rank_text(c.get(m)) for c in columns]) for m in methods]


def _sum(method: str, columns: list[dict[str, Interval]]) -> float:
    return sum(c[method].mean for c in columns if method in c)


def _rank_text(rank: Interval | None) -> str:
    if rank is None:
        return DASH
    return f"{rank.mean:.1f} ({rank.low:.1f} to {rank.high:.1f})"


def _all_ranks(results: Results, measure: Measure) -> dict[str, Interval]:
    budgets = results.settings["budgets"]
    return summary.ranks([summary.scores(results, measure.name, b) for b in budgets])


def terminal(results: Results) -> str:
    """Return the answer and the main table as plain text."""
    columns = main_columns(results)
    budget = results.settings["budgets"][-1]
    lines = table(results, columns, budget)
    head = [f"at {budget} calls", *(c.title for c in columns)]
    body = [[line.label, *(e.text for e in line.entries)] for line in lines]
    widths = [max(len(row[0]) for row in [head, *body])]
    widths += [max(7, len(title)) for title in head[1:]]
    text = [_padded(head, widths), "-" * (sum(widths) + 2 * len(widths) - 2)]
    for line, row in zip(lines, body, strict=True):
        shown = _padded(row, widths) if line.entries else f"{row[0]}: {line.reason}"
        text.append(shown)
    return "\n".join([sentence(results), "", *text])


def _padded(row: list[str], widths: list[int]) -> str:
    cells = [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([f"{row[0]:<{widths[0]}}", *cells])


_CSV = "case method budget seed status evaluations seconds number value standard_error"


def long_rows(results: Results) -> Iterable[dict[str, Any]]:
    """Yield one row per cell and number."""
    for cell in results.cells:
        head: list[Any] = [cell.case, cell.method, cell.budget, cell.seed, cell.status]
        head += [cell.n_calls, cell.seconds]
        numbers = cell.numbers or {cell.message: [np.nan, np.nan]}
        for name, pair in numbers.items():
            yield dict(zip(_CSV.split(), [*head, name, *pair], strict=True))


def write_csv(results: Results, path: Path) -> None:
    """Write one row per cell and number, for a spreadsheet."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _CSV.split())
        writer.writeheader()
        writer.writerows(long_rows(results))
