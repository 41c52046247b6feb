"""The only place that calls a model: masks in, checked values out, nothing lost."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from harmonica_core._types import Floats, Masks, ValueFunction, Values
from harmonica_core.cache import BoundCache, CacheKey, ValueCache, opened
from harmonica_core.checks import check_unmasked
from harmonica_core.design.masks import check_masks
from harmonica_core.resilience import (
    BatchSize,
    Caller,
    CallPolicy,
    OutOfTime,
)

Rows: TypeAlias = NDArray[np.int64]

_ONE_TRY = CallPolicy()


@dataclass(frozen=True)
class Evaluated:
    """Masks that were evaluated, and what the value function said.

    Attributes
    ----------
    masks : bool (m, n_features)
    values : float64 (m,) or (m, n_outputs)

    Examples
    --------
    Carry on from what a first, smaller fit has paid for:

    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> first = fit_surrogate(f, n_features=12, budget=100)
    >>> again = lambda masks: print("evaluates", len(masks)) or f(masks)
    >>> g = fit_surrogate(again, n_features=12, budget=100, known=first.evaluated)
    >>> len(first.evaluated), g.n_evaluations
    (100, 100)
    """

    masks: Masks
    values: Values

    def __len__(self) -> int:
        return len(self.masks)


def check_value_function(value_function: object) -> None:
    """Refuse what can not be called."""
    if not callable(value_function):
        raise TypeError(
            f"value_function is {type(value_function).__name__}; needed a callable "
            "that takes a bool array (m, n_features) and returns (m,) or (m, n_outputs)"
        )


def check_values(values: object, masks: Masks) -> Values:
    """Return the values of ``masks`` as float64, or say what is wrong with them."""
    check_unmasked(values, "values")
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"values have dtype {array.dtype}; needed real numbers: convert them to "
            "float (for complex numbers take a real part)"
        )
    if array.ndim not in (1, 2) or len(array) != len(masks):
        raise ValueError(
            f"values have shape {array.shape} for {len(masks)} masks; "
            f"needed ({len(masks)},) or ({len(masks)}, n_outputs): one row per mask"
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(
            f"values have shape {array.shape}: no outputs at all; "
            "needed at least one column"
        )
    array = array.astype(np.float64)
    _check_finite(array, masks)
    return array


def _check_finite(array: Values, masks: Masks) -> None:
    # Above, sums of a few values overflow; NaN compares false.
    bad = ~(np.abs(array.reshape(len(array), -1)) <= 1e300).all(axis=1)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        kept = np.flatnonzero(masks[first]).tolist()
        raise ValueError(
            f"values are NaN or infinity for {int(bad.sum())} of "
            f"{len(masks)} masks, first for the mask that keeps features {kept} "
            f"(value {array[first]}); an explanation needs finite numbers up to 1e300: "
            "fix the model's output for removed features or choose another baseline"
        )


class EvaluationTimeout(TimeoutError):  # noqa: N818
    """The policy's timeout passed before every mask was evaluated.

    Attributes
    ----------
    evaluated : Evaluated
        The masks that were, with their values.
    rows : int (m,)
        Their rows among the masks that were asked for.
    """

    def __init__(self, policy: CallPolicy, found: _Collected) -> None:
        self.evaluated = found.evaluated()
        self.rows = np.flatnonzero(found.done)
        super().__init__(
            f"timeout={policy.timeout} seconds passed after {len(self.rows)} of "
            f"{len(found.masks)} evaluations; they are in `error.evaluated`"
        )


def evaluate(
    value_function: ValueFunction,
    masks: Masks,
    *,
    batch_size: int | BatchSize = 1024,
    progress: bool = False,
    known: Evaluated | None = None,
    cache: ValueCache | str | os.PathLike[str] | None = None,
    cache_key: CacheKey | None = None,
    policy: CallPolicy = _ONE_TRY,
    description: str = "Harmonica",
) -> Values:
    """Values of all masks, in batches; masks that are known or cached cost no call.

    When the value function raises, its exception goes through unchanged with a note
    that names the batch, and with an attribute ``evaluated`` (an `Evaluated`) that
    holds everything evaluated so far: pass it as ``known=error.evaluated`` to go on.

    Parameters
    ----------
    value_function : callable, bool (m, n_features) -> (m,) or (m, n_outputs)
    masks : bool (n_masks, n_features)
    batch_size : int or BatchSize
        Masks per call. A batch that runs out of memory is halved and tried again; a
        `BatchSize` object remembers the size that worked beyond this run.
    progress : bool
        Show a bar (tqdm).
    known : Evaluated, optional
        Earlier evaluations to reuse.
    cache : path or ValueCache, optional
        Look masks up here first, and keep each batch here as soon as it is evaluated.
    cache_key : str or (str, str)
        Names the model and the input in the cache; required with ``cache``.
    policy : CallPolicy
        Retries, rate limit, timeout.

    Returns
    -------
    float64 (n_masks,) or (n_masks, n_outputs)

    Raises
    ------
    EvaluationTimeout
        When the policy's timeout passed first.

    Examples
    --------
    >>> evaluate(lambda masks: masks.sum(axis=1), np.eye(3, dtype=bool))
    array([1., 1., 1.])
    """
    check_value_function(value_function)
    size = batch_size if isinstance(batch_size, BatchSize) else BatchSize(batch_size)
    found = _Collected(masks, known)
    with opened(cache, cache_key) as store:
        found.look_up(store)
        todo = found.missing()
        with tqdm(total=len(todo), desc=description, disable=not progress) as bar:
            caller = Caller(value_function, policy)
            while len(todo):
                try:
                    rows = _evaluate_first(todo, caller, found, size)
                except OutOfTime:
                    raise EvaluationTimeout(policy, found) from None
                found.keep(rows, store)
                todo = todo[len(rows) :]
                bar.update(len(rows))
    return found.result()


def _evaluate_first(
    todo: Rows, caller: Caller, found: _Collected, size: BatchSize
) -> Rows:
    """Evaluate the first batch of ``todo``, halved as long as it does not fit."""
    return size.run(
        lambda n: _call(caller, found, todo[:n]), len(todo), caller.allowed_size
    )


def _call(caller: Caller, found: _Collected, rows: Rows) -> Rows:
    batch = found.masks[rows]
    try:
        found.store(rows, check_values(caller(batch), batch))
    except OutOfTime:
        raise
    except BaseException as error:
        error.add_note(
            f"raised for masks {int(rows[0])} to {int(rows[-1])} of {len(found.masks)} "
            f"(the first keeps features {np.flatnonzero(batch[0]).tolist()}); the "
            f"evaluations made so far are in `error.evaluated`: pass them on as known="
        )
        with contextlib.suppress(AttributeError, TypeError):  # some have fixed slots
            error.evaluated = found.evaluated()  # type: ignore[attr-defined]
        raise
    return rows


class _Collected:
    """Values found so far for a list of masks."""

    def __init__(self, masks: Masks, known: Evaluated | None) -> None:
        self.masks = masks
        self.done = np.zeros(len(masks), dtype=bool)
        self._values: Values | None = None
        if known is not None:
            self._reuse(known)

    def _reuse(self, known: Evaluated) -> None:
        if not isinstance(known, Evaluated):
            raise TypeError(
                f"known is {type(known).__name__}; needed an Evaluated, such as "
                "`error.evaluated` or `surrogate.evaluated`"
            )
        if not len(known):
            return
        known_masks = check_masks(known.masks, self.masks.shape[1])
        known_values = check_values(known.values, known_masks)
        table = {mask.tobytes(): row for row, mask in enumerate(known_masks)}
        rows = np.array([table.get(mask.tobytes(), -1) for mask in self.masks])
        hits = np.flatnonzero(rows >= 0)
        if len(hits):
            self.store(hits, known_values[rows[hits]])

    def look_up(self, store: BoundCache | None) -> None:
        """Take what the cache has."""
        rows = self.missing()
        if store is not None and len(rows):
            hits, values = store.look_up(self.masks[rows])
            if len(hits):
                self.store(rows[hits], values)

    def keep(self, rows: Rows, store: BoundCache | None) -> None:
        """Put freshly evaluated rows into the cache."""
        if store is None:
            return
        try:
            store.store(self.masks[rows], self.result()[rows])
        except BaseException as error:
            error.evaluated = self.evaluated()  # type: ignore[attr-defined]
            raise

    def missing(self) -> Rows:
        """Return the rows without values."""
        return np.flatnonzero(~self.done)

    def store(self, rows: np.ndarray, values: Values) -> None:
        if self._values is None:
            self._values = np.zeros((len(self.masks), *values.shape[1:]))
        if values.shape[1:] != self._values.shape[1:]:
            raise ValueError(
                f"values have rows of shape {values.shape[1:]} after rows of shape "
                f"{self._values.shape[1:]}; needed the same number of outputs for "
                "every mask"
            )
        self._values[rows] = values
        self.done[rows] = True

    def evaluated(self) -> Evaluated:
        values = np.zeros(len(self.masks)) if self._values is None else self._values
        return Evaluated(self.masks[self.done], values[self.done])

    def result(self) -> Values:
        return np.zeros(0) if self._values is None else self._values


def as_columns(values: Values) -> Floats:
    """Values as ``(m, n_outputs)``."""
    return values[:, None] if values.ndim == 1 else values
