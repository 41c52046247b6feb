"""Interactions drawn on the input itself: a sentence, an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonica_core._types import Floats, Term
from harmonica_core.picture import centre, pixels_and_labels
from harmonica_core.plots import style
from harmonica_core.whatif_data import one_output

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate

# In points, the unit of the drawing of a sentence.
_FONT = 13
_GAP = 16


def text(
    surrogate: Surrogate,
    tokens: Sequence[str] | None = None,
    n_arcs: int = 6,
    *,
    index: str = "SII",
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Draw a sentence with arcs between the words that act together.

    A word's shade is its Shapley value. Arcs above raise g when both words are kept
    (blue), arcs below lower it (orange); their width is the size of the interaction.

    Parameters
    ----------
    surrogate : Surrogate
    tokens : sequence of str, optional
        One per feature; the surrogate's feature names by default.
    n_arcs : int
    index : str
        Any index of `Surrogate.interactions`.
    output : int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks[:, 1] * (1.0 - 2.0 * masks[:, 0])  # "not" turns "bad"
    >>> ax = text(fit_surrogate(f, n_features=2), ["not", "bad"])
    >>> [label.get_text() for label in ax.texts]
    ['not', 'bad', '−2']
    """
    one: Any = one_output(surrogate, output)
    words = [style.shorten(word, 24) for word in style.names_of(one, tokens, "tokens")]
    arcs = list(style.pairs_of(one, index).items())[:n_arcs]
    widths = np.array([_width(word) for word in words])
    centres = np.cumsum(widths + _GAP) - widths / 2
    length = float(widths.sum() + _GAP * (len(widths) + 1))
    above, below = _depths(arcs, centres)
    height = above + below + 32
    new = ax is None
    ax = style.axes(ax, length / 72, height / 72)
    if new:
        ax.figure.set_layout_engine("none")
        ax.set_position((0.0, 0.0, 1.0, 1.0))
    ax.set(xlim=(0, length), ylim=(-below - 16, above + 16), aspect="equal")
    points = _points_per_unit(ax, length)
    phi = one.shapley_values()
    for word, x, width, value in zip(words, centres, widths, phi, strict=True):
        _word(ax, word, x, width, value / (np.abs(phi).max() or 1.0), points)
    strongest = abs(arcs[0][1]) if arcs else 1.0
    for (i, j), value in arcs:
        _arc(ax, centres[i], centres[j], value, abs(value) / strongest, points)
    style.bare(ax)
    return ax


def _points_per_unit(ax: Any, length: float) -> float:
    """How many points one unit of the drawing takes in these Axes."""
    ax.apply_aspect()
    return float(ax.get_window_extent().width / ax.figure.dpi * 72 / length)


def _width(word: str) -> float:
    """Width of a word in points at the size it is drawn."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=_FONT)
    extent = TextToPath().get_text_width_height_descent(word, font, ismath=False)
    return max(8.0, float(extent[0]))


def _rise(distance: float) -> float:
    """Height of an arc over this distance: high enough to nest, never tall."""
    return 20 + 0.26 * distance


def _depths(arcs: list[tuple[Term, float]], centres: Floats) -> tuple[float, float]:
    """Room needed above and below the words."""
    room = [6.0, 6.0]
    for (i, j), value in arcs:
        side = 0 if value >= 0 else 1
        room[side] = max(room[side], _rise(centres[j] - centres[i]) + 4)
    return room[0], room[1]


def _word(
    ax: Any, word: str, x: float, width: float, strength: float, points: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    shade = style.diverging()(0.5 + 0.17 * strength)
    box = FancyBboxPatch(
        (x - width / 2 - 2, -8),
        width + 4,
        16,
        boxstyle="round,pad=3,rounding_size=4",
        facecolor=shade,
        edgecolor=style.LINE,
        linewidth=0.8,
    )
    ax.add_patch(box)
    style.write(
        ax,
        x,
        0,
        word,
        ha="center",
        va="center",
        fontsize=_FONT * points,
        color=style.INK,
    )


def _arc(
    ax: Any, left: float, right: float, value: float, strength: float, points: float
) -> None:
    from matplotlib import patheffects

    side = 1.0 if value >= 0 else -1.0
    angle = np.linspace(0, np.pi, 60)
    middle, half = (left + right) / 2, (right - left) / 2
    top = _rise(right - left)
    x = middle - half * np.cos(angle)
    y = side * (12 + (top - 12) * np.sin(angle) ** 0.75)
    ax.plot(
        x,
        y,
        color=style.colour_of(value),
        linewidth=(0.8 + 3.2 * strength) * points,
        solid_capstyle="round",
        alpha=0.9,
    )
    style.write(
        ax,
        middle,
        side * (top + 2),
        style.signed(value),
        ha="center",
        va="bottom" if side > 0 else "top",
        fontsize=9 * points,
        color=style.colour_of(value),
        path_effects=[patheffects.withStroke(linewidth=3, foreground="white")],
        zorder=3,
    )


def superpixels(
    surrogate: Surrogate,
    image: Any,
    segments: Any,
    n_pairs: int = 6,
    *,
    index: str = "SII",
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Draw an image with its superpixels' Shapley values and links between pairs.

    Parameters
    ----------
    surrogate : Surrogate
    image : (h, w[, 3]) or channels first
    segments : int (h, w)
        The labels in ascending order are features 0, 1, ...
    n_pairs : int
        Links to draw: solid raises g when both are kept, dashed lowers it; width is
        the size of the interaction.
    index : str
        Any index of `Surrogate.interactions`.
    output : int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> g = fit_surrogate(lambda masks: masks.all(axis=1), n_features=2)
    >>> image, segments = np.ones((4, 4, 3)), np.repeat([[0, 0, 1, 1]], 4, axis=0)
    >>> [label.get_text() for label in superpixels(g, image, segments).texts]
    ['+1']
    """
    one: Any = one_output(surrogate, output)
    pixels, labels = pixels_and_labels(image, segments, one.n_features)
    phi = one.shapley_values()
    limit = float(np.abs(phi).max()) or 1.0
    ax = style.axes(ax, 6.4, 5.2 * labels.shape[0] / labels.shape[1] + 0.2)
    grey = pixels.mean(axis=2)
    ax.imshow(0.6 * grey + 0.4 * 255, cmap="gray", vmin=0, vmax=255)
    drawn = ax.imshow(
        phi[labels], cmap=style.diverging(), vmin=-limit, vmax=limit, alpha=0.55
    )
    ax.imshow(_borders(labels), interpolation="nearest")
    pairs = list(style.pairs_of(one, index).items())[:n_pairs]
    _links(ax, pairs, labels)
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label("Shapley value", color=style.MUTED)
    bar.outline.set_visible(False)
    style.bare(ax)
    return ax


def _borders(labels: np.ndarray) -> np.ndarray:
    """White RGBA image of the pixels where a new segment begins."""
    edge = np.zeros((*labels.shape, 4))
    edge[1:][labels[1:] != labels[:-1]] = 1.0
    edge[:, 1:][labels[:, 1:] != labels[:, :-1]] = 1.0
    return edge


def _links(ax: Any, pairs: list[tuple[Term, float]], labels: np.ndarray) -> None:
    from matplotlib import patheffects

    strongest = abs(pairs[0][1]) if pairs else 1.0
    taken: list[Floats] = []
    for (i, j), value in pairs:
        ends = np.array([centre(labels == i), centre(labels == j)])
        width = 1.2 + 4 * abs(value) / strongest
        ax.plot(
            *ends.T,
            color=style.colour_of(value),
            linestyle="-" if value >= 0 else (0, (2.4, 1.2)),
            linewidth=width,
            marker="o",
            markersize=7,
            markeredgecolor="white",
            path_effects=[
                patheffects.withStroke(linewidth=width + 2.5, foreground="white")
            ],
        )
        taken.append(_free_place(ends, taken))
        style.write(
            ax,
            taken[-1][0],
            taken[-1][1],
            style.signed(value),
            ha="center",
            va="center",
            fontsize=9,
            color=style.colour_of(value),
            bbox={
                "boxstyle": "round,pad=0.2",
                "facecolor": "white",
                "edgecolor": "none",
            },
            zorder=3,
        )


def _free_place(ends: Floats, taken: list[Floats]) -> Floats:
    """Return a point on the line between ``ends`` far from the labels placed before."""
    share = np.array([0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78])[:, None]
    places = ends[0] + share * (ends[1] - ends[0])
    if not taken:
        return np.asarray(places[0])
    gaps = np.linalg.norm(places[:, None] - np.array(taken), axis=2).min(axis=1)
    return np.asarray(places[int(np.argmax(gaps))])
