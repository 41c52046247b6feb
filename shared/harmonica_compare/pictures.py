"""Pictures of a comparison as SVG that takes its colours from the page.

matplotlib draws with stand-in colours; they become CSS variables, so one picture
serves light pages, dark pages and print. Ours and the best two peers have a colour
and a label at their line, all others are grey and say their name when pointed at.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from harmonica_compare import summary
from harmonica_compare.answer import OURS, percent
from harmonica_compare.methods import kind_of, label_of
from harmonica_compare.results import Results
from harmonica_compare.summary import Interval, Measure

# Stand-ins for the page's colours: nothing else in a picture has them.
_INK, _GRID, _GREY, _FAMILY = "#010101", "#020202", "#030303", "#040404"
_HUES = ("#050505", "#060606", "#070707", "#080808", "#090909", "#0a0a0a")
_VARIABLES = {
    **{_INK: "--ink", _GRID: "--line", _GREY: "--grey", _FAMILY: "--ours-soft"},
    **{hue: f"--hue{k}" for k, hue in enumerate(_HUES)},
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _GRID,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "savefig.transparent": True,
}
# Smaller errors are drawn at the floor, as a logarithm has no zero; larger ones at the
# ceiling, as twice what there is to explain is as useless as ten times.
_FLOOR, _CEILING = 1e-4, 2.0


class Palette:
    """A colour for each method that has been among the best of any panel."""

    def __init__(self) -> None:
        self.hues: dict[str, str] = {OURS: _HUES[0]}

    def bright(self, method: str) -> str:
        """Return a method's own colour, the same in every picture."""
        if method not in self.hues:
            self.hues[method] = _HUES[1 + (len(self.hues) - 1) % (len(_HUES) - 1)]
        return self.hues[method]

    def of(self, method: str, leaders: Sequence[str]) -> str:
        """Return the colour of a method in a panel with these leaders."""
        if method in leaders:
            return self.bright(method)
        return _FAMILY if kind_of(method) == "published" else _GREY


def dots(results: Results, measure: Measure, palette: Palette) -> Markup | None:
    """Draw every method's error at the main budget, smallest on top."""
    budget = results.settings["budgets"][-1]
    found = summary.complete(summary.scores(results, measure.name, budget))
    found = {m: s for m, s in found.items() if kind_of(m) != "inside"}
    if not found:
        return None
    leaders = summary.leaders(found)
    lines = {m: summary.interval(s) for m, s in found.items()}
    order = sorted(lines, key=lambda m: -lines[m].mean)

    def draw(ax: Any) -> None:
        for y, method in enumerate(order):
            _dot(ax, y, method, lines[method], palette.of(method, leaders))
        ax.set_yticks(range(len(order)), [label_of(m) for m in order])
        for text, method in zip(ax.get_yticklabels(), order, strict=True):
            text.set_color(_INK if method in leaders else _GREY)
            text.set_fontweight("bold" if method == OURS else "normal")
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.7, len(order) - 0.3)
        _percent_axis(ax.xaxis, [i.mean for i in lines.values()])
        ax.set_title(f"{measure.title}: error at {budget} calls")

    return _svg(draw, (3.5, 0.9 + 0.2 * len(order)), f"dots {measure.name}")


def _dot(ax: Any, y: int, method: str, here: Interval, colour: str) -> None:
    low, mean, high = (_shown(x) for x in (here.low, here.mean, here.high))
    tip = f"{label_of(method)}: {percent(here.mean)}"
    size = 7 if method == OURS else 5
    (bar,) = ax.plot([low, high], [y, y], color=colour, lw=1.5, alpha=0.6)
    (dot,) = ax.plot(mean, y, "o", color=colour, ms=size)
    bar.set_gid(f"tip:{tip}")
    dot.set_gid(f"tip:{tip}")
    ax.annotate(
        percent(here.mean),
        (high, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=colour if colour != _FAMILY else _GREY,
    )


def _shown(value: float) -> float:
    return min(max(value, _FLOOR), _CEILING)


def budget_curves(
    results: Results, measure: Measure, palette: Palette
) -> Markup | None:
    """Draw error against model calls, one line a method."""
    curves = summary.curve(results, measure.name)
    lines = {m: {float(b): i for b, i in c.items()} for m, c in curves.items()}
    title = f"{measure.title}: error against calls"
    found = summary.scores(results, measure.name, results.settings["budgets"][-1])
    return _lines(lines, found, palette, title, f"budget {measure.name}")


def radius_curves(results: Results, palette: Palette) -> Markup | None:
    """Draw what-if error against the number of removed features."""
    budget = results.settings["budgets"][-1]
    finite = [r for r in summary.radii_of(results) if r != "inf"]
    lines: dict[str, dict[float, Interval]] = {}
    for radius in finite:
        found = summary.complete(summary.scores(results, f"whatif@{radius}", budget))
        for method, by_case in found.items():
            lines.setdefault(method, {})[float(radius)] = summary.interval(by_case)
    if not finite:
        return None
    title = f"What-if error by number removed, {budget} calls"
    last = summary.scores(results, f"whatif@{finite[0]}", budget)
    return _lines(lines, last, palette, title, "radius")


def _lines(
    lines: Mapping[str, Mapping[float, Interval]],
    found: summary.Scores,
    palette: Palette,
    title: str,
    salt: str,
) -> Markup | None:
    """Draw lines over a logarithmic x; the leaders of ``found`` have labels."""
    points = sorted({x for line in lines.values() for x in line})
    if len(points) < 2:
        return None
    shown = {m: line for m, line in lines.items() if kind_of(m) != "inside"}
    leaders = [m for m in summary.leaders(found) if m in shown]

    def draw(ax: Any) -> None:
        for method, line in shown.items():
            _line(ax, method, line, palette.of(method, leaders), method in leaders)
        ax.set_xscale("log")
        ax.set_xticks(points, [f"{x:g}" for x in points])
        ax.minorticks_off()
        _percent_axis(ax.yaxis, [i.mean for s in shown.values() for i in s.values()])
        _direct_labels(ax, {m: shown[m] for m in leaders}, palette)
        ax.set_title(title)

    return _svg(draw, (3.6, 2.7), salt)


def _line(
    ax: Any, method: str, line: Mapping[float, Interval], colour: str, leads: bool
) -> None:
    x = sorted(line)
    y = [_shown(line[k].mean) for k in x]
    width = 2.6 if method == OURS else 1.8 if leads else 0.8
    style = {"lw": width, "ms": 4 if leads else 2, "zorder": 3 if leads else 1}
    ax.plot(x, y, "o-", color=colour, **style)
    errors = ", ".join(percent(line[k].mean) for k in x)
    # A thin line is hard to point at; this one is wide, and seen when pointed at.
    (wide,) = ax.plot(x, y, color=_INK, lw=8, alpha=0.0, zorder=5)
    wide.set_gid(f"tip:{label_of(method)}: {errors}")
    if leads:
        low = [_shown(line[k].low) for k in x]
        high = [_shown(line[k].high) for k in x]
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)


def _direct_labels(
    ax: Any, lines: Mapping[str, Mapping[float, Interval]], palette: Palette
) -> None:
    """Write each name at the end of its line, moved apart where they would touch."""
    low, high = np.log(ax.get_ylim())
    gap, placed = 0.075 * (high - low), -np.inf
    for method in sorted(lines, key=lambda m: lines[m][max(lines[m])].mean):
        end = max(lines[method])
        height = np.log(_shown(lines[method][end].mean))
        placed = max(height, placed + gap)
        ax.annotate(
            label_of(method),
            (end, np.exp(placed)),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=palette.bright(method),
            fontweight="bold" if method == OURS else "normal",
            fontsize=9,
            annotation_clip=False,
        )


def _percent_axis(axis: Any, values: Sequence[float]) -> None:
    """Show a logarithmic axis of errors in percent, without what is beyond reading."""
    shown = [_shown(value) for value in values]
    low, high = min(shown) / 1.3, max(shown) * 1.3
    steps = [m * 10.0**k for k in range(-5, 3) for m in (1, 2, 5)]
    if high / low > 60:
        steps = [10.0**k for k in range(-5, 3)]
    ticks = [step for step in steps if low <= step <= high]
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_ticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
    axis.set_ticks([], minor=True)
    getattr(axis.axes, f"set_{axis.axis_name}lim")(low, high)
    axis.axes.grid(axis=axis.axis_name, lw=0.5)
    axis.axes.set_axisbelow(True)


def _svg(draw: Callable[[Any], None], size: tuple[float, float], salt: str) -> Markup:
    """Draw on fresh Axes; return an inline SVG with the page's colours."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=size)
        draw(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            pad_inches=0.05,
            metadata={"Date": None},
        )
    return Markup(_paged(buffer.getvalue()))  # noqa: S704 - texts escaped by matplotlib


def _paged(svg: str) -> str:
    """Make a file's SVG part of a page: colours, tips, its own width."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    # Identifiers of groups repeat from picture to picture; only tips are used.
    svg = re.sub(r'<g id="tip:([^"]*)">', r'<g class="tip"><title>\1</title>', svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    for stand_in, variable in _VARIABLES.items():
        svg = svg.replace(stand_in, f"var({variable})")
    return svg.replace("<svg ", '<svg role="img" ', 1)
