"""Interactions as columns "a x b", so that every SHAP plot of columns shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap


def pairs(explanation: Any, top: int | None = None) -> shap.Explanation:
    """Turn an interaction cube into one column per feature and one per pair.

    The column of a feature is its main effect (the cube's diagonal), the column
    "a x b" the whole interaction of a and b (both halves). Rows still sum to f(x) -
    base, so waterfall, bar, beeswarm, heatmap and force plots stay true.

    Parameters
    ----------
    explanation : shap.Explanation
        With values ``(n_rows, n, n)``, or ``(n, n)`` for one row: of
        ``explainer(X, interactions=True)``, one output (``[..., k]`` of several).
    top : int, optional
        Keep the pairs that are largest on average and sum the others up in one column
        "other pairs"; all pairs by default.

    Returns
    -------
    shap.Explanation
        ``data`` of a pair is the product of its two standardised values (red: both
        high or both low); ``display_data`` shows both values.

    Examples
    --------
    >>> from shap_harmonica import HarmonicaExplainer
    >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> explainer = HarmonicaExplainer(f, np.zeros((1, 3)), feature_names=list("abc"))
    >>> cube = explainer(np.array([[2.0, 3.0, 1.0]]), interactions=True)
    >>> found = pairs(cube, top=1)
    >>> found.feature_names, found.values.round(3).tolist()
    (['a', 'b', 'c', 'a x b', '2 other pairs'], [[0.0, 0.0, 1.0, 6.0, 0.0]])
    """
    cube = np.asarray(explanation.values, dtype=np.float64)
    one_row = cube.ndim == 2
    cube = cube[None] if one_row else cube
    if cube.ndim != 3 or cube.shape[1] != cube.shape[2]:
        raise ValueError(
            f"the explanation has values of shape {np.shape(explanation.values)}; "
            "needed (n_rows, n, n) of one output: explainer(X, interactions=True), "
            "and [..., k] for output k of several"
        )
    n = cube.shape[1]
    first, second = np.triu_indices(n, 1)
    effects = np.diagonal(cube, axis1=1, axis2=2)
    both = cube[:, first, second] + cube[:, second, first]
    kept = _largest(both, top)
    data = np.asarray(explanation.data).reshape(len(cube), n)
    names = _names(explanation, n)
    columns = [effects, both[:, kept]]
    numbers = [data, _products(data, first[kept], second[kept])]
    shown = [data.astype(object), _texts(data, first[kept], second[kept])]
    labels = names + [f"{names[first[k]]} x {names[second[k]]}" for k in kept]
    if len(kept) < len(first):
        rest = both.sum(axis=1) - both[:, kept].sum(axis=1)
        columns.append(rest[:, None])
        numbers.append(np.zeros((len(cube), 1)))
        shown.append(np.full((len(cube), 1), "", dtype=object))
        labels.append(f"{len(first) - len(kept)} other pairs")
    out = shap.Explanation(
        np.concatenate(columns, axis=1),
        base_values=np.broadcast_to(explanation.base_values, len(cube)).copy(),
        data=np.concatenate(numbers, axis=1),
        display_data=np.concatenate(shown, axis=1),
        feature_names=labels,
        compute_time=explanation.compute_time,
    )
    return out[0] if one_row else out


def _largest(both: np.ndarray, top: int | None) -> np.ndarray:
    n_pairs = both.shape[1]
    if top is None or top >= n_pairs:
        return np.arange(n_pairs)
    if top < 0:
        raise ValueError(f"top={top}; needed a number of pairs >= 0, or None for all")
    order = np.argsort(-np.abs(both).mean(axis=0), kind="stable")
    return np.sort(order[:top])


def _names(explanation: Any, n: int) -> list[str]:
    names = explanation.feature_names
    if names is None:
        return [f"Feature {i}" for i in range(n)]
    return [str(name) for name in names]


def _products(data: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Products of standardised columns; text counts as 0."""
    scores = np.zeros(data.shape)
    for j, column in enumerate(data.T):
        try:
            numbers = column.astype(np.float64)
        except (TypeError, ValueError):
            continue
        spread = np.nanstd(numbers) if np.isfinite(numbers).any() else 0.0
        if spread > 0:
            scores[:, j] = np.nan_to_num((numbers - np.nanmean(numbers)) / spread)
    return np.asarray(scores[:, first] * scores[:, second])


def _texts(data: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    shown = [[_short(value) for value in row] for row in data]
    out = np.empty((len(data), len(first)), dtype=object)
    for r, row in enumerate(shown):
        out[r] = [f"{row[i]}, {row[j]}" for i, j in zip(first, second, strict=True)]
    return out


def _short(value: Any) -> str:
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)
