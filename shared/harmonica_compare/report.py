"""report.html: one self-contained page, the answer first."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harmonica_compare import answer, pictures, summary
from harmonica_compare.answer import Column, Line
from harmonica_compare.methods import METHODS, kind_of, label_of
from harmonica_compare.results import Results

# Errors that a reader may aim at.
_TARGETS = (0.1, 0.05, 0.02)
# Which published data set a task is set beside, and our name of each method there.
_PUBLISHED_FOR = {"text-word": "SST-2", "text-sentence": "IMDb", "image": "ImageNet"}
_PUBLISHED_NAMES = {
    "Harmonica^2": "published-2",
    "Harmonica^3": "published-3",
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
_OUR_NUMBERS = {
    *("shapley", "pairs", "R2", "efficiency_gap", "insertion", "deletion", "log_k"),
    *("I_total", "D_total", "stated_over_true", "first_seconds", "peak_mb"),
    *(f"{a}{b}" for a in ("coverage", "sharpness") for b in ("", "_pairs", "_whatif")),
    "truth_error",
}


@dataclass(frozen=True)
class Section:
    """A table of the page that is folded away."""

    title: str
    text: str
    columns: list[Column]
    lines: list[Line]


def build(results: Results) -> str:
    """Return the whole page."""
    return _environment().get_template("report.html.jinja").render(**_context(results))


def fragment(results: Results) -> str:
    """Return the answer, its pictures and the main table, for a notebook's cell."""
    return _environment().get_template("answer.html.jinja").render(**_context(results))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = PackageLoader("harmonica_compare", "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _context(results: Results) -> dict[str, Any]:
    """Return everything that the templates show; they compute nothing."""
    palette, measures = pictures.Palette(), summary.measures(results)
    columns = answer.main_columns(results)
    budget = results.settings["budgets"][-1]
    heroes = [
        pictures.dots(results, m, palette) for m in answer.headline_measures(results)
    ]
    curves = [pictures.budget_curves(results, m, palette) for m in measures]
    curves.append(pictures.radius_curves(results, palette))
    about = results.settings.get("about", [])
    return {
        "style": Markup(_style()),  # noqa: S704 - a file of this package
        "title": ", ".join(dict.fromkeys(g["data"] for g in about if g["data"])),
        "sentence": answer.sentence(results),
        "not_first": answer.not_first(results),
        "heroes": [picture for picture in heroes if picture],
        "curves": [picture for picture in curves if picture],
        "columns": columns,
        "lines": answer.table(results, columns, budget),
        "budget": budget,
        "measures": measures,
        "ranks": [(label_of(m), kind_of(m), r) for m, r in answer.rank_rows(results)],
        "calls": _calls(results, measures),
        "targets": [f"{100 * target:g}%" for target in _TARGETS],
        "sections": list(_sections(results, budget)),
        "published": _published(results, budget),
        "about": about,
        "settings": results.settings,
        "methods": _methods(results),
        "versions": results.versions,
        "complete": results.complete,
        "failed": [c for c in results.cells if c.status == "failed"],
        "truth_error": _truth_error(results),
        "n_cases": len({cell.case for cell in results.cells}),
    }


def _style() -> str:
    return resources.files("harmonica_compare").joinpath("report.css").read_text()


def _truth_error(results: Results) -> str:
    """The largest standard error of the truth, in percent; empty where it is exact."""
    found = [c.numbers.get("truth_error", [0.0])[0] for c in results.cells]
    worst = max(found, default=0.0)
    return answer.percent(worst) if worst > 0 else ""


def _methods(results: Results) -> list[tuple[str, str, str]]:
    """Label, ``--methods`` name and settings of every method."""
    names = results.settings["methods"]
    known = [(name, METHODS.get(name)) for name in names]
    return [(label_of(n), n, m.settings if m else "as registered") for n, m in known]


def _calls(
    results: Results, measures: list[summary.Measure]
) -> list[tuple[str, list[tuple[str, str, list[str]]]]]:
    """By measure: label, kind and the calls that each target takes, fewest first.

    Methods that reach none of the targets are left out.
    """
    found = []
    if len(results.settings["budgets"]) < 2:
        return []
    for measure in measures:
        rows = []
        for method, line in summary.curve(results, measure.name).items():
            if kind_of(method) == "inside":
                continue
            calls = [summary.calls_for(line, target) for target in _TARGETS]
            if not np.isfinite([number for _, number in calls]).any():
                continue
            last = line[max(line)].mean
            key = (*(n for _, n in reversed(calls)), last)
            rows.append((key, label_of(method), kind_of(method), [t for t, _ in calls]))
        best = [(label, kind, texts) for _, label, kind, texts in sorted(rows)[:8]]
        if best:
            found.append((measure.title, best))
    return found


def _sections(results: Results, budget: int) -> Iterator[Section]:
    """The paper's tables, and what others registered."""
    radii = summary.radii_of(results)
    for norm, title in _NORMS.items():
        columns = [Column(f"{norm}@{r}", f"r = {r}", "", False) for r in radii]
        yield from _section(results, title, "", columns, budget)
    text = "Energy of what is true, readable and left unsaid (unbiased estimate)."
    columns = [Column(f"truthful@{d}", f"up to size {d}", "", False) for d in (1, 2, 3)]
    yield from _section(results, "Truthful gap", text, columns, budget)
    text = "Areas under the output while features go in or out by Shapley value."
    columns = [
        Column("insertion", "insertion (large is good)", "", False, False),
        Column("deletion", "deletion (small is good)", "", False),
        Column("efficiency_gap", "efficiency gap", "f - g at the input", False, None),
    ]
    yield from _section(results, "Insertion and deletion", text, columns, budget)
    text = "Local models, and how far they are from each other."
    names = {"log_k": "log k", "I_total": "I total", "D_total": "D total"}
    columns = [Column(n, title, "", False, None) for n, title in names.items()]
    yield from _section(results, "Inconsistency", text, columns, budget)
    seen = {name: None for cell in results.cells for name in cell.numbers}
    other = [name for name in seen if "@" not in name and name not in _OUR_NUMBERS]
    columns = [Column(name, name, "", False, None) for name in other]
    yield from _section(results, "Registered metrics", "", columns, budget)


_NORMS = {
    "L2": "Interpretation error L2 = sqrt(E (f - g)²) by radius",
    "L1": "L1 = E |f - g| by radius",
    "L0": "L0 = P(|f - g| ≥ 0.1) by radius",
}


def _section(
    results: Results, title: str, text: str, columns: list[Column], budget: int
) -> Iterator[Section]:
    seen = {name for cell in results.cells for name in cell.numbers}
    columns = [column for column in columns if column.name in seen]
    if columns:
        lines = [x for x in answer.table(results, columns, budget) if x.entries]
        yield Section(title, text, columns, lines)


def _published(results: Results, budget: int) -> dict[str, Any] | None:
    """L2 here and as published, by radius; ours in front."""
    task = results.settings["task"]
    unit = results.settings.get("unit", "word")
    dataset = _PUBLISHED_FOR.get(f"{task}-{unit}" if task == "text" else task)
    if dataset is None:
        return None
    theirs = {answer.OURS: {}, **_published_figures(dataset)}
    radii, rows = summary.radii_of(results), []
    found = {r: summary.scores(results, f"L2@{r}", budget) for r in radii}
    for method, figures in theirs.items():
        if any(method in by_method for by_method in found.values()):
            here = [found[r].get(method) for r in radii]
            means = [f"{summary.interval(s).mean:.3g}" if s else "–" for s in here]
            pairs = [(m, figures.get(r)) for m, r in zip(means, radii, strict=True)]
            rows.append((label_of(method), kind_of(method), pairs))
    return {"dataset": dataset, "radii": radii, "rows": rows}


def _published_figures(dataset: str) -> dict[str, dict[str, float]]:
    """Published mean L2 ``{method: {radius: error}}`` of a data set."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    text = resources.files("harmonica_compare").joinpath("published.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        if row["dataset"] == dataset and row["method"] in _PUBLISHED_NAMES:
            found[_PUBLISHED_NAMES[row["method"]]][row["radius"]] = float(row["L2"])
    return found
