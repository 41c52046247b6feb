"""Pairs of features that act together: as a heat map and as a network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonica_core.plots import style
from harmonica_core.whatif_data import one_output

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate


def heatmap(
    surrogate: Surrogate,
    n_features: int = 10,
    *,
    index: str = "SII",
    feature_names: Iterable[str] | None = None,
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Triangle of pair interactions among the features that interact most.

    Parameters
    ----------
    surrogate : Surrogate
    n_features : int
        Features to show, at most.
    index : str
        Any index of `Surrogate.interactions`.
    feature_names : iterable of str, optional
    output : int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
    >>> g = fit_surrogate(f, 3, feature_names=["age", "income", "city"])
    >>> [label.get_text() for label in heatmap(g).texts]
    ['+2.0']
    """
    one: Any = one_output(surrogate, output)
    pairs = style.pairs_of(one, index)
    chosen = style.strongest_features(pairs, one.shapley_values(), n_features)
    names = style.names_of(one, feature_names)
    cells = np.full((max(len(chosen) - 1, 1), max(len(chosen) - 1, 1)), np.nan)
    for row, i in enumerate(chosen[1:]):
        for column, j in enumerate(chosen[: row + 1]):
            cells[row, column] = pairs.get((j, i), 0.0)
    limit = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
    decimals = max(0, 1 - math.floor(math.log10(limit)))
    ax = style.axes(ax, 2.9 + 0.52 * len(chosen), 1.9 + 0.45 * len(chosen))
    drawn = ax.imshow(
        cells, cmap=style.diverging(), vmin=-limit, vmax=limit, aspect="equal"
    )
    for row, column in zip(
        *np.nonzero(np.abs(cells) >= 0.5 * 10.0**-decimals), strict=True
    ):
        value = cells[row, column]
        style.write(
            ax,
            column,
            row,
            style.signed(value, decimals),
            ha="center",
            va="center",
            fontsize=8.5,
            color=style.ink_on(drawn.to_rgba(value)),
        )
    _label_triangle(ax, [style.shorten(names[i], 24) for i in chosen])
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.7, pad=0.02)
    bar.set_label(f"{index} of the pair", color=style.MUTED)
    bar.outline.set_visible(False)
    return ax


def _label_triangle(ax: Any, labels: list[str]) -> None:
    """Rows from the second feature on, columns up to the last but one."""
    n = max(len(labels) - 1, 1)
    ax.set_yticks(range(n), labels[1:] or labels, parse_math=False)
    ax.set_xticks(
        range(n),
        labels[:-1] or labels,
        rotation=40,
        ha="right",
        rotation_mode="anchor",
        parse_math=False,
    )
    ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=2)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)


def network(
    surrogate: Surrogate,
    n_features: int = 12,
    n_pairs: int = 16,
    *,
    index: str = "SII",
    feature_names: Iterable[str] | None = None,
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Features on a circle, lines between those that act together.

    A disc's area is the size of the Shapley value, a line's width that of the
    interaction. Blue and solid raises g, orange and dashed lowers it.

    Parameters
    ----------
    surrogate : Surrogate
    n_features, n_pairs : int
        Features and lines to show, at most.
    index : str
        Any index of `Surrogate.interactions`.
    feature_names : iterable of str, optional
    output : int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
    >>> g = fit_surrogate(f, 3, feature_names=["age", "income", "city"])
    >>> [label.get_text() for label in network(g).texts]
    ['age', 'income', 'city']
    """
    one: Any = one_output(surrogate, output)
    pairs = style.pairs_of(one, index)
    phi = one.shapley_values()
    chosen = style.strongest_features(pairs, phi, n_features)
    names = style.names_of(one, feature_names)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(chosen)) / max(len(chosen), 1)
    place = dict(
        zip(chosen, np.c_[np.cos(angles), np.sin(angles)].tolist(), strict=True)
    )
    ax = style.axes(ax, 7.2, 5.4)
    shown = [(t, v) for t, v in pairs.items() if t[0] in place and t[1] in place]
    strongest = max((abs(v) for _, v in shown), default=1.0)
    for (i, j), value in reversed(shown[:n_pairs]):
        ax.plot(
            *np.transpose([place[i], place[j]]),
            color=style.colour_of(value),
            linestyle="-" if value >= 0 else (0, (3, 1.2)),
            linewidth=0.6 + 5 * abs(value) / strongest,
            alpha=0.8,
            zorder=1,
            solid_capstyle="butt",
        )
    _discs(ax, chosen, place, phi)
    for i, angle in zip(chosen, angles.tolist(), strict=True):
        _label_outside(ax, angle, style.shorten(names[i], 26))
    ax.set(xlim=(-1.95, 1.95), ylim=(-1.35, 1.3), aspect="equal")
    _key(ax)
    style.bare(ax)
    return ax


def _discs(ax: Any, chosen: list[int], place: dict[int, list[float]], phi: Any) -> None:
    largest = float(np.abs(phi[chosen]).max(initial=0.0)) or 1.0
    ax.scatter(
        *np.transpose([place[i] for i in chosen]),
        s=[40 + 420 * abs(phi[i]) / largest for i in chosen],
        c=[style.colour_of(phi[i]) for i in chosen],
        edgecolor="white",
        linewidth=2,
        zorder=2,
    )


def _label_outside(ax: Any, angle: float, label: str) -> None:
    x, y = np.cos(angle), np.sin(angle)
    side = "center" if abs(x) < 0.15 else ("left" if x > 0 else "right")
    style.write(
        ax,
        1.1 * x,
        1.13 * y,
        label,
        ha=side,
        va="center" if abs(x) >= 0.15 else ("bottom" if y > 0 else "top"),
        fontsize=10,
        color=style.INK,
    )


def _key(ax: Any) -> None:
    """Say what colour, area and width mean."""
    from matplotlib.lines import Line2D

    dash = (0, (3, 1.2))
    raises = Line2D([], [], color=style.UP, linewidth=3, label="raises g")
    lowers = Line2D([], [], color=style.DOWN, linewidth=3, ls=dash, label="lowers g")
    ax.legend(
        handles=[raises, lowers],
        loc="lower left",
        frameon=False,
        fontsize=9,
        borderaxespad=0,
        title="disc: Shapley value\nline: interaction",
        title_fontsize=9,
        alignment="left",
    )
