"""Shells of the cube: which masks stand for which neighbourhoods.

A shell holds the masks with ``fewest`` to ``most`` features removed. The radii that
somebody asks for cut the cube into shells; a neighbourhood is a union of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harmonica_core._types import Masks
from harmonica_core.design import masks as draw

# A sampled shell needs two masks for its spread.
_FEWEST_DRAWS = 2


@dataclass(frozen=True)
class Shell:
    """Masks with ``fewest`` to ``most`` features removed.

    Attributes
    ----------
    fewest, most : int
    size : int
        Masks of this kind.
    rows : slice
        Rows that stand for them: all of them, or independent uniform draws.
    """

    fewest: int
    most: int
    size: int
    rows: slice

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)

    @property
    def enumerated(self) -> bool:
        """Whether ``rows`` holds every mask of the shell."""
        return len(self) == self.size

    def masks(self, n_features: int, rng: np.random.Generator) -> Masks:
        """Every mask of a listed shell, independent draws from any other."""
        if self.enumerated:
            return draw.ball(n_features, self.most, self.fewest)
        if (self.fewest, self.most) == (0, n_features):
            return draw.uniform_draws(n_features, len(self), rng)
        return draw.ball_draws(n_features, self.most, len(self), rng, self.fewest)


def check_radius(radius: float | None, n_features: int) -> int | None:
    """Return 1 to n_features, or None for the whole cube (also for infinity)."""
    if isinstance(radius, (float, np.floating)):
        if radius == np.inf:
            return None
        if radius.is_integer():
            radius = int(radius)
    return draw.check_radius(radius, n_features)  # type: ignore[arg-type]


def plan_shells(
    radii: Iterable[float | None], n_features: int, budget: int
) -> tuple[Shell, ...]:
    """Cut the cube for the given radii and share ``budget`` masks between the shells.

    When all masks fit in, there is a shell for each number of removed features, and
    every smaller radius is served as well.
    """
    wanted = sorted(
        {check_radius(radius, n_features) for radius in radii},
        key=lambda radius: np.inf if radius is None else radius,
    )
    if not wanted:
        raise ValueError("radii is empty; needed at least one radius (None = the cube)")
    bounds = _bounds(wanted, n_features)
    if draw.ball_size(n_features, bounds[-1][1], bounds[0][0]) <= budget:
        bounds = [(i, i) for i in range(bounds[0][0], bounds[-1][1] + 1)]
    sizes = [draw.ball_size(n_features, most, fewest) for fewest, most in bounds]
    counts = _allocate(sizes, _needs(bounds, sizes, wanted), budget)
    ends = np.cumsum(counts).tolist()
    return tuple(
        Shell(*bound, size, slice(end - count, end))
        for bound, size, count, end in zip(bounds, sizes, counts, ends, strict=True)
    )


def _bounds(radii: list[int | None], n_features: int) -> list[tuple[int, int]]:
    """Fewest and most features removed in each shell, for sorted radii."""
    balls = [radius for radius in radii if radius is not None]
    if not balls:
        return [(0, n_features)]
    firsts = [1, *(radius + 1 for radius in balls[:-1])]
    bounds = list(zip(firsts, balls, strict=True))
    if radii[-1] is not None:
        return bounds
    rest = [(balls[-1] + 1, n_features)] if balls[-1] < n_features else []
    return [(0, 0), *bounds, *rest]


def _needs(
    bounds: list[tuple[int, int]], sizes: list[int], radii: list[int | None]
) -> list[float]:
    """Root of the summed squared weights of each shell over all radii."""
    squares = np.zeros(len(sizes))
    for radius in radii:
        inside = [
            i
            for i, (fewest, most) in enumerate(bounds)
            if radius is None or (fewest > 0 and most <= radius)
        ]
        total = sum(sizes[i] for i in inside)
        squares[inside] += [(sizes[i] / total) ** 2 for i in inside]
    # A share that underflows still needs its few masks.
    needs: list[float] = np.sqrt(np.maximum(squares, np.finfo(float).tiny)).tolist()
    return needs


def _allocate(sizes: list[int], needs: list[float], budget: int) -> list[int]:
    """Masks per shell: all of a small one, the others by how much the radii need them.

    With equal spread in all shells, ``count ~ sqrt(sum_radii weight^2)`` makes the sum
    of the variances over the radii least.
    """
    if budget < min(_FEWEST_DRAWS * len(sizes), sum(sizes)):
        raise ValueError(
            f"max_evaluations={budget} for {len(sizes)} shells of the neighbourhoods; "
            f"needed at least {_FEWEST_DRAWS} masks each: raise max_evaluations or ask "
            "for fewer radii"
        )
    counts, unlisted, left = list(sizes), set(range(len(sizes))), budget
    while sum(sizes[i] for i in unlisted) > left:
        spare = max(0, left - _FEWEST_DRAWS * len(unlisted))
        unit = spare / sum(needs[i] for i in unlisted)
        for i in unlisted:
            counts[i] = min(sizes[i], _FEWEST_DRAWS + int(unit * needs[i]))
        small = {i for i in unlisted if counts[i] == sizes[i]}
        if not small:
            return counts
        left -= sum(sizes[i] for i in small)
        unlisted -= small
    return [sizes[i] if i in unlisted else counts[i] for i in range(len(sizes))]
