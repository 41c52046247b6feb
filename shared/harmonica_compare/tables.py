"""Means over cases, tables for the terminal and for a spreadsheet."""

from __future__ import annotations

import csv
from collections import defaultdict
from importlib import resources
from pathlib import Path

import numpy as np

from harmonica_compare.methods import METHODS
from harmonica_compare.results import Cell, Results
from harmonica_compare.runner import find_method
from harmonica_core import Estimate

# Which published data set a task is set beside, and our name of each method there.
PUBLISHED_FOR = {"text": "SST-2", "text-sentence": "IMDb", "image": "ImageNet"}
_PUBLISHED_NAMES = {
    "Harmonica^2": "harmonica-2",
    "Harmonica^3": "harmonica-3",
    "Harmonica-anchor k=3": "anchor-3",
    "Harmonica-anchor k=5": "anchor-5",
    "Harmonica-anchor k=9": "anchor-9",
    "Harmonica-anchor-constrained lambda2=1.0": "constrained",
    "LIME": "lime",
    "SHAP": "kernelshap",
    "Integrated Gradients": "ig",
    "Integrated Hessians": "ih",
    "Shapley Taylor Index^2": "shapley-taylor",
    "Faith-Shap^2": "faith-shap",
}


def label_of(method: str) -> str:
    """Return a method's name as shown to people."""
    try:
        return find_method(method).label
    except KeyError:  # registered when the results were made, but not now
        return method


def is_ours(method: str) -> bool:
    """Whether a method is one of Harmonica's; what others register is not."""
    return method in METHODS and METHODS[method].ours


def ok_cells(results: Results, budget: int) -> dict[str, list[Cell]]:
    """``{method: cells that worked}`` at a budget."""
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in results.cells:
        if cell.status == "ok" and cell.budget == budget:
            found[cell.method].append(cell)
    return found


def mean(cells: list[Cell], name: str) -> Estimate | None:
    """Mean of a number over cases with the standard error of that mean."""
    pairs = [cell.numbers[name] for cell in cells if name in cell.numbers]
    if not pairs:
        return None
    if len(pairs) == 1:
        value, standard_error = pairs[0]
        return Estimate(value, standard_error, 1)
    values = [value for value, _ in pairs]
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(float(np.mean(values)), spread, len(values))


def grid(results: Results, names: list[str], budget: int) -> list[list[str]]:
    """Rows of text: method, numbers, evaluations, seconds; a reason where none."""
    by_method = ok_cells(results, budget)
    rows = []
    for method in results.settings["methods"]:
        cells = by_method.get(method)
        if not cells:
            rows.append([label_of(method), reason(results, method, budget)])
            continue
        numbers = [shown(mean(cells, name)) for name in names]
        evaluations = f"{np.mean([c.n_calls for c in cells]):.0f}"
        seconds = f"{np.mean([c.seconds for c in cells]):.3f}"
        rows.append(
            [_counted_label(results, method, cells), *numbers, evaluations, seconds]
        )
    return rows


def _counted_label(results: Results, method: str, cells: list[Cell]) -> str:
    """The label, with the share of cases it ran on where that is not all."""
    n_cases = len({cell.case for cell in results.cells})
    share = "" if len(cells) == n_cases else f" ({len(cells)}/{n_cases} cases)"
    return label_of(method) + share


def reason(results: Results, method: str, budget: int) -> str:
    """Return why a method has no numbers."""
    for cell in results.cells:
        if cell.method == method and cell.budget == budget:
            return f"{cell.status}: {cell.message}"
    return "not run"


def shown(number: Estimate | None) -> str:
    """Three significant digits, or a dash."""
    return "–" if number is None else f"{float(number):.3g}"


def radii_of(results: Results) -> list[str]:
    """Return the radii at which anything was measured (some exceed the features)."""
    seen = {name for cell in results.cells for name in cell.numbers}
    return [r for r in results.settings["radii"] if f"L2@{r}" in seen]


def terminal_table(results: Results) -> str:
    """The main table: I_2 at each radius, at the main budget."""
    budget = results.settings["budgets"][-1]
    radii = radii_of(results)
    head = ["I_2 at radius", *radii, "evaluations", "own s"]
    rows = grid(results, [f"L2@{radius}" for radius in radii], budget)
    widths = [
        max(len(row[0]) for row in [head, *rows]),
        *[max(9, len(name)) for name in head[1:]],
    ]
    lines = [_line(head, widths), "-" * (sum(widths) + 2 * len(widths) - 2)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _line(row: list[str], widths: list[int]) -> str:
    if len(row) == 2:
        return f"{row[0]:<{widths[0]}}  {row[1]}"
    cells = [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([f"{row[0]:<{widths[0]}}", *cells])


def best_against_gradients(results: Results) -> str | None:
    """The paper's headline: best Harmonica variant against Integrated Gradients."""
    by_method = ok_cells(results, results.settings["budgets"][-1])
    ours = [method for method in by_method if is_ours(method)]
    if "ig" not in by_method or not ours:
        return None
    cases = {cell.case for cell in by_method["ig"]}
    best = (0.0, "", "")
    for radius in radii_of(results):
        name = f"L2@{radius}"
        theirs = mean(by_method["ig"], name)
        for method in ours:
            same = [cell for cell in by_method[method] if cell.case in cases]
            mine = mean(same, name)
            if theirs and mine and float(mine) > 0:
                ratio = float(theirs) / float(mine)
                best = max(best, (ratio, label_of(method), radius))
    if not best[0]:
        return None
    return (
        f"{best[1]} has {best[0]:.1f}x lower I_2 than Integrated Gradients at radius "
        f"{best[2]} (published headline: up to 31.8x)"
    )


def write_csv(results: Results, path: Path) -> None:
    """One row per cell and number, for a spreadsheet."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            "case method budget seed status evaluations seconds number value "
            "standard_error".split()
        )
        for cell in results.cells:
            head = [cell.case, cell.method, cell.budget, cell.seed, cell.status]
            head += [cell.n_calls, f"{cell.seconds:.6f}"]
            for name, (value, standard_error) in cell.numbers.items():
                writer.writerow([*head, name, value, standard_error])
            if not cell.numbers:
                writer.writerow([*head, cell.message, "", ""])


def published(task: str) -> dict[str, dict[str, float]]:
    """Published mean L2 ``{method: {radius: error}}`` of the task's data set."""
    wanted = PUBLISHED_FOR.get(task)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    text = resources.files("harmonica_compare").joinpath("published.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        if row["dataset"] == wanted and row["method"] in _PUBLISHED_NAMES:
            found[_PUBLISHED_NAMES[row["method"]]][row["radius"]] = float(row["L2"])
    return found
