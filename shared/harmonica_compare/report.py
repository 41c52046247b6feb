"""report.html: one self-contained page with the paper's figures and tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import Any

from harmonica_compare import tables
from harmonica_compare.results import Results
from harmonica_core import Estimate

_OUR_FITS = (
    "alpha chosen by cross-validation instead of 0.01, a tenth of the masks of "
    "Harmonica 2, 3 and auto near the input, anchors that start from the polynomial "
    "with auto terms."
)
_DIFFERENCES = {
    "text": (
        "Differences from the published set-up: our own CNN training and vocabulary, "
        f"the sentences named above instead of the whole data set, {_OUR_FITS}"
    ),
    "image": (
        "Differences from the published set-up: EfficientNet-Lite0 instead of the "
        "paper's network, the pictures named above instead of ImageNet's validation "
        f"set, {_OUR_FITS}"
    ),
}


def build(results: Results) -> str:
    """Return the page."""
    style = resources.files("harmonica_compare").joinpath("report.css").read_text()
    sections = "\n".join(_sections(results))
    title = f"Comparison of removal-based explanations: {results.settings['task']}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">\n"
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{sections}\n</body>\n</html>\n"
    )


def _sections(results: Results) -> Iterator[str]:
    settings = results.settings
    budget = settings["budgets"][-1]
    yield _summary(results)
    headline = tables.best_against_gradients(results)
    if headline:
        yield f'<p class="headline">{escape(headline)}.</p>'
    for norm, words in _NORMS.items():
        radii = tables.radii_of(results)
        if norm != "L2" and not radii:
            continue  # one table with the reasons is enough
        yield f"<h2>{words}</h2>"
        yield _radius_figure(results, norm, budget)
        yield _table(results, [f"{norm}@{radius}" for radius in radii], radii)
    yield from _truthful(results)
    yield from _trade_off(results, budget)
    if len(settings["budgets"]) > 1:
        yield from _budgets(results)
    yield from _curves(results)
    yield from _registered(results)
    yield from _published(results, budget)
    yield (
        "<h2>Versions</h2><p class='quiet'>"
        + escape(", ".join(f"{name} {v}" for name, v in results.versions.items()))
        + "</p>"
    )


_NORMS = {
    "L2": "Interpretation error L2 = sqrt(E (f - g)²) against radius",
    "L1": "L1 = E |f - g|",
    "L0": "L0 = P(|f - g| ≥ 0.1)",
}


def _summary(results: Results) -> str:
    cases = sorted({cell.case for cell in results.cells})
    shown = ", ".join(cases[:12]) + (" …" if len(cases) > 12 else "")
    state = "" if results.complete else " This run was stopped before its end."
    failed = [c for c in results.cells if c.status == "failed"]
    trouble = f" {len(failed)} cells failed; see results.json." if failed else ""
    budgets = ", ".join(map(str, results.settings["budgets"]))
    return (
        f"<p>{len(cases)} inputs ({escape(shown)}), at most {budgets} model "
        "evaluations for every method, all measured on the same "
        f"{results.settings['n_evaluations']} masks (or all masks, where there are "
        f"fewer).{state}{trouble} A radius r means 1 to r features removed; inf means "
        "all masks.</p>"
    )


Choice = Callable[[list[float]], float]


def _table(
    results: Results,
    names: list[str],
    heads: Iterable[str],
    better: Sequence[Choice | None] | None = None,
) -> str:
    """A table of means; ``better`` (min unless told) picks each column's best."""
    budget = results.settings["budgets"][-1]
    rows = tables.grid(results, names, budget)
    choices = better or [min] * len(names)
    best = [_best(rows, 1 + k, choice) for k, choice in enumerate(choices)]
    cells = "".join(f"<th scope='col'>{escape(h)}</th>" for h in heads)
    lines = [
        f"<tr><th scope='col'>method</th>{cells}<th scope='col'>evaluations</th>"
        "<th scope='col'>own seconds</th></tr>"
    ]
    for method, row in zip(results.settings["methods"], rows, strict=True):
        lines.append(_row(row, best, tables.is_ours(method), len(names) + 2))
    return f"<div class='wide'><table>{''.join(lines)}</table></div>"


def _row(row: list[str], best: list[str], ours: bool, width: int) -> str:
    first = f"<td>{escape(row[0])}</td>"
    kind = " class='ours'" if ours else ""
    if len(row) == 2:
        rest = f"<td class='reason' colspan='{width}'>{escape(row[1])}</td>"
        return f"<tr{kind}>{first}{rest}</tr>"
    marks = [*(text == b for text, b in zip(row[1:], best, strict=False)), False, False]
    cells = (
        f"<td class='best'>{escape(t)}</td>" if mark else f"<td>{escape(t)}</td>"
        for t, mark in zip(row[1:], marks, strict=True)
    )
    return f"<tr{kind}>{first}{''.join(cells)}</tr>"


def _best(rows: list[list[str]], column: int, choice: Choice | None) -> str:
    values = [r[column] for r in rows if len(r) > 2 and r[column] != "–"]
    if not values or choice is None:
        return ""
    wanted = choice([float(value) for value in values])
    return next(value for value in values if float(value) == wanted)


def _figure(
    draw: Callable[[Any], None], caption: str, size: tuple[float, float]
) -> str:
    """Draw on fresh Axes and embed the picture."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "path", "font.size": 10}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
    data = base64.b64encode(buffer.getvalue()).decode()
    text = escape(caption)
    return (
        f'<figure><img alt="{text}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _radius_figure(results: Results, norm: str, budget: int) -> str:
    from harmonica_core import plots

    errors: dict[str, dict[float | None, Estimate]] = {}
    for method, cells in tables.ok_cells(results, budget).items():
        line = {}
        for radius in tables.radii_of(results):
            found = tables.mean(cells, f"{norm}@{radius}")
            if found is not None and float(found) > 0:
                line[None if radius == "inf" else float(radius)] = found
        if line:
            errors[tables.label_of(method)] = line
    if not errors:
        return ""

    def draw(ax: Any) -> None:
        plots.error_by_radius(errors, ylabel=f"interpretation error {norm}", ax=ax)

    return _figure(draw, f"Mean {norm} against radius, {budget} evaluations.", (9, 5.5))


def _truthful(results: Results) -> Iterator[str]:
    names = [f"truthful@{degree}" for degree in (1, 2, 3)]
    if any(n in cell.numbers for cell in results.cells for n in names):
        yield "<h2>Truthful gap for terms up to size 1, 2, 3</h2>"
        yield (
            "<p>Energy of what is true, readable and left unsaid: the sum of "
            "⟨f - g, χ_S⟩² (unbiased estimate; it may fall below zero by chance).</p>"
        )
        yield _table(results, names, ["C1", "C2", "C3"])


Point = tuple[float, Estimate]


def _trade_off(results: Results, budget: int) -> Iterator[str]:
    from harmonica_core import plots

    found = _trade_off_points(results, budget)
    curves = {}
    for name, notes in _TRADE_OFF.items():
        line = [(found[m], note) for m, note in notes.items() if m in found]
        if line:
            curves[name] = line
    if sum(map(len, curves.values())) < 2:
        return
    points = {name: [point for point, _ in line] for name, line in curves.items()}
    labels = {name: [note for _, note in line] for name, line in curves.items()}
    others = [point for method, point in found.items() if not tables.is_ours(method)]
    if others:
        points["attribution methods"] = others
    yield "<h2>Inconsistency against error</h2>"

    def draw(ax: Any) -> None:
        plots.trade_off(points, labels=labels, ax=ax)

    yield _figure(
        draw,
        "The trade-off: one consistent explanation on the left, more and more local "
        "ones towards the right.",
        (7, 4.5),
    )


def _trade_off_points(results: Results, budget: int) -> dict[str, Point]:
    """Log of the number of local models, and error, of each method."""
    found = {}
    for method, cells in tables.ok_cells(results, budget).items():
        error = tables.mean(cells, "L2@inf")
        log_k = tables.mean(cells, "log_k")
        if error is not None:
            found[method] = (0.0 if log_k is None else float(log_k), error)
    return found


_TRADE_OFF = {
    "Harmonica": {
        "harmonica-3": "degree 3",
        "anchor-3": "3 anchors",
        "anchor-5": "5 anchors",
        "anchor-9": "9 anchors",
    },
    # Named in the legend: beside its point the note would lie on that of 5 anchors.
    "Harmonica-constrained, 5 anchors": {"constrained": ""},
}


def _budgets(results: Results) -> Iterator[str]:
    from harmonica_core import plots

    budgets = results.settings["budgets"]
    curves: dict[str, dict[float | None, Estimate]] = {}
    for budget in budgets:
        for method, cells in tables.ok_cells(results, budget).items():
            found = tables.mean(cells, "L2@inf")
            if found is not None and float(found) > 0:
                curves.setdefault(tables.label_of(method), {})[float(budget)] = found
    if not curves:
        return

    def draw(ax: Any) -> None:
        plots.error_by_radius(curves, ylabel="interpretation error L2", ax=ax)
        ax.set_xlabel("model evaluations")

    yield "<h2>Error against budget</h2>"
    yield _figure(draw, "Mean L2 over all masks against model evaluations.", (9, 5.5))


def _curves(results: Results) -> Iterator[str]:
    if any("insertion" in cell.numbers for cell in results.cells):
        yield "<h2>Insertion and deletion</h2>"
        yield (
            "<p>Areas under the model's output while features are inserted (large is "
            "good) or deleted (small is good) by decreasing Shapley value of g.</p>"
        )
        names = ["insertion", "deletion"]
        yield _table(results, names, names, better=[max, min])


def _registered(results: Results) -> Iterator[str]:
    """Numbers of other people's metrics; which direction is good is theirs to say."""
    seen = {name: None for cell in results.cells for name in cell.numbers}
    names = [name for name in seen if "@" not in name and name not in _OUR_NUMBERS]
    if names:
        yield "<h2>Registered metrics</h2>"
        yield _table(results, names, names, better=[None] * len(names))


_OUR_NUMBERS = {
    "R2",
    "efficiency_gap",
    "log_k",
    "I_total",
    "D_total",
    "insertion",
    "deletion",
}


def _published(results: Results, budget: int) -> Iterator[str]:
    task = results.settings["task"]
    if task == "text" and results.settings.get("unit") == "sentence":
        task = "text-sentence"
    theirs = tables.published(task)
    if not theirs:
        return
    radii = tables.radii_of(results)
    by_method = tables.ok_cells(results, budget)
    lines = []
    for method, line in theirs.items():
        if method not in by_method:
            continue
        cells = "".join(
            f"<td>{tables.shown(tables.mean(by_method[method], f'L2@{r}'))} "
            f"<span class='quiet'>/ {line.get(r, '–')}</span></td>"
            for r in radii
        )
        lines.append(f"<tr><td>{escape(tables.label_of(method))}</td>{cells}</tr>")
    heads = "".join(f"<th scope='col'>{escape(r)}</th>" for r in radii)
    yield "<h2>Beside the published figures</h2>"
    yield (
        f"<p>L2 here / published for {tables.PUBLISHED_FOR[task]} (Zhang et al., "
        f"NeurIPS 2023). {escape(_DIFFERENCES.get(results.settings['task'], ''))}</p>"
    )
    yield (
        "<div class='wide'><table><tr><th scope='col'>method</th>"
        f"{heads}</tr>{''.join(lines)}</table></div>"
    )
