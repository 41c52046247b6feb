"""SHAP's waterfall and bar plots with error bars; grey cannot be told from zero.

SHAP's own plots draw every Explanation of ours, but not its ``error_std``.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import shap
from shap.plots import colors

_GREY = "#b3b3b3"
# Values within so many standard deviations of zero are grey.
_TOLD_APART = 2.0


def waterfall(
    explanation: shap.Explanation, max_display: int = 10, show: bool = True
) -> Any:
    """Draw how one row's values lead from the base value to the output.

    Takes one row of one output, ``explanation[0]`` or ``explanation[0, :, k]``; the
    smallest of more than ``max_display`` values are summed up. Returns the axes.
    """
    values, std = _values(explanation)
    if values.ndim != 1:
        raise ValueError(
            f"the explanation has values of shape {values.shape}; needed one row of "
            "one output, such as explanation[0] or explanation[0, :, k]"
        )
    labels = _labels(explanation, len(values))
    values, std, labels = _largest(values, std, labels, max_display)
    base = float(np.ravel(explanation.base_values)[0])
    ends = base + np.cumsum(values[::-1])[::-1]
    ax = _axes(len(values))
    width = np.ptp(np.append(ends, base)) or 1.0
    for k, (value, error, end) in enumerate(zip(values, std, ends, strict=True)):
        _arrow(ax, end - value, value, k, width, _colour(value, error))
        if k:
            ax.plot([end, end], [k - 0.8, k - 0.2], color="#bbbbbb", lw=0.8, zorder=-1)
        ax.errorbar(end, k, xerr=error, color="#333333", lw=1, capsize=2.5)
        side = max(end, end - value, end + error) + 0.015 * width
        colour = _colour(value, error)
        ax.text(side, k, _number(value, error), va="center", color=colour, fontsize=11)
    ax.axvline(base, 0, 0.5 / len(values), color="#bbbbbb", lw=0.5, ls="--", zorder=-1)
    ax.set_yticks(range(len(values)), labels)
    ax.set_xlabel(f"from E[f(X)] = {base:.4g} to f(x) = {ends[0]:.4g}")
    ax.set_xlim(right=ax.get_xlim()[1] + 0.3 * width)
    return _finished(ax, show)


def bar(explanation: Any, max_display: int = 10, show: bool = True) -> Any:
    """Draw the values of one row, or the mean size of each feature's values.

    Takes values ``(n,)`` of one row or ``(n_rows, n)``, of one output; other arguments
    as in `waterfall`.
    """
    values, std = _values(explanation)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"the explanation has values of shape {values.shape}; needed one output, "
            "such as explanation[..., k]"
        )
    rows = values.ndim == 2
    labels = _labels(explanation, values.shape[-1], with_data=not rows)
    if rows:  # rows share their masks, so their errors do not average out
        values, std = np.abs(values).mean(axis=0), std.mean(axis=0)
    values, std, labels = _largest(values, std, labels, max_display)
    ax = _axes(len(values))
    shown = [_colour(*cell) for cell in zip(values, std, strict=True)]
    bars = {"color": "#333333", "lw": 1, "capsize": 2.5}
    ax.barh(range(len(values)), values, 0.7, xerr=std, color=shown, error_kw=bars)
    width = np.ptp(np.append(values, 0.0)) or 1.0
    for k, (value, error, colour) in enumerate(zip(values, std, shown, strict=True)):
        side = 1 if value >= 0 else -1
        place = value + side * (error + 0.015 * width)
        align = "left" if side > 0 else "right"
        text = f"{value:.3g}" if rows else f"{value:+.3g}"
        ax.text(place, k, text, va="center", ha=align, color=colour, fontsize=11)
    ax.axvline(0, color="#333333", lw=0.8)
    ax.set_yticks(range(len(values)), labels)
    ax.set_xlabel("mean(|SHAP value|)" if rows else "SHAP value")
    ax.margins(x=0.15)
    return _finished(ax, show)


def _values(explanation: Any) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(explanation.values, dtype=np.float64)
    std = explanation.error_std
    if std is None:
        raise ValueError(
            "the explanation has no error_std; needed one of HarmonicaExplainer's with "
            'index="SV" and without interactions: use shap.plots for others'
        )
    return values, np.asarray(std, dtype=np.float64)


def _labels(explanation: Any, n: int, with_data: bool = True) -> list[str]:
    names = explanation.feature_names or [f"Feature {i}" for i in range(n)]
    shown = explanation.display_data
    shown = explanation.data if shown is None else shown
    if not with_data or np.shape(shown) != (n,):
        return [str(name) for name in names]
    cells = [
        f"{x:.4g}" if isinstance(x, (float, np.floating)) else str(x) for x in shown
    ]
    return [f"{cell} = {name}" for cell, name in zip(cells, names, strict=True)]


def _largest(
    values: np.ndarray, std: np.ndarray, labels: list[str], most: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the largest values first, the rest as one."""
    order = np.argsort(-np.abs(values), kind="stable")
    values, std, labels = values[order], std[order], [labels[k] for k in order]
    if len(values) <= most:
        return values, std, labels
    kept, rest = max(1, most - 1), len(values) - max(1, most - 1)
    return (
        np.append(values[:kept], values[kept:].sum()),
        np.append(std[:kept], np.hypot.reduce(std[kept:])),
        [*labels[:kept], f"{rest} other features"],
    )


def _number(value: float, error: float) -> str:
    """Return a value with as many digits as its error has."""
    if not error > 0:
        return f"{value:+.3g}"
    digits = max(0, int(np.ceil(-np.log10(error))))
    return f"{value:+.{digits}f} ± {error:.{digits}f}"


def _colour(value: float, error: float) -> Any:
    if error > 0 and abs(value) < _TOLD_APART * error:
        return _GREY
    return colors.red_rgb if value >= 0 else colors.blue_rgb


def _arrow(
    ax: Any, start: float, length: float, y: int, width: float, colour: Any
) -> None:
    """Draw a bar with a tip, as SHAP's waterfall has them."""
    tip = np.sign(length) * min(abs(length), 0.02 * width)
    x = [start, start + length - tip, start + length, start + length - tip, start]
    ax.fill(x, [y - 0.4, y - 0.4, y, y + 0.4, y + 0.4], color=colour, lw=0)


def _axes(n: int) -> Any:
    _, ax = plt.subplots(figsize=(8, 0.5 * n + 1.5))
    return ax


def _finished(ax: Any, show: bool) -> Any:
    ax.invert_yaxis()
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=12)
    ax.figure.text(
        0.99, 0.01, "bars: ± 1 std; grey: within 2 std of zero", ha="right", fontsize=8
    )
    ax.figure.tight_layout(rect=(0, 0.03, 1, 1))
    if show:
        plt.show()
    return ax
