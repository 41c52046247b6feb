"""What all pictures share: colours, axes, and the surrogate's numbers they draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonica_core._types import Floats, Term
from harmonica_core.checks import check_names

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate

UP, DOWN = "#0066a8", "#c96a00"
SOFT_UP, SOFT_DOWN = "#66a3cb", "#dfa666"
INK, MUTED, LINE = "#16191d", "#59616b", "#d5d9df"
# Okabe and Ito's palette, strongest first, each with its own marker.
SERIES = (
    ("#0072b2", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
    ("#e69f00", "v"),
    ("#56b4e9", "P"),
    ("#5b5b5b", "X"),
    ("#000000", "*"),
)


def pyplot() -> Any:
    """Import matplotlib now, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib: pip install "matplotlib>=3.8"'
        ) from error
    return plt


def axes(ax: Any, width: float, height: float) -> Any:
    """Return the given Axes, or those of a new figure of this size in inches."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def bare(ax: Any) -> None:
    """Take away frame and ticks."""
    ax.set_axis_off()


def open_frame(ax: Any) -> None:
    """Keep only what is read: thin left and bottom lines, muted labels."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(LINE)
    ax.tick_params(colors=MUTED, labelcolor=INK, length=0)
    ax.xaxis.label.set_color(MUTED)
    ax.yaxis.label.set_color(MUTED)


def diverging() -> Any:
    """Colour map orange - white - blue."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#7f3f00", DOWN, "#f7f7f7", UP, "#003b66"]
    return LinearSegmentedColormap.from_list("harmonica", stops)


def colour_of(value: float) -> str:
    """Blue for a rise, orange for a fall."""
    return UP if value >= 0 else DOWN


def soft_colour_of(value: float) -> str:
    """Return the same, pale enough for black marks on top."""
    return SOFT_UP if value >= 0 else SOFT_DOWN


def ink_on(colour: Any) -> str:
    """Black or white, whichever reads better on this RGB(A) colour."""
    red, green, blue = colour[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def signed(value: float, decimals: int | None = None) -> str:
    """Return a label with a sign: two significant digits, or so many decimals.

    Examples
    --------
    >>> signed(0.1234), signed(-2.0), signed(0.1234, 3)
    ('+0.12', '−2', '+0.123')
    """
    text = f"{value:+.2g}" if decimals is None else f"{value:+.{decimals}f}"
    return text.replace("-", "−")


def shorten(name: str, length: int = 32) -> str:
    """Cut a long name at the end; matplotlib's own markup is left as plain text."""
    name = " ".join(name.split())
    return name if len(name) <= length else name[: length - 1] + "…"


def names_of(
    surrogate: Surrogate, names: Iterable[str] | None, what: str = "feature_names"
) -> list[str]:
    """Names to print: the given ones, or the surrogate's own."""
    n = surrogate.n_features
    own = (surrogate.feature_name(i) for i in range(n))
    return list(check_names(names, n, what) or own)


def pairs_of(surrogate: Surrogate, index: str) -> dict[Term, float]:
    """Pair interactions, strongest first; empty when g has no interactions."""
    if surrogate.max_degree < 2:
        return {}
    found = surrogate.interactions(order=2, index=index)
    pairs = [(term, float(value)) for term, value in found.items() if len(term) == 2]
    return dict(sorted(pairs, key=lambda pair: (-abs(pair[1]), pair[0])))


def strongest_features(pairs: dict[Term, float], singles: Floats, n: int) -> list[int]:
    """Features ``n`` at most with the largest interactions, in their own order."""
    mass = np.zeros(len(singles))
    for (i, j), value in pairs.items():
        mass[i] += abs(value)
        mass[j] += abs(value)
    order = np.lexsort((np.arange(len(mass)), -np.abs(singles), -mass))
    return sorted(order[:n].tolist())


def write(ax: Any, x: float, y: float, label: str, **options: Any) -> Any:
    """Put text that may hold anything: no mathematics, no markup."""
    return ax.text(x, y, label, parse_math=False, **options)
