"""Insertion and deletion: f along a path from nothing kept to everything kept.

Insertion keeps the k features that should raise f most, deletion removes them, for
k = 0, ..., n; the area under the curve is over the share k / n. Which features these
are is read off scores (one order for all k), or searched with g: the best mask of each
size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from harmonica_core._types import Floats, Masks, Values
from harmonica_core.checks import check_feature_count
from harmonica_core.evaluate import as_columns
from harmonica_core.metrics.inputs import Function, values_on
from harmonica_core.metrics.paths import best_masks
from harmonica_core.result.estimate import Estimate


@dataclass(frozen=True)
class Curves:
    """Values of f along both paths.

    Attributes
    ----------
    insertion, deletion : float64 (n_features + 1,) or (n_features + 1, n_outputs)
        f with k features kept; with k features removed.
    insertion_auc, deletion_auc : Estimate
        Areas; for a good explanation the first is large and the second small.
    insertion_masks, deletion_masks : bool (n_orders, n_features + 1, n_features)
        The paths: one, or one per output where the scores differ by output.

    Examples
    --------
    >>> f = lambda masks: masks @ np.array([0.0, 2.0, 1.0])
    >>> curves = insertion_deletion(f, None, 3, attributions=[0, 2, 1])
    >>> curves.deletion, curves.deletion_auc
    (array([3., 1., 0., 0.]), 0.833 (exact))
    """

    insertion: Values
    deletion: Values
    insertion_auc: Estimate
    deletion_auc: Estimate
    insertion_masks: Masks
    deletion_masks: Masks


def insertion_deletion(
    f: Function,
    g: Function | None,
    n_features: int,
    order: Literal["attribution", "subset"] = "attribution",
    attributions: Any = None,
    *,
    batch_size: int = 1024,
) -> Curves:
    """Insertion and deletion curves of f for the explanation g.

    Parameters
    ----------
    f : value function or array (2**n_features[, n_outputs])
    g : Surrogate, callable on masks, array, or None with ``attributions``
    n_features : int
    order : "attribution" or "subset"
        By scores, or by the mask of each size that is best according to g (all masks
        are tried up to 16 features, beyond that a beam search).
    attributions : (n_features,) or (n_features, n_outputs), optional
        Scores; by default ``g.shapley_values()``.
    batch_size : int
        Masks per call of f.

    Returns
    -------
    Curves

    Examples
    --------
    >>> f = lambda masks: masks @ np.array([0.0, 2.0, 1.0])
    >>> insertion_deletion(f, None, 3, attributions=[0, 2, 1]).insertion.tolist()
    [0.0, 2.0, 3.0, 3.0]
    """
    n_features = check_feature_count(n_features)
    if order == "attribution":
        scores = _check_scores(attributions, g, n_features)
        inserted = np.stack([_ranked(column, n_features) for column in scores.T])
        deleted = ~inserted
    elif order == "subset":
        if g is None:
            raise ValueError('got g=None with order="subset"; needed g to search with')
        inserted = best_masks(g, n_features, largest=True)
        deleted = best_masks(g, n_features, largest=False)[:, ::-1]
    else:
        raise ValueError(f'order={order!r}; needed "attribution" or "subset"')
    paths = np.stack([inserted, deleted])
    insertion, deletion = _along(f, paths, n_features, batch_size)
    return Curves(
        insertion, deletion, _area(insertion), _area(deletion), inserted, deleted
    )


def _check_scores(attributions: Any, g: Any, n_features: int) -> Floats:
    """Scores ``(n_features, n_orders)``, given or from g."""
    if attributions is None:
        if not hasattr(g, "shapley_values"):
            raise ValueError(
                f"{type(g).__name__} has no shapley_values(); pass attributions= (one "
                'score per feature) or order="subset"'
            )
        attributions = g.shapley_values()
    scores = np.asarray(attributions, dtype=np.float64)
    if scores.ndim not in (1, 2) or len(scores) != n_features:
        raise ValueError(
            f"attributions have shape {scores.shape}; needed ({n_features},) or "
            f"({n_features}, n_outputs): one row per feature"
        )
    if not np.isfinite(scores).all():
        raise ValueError("attributions have NaN or infinite entries; needed numbers")
    return as_columns(scores)


def _ranked(scores: Floats, n_features: int) -> Masks:
    """Masks ``(n_features + 1, n_features)`` that keep the k highest scores."""
    rank = np.empty(n_features, dtype=np.int64)
    rank[np.argsort(-scores, kind="stable")] = np.arange(n_features)
    return rank < np.arange(n_features + 1)[:, None]


def _along(
    f: Function, paths: Masks, n_features: int, batch_size: int
) -> tuple[Values, Values]:
    """Values of f along (insertion, deletion) paths ``(2, n_orders, n + 1, n)``.

    With several orders, output j follows order j.
    """
    values = values_on(f, paths.reshape(-1, n_features), n_features, "f", batch_size)
    shaped = values.reshape(*paths.shape[:3], *values.shape[1:])
    n_orders = paths.shape[1]
    if n_orders == 1:
        return shaped[0, 0], shaped[1, 0]
    if as_columns(values).shape[1] != n_orders:
        raise ValueError(
            f"got scores for {n_orders} outputs, but f returns "
            f"{as_columns(values).shape[1]}; needed the same number"
        )
    own = np.arange(n_orders)
    return shaped[0, own, :, own].T, shaped[1, own, :, own].T


def _area(curve: Values) -> Estimate:
    """Trapezoid area under a curve over [0, 1]."""
    area = ((curve[1:] + curve[:-1]) / 2).mean(axis=0)
    if curve.ndim == 1:
        return Estimate(float(area), 0.0, len(curve), exact=True)
    return Estimate(area, np.zeros_like(area), len(curve), exact=True)
