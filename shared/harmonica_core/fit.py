"""From a function of masks to a surrogate: draw, evaluate, fit, state the error."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from harmonica_core import masks as draw
from harmonica_core._types import Floats, Masks, ValueFunction, Values
from harmonica_core.cache import CacheKey, ValueCache
from harmonica_core.checks import check_feature_count, check_names
from harmonica_core.estimators import Fit, ReadableSet, Terms, fit_exact, fit_sampled
from harmonica_core.evaluate import Evaluated, check_value_function, check_values
from harmonica_core.evaluate import evaluate as evaluate_masks
from harmonica_core.lasso import MEMORY
from harmonica_core.plan import check_tolerance, evaluate_plan, fit_in_rounds
from harmonica_core.resilience import BatchSize, CallPolicy
from harmonica_core.scaling import fit_scaled
from harmonica_core.settings import (
    check_alpha,
    check_budget,
    check_degree,
    check_memory,
    check_settings,
    draw_masks,
    near_share,
)
from harmonica_core.surrogate import Surrogate
from harmonica_core.surrogates_of import surrogates_of


def fit_surrogate(
    value_function: ValueFunction,
    n_features: int,
    degree: int = 3,
    budget: int | Literal["auto"] = "auto",
    alpha: float | Literal["auto"] = "auto",
    seed: int | np.random.Generator | None = 0,
    *,
    batch_size: int | BatchSize = 1024,
    terms: Terms = "auto",
    radius: int | None = None,
    near: float | Literal["auto"] = "auto",
    ends: bool = False,
    progress: bool = False,
    known: Evaluated | None = None,
    cache: ValueCache | str | os.PathLike[str] | None = None,
    cache_key: CacheKey | None = None,
    retries: int = 0,
    rate_limit: float | None = None,
    timeout: float | None = None,
    tolerance: float | None = None,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
) -> Surrogate:
    """Fit one sparse polynomial to a function of masks.

    Parameters
    ----------
    value_function : callable, bool (m, n_features) -> (m,) or (m, n_outputs)
        The model on masked inputs, True = kept. All outputs are fitted from the same
        calls.
    n_features : int
    degree : int
        All terms up to this size are candidates.
    budget : int or "auto"
        Largest number of masks to evaluate. When it covers all ``2**n_features``
        masks, all are evaluated and the spectrum is exact. "auto": see `auto_budget`.
    alpha : float or "auto"
        L1 strength in scikit-learn's convention, or chosen per output by
        cross-validation on a path in units of the output's spread.
    seed : int, Generator or None
    batch_size : int or BatchSize
        Masks per call of ``value_function``; changes nothing else. Halved where
        memory runs out; a `BatchSize` object carries that on to the next fit.
    terms : "auto", iterable of tuples, or None
        "auto": all terms up to ``degree`` plus the higher-order terms that the samples
        support (with ``alpha="auto"``, no ``radius``, 64 features and 4,200 masks at
        most; it costs seconds, and is worth
        them wherever the model costs more). None: all terms up to ``degree`` and no
        other, which costs milliseconds. Tuples: exactly these terms (the empty term is
        always there).
    radius : int, optional
        Fit on masks with 1 to ``radius`` features removed instead of on all masks.
    near : float or "auto"
        Share of the masks drawn with at most 3 features removed (or kept), every
        single feature first. More of it lowers the error near the input and raises
        the one over all masks: by a few percent in an adaptive fit, and in a plain one
        the more, the more f differs there. The stated error is that over all masks.
        "auto": 0.1 where ``terms="auto"`` adapts, otherwise 0.
    ends : bool
        Make g pass exactly through f(all kept) and f(all removed).
    progress : bool
    known : Evaluated, optional
        Evaluations made before (for instance ``error.evaluated`` of an exception):
        they cost no call.
    cache : path or ValueCache, optional
        Keep every evaluation in this file, at once: a run that was killed goes on
        where it stopped, and a larger budget pays for the additional masks only.
    cache_key : str or (str, str)
        Names the model and the input in the cache; required with ``cache``.
    retries : int
        How often a call that raised is tried again, with growing pauses.
    rate_limit : float, optional
        Evaluations per second, at most.
    timeout : float, optional
        Seconds for the evaluations. When they have passed, the masks evaluated so
        far are fitted, with a warning and ``surrogate.stopped == "timeout"``; fewer
        than 12 are an `EvaluationTimeout` that holds them.
    tolerance : float, optional
        Evaluate in rounds, each twice as large as the one before, until the stated
        error of every output is at most this (in the units of the output) or the
        budget ends; ``surrogate.stopped`` says which: "tolerance" or "budget".
    feature_names, output_names : iterable of str, optional

    Returns
    -------
    Surrogate

    Examples
    --------
    >>> def f(masks):  # x0 and x1 interact
    ...     return 1.0 * masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
    >>> g = fit_surrogate(f, n_features=3)
    >>> g.shapley_values().round(6).tolist()
    [2.0, 1.0, 0.0]
    """
    check_value_function(value_function)
    n_features = check_feature_count(n_features)
    n_masks = check_budget(budget, n_features)
    terms = check_settings(n_features, degree, alpha, terms)
    feature_names = check_names(feature_names, n_features, "feature_names")
    rng = np.random.default_rng(seed)
    share = near_share(near, terms, alpha, (n_masks, n_features), radius)
    tolerance = check_tolerance(tolerance)
    policy = CallPolicy(retries, rate_limit=rate_limit, timeout=timeout)
    masks = draw_masks(n_features, n_masks, rng, radius=radius, near=share, ends=ends)
    n_planned = len(masks)
    evaluate = partial(
        evaluate_masks,
        value_function,
        batch_size=batch_size,
        progress=progress,
        known=known,
        cache=cache,
        cache_key=cache_key,
        policy=policy,
    )

    def fit(masks: Masks, values: Values) -> Surrogate:
        (found,) = _fit_all(
            masks,
            values.reshape(len(values), 1, -1),
            degree=degree,
            alpha=alpha,
            terms=terms,
            radius=radius,
            near=share,
            ends=ends,
            one_output=values.ndim == 1,
        )
        return found

    if tolerance is not None:
        surrogate = fit_in_rounds(evaluate, fit, masks, rng, tolerance, policy)
    elif timeout is None:
        surrogate = fit(masks, evaluate(masks))
    else:
        masks, values, stopped = evaluate_plan(evaluate, masks, rng)
        surrogate = replace(fit(masks, values), stopped="timeout" if stopped else None)
    if surrogate.stopped == "timeout":
        warnings.warn(
            f"stopped by the timeout after {surrogate.n_evaluations} of {n_planned} "
            "evaluations; the surrogate is fitted to those",
            stacklevel=2,
        )
    return surrogate.with_names(feature_names, output_names)


def fit_surrogates(
    masks: Masks,
    values: Values,
    degree: int = 3,
    alpha: float | Literal["auto"] = "auto",
    seed: int | np.random.Generator | None = 0,
    *,
    terms: Terms = None,
    radius: int | None = None,
    near: float = 0.0,
    ends: bool = False,
    memory: int = MEMORY,
) -> list[Surrogate]:
    """Fit many functions known on the same masks; the design is built once.

    Parameters
    ----------
    masks : bool (n_masks, n_features)
        For instance from `draw_masks`.
    values : float64 (n_masks, n_functions) or (n_masks, n_functions, n_outputs)
    degree, alpha, terms, radius, near, ends
        As in `fit_surrogate`; ``radius`` and ``near`` say how the masks were drawn.
        ``near`` is 0 and ``terms`` is None unless given.
    memory : int
        Bytes to stay within, roughly, beside the arguments and the result: as many
        functions are fitted together as that allows, one at the least.
    seed : int, Generator or None
        Not used: a fit to given masks is deterministic.

    Returns
    -------
    list of Surrogate, one per function

    Examples
    --------
    >>> masks = draw_masks(3, budget=8, rng=np.random.default_rng(0))
    >>> first, second = masks[:, 0], masks[:, 1] & masks[:, 2]
    >>> f, g = fit_surrogates(masks, np.stack([first, second], axis=1))
    >>> f.shapley_values().round(6).tolist(), g.shapley_values().round(6).tolist()
    ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5])
    """
    masks = draw.check_masks(masks, np.shape(masks)[-1] if np.ndim(masks) else 0)
    values = _check_functions(values, masks)
    terms = check_settings(masks.shape[1], degree, alpha, terms)
    fit = partial(
        _fit_all,
        degree=degree,
        alpha=alpha,
        terms=terms,
        radius=radius,
        near=near_share(near, terms, alpha, masks.shape, radius),
        ends=ends,
        one_output=values.ndim == 2,
        memory=check_memory(memory),
    )
    columns = values.reshape(*values.shape[:2], -1)
    n_candidates = ReadableSet.of(terms, masks.shape[1], degree).n_candidates
    # Copies of the values, and of the coefficients, that a fit holds at its peak.
    each = 8 * columns.shape[2] * (8 * len(masks) + 10 * n_candidates)
    step = max(1, memory // each)
    blocks = [columns[:, i : i + step] for i in range(0, columns.shape[1], step)]
    return [one for block in blocks for one in fit(masks, block)]


def _check_functions(values: object, masks: Masks) -> Floats:
    """Return values ``(m, n_functions[, n_outputs])`` or say what is wrong."""
    array = np.asarray(values)
    if array.ndim not in (2, 3) or len(array) != len(masks) or not array.size:
        raise ValueError(
            f"values have shape {array.shape} for {len(masks)} masks; needed "
            f"({len(masks)}, n_functions) or ({len(masks)}, n_functions, n_outputs)"
        )
    return check_values(array.reshape(len(array), -1), masks).reshape(array.shape)


def _fit_all(
    masks: Masks,
    values: Floats,
    *,
    degree: int,
    alpha: float | str,
    terms: Terms,
    radius: int | None,
    near: float,
    ends: bool,
    one_output: bool,
    memory: int = MEMORY,
) -> list[Surrogate]:
    """Fit ``values (m, n_functions, n_outputs)``: one surrogate per function."""
    n_features = masks.shape[1]
    radius = draw.check_radius(radius, n_features)
    flat = values.reshape(len(values), -1)
    readable = ReadableSet.of(terms, n_features, check_degree(degree))
    fit = fit_values(masks, flat, readable, check_alpha(alpha), radius, near, memory)
    return surrogates_of(
        fit,
        masks,
        values[..., 0] if one_output else values,
        max_degree=readable.max_degree,
        radius=radius,
        ends=ends,
    )


def fit_values(
    masks: Masks,
    values: Floats,
    readable: ReadableSet,
    alpha: float | None,
    radius: int | None,
    near: float = 0.0,
    memory: int = MEMORY,
) -> Fit:
    """Fit ``values (m, n_outputs)``: exactly when these are all masks."""
    rows = draw.rows_of_all(masks) if radius is None else None
    if rows is not None:
        return fit_scaled(lambda v, a: fit_exact(v, rows, readable, a), values, alpha)
    weights = draw.near_weights(masks) if near else None
    return fit_scaled(
        lambda v, a: fit_sampled(masks, v, readable, a, radius, weights, memory),
        values,
        alpha,
    )
