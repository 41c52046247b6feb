"""Many methods, radii and norms at once, from one evaluation of f per mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.checks import check_feature_count
from harmonica_core.metrics.evaluations import (
    EvaluationSet,
    Sampling,
    evaluations_of,
)
from harmonica_core.metrics.inputs import Function, Norm, check_norm, check_threshold
from harmonica_core.metrics.interpretation import (
    difference_of_residuals,
    norm_of_residuals,
)
from harmonica_core.result.estimate import Estimate

# The radii of the published tables; those beyond the number of features are left out.
PUBLISHED_RADII: tuple[int | None, ...] = (1, 2, 4, 8, 16, 32, None)


@dataclass(frozen=True)
class Profile:
    """Interpretation errors of several methods on the same masks.

    Attributes
    ----------
    evaluations : EvaluationSet
        The masks, and f on them.
    residuals : {method: float64 (m, n_outputs)}
        ``f - g`` on these masks.
    radii : tuple of int or None
    ps : tuple of norms
    threshold : float
        For "L0".

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> guesses = {"half": lambda m: 0.5 * m[:, 0], "zero": lambda m: 0.0 * m[:, 0]}
    >>> found = profile(f, guesses, n_features=3)
    >>> found.error("half", radius=1), found.difference("half", "zero", radius=1)
    (0.408 (exact), -0.169 (exact))
    """

    evaluations: EvaluationSet
    residuals: Mapping[str, Floats]
    radii: tuple[float | None, ...]
    ps: tuple[Norm, ...]
    threshold: float

    def error(self, method: str, radius: float | None = None, p: Norm = 2) -> Estimate:
        """``I_p`` of one method on one neighbourhood."""
        return norm_of_residuals(
            self.evaluations,
            self._residual(method),
            check_norm(p),
            radius,
            self.threshold,
        )

    def difference(
        self, method: str, other: str, radius: float | None = None, p: Norm = 2
    ) -> Estimate:
        """``I_p`` of ``method`` less that of ``other``, with its own standard error."""
        residuals = np.stack([self._residual(method), self._residual(other)])
        return difference_of_residuals(
            self.evaluations, residuals, check_norm(p), radius, self.threshold
        )

    def rows(self) -> Iterator[tuple[str, float | None, Norm, Estimate]]:
        """Every (method, radius, p, error)."""
        for method in self.residuals:
            for radius in self.radii:
                for p in self.ps:
                    yield method, radius, p, self.error(method, radius, p)

    def _residual(self, method: str) -> Floats:
        if method not in self.residuals:
            raise ValueError(
                f"no method {method!r} in this profile; needed one of "
                f"{list(self.residuals)}"
            )
        return self.residuals[method]


def profile(
    f: Function | EvaluationSet,
    methods: Mapping[str, Function],
    n_features: int,
    radii: Iterable[float | None] | None = None,
    ps: Iterable[Norm] = (2, 1, "L0"),
    threshold: float = 0.1,
    **sampling: Unpack[Sampling],
) -> Profile:
    """Interpretation errors of several methods, f evaluated once per mask.

    Parameters
    ----------
    f, n_features, threshold, **sampling
        As for `interpretation_error`.
    methods : {name: surrogate, callable on masks, or array like f}
    radii : iterable of int or None, optional
        By default 1, 2, 4, 8, 16, 32 (as far as there are features) and None.
    ps : iterable of norms

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> guesses = {"half": lambda m: 0.5 * m[:, 0], "zero": lambda m: 0.0 * m[:, 0]}
    >>> found = profile(f, guesses, n_features=3, radii=(1, None), ps=(2,))
    >>> for method, radius, p, error in found.rows():
    ...     print(method, radius, p, error)
    half 1 2 0.408 (exact)
    half None 2 0.354 (exact)
    zero 1 2 0.577 (exact)
    zero None 2 0.5 (exact)
    """
    n_features = check_feature_count(n_features)
    if radii is None:
        radii = (r for r in PUBLISHED_RADII if r is None or r <= n_features)
    radii = tuple(radii)
    norms = tuple(ps)
    for p in norms:
        check_norm(p)
    if not isinstance(methods, Mapping):
        raise TypeError(
            f"methods is {type(methods).__name__}; needed {{name: surrogate, callable "
            "or array}"
        )
    known = evaluations_of(f, n_features, radii, sampling)
    residuals = {
        name: known.columns() - known.predictions(g, name)
        for name, g in methods.items()
    }
    return Profile(known, residuals, radii, norms, check_threshold(threshold))
