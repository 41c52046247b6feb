"""From a function of masks to a surrogate: draw, evaluate, fit, state the error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from harmonica_core._types import Masks, ValueFunction, Values
from harmonica_core.basis.kernel import Prior
from harmonica_core.cache import CacheKey
from harmonica_core.checks import check_feature_count, check_names
from harmonica_core.design.draw import Design, draw_design
from harmonica_core.design.masks import check_masks, rows_of_all
from harmonica_core.engine.choose import fit_functions
from harmonica_core.evaluate import (
    Evaluated,
    EvaluationTimeout,
    check_value_function,
    evaluate,
)
from harmonica_core.resilience import BatchSize, CallPolicy
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.settings import (
    Settings,
    check_budget,
    check_prior,
    check_tolerance,
)

# Masks of the first round; every further round has twice as many.
_FIRST_ROUND = 128
# Fewer masks than these, after a timeout, are returned as they are.
_FEWEST_MASKS = 12


@dataclass(frozen=True)
class Calls:
    """How a model is called.

    Attributes
    ----------
    batch_size : int or BatchSize
        Masks per call of the value function; changes nothing else. Halved where memory
        runs out; a `BatchSize` object carries that on to the next fit.
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
    progress : bool
        Show a bar.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks.sum(axis=1)
    >>> g = fit_surrogate(f, n_features=12, budget=60, calls=Calls(batch_size=16))
    >>> g.n_evaluations
    60
    """

    batch_size: int | BatchSize = 1024
    cache: Any = None
    cache_key: CacheKey | None = None
    retries: int = 0
    rate_limit: float | None = None
    timeout: float | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        self.policy()

    def policy(self, timeout: float | None = None) -> CallPolicy:
        """Return retries, rate limit and timeout, checked."""
        limit = self.timeout if timeout is None else timeout
        return CallPolicy(self.retries, rate_limit=self.rate_limit, timeout=limit)

    def evaluate(
        self,
        value_function: ValueFunction,
        masks: Masks,
        known: Evaluated | None = None,
        timeout: float | None = None,
    ) -> Values:
        """Return the values of masks; known and cached ones cost no call."""
        return evaluate(
            value_function,
            masks,
            batch_size=self.batch_size,
            progress=self.progress,
            known=known,
            cache=self.cache,
            cache_key=self.cache_key,
            policy=self.policy(timeout),
        )


def check_calls(calls: object) -> Calls:
    """Return how a model is called; None: as usual."""
    if calls is None:
        return Calls()
    if not isinstance(calls, Calls):
        raise ValueError(f"calls={calls!r}; needed Calls(batch_size=...), or None")
    return calls


def fit_surrogate(
    value_function: ValueFunction,
    n_features: int,
    budget: int | Literal["auto"] = "auto",
    degree: int | None = None,
    engine: Literal["auto", "bayes", "lasso"] = "auto",
    alpha: float | Literal["auto"] = "auto",
    seed: int | np.random.Generator | None = 0,
    *,
    terms: Any = None,
    radius: int | None = None,
    ends: bool = True,
    tolerance: float | None = None,
    prior: Prior | None = None,
    known: Evaluated | None = None,
    calls: Calls | None = None,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    **renamed: Any,
) -> Surrogate:
    """Fit one surrogate to a function of masks.

    Parameters
    ----------
    value_function : callable, bool (m, n_features) -> (m,) or (m, n_outputs)
        The model on masked inputs, True = kept. All outputs are fitted from the same
        calls.
    n_features : int
    budget : int or "auto"
        Largest number of masks to evaluate, 2 or more. When it covers all
        ``2**n_features`` masks, all are evaluated and the result is exact. "auto": see
        `auto_budget`.
    degree : int or None
        No term is larger; None: no limit.
    engine : {"auto", "bayes", "lasso"}
        "bayes" learns which features and sizes of terms matter, and answers with the
        posterior mean. "lasso" is the published algorithm: all terms up to ``degree``
        (3) from uniform masks. "auto": lasso where ``alpha`` or ``terms`` is given.
    alpha : float or "auto"
        L1 strength of the LASSO in scikit-learn's convention, or chosen per output by
        cross-validation.
    seed : int, Generator or None
    terms : iterable of tuples, optional
        Exactly these terms, by the LASSO.
    radius : int, optional
        Fit on masks with 1 to ``radius`` features removed instead of on all masks.
    ends : bool
        Make g pass exactly through f(all kept) and f(all removed), also where a degree
        or the LASSO would not.
    tolerance : float, optional
        Evaluate in rounds, each twice as large as the one before, until the stated
        error of every output is at most this (in the units of the output) or the
        budget ends; ``surrogate.stopped`` says which: "tolerance" or "budget".
    prior : Prior, optional
        Of an earlier fit (``surrogate.prior``): nothing is learnt anew.
    known : Evaluated, optional
        Evaluations made before (for instance ``error.evaluated`` of an exception):
        they cost no call.
    calls : Calls, optional
        How the model is called: batches, cache, retries, rate, timeout, progress.
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
    _refuse_renamed(renamed)
    settings = Settings(
        "harmonica" if radius is None else "local",
        engine=engine,
        degree=degree,
        alpha=alpha,
        terms=terms,
        radius=radius,
        ends=ends,
    )
    found: Surrogate = fit_with(
        settings,
        value_function,
        n_features,
        budget,
        seed,
        tolerance=tolerance,
        prior=prior,
        known=known,
        calls=calls,
        feature_names=feature_names,
        output_names=output_names,
    )
    return found


def fit_with(
    settings: Settings,
    value_function: ValueFunction,
    n_features: int,
    budget: Any = "auto",
    seed: Any = 0,
    *,
    tolerance: float | None = None,
    prior: Prior | None = None,
    known: Evaluated | None = None,
    calls: Calls | None = None,
    feature_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
) -> Any:
    """Draw, evaluate and fit as ``settings`` say; see `fit_surrogate`.

    Examples
    --------
    >>> g = fit_with(Settings("low_degree"), lambda masks: 2.0 * masks[:, 0], 3)
    >>> g.spectrum[(0,)]
    1.0
    """
    check_value_function(value_function)
    n_features = check_feature_count(n_features)
    feature_names = check_names(feature_names, n_features, "feature_names")
    tolerance = check_tolerance(tolerance)
    prior = check_prior(prior, settings, n_features)
    calls = check_calls(calls)
    design = draw_design(settings, n_features, check_budget(budget, n_features), seed)
    masks = design.masks[_fair_order(design.masks)]
    design = replace(design, masks=masks) if design.anchors is None else design

    def fit(rows: Masks, values: Values) -> Any:
        part = replace(design, masks=rows)
        (found,) = fit_functions(part, values[:, None], settings, prior)
        return found

    if tolerance is not None:
        found = _fit_in_rounds(
            value_function, fit, design.masks, tolerance, known, calls
        )
    else:
        rows, values, late = _evaluate_in_time(
            value_function, design.masks, known, calls, calls.timeout
        )
        found = fit(rows, values)
        found = found.changed(stopped="timeout") if late else found
    if getattr(found, "stopped", None) == "timeout":
        warnings.warn(
            f"stopped by the timeout after {found.n_evaluations} of "
            f"{len(design.masks)} evaluations; the surrogate is fitted to those",
            stacklevel=3,
        )
    return found.with_names(feature_names, output_names)


def fit_surrogates(
    masks: Masks,
    values: Values,
    degree: int | None = None,
    engine: Literal["auto", "bayes", "lasso"] = "auto",
    alpha: float | Literal["auto"] = "auto",
    *,
    terms: Any = None,
    radius: int | None = None,
    ends: bool = False,
    prior: Prior | None = None,
    **renamed: Any,
) -> list[Surrogate]:
    """Fit many functions known on the same masks; they share one learnt prior.

    Parameters
    ----------
    masks : bool (n_masks, n_features)
        Distinct, for instance ``draw_design(...).masks``.
    values : float64 (n_masks, n_functions) or (n_masks, n_functions, n_outputs)
    degree, engine, alpha, terms, radius, ends, prior
        As in `fit_surrogate`; ``radius`` says how the masks were drawn.

    Returns
    -------
    list of Surrogate, one per function

    Examples
    --------
    >>> masks = draw_design(Settings(), n_features=3).masks
    >>> first, second = masks[:, 0], masks[:, 1] & masks[:, 2]
    >>> f, g = fit_surrogates(masks, np.stack([first, second], axis=1))
    >>> f.shapley_values().round(6).tolist(), g.shapley_values().round(6).tolist()
    ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5])
    """
    _refuse_renamed(renamed)
    masks = check_masks(masks, np.shape(masks)[-1] if np.ndim(masks) else 0)
    settings = Settings(
        "harmonica" if radius is None else "local",
        engine=engine,
        degree=degree,
        alpha=alpha,
        terms=terms,
        radius=radius,
        ends=ends,
    )
    settings.check_features(masks.shape[1])
    prior = check_prior(prior, settings, masks.shape[1])
    return fit_functions(Design(masks), values, settings, prior)


_IN_CALLS = (
    "batch_size",
    "cache",
    "cache_key",
    "retries",
    "rate_limit",
    "timeout",
    "progress",
)


def _refuse_renamed(given: dict[str, Any]) -> None:
    """Raise a TypeError that names what an argument is called now."""
    for name in given:
        if name in _IN_CALLS:
            raise TypeError(f"{name}= is now calls=Calls({name}=...)")
        if name in ("near", "solver", "memory"):
            raise TypeError(f"{name}= is gone: the engine decides it; see engine=")
        raise TypeError(f"unexpected argument {name!r}")


def _evaluate_in_time(
    value_function: ValueFunction,
    masks: Masks,
    known: Evaluated | None,
    calls: Calls,
    timeout: float | None,
) -> tuple[Masks, Values, bool]:
    """Evaluate masks; when time runs out, those whose turn had come."""
    try:
        return masks, calls.evaluate(value_function, masks, known, timeout), False
    except EvaluationTimeout as stop:
        if len(stop.evaluated) < _FEWEST_MASKS:
            raise
        return stop.evaluated.masks, stop.evaluated.values, True


def _fit_in_rounds(
    value_function: ValueFunction,
    fit: Any,
    masks: Masks,
    tolerance: float,
    known: Evaluated | None,
    calls: Calls,
) -> Any:
    """Evaluate and fit twice as many masks each time until the error is small."""
    start = time.monotonic()
    size, found = min(_FIRST_ROUND, len(masks)), None
    while True:
        left = None
        if calls.timeout is not None:
            left = max(calls.timeout - (time.monotonic() - start), 1e-9)
        try:
            rows, values, late = _evaluate_in_time(
                value_function, masks[:size], known, calls, left
            )
        except EvaluationTimeout:
            if found is None:
                raise
            return found.changed(stopped="timeout")
        known = Evaluated(rows, values)
        found = fit(rows, values)
        if late:
            return found.changed(stopped="timeout")
        if np.max(found.error.value) <= tolerance:
            return found.changed(stopped="tolerance")
        if size == len(masks):
            return found.changed(stopped="budget")
        size = min(2 * size, len(masks))


def _fair_order(masks: Masks) -> np.ndarray:
    """Return rows in an order of which every prefix is a fair sample.

    All masks are listed by number; in that order the first half never keeps the last
    feature. Pairs in a fixed random order are fair.
    """
    n = masks.shape[1]
    if rows_of_all(masks) is None:
        return np.arange(len(masks))
    halves = (
        np.random.default_rng(0).permutation(1 << (n - 1)) if n else np.zeros(1, int)
    )
    ends = halves != 0
    halves = np.concatenate([[0], halves[ends]])
    return np.stack([len(masks) - 1 - halves, halves], axis=1).reshape(-1)
