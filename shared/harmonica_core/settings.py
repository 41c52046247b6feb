"""What a fit is asked for: settings that are checked before anything is evaluated."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harmonica_core import masks as draw
from harmonica_core._types import Masks
from harmonica_core.adaptive import is_affordable
from harmonica_core.checks import check_feature_count, is_whole
from harmonica_core.estimators import ReadableSet, Terms

# Masks times features: what the largest table of masks may hold, one byte each.
_MOST_CELLS = 1 << 32
# Share of masks near the input in an adaptive fit.
_NEAR = 0.1


def check_settings(
    n_features: int,
    degree: int,
    alpha: float | str,
    terms: Terms = None,
) -> Terms:
    """Refuse what a fit would refuse, before anything is evaluated; return the terms.

    Terms that can be read only once are returned as a list.
    """
    if terms is not None and not isinstance(terms, (str, Iterable)):
        raise ValueError(
            f'terms={terms!r}; needed "auto", None, or terms such as [(0,), (0, 1)]'
        )
    if terms is not None and not isinstance(terms, str):
        terms = list(terms)
    ReadableSet.of(terms, n_features, check_degree(degree))
    check_alpha(alpha)
    return terms


def check_degree(degree: object) -> int:
    """Return a whole number >= 1."""
    if not is_whole(degree):
        raise ValueError(f"degree={degree!r}; needed a whole number >= 1")
    if degree < 1:
        raise ValueError(f"degree={degree}; needed at least 1 (single features)")
    return int(degree)


def check_alpha(alpha: object) -> float | None:
    """Return the given strength, or None for "auto"."""
    if isinstance(alpha, str) and alpha == "auto":
        return None
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)):
        raise ValueError(f'alpha={alpha!r}; needed a number >= 0 or "auto"')
    if not 0 <= float(alpha) < np.inf:
        raise ValueError(f'alpha={alpha}; needed a finite number >= 0 or "auto"')
    return float(alpha)


def check_budget(budget: object, n_features: int, name: str = "budget") -> int:
    """Return the number of masks to evaluate, at least 2; errors call it ``name``."""
    if isinstance(budget, str) and budget == "auto":
        return auto_budget(n_features)
    if not is_whole(budget):
        raise ValueError(
            f'{name}={budget!r}; needed a whole number of evaluations or "auto"'
        )
    if budget < 2:
        raise ValueError(
            f"{name}={budget} is too small; needed at least 2 evaluations (all kept "
            f'and all removed), better {auto_budget(n_features)} ({name}="auto")'
        )
    n_masks = min(int(budget), 1 << n_features)
    if n_masks * n_features > _MOST_CELLS:
        raise ValueError(
            f"{name}={budget} masks of {n_features} features need more memory than "
            f"{_MOST_CELLS >> 30} GB; needed at most {_MOST_CELLS // n_features}"
        )
    return int(budget)


def check_memory(memory: object) -> int:
    """Return a number of bytes, at least 1."""
    if not is_whole(memory) or memory < 1:
        raise ValueError(
            f"memory={memory!r}; needed a whole number of bytes, such as 1 << 30"
        )
    return int(memory)


def auto_budget(n_features: int) -> int:
    """Return the default number of masks: ``min(2**n, 1000 + 20 * n)``.

    Enough for all masks up to 10 features; the published settings (1000 to 2000) up
    to 50 features; 5,000 at n = 200 and 21,000 at n = 1000, because the number of
    samples that a sparse fit needs grows with the logarithm of the number of terms
    and with the number of terms that matter.

    Examples
    --------
    >>> [auto_budget(n) for n in (8, 20, 200)]
    [256, 1400, 5000]
    """
    n_features = check_feature_count(n_features)
    return min(1 << min(n_features, 30), 1000 + 20 * n_features)


def near_share(
    near: object,
    terms: Terms,
    alpha: object,
    size: tuple[int, int],
    radius: int | None = None,
) -> float:
    """Return the share of masks near the input; "auto" is that of an adaptive fit.

    ``size`` is the number of masks and of features: a fit of very many of them does
    not adapt, and neither does one with a given ``alpha``.
    """
    if isinstance(near, str) and near == "auto":
        grows = isinstance(terms, str) and terms == "auto" and radius is None
        chosen = check_alpha(alpha) is None
        return _NEAR if grows and chosen and is_affordable(*size) else 0.0
    share = draw.check_near(near)
    if share and radius is not None:
        raise ValueError(
            f"near={near} with radius={radius}; needed one of them: a radius says "
            "already where the masks are drawn"
        )
    return share


def draw_masks(
    n_features: int,
    budget: int,
    rng: np.random.Generator,
    *,
    radius: int | None = None,
    near: float = 0.0,
    ends: bool = False,
) -> Masks:
    """Masks that a fit with this budget evaluates, at most ``budget`` rows.

    All masks when the budget covers them; otherwise complementary pairs, starting
    with (all kept, all removed), uniform but for a share ``near`` of them close to the
    input; with ``radius`` uniform on that ball, after the two ends if those are asked
    for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_masks(4, budget=6, rng=rng)[:2].astype(int).tolist()
    [[1, 1, 1, 1], [0, 0, 0, 0]]
    >>> draw_masks(4, budget=100, rng=rng).shape  # all of them
    (16, 4)
    """
    n_features = check_feature_count(n_features)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng={rng!r}; needed a generator, such as numpy.random.default_rng(0)"
        )
    budget = check_budget(budget, n_features)
    radius = draw.check_radius(radius, n_features)
    if radius is None:
        if draw.covers(n_features, budget):
            return draw.all_masks(n_features)
        return draw.mixed_masks(n_features, budget, rng, draw.check_near(near))
    if not ends:
        return draw.ball_masks(n_features, radius, budget, rng)
    both = draw.interleave_pairs(np.ones((1, n_features), dtype=bool))
    inside = draw.ball_masks(n_features, radius, max(budget - 2, 0), rng)
    inside = inside[inside.any(axis=1)]  # all removed is there already
    return np.concatenate([both, inside])
