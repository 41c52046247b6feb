"""Consistency metrics in SHAP's vocabulary, for the output of any SHAP explainer.

How an explanation is read: see `shap_harmonica.metric_cases`. Each metric returns one
number per row: ``(n_rows,)`` or ``(n_rows, n_outputs)``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np
import shap

from harmonica_core import Estimate, Surrogate, from_attributions
from harmonica_core import metrics as core
from shap_harmonica.metric_cases import Game, How, games, per_row

__all__ = [
    "Game",
    "How",
    "additive_surrogates",
    "efficiency_gap",
    "games",
    "infidelity",
    "interpretation_error",
    "r_squared",
    "truthful_gap",
]


def interpretation_error(
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any = None,
    radius: int | None = None,
    p: Any = 2,
    *,
    threshold: float = 0.1,
    **how: Unpack[How],
) -> Any:
    """``I_p = (E |f(mask) - g(mask)|^p)^(1/p)`` of each row's explanation.

    Parameters
    ----------
    model, masker
        As given to the explainer.
    explanation : shap.Explanation or list of surrogates
    X : rows, optional
        By default the explanation's ``data``.
    radius : int, optional
        Masks with 1 to ``radius`` features removed; None: all masks.
    p : float, "inf" or "L0"
        "L0" is the share of masks with an error of at least ``threshold``.
    **how
        See `How`.

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1]
    >>> X = np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> interpretation_error(f, np.zeros((1, 2)), phi).round(4).tolist()
    [0.3536]
    """
    metric = partial(core.interpretation_error, p=p, radius=radius, threshold=threshold)
    return per_row(metric, model, masker, explanation, X, how)


def truthful_gap(
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any = None,
    degree: int | None = None,
    terms: Any = None,
    **how: Unpack[How],
) -> Any:
    """``sum_{S in C} <f - g, chi_S>^2`` of each row: what g leaves unsaid within C.

    C holds all terms up to ``degree`` (3 by default), or ``terms``; other parameters
    as in `interpretation_error`.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> truthful_gap(f, background, phi, degree=2).tolist()
    [0.125]
    """
    metric = partial(core.truthful_gap, degree=degree, terms=terms)
    return per_row(metric, model, masker, explanation, X, how)


def r_squared(
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any = None,
    radius: int | None = None,
    **how: Unpack[How],
) -> Any:
    """Share of the model's variance over masks that each row's explanation explains.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> r_squared(f, background, phi).round(4).tolist()
    [0.3333]
    """
    metric = partial(core.r_squared, radius=radius)
    return per_row(metric, model, masker, explanation, X, how)


def infidelity(
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any = None,
    radius: int | None = None,
    *,
    normalize: bool = False,
    **how: Unpack[How],
) -> Any:
    """Mean squared difference between predicted and true drops of each row's output.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> infidelity(f, background, phi).tolist()
    [0.125]
    """
    metric = partial(core.infidelity, radius=radius, normalize=normalize)
    return per_row(metric, model, masker, explanation, X, how)


def efficiency_gap(
    model: Any, masker: Any, explanation: Any, X: Any = None, **how: Unpack[How]
) -> Any:
    """``|f(x) - g(x)|`` with everything kept: how far the values are from adding up.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> efficiency_gap(f, background, phi).tolist()
    [0.0]
    """

    def metric(f: Any, g: Any, n_features: int, **sampling: Any) -> Estimate:
        return core.efficiency_gap(f, g, n_features)

    return per_row(metric, model, masker, explanation, X, how)


def additive_surrogates(explanation: shap.Explanation) -> list[Surrogate]:
    """What the values of any SHAP explainer say about removals, one g for each row.

    ``g(mask) = base value + sum of the values of what is kept``; of a cube of
    interaction values likewise, a pair counts where both of its features are kept. No
    model call: for what-if pages, plots and metrics.

    Examples
    --------
    >>> explanation = shap.Explanation(np.array([[1.0, 2.0]]), np.array([0.5]))
    >>> (g,) = additive_surrogates(explanation)
    >>> g([[True, True], [True, False]]).tolist()
    [3.5, 1.5]
    """
    values = np.asarray(explanation.values, dtype=np.float64)
    base = np.asarray(explanation.base_values, dtype=np.float64)
    if values.ndim < 2 or len(values) == 0:
        raise ValueError(
            f"values have shape {values.shape}; needed (n_rows, n_features[, ...]): "
            "pass an explanation of rows, such as explanation[:1] for the first"
        )
    names = explanation.feature_names
    names = names if isinstance(names, (list, tuple)) else None
    bases = np.broadcast_to(base, len(values)) if base.ndim == 0 else base
    return [
        from_attributions(*cell, feature_names=names)
        for cell in zip(values, bases, strict=True)
    ]
