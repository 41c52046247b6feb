"""What a fit is asked for: one frozen, checked value, refused before any model call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core import basis
from harmonica_core.basis.kernel import Prior
from harmonica_core.checks import check_feature_count, is_whole

METHODS = ("harmonica", "local", "anchor", "constrained", "low_degree")
ENGINES = ("auto", "bayes", "lasso")
# Masks times features: what the largest table of masks may hold, one byte each.
_MOST_CELLS = 1 << 32
# Pairs of masks whose covariances a fit can hold: four matrices of 0.8 GB.
_MOST_MASKS = 20_000
# The degree of the published experiments.
_PUBLISHED_DEGREE = 3


@dataclass(frozen=True)
class Settings:
    """Which algorithm fits, and on which terms.

    Attributes
    ----------
    method : {"harmonica", "local", "anchor", "constrained", "low_degree"}
        The paper's five algorithms.
    engine : {"auto", "bayes", "lasso"}
        "bayes": regression on parities with a learnt prior. "lasso": the published
        sparse regression on uniform masks. "auto": lasso where ``alpha`` is a number
        or ``terms`` are listed, otherwise bayes.
    degree : int or None
        Largest term; None: no limit (3 for the LASSO and for Low-degree).
    alpha : float or "auto"
        L1 strength in scikit-learn's convention.
    terms : iterable of tuples, optional
        Exactly these terms.
    radius : int, optional
        Masks have 1 to so many features removed ("local"; 4 if not given).
    anchors : int
        Number of anchors.
    consistency : float or "auto"
        Pull of the anchors towards their mean ("constrained").
    ends : bool
        Make g pass exactly through f(all kept) and f(all removed), also where a degree
        or the LASSO would not.
    centred : bool
        Whether Low-degree takes f around its mean.

    Examples
    --------
    >>> Settings(degree=2).solver, Settings(alpha=0.01).solver
    ('bayes', 'lasso')
    """

    method: str = "harmonica"
    engine: str = "auto"
    degree: int | None = None
    alpha: Any = "auto"
    terms: Any = None
    radius: int | None = None
    anchors: int = 3
    consistency: Any = "auto"
    ends: bool = True
    centred: bool = True

    def __post_init__(self) -> None:
        _check_choice(self.method, METHODS, "method")
        _check_choice(self.engine, ENGINES, "engine")
        if self.degree is not None:
            check_degree(self.degree)
        strength = check_alpha(self.alpha)
        check_anchors(self.anchors)
        check_consistency(self.consistency)
        if self.terms is not None:
            object.__setattr__(self, "terms", _check_terms(self.terms))
        if self.method == "local" and self.radius is None:
            object.__setattr__(self, "radius", 4)
        if self.radius is not None and (not is_whole(self.radius) or self.radius < 1):
            raise ValueError(f"radius={self.radius!r}; needed a whole number >= 1")
        if self.engine == "bayes" and (strength is not None or self.terms is not None):
            raise ValueError(
                f'engine="bayes" takes neither alpha nor terms, got {self.alpha!r} and '
                f'{self.terms!r}; leave them out or use engine="lasso"'
            )
        own = strength is None and self.terms is None and self.engine != "bayes"
        if self.method == "low_degree" and not own:
            raise ValueError(
                f"alpha={self.alpha!r}, terms={self.terms!r}, engine={self.engine!r}; "
                "needed none of them for Low-degree; leave them out or use "
                'method="harmonica"'
            )

    @property
    def strength(self) -> float | None:
        """The given alpha, or None."""
        return check_alpha(self.alpha)

    @property
    def solver(self) -> str:
        """Return "bayes" or "lasso": what fits sampled masks."""
        if self.engine != "auto":
            return self.engine
        plain = self.strength is None and self.terms is None
        return "bayes" if plain and self.method != "low_degree" else "lasso"

    @property
    def published_degree(self) -> int:
        """The degree of LASSO fits: 3 unless given."""
        return _PUBLISHED_DEGREE if self.degree is None else self.degree

    def check_features(self, n_features: int) -> None:
        """Refuse what does not fit so many features."""
        n_features = check_feature_count(n_features)
        if self.terms is not None:
            basis.check_table(self.terms, n_features)

    def radius_of(self, n_features: int) -> int | None:
        """Return the radius, at most ``n_features``."""
        return None if self.radius is None else min(self.radius, n_features)


def _check_choice(given: object, known: tuple[str, ...], name: str) -> None:
    if given not in known:
        raise ValueError(f"{name}={given!r}; needed one of {', '.join(known)}")


def _check_terms(terms: object) -> tuple[Any, ...]:
    if isinstance(terms, str) or not isinstance(terms, Iterable):
        raise ValueError(
            f"terms={terms!r}; needed None or terms such as [(0,), (0, 1)]"
        )
    return tuple(terms)


def check_degree(degree: object) -> int:
    """Return a whole number >= 1."""
    if not is_whole(degree):
        raise ValueError(f"degree={degree!r}; needed a whole number >= 1, or None")
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


def check_anchors(anchors: object) -> int:
    """Return a whole number of anchors, at least 1."""
    if not is_whole(anchors):
        raise ValueError(f"anchors={anchors!r}; needed a whole number >= 1")
    if anchors < 1:
        raise ValueError(f"anchors={anchors}; needed at least 1, the input itself")
    return int(anchors)


def check_consistency(consistency: object) -> float | None:
    """Return the given strength of the anchors' pull, or None for "auto"."""
    if isinstance(consistency, str) and consistency == "auto":
        return None
    number = isinstance(consistency, (int, float, np.number))
    if isinstance(consistency, bool) or not number:
        raise ValueError(f'consistency={consistency!r}; needed a number >= 0 or "auto"')
    if not 0 <= float(consistency) < np.inf:  # type: ignore[arg-type]
        raise ValueError(
            f'consistency={consistency}; needed a finite number >= 0 or "auto"'
        )
    return float(consistency)  # type: ignore[arg-type]


def check_tolerance(tolerance: object) -> float | None:
    """Return a number > 0, or None."""
    if tolerance is None:
        return None
    number = isinstance(tolerance, (int, float, np.number))
    if not number or isinstance(tolerance, bool) or not 0 < float(tolerance) < np.inf:  # type: ignore[arg-type]
        raise ValueError(
            f"tolerance={tolerance!r}; needed a finite number > 0, in the units of the "
            "output, or None"
        )
    return float(tolerance)  # type: ignore[arg-type]


def check_budget(budget: object, n_features: int, name: str = "budget") -> int:
    """Return the number of masks to evaluate, at least 2; errors call it ``name``.

    Examples
    --------
    >>> check_budget(100, n_features=20), check_budget("auto", n_features=20)
    (100, 1064)
    """
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
    n_masks = min(int(budget), 1 << min(n_features, 62))
    if n_masks * n_features > _MOST_CELLS:
        raise ValueError(
            f"{name}={budget} masks of {n_features} features need more memory than "
            f"{_MOST_CELLS >> 30} GB; needed at most {_MOST_CELLS // n_features}"
        )
    return int(budget)


def check_prior(prior: object, settings: Settings, n_features: int) -> Prior | None:
    """Return a prior of so many features that keeps to the degree, or None."""
    if prior is None:
        return None
    if not isinstance(prior, Prior):
        raise ValueError(
            f"prior={prior!r}; needed that of another fit (surrogate.prior), or None"
        )
    if prior.n_features != n_features:
        raise ValueError(
            f"the prior is of {prior.n_features} features; needed {n_features}"
        )
    limit = n_features if settings.degree is None else min(settings.degree, n_features)
    if (prior.degree or n_features) > limit:
        raise ValueError(
            f"the prior has terms of up to {prior.degree or n_features} features; "
            f"needed one that was learnt with degree={settings.degree}"
        )
    return prior


def check_fits_memory(settings: Settings, n_features: int, budget: int) -> None:
    """Refuse more masks than the Bayesian engine's matrices can hold."""
    whole = n_features <= 30 and budget >= 1 << n_features
    if settings.solver == "bayes" and not whole and budget > _MOST_MASKS:
        raise ValueError(
            f"a budget of {budget} masks of {n_features} features needs covariances of "
            f"more than {_MOST_MASKS} masks, which do not fit into memory; needed at "
            f'most {_MOST_MASKS}, or engine="lasso"'
        )


def auto_budget(n_features: int) -> int:
    """Return the default number of masks: ``min(2**n, 1024 + 2 * n)``.

    All masks up to 10 features, 1,064 at 20, 3,024 at 1,000: half of what
    KernelExplainer takes by default (2,048 + 2 n).

    Examples
    --------
    >>> [auto_budget(n) for n in (8, 20, 1000)]
    [256, 1064, 3024]
    """
    n_features = check_feature_count(n_features)
    return min(1 << min(n_features, 30), 1024 + 2 * n_features)
