"""The paper's other four algorithms, with the interface of `Harmonica`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from captum_harmonica.attribution import Harmonica
from captum_harmonica.batch import Group
from harmonica_core.result.anchored import draw_anchors
from harmonica_core.engine.anchored_fit import fit_anchored
from harmonica_core.checks import MOST_FEATURES
from harmonica_core.engine.constrained_fit import check_consistency, fit_constrained
from harmonica_core.family import anchor_masks, check_anchors, count_anchors
from harmonica_core.fit import fit_surrogates
from harmonica_core.engine.low_degree import fit_low_degree
from harmonica_core.design.masks import clip_radius
from harmonica_core.settings import draw_masks


class HarmonicaLocal(Harmonica):
    """Harmonica from masks that remove 1 to ``radius`` features.

    Closer to the model near the input, further from it elsewhere.

    Parameters
    ----------
    forward_func, degree, alpha, seed, terms, ends, index
        As in `Harmonica`.
    radius : int
        Features that may be removed, at most; larger than the number of features
        means all of them.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> HarmonicaLocal(f, radius=2, seed=0).attribute(torch.ones(1, 3)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int = 3,
        alpha: float | Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        radius: int = 4,
        **settings: Any,
    ) -> None:
        Harmonica.__init__(self, forward_func, degree, alpha, seed, **settings)
        self.radius = radius

    def _check(self) -> None:
        _check_no_solver(self)
        Harmonica._check(self)
        clip_radius(self.radius, MOST_FEATURES)

    def _fit(self, group: Group, budget: int) -> list[Any]:
        radius = clip_radius(self.radius, group.n_features)
        rng = np.random.default_rng(self._seed())
        masks = draw_masks(group.n_features, budget, rng, radius=radius, ends=self.ends)
        return fit_surrogates(
            masks,
            group.evaluate(masks),
            self.degree,
            self.alpha,
            rng,
            terms=group.own_terms(self.terms),
            radius=radius,
            ends=self.ends,
        )


class HarmonicaAnchor(Harmonica):
    """One polynomial for each of k parts of the cube; less error, less consistency.

    `attribute` returns the values of the input's own polynomial; `explain` returns
    `harmonica_core.result.anchored.AnchoredSurrogate` objects.

    Parameters
    ----------
    forward_func, degree, alpha, seed, terms, ends, index
        As in `Harmonica`.
    anchors : int
        k: the input itself and k - 1 masks drawn at random.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> (g,) = HarmonicaAnchor(f, anchors=2, seed=0).explain(torch.ones(1, 3))
    >>> g.n_anchors
    2
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int = 3,
        alpha: float | Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        anchors: int = 3,
        **settings: Any,
    ) -> None:
        Harmonica.__init__(self, forward_func, degree, alpha, seed, **settings)
        self.anchors = anchors

    def _check(self) -> None:
        _check_no_solver(self)
        Harmonica._check(self)
        check_anchors(self.anchors)

    def _fit(self, group: Group, budget: int) -> list[Any]:
        n_features = group.n_features
        rng = np.random.default_rng(self._seed())
        n_anchors = count_anchors(self.anchors, n_features)
        masks, n_uniform = anchor_masks(n_features, budget, n_anchors, rng)
        anchors = draw_anchors(n_features, n_anchors, rng)
        terms = group.own_terms(self.terms)
        return [
            self._fit_one(masks, values, anchors, n_uniform, terms)
            for values in group.evaluate(masks).swapaxes(0, 1)
        ]

    def _fit_one(
        self, masks: Any, values: Any, anchors: Any, n_uniform: int, terms: Any
    ) -> Any:
        return fit_anchored(
            masks,
            values,
            anchors,
            self.degree,
            self.alpha,
            terms=terms,
            ends=self.ends,
            n_uniform=n_uniform,
        )


class HarmonicaAnchorConstrained(HarmonicaAnchor):
    """Anchored polynomials fitted together and pulled towards their mean.

    Parameters
    ----------
    forward_func, degree, alpha, seed, anchors, terms, ends, index
        As in `HarmonicaAnchor`.
    consistency : float or "auto"
        Strength of the pull, in the units of the output: 0 leaves the anchors alone,
        more makes the polynomials more alike; "auto" follows the output's spread.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> method = HarmonicaAnchorConstrained(f, anchors=2, consistency=1.0, seed=0)
    >>> method.attribute(torch.ones(1, 3)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int = 3,
        alpha: float | Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        anchors: int = 3,
        consistency: float | Literal["auto"] = "auto",
        **settings: Any,
    ) -> None:
        HarmonicaAnchor.__init__(
            self, forward_func, degree, alpha, seed, anchors=anchors, **settings
        )
        self.consistency = consistency

    def _check(self) -> None:
        HarmonicaAnchor._check(self)
        check_consistency(self.consistency)
        if isinstance(self.terms, str) and self.terms == "auto":
            raise ValueError(
                f'terms="auto" with {type(self).__name__}; needed None or tuples of '
                "features: leave it out or use HarmonicaAnchor"
            )

    def _fit_one(
        self, masks: Any, values: Any, anchors: Any, n_uniform: int, terms: Any
    ) -> Any:
        return fit_constrained(
            masks,
            values,
            anchors,
            self.degree,
            self.alpha,
            consistency=self.consistency,
            terms=terms,
            ends=self.ends,
            n_uniform=n_uniform,
        )


class LowDegree(Harmonica):
    """Each coefficient is a sample mean; no regression, several times the samples.

    Parameters
    ----------
    forward_func, degree, seed, ends, index
        As in `Harmonica`.
    alpha : "auto"
        There is no strength to choose; it is here so that the classes can be swapped.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> LowDegree(f).attribute(torch.tensor([[2.0, 3.0, 1.0]]))
    tensor([[3., 3., 1.]])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int = 3,
        alpha: Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        ends: bool = True,
        index: str = "SV",
    ) -> None:
        Harmonica.__init__(
            self, forward_func, degree, alpha, seed, ends=ends, index=index
        )

    def _check(self) -> None:
        _check_no_solver(self)
        Harmonica._check(self)
        if self.alpha != "auto":
            raise ValueError(
                f"alpha={self.alpha!r}, but LowDegree has no L1 strength; leave it out "
                "or use Harmonica"
            )

    def _fit(self, group: Group, budget: int) -> list[Any]:
        rng = np.random.default_rng(self._seed())
        masks = draw_masks(group.n_features, budget, rng, ends=self.ends)
        return [
            fit_low_degree(masks, values, self.degree, ends=self.ends)
            for values in group.evaluate(masks).swapaxes(0, 1)
        ]


def _check_no_solver(method: Harmonica) -> None:
    """Refuse a solver: an algorithm of the paper has its own."""
    if method.solver != "auto":
        raise ValueError(
            f"solver={method.solver!r}, but {type(method).__name__} has its own way to "
            "fit; leave it out or use Harmonica"
        )
