"""One batch: which examples share masks, what was evaluated, one progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from captum_harmonica._captum import progress
from captum_harmonica.value_function import MaskedForward, Masks, as_rows
from harmonica_core import Evaluated
from harmonica_core.evaluate import evaluate
from harmonica_core.result.relabel import lift
from harmonica_core.settings import check_budget


class Bar:
    """Captum's progress bar; its total grows as forwards are planned."""

    def __init__(self, title: str | None) -> None:
        self._bar: Any = None if title is None else progress(desc=title, total=0)

    def plan(self, n_forwards: int) -> None:
        """Announce forwards."""
        if self._bar is not None:
            self._bar.total += n_forwards
            self._bar.update(0)

    def step(self) -> None:
        """Count one forward."""
        if self._bar is not None:
            self._bar.update()

    def close(self) -> None:
        """Draw the last state."""
        if self._bar is not None:
            self._bar.close()


@dataclass(frozen=True)
class Group:
    """Examples with the same features: they share masks and one fit.

    Attributes
    ----------
    f : MaskedForward
        Of these examples and of the features they have.
    rows : int64 (n_functions,)
        Their places among all functions of the batch.
    bar : Bar
    full : float64 (n_functions * n_outputs,), optional
        Values with everything kept, if they are known already.
    """

    f: MaskedForward
    rows: NDArray[np.int64]
    bar: Bar
    full: NDArray[np.float64] | None = None

    @property
    def n_features(self) -> int:
        """Features that these examples really have."""
        return len(self.f.columns)

    def own_terms(self, terms: Any) -> Any:
        """Return given terms in the numbering of these features, all else as it is."""
        given = terms is not None and not isinstance(terms, str)
        return self.f.own_terms(terms) if given else terms

    def evaluate(self, masks: Masks) -> NDArray[np.float64]:
        """Values ``(m, n_functions)`` or ``(m, n_functions, n_outputs)``."""
        known, n_known = None, 0
        if self.full is not None:
            everything = np.ones((1, self.n_features), dtype=bool)
            known = Evaluated(everything, self.full[None, :])
            n_known = int(masks.all(axis=1).sum())
        self.bar.plan(self.f.n_forwards(len(masks) - n_known))
        values = evaluate(self.f, masks, batch_size=self.f.masks_per_call, known=known)
        shaped = values.reshape(len(masks), self.f.n_functions, -1)
        return shaped[:, :, 0] if shaped.shape[2] == 1 else shaped


def look(f: MaskedForward, bar: Bar) -> tuple[MaskedForward, list[Group]]:
    """Find out what a batch's output is like, and who shares masks with whom.

    Returns
    -------
    f : MaskedForward
        With ``joint`` set if the forward returns one result for the whole batch.
    groups : list of Group
    """
    f, full = _first_look(replace(f, on_forward=bar.step), bar)
    groups = [
        Group(
            replace(f, columns=columns) if f.joint else f.of(rows, columns),
            rows,
            bar,
            None if full is None else full[rows].ravel(),
        )
        for rows, columns in _groups(f)
    ]
    return f, groups


def explain_batch(
    f: MaskedForward,
    n_samples: int | Literal["auto"],
    title: str | None,
    fit: Callable[[Group, int], list[Any]],
) -> tuple[list[Any], bool]:
    """Fit every function of a batch, group by group, with ``n_samples`` masks each.

    Returns
    -------
    surrogates : list
        One per example, or one for the whole batch.
    joint : bool
        Whether it is one for the whole batch.
    """
    most_features = int(f.features.present(f.n_examples).sum(axis=1).max())
    check_budget(n_samples, most_features, "n_samples")
    bar = Bar(title)
    try:
        f, groups = look(f, bar)
        found: list[Any] = [None] * f.n_functions
        for group in groups:
            fitted = fit(group, check_budget(n_samples, group.n_features, "n_samples"))
            columns = np.tile(group.f.columns, (len(fitted), 1))
            lifted = lift(fitted, columns, f.features.n_features)
            for row, one in zip(group.rows, lifted, strict=True):
                found[row] = one
        return found, f.joint
    finally:
        bar.close()


def _first_look(
    f: MaskedForward, bar: Bar
) -> tuple[MaskedForward, NDArray[np.float64] | None]:
    """Run a batch unmasked to see whether its output has one row per example.

    A single example needs no look: its first forward will tell.
    """
    if f.n_examples == 1:
        return f, None
    bar.plan(1)
    kept = torch.ones(f.n_examples, f.features.n_features, dtype=torch.bool)
    output = f.run(kept, torch.arange(f.n_examples))
    f.on_forward()
    per_example = (
        isinstance(output, torch.Tensor)
        and output.dim() > 0
        and output.shape[0] == f.n_examples
    )
    if per_example:
        return f, as_rows(output, f.n_examples)
    if f.rows_per_call != 1:
        raise ValueError(
            f"forward_func returned one result for the whole batch of {f.n_examples} "
            f"examples, and perturbations_per_eval={f.rows_per_call}; needed "
            "perturbations_per_eval=1, because such a result can not be split"
        )
    return replace(f, joint=True), as_rows(output, 1)


def _groups(
    f: MaskedForward,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Functions and the features they have, for each set of features that occurs."""
    present = f.features.present(f.n_examples)
    if f.joint:
        present = np.atleast_2d(present.any(axis=0))
    kinds, kind_of = np.unique(present, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds):
        yield np.flatnonzero(kind_of.ravel() == number), np.flatnonzero(kind)
