"""Consistency metrics in SHAP's vocabulary, for the output of any SHAP explainer.

Every metric is the core's of that name, for each row of an explanation:
``metric(model, masker, explanation, X=None, **options)`` returns ``(n_rows,)`` or
``(n_rows, n_outputs)``. How an explanation is read: see `shap_harmonica.metric_cases`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shap

from harmonica_core import Estimate, Surrogate, from_attributions
from harmonica_core import metrics as core
from shap_harmonica.metric_cases import How, explained, games

__all__ = [
    "additive_surrogates",
    "efficiency_gap",
    "games",
    "infidelity",
    "interpretation_error",
    "r_squared",
    "truthful_gap",
]


def _per_row(
    metric: Callable[..., Estimate],
    model: Any,
    masker: Any,
    explanation: Any,
    X: Any,
    options: dict[str, Any],
) -> Any:
    """Return a metric of every row; options that are not `How`'s are the metric's."""
    own = {name: options.pop(name) for name in How.__annotations__ if name in options}
    if X is None:
        X = getattr(explanation, "data", None)
    if X is None:
        raise ValueError("the explanation holds no data; pass the explained rows as X=")
    rows = games(model, masker, X, **own)
    found = [
        metric(row.function, g, row.n_features, **options)
        for row, g in zip(rows, explained(explanation, rows), strict=True)
    ]
    values = np.stack([np.asarray(estimate.value) for estimate in found])
    if not own.get("return_standard_error", False):
        return values
    return values, np.stack([np.asarray(estimate.standard_error) for estimate in found])


def interpretation_error(
    model: Any, masker: Any, explanation: Any, X: Any = None, **options: Any
) -> Any:
    """Return ``I_p = (E |f(mask) - g(mask)|^p)^(1/p)`` of each row's explanation.

    Parameters
    ----------
    model, masker
        As given to the explainer.
    explanation : shap.Explanation or list of surrogates
    X : rows, optional
        By default the explanation's ``data``.
    **options
        Those of `How`, and of `harmonica_core.metrics.interpretation_error`: ``p``,
        ``radius``, ``threshold``, ``max_evaluations``, ``seed``.

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1]
    >>> X = np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> interpretation_error(f, np.zeros((1, 2)), phi).round(4).tolist()
    [0.3536]
    """
    metric = core.interpretation_error
    return _per_row(metric, model, masker, explanation, X, options)


def truthful_gap(
    model: Any, masker: Any, explanation: Any, X: Any = None, **options: Any
) -> Any:
    """Return ``sum_{S in C} <f - g, chi_S>^2``: what g leaves unsaid within C.

    C holds all terms up to ``degree`` (3 by default), or ``terms``.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> truthful_gap(f, background, phi, degree=2).tolist()
    [0.125]
    """
    return _per_row(core.truthful_gap, model, masker, explanation, X, options)


def r_squared(
    model: Any, masker: Any, explanation: Any, X: Any = None, **options: Any
) -> Any:
    """Return the share of the model's variance over masks that is explained.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> r_squared(f, background, phi).round(4).tolist()
    [0.3333]
    """
    return _per_row(core.r_squared, model, masker, explanation, X, options)


def infidelity(
    model: Any, masker: Any, explanation: Any, X: Any = None, **options: Any
) -> Any:
    """Return the mean squared difference between predicted and true drops.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> infidelity(f, background, phi).tolist()
    [0.125]
    """
    return _per_row(core.infidelity, model, masker, explanation, X, options)


def efficiency_gap(
    model: Any, masker: Any, explanation: Any, X: Any = None, **options: Any
) -> Any:
    """Return ``|f(x) - g(x)|`` with everything kept: 0 where the values add up.

    Examples
    --------
    >>> f = lambda X: X[:, 0] * X[:, 1]
    >>> background, X = np.zeros((1, 2)), np.array([[1.0, 1.0]])
    >>> phi = shap.Explanation(np.array([[0.5, 0.5]]), np.zeros(1), X)
    >>> efficiency_gap(f, background, phi).tolist()
    [0.0]
    """
    return _per_row(core.efficiency_gap, model, masker, explanation, X, options)


def additive_surrogates(explanation: shap.Explanation) -> list[Surrogate]:
    """Return what values of any SHAP explainer say about removals, one g a row.

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
