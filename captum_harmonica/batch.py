"""One batch: who shares masks with whom, what is evaluated, what it costs."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from captum_harmonica.value_function import MaskedForward, Masks, as_rows
from harmonica_core import (
    Design,
    Evaluated,
    Settings,
    auto_budget,
    check_budget,
    draw_design,
    evaluate,
    fit_functions,
    lift,
)

Budget = int | Literal["auto"]

# Default costs above these are announced: minutes for a model of 10 ms a forward.
_MANY_EVALUATIONS = 5000
_MANY_FEATURES = 1000


@dataclass(frozen=True)
class Group:
    """Examples with the same features: they share masks and one fit.

    Attributes
    ----------
    f : MaskedForward
        Of these examples and of the features they have.
    rows : int64 (n_functions,)
        Their places among all functions of the batch.
    """

    f: MaskedForward
    rows: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        """Features that these examples really have."""
        return len(self.f.columns)

    @property
    def functions(self) -> list[MaskedForward]:
        """The function of each of these examples alone."""
        columns = self.f.columns
        return [self.f.of(self.rows[k : k + 1], columns) for k in range(len(self.rows))]

    def evaluate(
        self, masks: Masks, full: NDArray[np.float64] | None, title: str | None
    ) -> NDArray[np.float64]:
        """Return values ``(m, n_functions)`` or ``(m, n_functions, n_outputs)``.

        Parameters
        ----------
        masks : bool (m, n_features)
        full : float64 (n_functions of the batch, n_outputs) or None
            Values with everything kept, if they are known already.
        title : str or None
            Of a progress bar, which moves with each forward.
        """
        known = None
        if full is not None:
            everything = np.ones((1, self.n_features), dtype=bool)
            known = Evaluated(everything, full[self.rows].reshape(1, -1))
        values = evaluate(
            self.f,
            masks,
            batch_size=self.f.masks_per_call if title is None else self.f.masks_at_once,
            progress=title is not None,
            known=known,
            description=title or "",
        )
        shaped = values.reshape(len(masks), self.f.n_functions, -1)
        return shaped[:, :, 0] if shaped.shape[2] == 1 else shaped


def groups_of(f: MaskedForward) -> list[Group]:
    """Return the groups of a batch: one for each set of features that occurs."""
    present = f.features.present(f.n_examples)
    if f.joint:
        present = np.atleast_2d(present.any(axis=0))
    kinds, kind_of = np.unique(present, axis=0, return_inverse=True)
    members = [np.flatnonzero(kind_of.ravel() == k) for k in range(len(kinds))]
    return [
        Group(f.of(rows, np.flatnonzero(kind)), rows)
        for kind, rows in zip(kinds, members, strict=True)
    ]


@torch.no_grad()
def look(f: MaskedForward) -> tuple[MaskedForward, NDArray[np.float64] | None]:
    """Run a batch unmasked to see whether its output has one row per example.

    A single example needs no look: its first forward will tell.

    Returns
    -------
    f : MaskedForward
        With ``joint`` set if the forward returns one result for the whole batch.
    full : float64 (n_functions, n_outputs) or None
        The values that were seen.
    """
    if f.n_examples == 1:
        return f, None
    kept = torch.ones(f.n_examples, f.features.n_features, dtype=torch.bool)
    output = f.run(kept, torch.arange(f.n_examples))
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else ()
    if shape[:1] == (f.n_examples,):
        return f, as_rows(output, f.n_examples)
    if f.rows_per_call != 1:
        raise ValueError(
            f"forward_func returned one result for the whole batch of {f.n_examples} "
            f"examples, and perturbations_per_eval={f.rows_per_call}; needed "
            "perturbations_per_eval=1, because such a result cannot be split"
        )
    return replace(f, joint=True), as_rows(output, 1)


def explain_batch(
    f: MaskedForward,
    settings: Settings,
    n_samples: Budget,
    seed: int,
    title: str | None = None,
    grouped: bool = True,
) -> tuple[list[Any], bool]:
    """Fit every function of a batch, group by group, with ``n_samples`` masks each.

    Parameters
    ----------
    f : MaskedForward
    settings : Settings
    n_samples : int or "auto"
    seed : int
    title : str, optional
        Of a progress bar.
    grouped : bool
        Whether the user grouped input positions by a ``feature_mask``.

    Returns
    -------
    surrogates : list
        One per example, or one for the whole batch.
    joint : bool
        Whether it is one for the whole batch.
    """
    plans = _plans(f, settings, n_samples, seed)
    _warn_of_cost(plans, n_samples, grouped)
    f, full = look(f)
    if f.joint:
        plans = _plans(f, settings, n_samples, seed)
    found: list[Any] = [None] * f.n_functions
    for group, own, design in plans:
        fitted = fit_functions(design, group.evaluate(design.masks, full, title), own)
        columns = np.tile(group.f.columns, (len(fitted), 1))
        lifted = lift(fitted, columns, f.features.n_features)
        for row, one in zip(group.rows, lifted, strict=True):
            found[row] = one
    return found, f.joint


def _plans(
    f: MaskedForward, settings: Settings, n_samples: Budget, seed: int
) -> list[tuple[Group, Settings, Design]]:
    """Return what each group evaluates; what cannot be done is refused here."""
    settings.check_features(f.features.n_features)
    plans = []
    for group in groups_of(f):
        own = replace(settings, terms=group.f.own_terms(settings.terms))
        budget = check_budget(n_samples, group.n_features, "n_samples")
        plans.append((group, own, draw_design(own, group.n_features, budget, seed)))
    return plans


def _warn_of_cost(
    plans: list[tuple[Group, Settings, Design]], n_samples: Budget, grouped: bool
) -> None:
    """Warn of too few evaluations to tell features apart, or of very many."""
    group, _, design = max(plans, key=lambda plan: plan[0].n_features)
    n, m = group.n_features, len(design.masks)
    said = None
    if n_samples == "auto":
        if m > _MANY_EVALUATIONS or (n > _MANY_FEATURES and not grouped):
            said = (
                f"explaining {n} features takes {m} model evaluations per example; "
                "group input positions (feature_mask=superpixels), or pass n_samples="
            )
    elif m < n + 2 and m < 1 << min(n, 60):
        said = (
            f"n_samples={n_samples} evaluations cannot tell {n} features apart; needed "
            f'at least {n + 2}, better {auto_budget(n)} (n_samples="auto"), or fewer '
            "features by feature_mask="
        )
    if said is not None:
        warnings.warn(said, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """Return how many frames up the first one is that is not ours nor the host's."""
    frame, level = sys._getframe(1), 1
    ours = ("captum_harmonica", "captum", "torch")
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in ours:
        frame, level = frame.f_back, level + 1
    return level
