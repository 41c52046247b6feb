"""Error curves: against the radius for several methods, and the trade-off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.plots import style
from harmonica_core.result.estimate import Estimate

Number = float | Estimate


def error_by_radius(
    errors: Mapping[str, Mapping[float | None, Number]],
    *,
    ylabel: str = "interpretation error $I_2$",
    ax: Any = None,
) -> Any:
    """Error against the neighbourhood's radius, one labelled line per method.

    Parameters
    ----------
    errors : ``{method: {radius: error}}``
        Radius None or ``inf`` is the whole cube. An `Estimate` gets a bar of two
        standard errors either way.
    ylabel : str
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> lines = {"Harmonica": {1: 0.02, None: 0.1}, "additive": {1: 0.02, None: 0.3}}
    >>> ax = error_by_radius(lines)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '∞']
    """
    if not errors or not all(errors.values()):
        raise ValueError("errors hold no method or no radius; needed at least one each")
    radii = sorted({_radius(r) for line in errors.values() for r in line})
    ax = style.axes(ax, 7.6, 4.4)
    ends: list[tuple[float, float, str, str]] = []
    for k, (method, line) in enumerate(errors.items()):
        points = sorted((_radius(r), _pair(error)) for r, error in line.items())
        x = [radii.index(r) for r, _ in points]
        value, spread = np.array([pair for _, pair in points]).T
        colour, marker = style.SERIES[k % len(style.SERIES)]
        _line(ax, x, value, spread, colour, marker)
        ends.append((x[-1], value[-1], style.shorten(method, 30), colour))
    ax.set_xticks(
        range(len(radii)), ["∞" if math.isinf(r) else f"{r:g}" for r in radii]
    )
    ax.set(xlabel="radius: features removed, at most", ylabel=ylabel, yscale="log")
    _finish(ax)
    _plain_log_ticks(ax)
    _label_ends(ax, ends)
    return ax


def trade_off(
    curves: Mapping[str, Sequence[tuple[float, Number]]],
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    xlabel: str = "inconsistency: log of the number of local models",
    ylabel: str = "interpretation error $I_2$",
    ax: Any = None,
) -> Any:
    """Error against inconsistency: what is paid for being right more often.

    Parameters
    ----------
    curves : ``{name: [(inconsistency, error), ...]}``
        For instance ``(log k, I_2)`` for k anchors. An `Estimate` gets a bar of two
        standard errors either way.
    labels : ``{name: [text, ...]}``, optional
        A note at each point, such as ``"k = 3"``.
    xlabel, ylabel : str
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = trade_off({"Harmonica-anchor": [(0.0, 0.3), (math.log(3), 0.1)]})
    >>> ax.get_ylabel()
    'interpretation error $I_2$'
    """
    if not curves or not all(curves.values()):
        raise ValueError("curves hold no points; needed at least one per curve")
    ax = style.axes(ax, 6.6, 4.2)
    for k, (name, points) in enumerate(curves.items()):
        x = [float(where) for where, _ in points]
        value, spread = np.array([_pair(error) for _, error in points]).T
        colour, marker = style.SERIES[k % len(style.SERIES)]
        _line(ax, x, value, spread, colour, marker, label=style.shorten(name, 40))
        notes = (labels or {}).get(name, ())
        for where, height, note in zip(x, value, notes, strict=False):
            ax.annotate(
                note,
                (where, height),
                xytext=(7, 7),
                textcoords="offset points",
                fontsize=9,
                color=style.MUTED,
                parse_math=False,
            )
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.12)
    _finish(ax)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=9)
    return ax


def _radius(radius: float | None) -> float:
    return math.inf if radius is None else float(radius)


def _pair(error: Number) -> tuple[float, float]:
    if isinstance(error, Estimate):
        return float(error), float(np.asarray(error.standard_error))
    return float(error), 0.0


def _line(
    ax: Any,
    x: Sequence[float],
    value: Floats,
    spread: Floats,
    colour: str,
    marker: str,
    **options: Any,
) -> None:
    ax.errorbar(
        x,
        value,
        yerr=2 * spread if spread.any() else None,
        color=colour,
        marker=marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.8,
        linewidth=1.8,
        elinewidth=1.2,
        capsize=2.5,
        **options,
    )


def _finish(ax: Any) -> None:
    style.open_frame(ax)
    ax.yaxis.grid(True, color=style.LINE, linewidth=0.6)
    ax.set_axisbelow(True)


def _plain_log_ticks(ax: Any) -> None:
    """Print 0.02, not 2 x 10^-2."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = ax.get_ylim()
    wide = np.log10(high / low) > 2.2
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(which="both", length=0)


def _label_ends(ax: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Name each line at its end, pushed apart so that no two names overlap."""
    low, high = np.log10(ax.get_ylim())
    height = ax.figure.get_figheight() * ax.get_position().height * 72
    gap = 12.5 / height * (high - low)
    order = sorted(range(len(ends)), key=lambda k: ends[k][1])
    wanted = spread_apart(np.log10([ends[k][1] for k in order]), gap)
    right = max(end[0] for end in ends)
    for k, y in zip(order, wanted, strict=True):
        ax.annotate(
            ends[k][2],
            (right, 10**y),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=ends[k][3],
            annotation_clip=False,
            parse_math=False,
        )


def spread_apart(places: Floats, gap: float) -> Floats:
    """Move ascending places as little as possible so that neighbours are ``gap`` apart.

    Least squares: subtract ``k * gap``, pool neighbours that would go down, add back.

    Examples
    --------
    >>> spread_apart(np.array([0.0, 0.0, 5.0]), 1.0).tolist()
    [-0.5, 0.5, 5.0]
    """
    offset = gap * np.arange(len(places))
    pools: list[list[float]] = []
    for value in (places - offset).tolist():
        pools.append([value])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [float(np.mean(pool)) for pool in pools for _ in pool]
    return np.asarray(np.array(level) + offset)
