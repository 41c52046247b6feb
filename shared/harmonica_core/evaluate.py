"""The only place that calls a model: masks in, checked values out, nothing lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from harmonica_core._types import Floats, Masks, ValueFunction, Values
from harmonica_core.masks import check_masks


@dataclass(frozen=True)
class Evaluated:
    """Masks that were evaluated, and what the value function said.

    Attributes
    ----------
    masks : bool (m, n_features)
    values : float64 (m,) or (m, n_outputs)
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
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"the value function returned dtype {array.dtype}; needed real numbers; "
            "convert its result to float (for complex numbers take a real part)"
        )
    if array.ndim not in (1, 2) or len(array) != len(masks):
        raise ValueError(
            f"the value function returned shape {array.shape} for {len(masks)} masks; "
            f"needed ({len(masks)},) or ({len(masks)}, n_outputs): one row per mask"
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(
            f"the value function returned shape {array.shape}: no outputs at all; "
            "needed at least one column"
        )
    array = array.astype(np.float64)
    _check_finite(array, masks)
    return array


def _check_finite(array: Values, masks: Masks) -> None:
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        kept = np.flatnonzero(masks[first]).tolist()
        raise ValueError(
            f"the value function returned NaN or infinity for {int(bad.sum())} of "
            f"{len(masks)} masks, first for the mask that keeps features {kept} "
            f"(value {array[first]}); an explanation needs finite numbers: fix the "
            "model's output for removed features or choose another baseline"
        )


def check_batch_size(batch_size: object) -> int:
    """Return a whole number of masks per call, at least 1."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)):
        raise ValueError(
            f"batch_size={batch_size!r}; needed a whole number of masks per call, >= 1"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size}; needed at least 1 mask per call")
    return int(batch_size)


def evaluate(
    value_function: ValueFunction,
    masks: Masks,
    *,
    batch_size: int = 1024,
    progress: bool = False,
    known: Evaluated | None = None,
    description: str = "Harmonica",
) -> Values:
    """Values of all masks, in batches; masks in ``known`` cost no call.

    When the value function raises, its exception goes through unchanged with a note
    that names the batch, and with an attribute ``evaluated`` (an `Evaluated`) that
    holds everything evaluated so far: pass it as ``known=error.evaluated`` to go on.

    Parameters
    ----------
    value_function : callable, bool (m, n_features) -> (m,) or (m, n_outputs)
    masks : bool (n_masks, n_features)
    batch_size : int
        Masks per call.
    progress : bool
        Show a bar (tqdm).
    known : Evaluated, optional
        Earlier evaluations to reuse.

    Returns
    -------
    float64 (n_masks,) or (n_masks, n_outputs)
    """
    check_value_function(value_function)
    batch_size = check_batch_size(batch_size)
    found = _Collected(masks, known)
    todo = found.missing()
    with tqdm(total=len(todo), desc=description, disable=not progress) as bar:
        for start in range(0, len(todo), batch_size):
            rows = todo[start : start + batch_size]
            found.store(rows, _call(value_function, masks, rows, found))
            bar.update(len(rows))
    return found.result()


def _call(
    value_function: ValueFunction, masks: Masks, rows: np.ndarray, found: _Collected
) -> Values:
    batch = masks[rows]
    try:
        return check_values(value_function(batch), batch)
    except BaseException as error:
        error.add_note(
            f"raised for masks {int(rows[0])} to {int(rows[-1])} of {len(masks)} (the "
            f"first keeps features {np.flatnonzero(batch[0]).tolist()}); the "
            f"evaluations made so far are in `error.evaluated`: pass them on as known="
        )
        error.evaluated = found.evaluated()  # type: ignore[attr-defined]
        raise


class _Collected:
    """Values found so far for a list of masks."""

    def __init__(self, masks: Masks, known: Evaluated | None) -> None:
        self.masks = masks
        self.done = np.zeros(len(masks), dtype=bool)
        self.values: Values | None = None
        if known is not None and len(known):
            self._reuse(known)

    def _reuse(self, known: Evaluated) -> None:
        known_masks = check_masks(known.masks, self.masks.shape[1])
        known_values = check_values(known.values, known_masks)
        table = {mask.tobytes(): row for row, mask in enumerate(known_masks)}
        rows = np.array([table.get(mask.tobytes(), -1) for mask in self.masks])
        hits = np.flatnonzero(rows >= 0)
        if len(hits):
            self.store(hits, known_values[rows[hits]])

    def missing(self) -> np.ndarray:
        return np.flatnonzero(~self.done)

    def store(self, rows: np.ndarray, values: Values) -> None:
        if self.values is None:
            self.values = np.zeros((len(self.masks), *values.shape[1:]))
        if values.shape[1:] != self.values.shape[1:]:
            raise ValueError(
                f"the value function returned rows of shape {values.shape[1:]} after "
                f"rows of shape {self.values.shape[1:]}; needed the same number of "
                "outputs for every mask"
            )
        self.values[rows] = values
        self.done[rows] = True

    def evaluated(self) -> Evaluated:
        values = np.zeros(len(self.masks)) if self.values is None else self.values
        return Evaluated(self.masks[self.done], values[self.done])

    def result(self) -> Values:
        return np.zeros(0) if self.values is None else self.values


def as_columns(values: Values) -> Floats:
    """Values as ``(m, n_outputs)``."""
    return values[:, None] if values.ndim == 1 else values
