"""The paper's five algorithms, each beside its pseudo-code.

All of them share the masks, the solver and the accounting: at most ``budget`` masks
are evaluated, ``n_evaluations`` says how many were, and where the budget covers all
``2**n_features`` masks nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from harmonica_core import masks as draw
from harmonica_core._types import Masks, ValueFunction, Values
from harmonica_core.anchored import AnchoredSurrogate, draw_anchors
from harmonica_core.anchored_fit import Fitter, fit_anchored
from harmonica_core.checks import (
    check_feature_count,
    check_keywords,
    check_names,
    is_whole,
)
from harmonica_core.constrained_fit import check_consistency, fit_constrained
from harmonica_core.estimators import Terms
from harmonica_core.evaluate import check_value_function, evaluate
from harmonica_core.fit import fit_surrogate
from harmonica_core.low_degree_fit import fit_low_degree
from harmonica_core.resilience import CallPolicy
from harmonica_core.settings import (
    check_budget,
    check_degree,
    check_settings,
    draw_masks,
)
from harmonica_core.surrogate import Surrogate

__all__ = [
    "anchor_masks",
    "check_anchors",
    "harmonica",
    "harmonica_anchor",
    "harmonica_anchor_constrained",
    "harmonica_local",
    "low_degree",
]

Budget = int | Literal["auto"]
Alpha = float | Literal["auto"]
Seed = int | np.random.Generator | None

# The neighbourhood of the paper's experiments.
_RADIUS = 4
_EVALUATION = {"batch_size", "progress", "known", "cache", "cache_key"}
_POLICY = {"retries", "rate_limit", "timeout"}
_NAMES = {"feature_names", "output_names"}


def harmonica(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: Budget = "auto",
    alpha: Alpha = "auto",
    seed: Seed = 0,
    **options: Any,
) -> Surrogate:
    """Harmonica: the LASSO on terms up to ``degree`` from uniform masks.

    The same as `fit_surrogate` with ``terms=None``; it describes the parameters and
    the options. The published strength is ``alpha=0.01``.

    Examples
    --------
    >>> f = lambda masks: 3.0 * masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])
    >>> g = harmonica(f, n_features=20, budget=200)  # of 2**20 masks
    >>> sorted(g.top_terms(4))
    [(0,), (1,), (1, 2), (2,)]
    """
    options = {"terms": None, **options}
    return fit_surrogate(
        value_function, n_features, degree, budget, alpha, seed, **options
    )


def harmonica_local(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: Budget = "auto",
    alpha: Alpha = "auto",
    seed: Seed = 0,
    *,
    radius: int = _RADIUS,
    **options: Any,
) -> Surrogate:
    """Harmonica-local: the same from masks with 1 to ``radius`` features removed.

    Better inside that neighbourhood, worse outside.

    Parameters
    ----------
    radius : int
        At least 1. More than ``n_features`` can not be removed, so a larger radius
        means ``n_features``.
    value_function, n_features, degree, budget, alpha, seed, options
        As in `fit_surrogate`.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks.all(axis=1) + masks[:, 0]
    >>> g = harmonica_local(f, n_features=8, degree=1, radius=2)
    >>> g.radius, g.n_evaluations  # 8 + 28 masks
    (2, 36)
    """
    n_features = check_feature_count(n_features)
    options = {"terms": None, **options}
    return fit_surrogate(
        value_function,
        n_features,
        degree,
        budget,
        alpha,
        seed,
        radius=draw.clip_radius(radius, n_features),
        **options,
    )


def harmonica_anchor(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: Budget = "auto",
    alpha: Alpha = "auto",
    seed: Seed = 0,
    *,
    anchors: int = 3,
    terms: Terms = "auto",
    ends: bool = False,
    **options: Any,
) -> AnchoredSurrogate:
    """Harmonica-anchor: one polynomial for the masks nearest to each of k anchors.

    As in the paper's experiments, T uniform masks and T/k masks with at most 4
    features removed are evaluated, here within ``budget``: ``T + T/k <= budget``. With
    one anchor there are no extra masks, and the result is that of `fit_surrogate` with
    the same terms and ``near=0``. With
    ``alpha="auto"`` an anchor may also keep the polynomial of all masks, with or
    without a correction of its own, where that predicts held-out masks better than the
    published LASSO of its own masks alone (see `anchored_fit`). A given alpha is the
    published algorithm.

    Parameters
    ----------
    anchors : int
        k >= 1: the input itself and k - 1 uniform masks; there are at most
        ``2**n_features`` different ones, and more are not used.
    terms : "auto", iterable of tuples, or None
        As in `fit_surrogate`: with "auto" (and no alpha given) the polynomial of all
        masks may hold terms larger than ``degree``, which costs seconds. Where the
        budget covers all masks it is f itself, for every anchor.
    ends : bool
        Make the input's own polynomial pass through f(all kept) and f(all removed).
    value_function, n_features, degree, budget, alpha, seed
        As in `fit_surrogate`.
    options
        ``feature_names``, ``output_names``, and for the evaluation ``batch_size``,
        ``progress``, ``known``, ``cache``, ``cache_key``, ``retries``, ``rate_limit``
        and ``timeout`` (which raises `EvaluationTimeout` with what was evaluated).

    Returns
    -------
    AnchoredSurrogate

    Examples
    --------
    >>> f = lambda masks: np.maximum(masks.sum(axis=1) - 3, 0)  # a kink
    >>> one = harmonica(f, n_features=6, degree=1)
    >>> two = harmonica_anchor(f, n_features=6, degree=1, anchors=2, terms=None)
    >>> f"{one.error.value:.1f} with one, {two.error.value:.1f} with two"
    '0.4 with one, 0.2 with two'
    """
    terms = check_settings(check_feature_count(n_features), degree, alpha, terms)
    fitter = partial(fit_anchored, degree=degree, alpha=alpha, terms=terms, ends=ends)
    return _anchored(
        fitter, value_function, n_features, budget, seed, anchors, **options
    )


def harmonica_anchor_constrained(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: Budget = "auto",
    alpha: Alpha = "auto",
    seed: Seed = 0,
    *,
    anchors: int = 3,
    consistency: float | Literal["auto"] = "auto",
    ends: bool = False,
    **options: Any,
) -> AnchoredSurrogate:
    """Harmonica-anchor-constrained: all anchors at once, pulled towards their mean.

    Minimises ``L_f + l1 L_r + l2 L_c`` to its optimum (see
    `harmonica_core.constrained`), with ``l1 = 2 alpha`` and ``l2 = consistency``. The
    masks are those of `harmonica_anchor` with the same seed.

    Parameters
    ----------
    alpha : float or "auto"
        L1 strength in scikit-learn's convention; "auto" takes what cross-validation
        chooses in the cells on their own.
    consistency : float >= 0 or "auto"
        0 leaves the anchors independent; from some value on all polynomials are
        equal. In the units of the output; "auto" is a fifth of its spread.
    value_function, n_features, degree, budget, seed, anchors, ends, options
        As in `harmonica_anchor`.

    Returns
    -------
    AnchoredSurrogate

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks.sum(axis=1) >= 2)
    >>> for pull in (0.0, 0.15, 100.0):
    ...     g = harmonica_anchor_constrained(f, 4, degree=1, consistency=pull)
    ...     apart = g.distances_to_mean().sum()
    ...     print(f"error {g.error.value:.2f}, apart by {apart:.1f}")
    error 0.00, apart by 1.3
    error 0.08, apart by 0.8
    error 0.28, apart by 0.0
    """
    check_settings(check_feature_count(n_features), degree, alpha)
    check_consistency(consistency)
    fitter = partial(
        fit_constrained, degree=degree, alpha=alpha, consistency=consistency, ends=ends
    )
    return _anchored(
        fitter, value_function, n_features, budget, seed, anchors, **options
    )


def low_degree(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: Budget = "auto",
    seed: Seed = 0,
    *,
    centred: bool = True,
    ends: bool = False,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    **options: Any,
) -> Surrogate:
    """Low-degree: coefficients are sample means, ``a_S = mean_t f(x_t) chi_S(x_t)``.

    No regression and no sparsity, so it needs several times Harmonica's samples. f is
    taken around its sample mean, so that a constant added to f changes nothing else;
    ``centred=False`` is the published formula. Other parameters as in
    `harmonica_anchor`.

    Examples
    --------
    >>> f = lambda masks: 3.0 * masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])
    >>> low_degree(f, n_features=4, degree=2).spectrum
    {(): 2.0, (0,): 1.5, (1,): 0.5, (2,): 0.5, (1, 2): 0.5}
    """
    check_degree(degree)
    masks = _checked_draw(
        value_function, n_features, budget, np.random.default_rng(seed)
    )
    feature_names = check_names(feature_names, masks.shape[1], "feature_names")
    values = _evaluate(value_function, masks, **options)
    found = fit_low_degree(masks, values, degree, centred=centred, ends=ends)
    return found.with_names(feature_names, output_names)


def anchor_masks(
    n_features: int, budget: int, n_anchors: int, rng: np.random.Generator
) -> tuple[Masks, int]:
    """Masks for k anchors, at most ``budget``, and how many of them are uniform.

    Uniform masks come first; the others are near the input and none occurs twice.
    """
    n_uniform = budget * n_anchors // (n_anchors + 1)
    if n_anchors == 1 or draw.covers(n_features, budget):
        n_uniform = budget
    uniform = draw_masks(n_features, max(n_uniform, 2), rng)
    if n_uniform == budget:
        return uniform, len(uniform)
    radius = min(_RADIUS, n_features)
    near = draw.ball_masks(n_features, radius, budget - len(uniform), rng)
    seen = {mask.tobytes() for mask in uniform}
    new = [mask.tobytes() not in seen for mask in near]
    return np.concatenate([uniform, near[new]]), len(uniform)


def _anchored(
    fitter: Fitter,
    value_function: ValueFunction,
    n_features: int,
    budget: Budget,
    seed: Seed,
    anchors: int,
    *,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    **options: Any,
) -> AnchoredSurrogate:
    """Draw, evaluate, give each mask to its anchor, fit."""
    check_value_function(value_function)
    n_features = check_feature_count(n_features)
    n_anchors = count_anchors(anchors, n_features)
    rng = np.random.default_rng(seed)
    n_masks = check_budget(budget, n_features)
    feature_names = check_names(feature_names, n_features, "feature_names")
    masks, n_uniform = anchor_masks(n_features, n_masks, n_anchors, rng)
    chosen = draw_anchors(n_features, n_anchors, rng)
    values = _evaluate(value_function, masks, **options)
    found = fitter(masks, values, chosen, n_uniform=n_uniform)
    return found.with_names(feature_names, output_names)


def _evaluate(
    value_function: ValueFunction,
    masks: Masks,
    *,
    retries: int = 0,
    rate_limit: float | None = None,
    timeout: float | None = None,
    **options: Any,
) -> Values:
    check_keywords(options, _EVALUATION | _POLICY | _NAMES)
    policy = CallPolicy(retries, rate_limit=rate_limit, timeout=timeout)
    return evaluate(value_function, masks, policy=policy, **options)


def check_anchors(anchors: object) -> int:
    """Return a whole number of anchors, at least 1."""
    if not is_whole(anchors):
        raise ValueError(f"anchors={anchors!r}; needed a whole number >= 1")
    if anchors < 1:
        raise ValueError(f"anchors={anchors}; needed at least 1, the input itself")
    return int(anchors)


def count_anchors(anchors: object, n_features: int) -> int:
    """Return the number of anchors: no more than there are masks."""
    return min(check_anchors(anchors), 1 << min(n_features, 30))


def _checked_draw(
    value_function: ValueFunction,
    n_features: int,
    budget: Budget,
    rng: np.random.Generator,
) -> Masks:
    check_value_function(value_function)
    n_features = check_feature_count(n_features)
    return draw_masks(n_features, check_budget(budget, n_features), rng)
