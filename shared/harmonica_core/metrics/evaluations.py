"""Evaluate f once, on masks that serve every method and every radius.

The masks with 1 to r features removed make up the neighbourhood ``N_r``, each equally
likely; None is the whole cube. The radii asked for cut the cube into shells (so many
to so many features removed). A shell is listed in full when there is room for it and
otherwise sampled uniformly. A neighbourhood is a union of shells, hence

    E_{N_r} h = sum_shells |shell| / |N_r| * mean of h over the shell's rows

is unbiased for each radius, from one and the same set of values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from harmonica_core._types import Floats, Masks, Values
from harmonica_core.checks import check_feature_count, is_whole
from harmonica_core.evaluate import as_columns
from harmonica_core.metrics.inputs import Function, is_known, values_on
from harmonica_core.metrics.shells import Shell, check_radius, plan_shells

# Evaluations by default: of a value function, and where f is an array (they are free).
MAX_EVALUATIONS = 1 << 14
MAX_KNOWN_EVALUATIONS = 1 << 20


class Sampling(TypedDict, total=False):
    """Keywords of every metric that may have to sample masks.

    Attributes
    ----------
    max_evaluations : int
        Enumerate (and be exact) up to this many masks, sample this many beyond.
        Default 2**14; 2**20 where f is an array of values.
    seed : int, Generator or None
        Seed of the masks, or where they are drawn from; default 0.
    batch_size : int
        Masks per call of f.

    Examples
    --------
    >>> from harmonica_core.metrics import interpretation_error
    >>> f, g = (lambda masks: 1.0 * masks[:, 0]), (lambda masks: 0.0 * masks[:, 0])
    >>> how: Sampling = {"max_evaluations": 1000, "seed": 1}
    >>> found = interpretation_error(f, g, n_features=30, p=1, **how)
    >>> found.exact, found.n_evaluations
    (False, 1000)
    """

    max_evaluations: int | None
    seed: int | np.random.Generator | None
    batch_size: int


@dataclass(frozen=True)
class Part:
    """Rows that stand for one shell of a neighbourhood.

    Attributes
    ----------
    rows : slice
    weight : float
        Share of the neighbourhood's masks.
    enumerated : bool
        Whether the rows are all masks of the shell (else independent draws).
    """

    rows: slice
    weight: float
    enumerated: bool

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True)
class EvaluationSet:
    """Masks with the values of f on them; stands in for f in nearly every metric.

    Attributes
    ----------
    n_features : int
    masks : bool (m, n_features)
    values : float64 (m,) or (m, n_outputs)
    shells : tuple of Shell
        By number of removed features; their rows follow each other.

    Examples
    --------
    >>> f = lambda masks: masks[:, 0] * 1.0
    >>> known = EvaluationSet.draw(f, 4, radii=(1, 2, None))
    >>> len(known), known.radii
    (16, (1, 2, 3, 4, None))
    """

    n_features: int
    masks: Masks
    values: Values
    shells: tuple[Shell, ...]

    @classmethod
    def draw(
        cls,
        f: Function,
        n_features: int,
        radii: Iterable[float | None] = (None,),
        *,
        max_evaluations: int | None = None,
        seed: int | np.random.Generator | None = 0,
        batch_size: int = 1024,
    ) -> EvaluationSet:
        """Choose masks that serve all ``radii`` and evaluate f on them, once each.

        Parameters
        ----------
        f : value function, or array (2**n_features[, n_outputs])
        n_features : int
        radii : iterable of int or None
            Neighbourhoods to serve: 1 to r features removed; None = all masks.
        max_evaluations, seed, batch_size
            See `Sampling`.
        """
        n_features = check_feature_count(n_features)
        if max_evaluations is None:
            max_evaluations = MAX_KNOWN_EVALUATIONS if is_known(f) else MAX_EVALUATIONS
        shells = plan_shells(radii, n_features, _check_limit(max_evaluations))
        rng = np.random.default_rng(seed)
        masks = np.concatenate([shell.masks(n_features, rng) for shell in shells])
        values = values_on(f, masks, n_features, "f", batch_size)
        return cls(n_features, masks, values, shells)

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def radii(self) -> tuple[int | None, ...]:
        """Neighbourhoods that these masks serve."""
        balls = tuple(shell.most for shell in self.shells if shell.fewest > 0)
        return balls if self.shells[0].fewest > 0 else (*balls, None)

    def parts(self, radius: float | None) -> tuple[Part, ...]:
        """Rows and weights of the neighbourhood of ``radius``, shell by shell."""
        within = check_radius(radius, self.n_features)
        if within not in self.radii:
            raise ValueError(
                f"these evaluations serve the radii {self.radii}, not {within}; pass "
                f"radii=(..., {within}) when drawing them"
            )
        low, high = (0, self.n_features) if within is None else (1, within)
        inside = [s for s in self.shells if low <= s.fewest and s.most <= high]
        total = sum(shell.size for shell in inside)
        return tuple(Part(s.rows, s.size / total, s.enumerated) for s in inside)

    def columns(self) -> Floats:
        """Values of f as ``(m, n_outputs)``."""
        return as_columns(self.values)

    def predictions(self, g: Function, name: str = "g") -> Floats:
        """Values of g on the same masks, ``(m, n_outputs)``."""
        found = as_columns(values_on(g, self.masks, self.n_features, name))
        if found.shape != self.columns().shape:
            raise ValueError(
                f"{name} has {found.shape[1]} outputs and f has "
                f"{self.columns().shape[1]}; needed the same number"
            )
        return found

    def shaped(self, per_output: Floats) -> Any:
        """A float where f has one dimension, else ``(n_outputs,)``."""
        return float(per_output[0]) if self.values.ndim == 1 else per_output


def evaluations_of(
    f: Function | EvaluationSet,
    n_features: int,
    radii: Iterable[float | None],
    sampling: Sampling,
) -> EvaluationSet:
    """Return f if it is evaluated already, else draw masks and evaluate it."""
    if not isinstance(f, EvaluationSet):
        return EvaluationSet.draw(f, n_features, radii, **sampling)
    if sampling:
        raise TypeError(
            f"got {', '.join(sampling)} although f is an EvaluationSet, whose masks "
            "are drawn already; pass them to EvaluationSet.draw"
        )
    if f.n_features != n_features:
        raise ValueError(
            f"n_features={n_features}, but f was evaluated on masks of {f.n_features} "
            "features; needed the same number"
        )
    return f


def _check_limit(max_evaluations: object) -> int:
    """Return a whole number of evaluations, at least 1."""
    if not is_whole(max_evaluations) or max_evaluations < 1:
        raise ValueError(
            f"max_evaluations={max_evaluations!r}; needed a whole number of masks >= 1"
        )
    return int(max_evaluations)
