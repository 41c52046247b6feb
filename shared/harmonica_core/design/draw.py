"""Which masks a fit evaluates: one choice for every algorithm and every caller."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core._types import Masks
from harmonica_core.checks import check_feature_count
from harmonica_core.design.borders import border_masks
from harmonica_core.design.masks import (
    all_masks,
    ball_masks,
    covers,
    interleave_pairs,
    match_masks,
    paired_masks,
)
from harmonica_core.settings import Settings, check_budget, check_fits_memory

# The neighbourhood of the paper's experiments with anchors.
_NEAR = 4


@dataclass(frozen=True)
class Design:
    """Masks to evaluate.

    Attributes
    ----------
    masks : bool (m, n_features)
        Distinct.
    anchors : bool (k, n_features), optional
        The first one is the input: everything kept.
    n_uniform : int, optional
        How many of the masks, the first ones, are uniform (anchors only).

    Examples
    --------
    >>> Design(np.ones((1, 3), dtype=bool)).n_features
    3
    """

    masks: Masks
    anchors: Masks | None = None
    n_uniform: int | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.masks.shape[1])


def draw_design(
    settings: Settings, n_features: int, budget: Any = "auto", seed: Any = 0
) -> Design:
    """Return what a fit with these settings evaluates, at most ``budget`` masks.

    The same settings, number of features, budget and seed give the same design.

    Parameters
    ----------
    settings : Settings
    n_features : int
    budget : int or "auto"
    seed : int, Generator or None

    Examples
    --------
    >>> draw_design(Settings(), n_features=3, budget=5).masks.astype(int).tolist()
    [[1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
    """
    n_features = check_feature_count(n_features)
    budget = check_budget(budget, n_features)
    settings.check_features(n_features)
    check_fits_memory(settings, n_features, budget)
    rng = np.random.default_rng(copy.deepcopy(seed))
    if settings.method in ("anchor", "constrained"):
        return _draw_anchored(settings, n_features, budget, rng)
    return Design(_draw_masks(settings, n_features, budget, rng))


def _draw_masks(
    settings: Settings, n_features: int, budget: int, rng: np.random.Generator
) -> Masks:
    radius = settings.radius_of(n_features)
    if radius is not None:
        ends = interleave_pairs(np.ones((1, n_features), dtype=bool))
        inside = ball_masks(n_features, radius, budget, rng)
        if not settings.ends:
            return inside
        inside = inside[inside.any(axis=1)][: max(budget - 2, 0)]
        return np.concatenate([ends, inside])
    if covers(n_features, budget):
        return all_masks(n_features)
    if settings.solver == "bayes":
        return border_masks(n_features, budget, rng)
    return paired_masks(n_features, budget, rng)


def _draw_anchored(
    settings: Settings, n_features: int, budget: int, rng: np.random.Generator
) -> Design:
    """T masks and T/k near the input for k anchors, ``T + T/k <= budget``."""
    k = min(settings.anchors, 1 << min(n_features, 30))
    n_uniform = budget * k // (k + 1)
    if k == 1 or covers(n_features, budget):
        n_uniform = budget
    masks = _draw_masks(settings, n_features, max(n_uniform, 2), rng)
    n_uniform = len(masks)
    if n_uniform < budget and not covers(n_features, budget):
        near = ball_masks(n_features, min(_NEAR, n_features), budget - n_uniform, rng)
        seen, _ = match_masks(near, masks)
        masks = np.concatenate([masks, np.delete(near, seen, axis=0)])
    return Design(masks, draw_anchors(n_features, k, rng), n_uniform)


def draw_anchors(n_features: int, n_anchors: int, rng: np.random.Generator) -> Masks:
    """Distinct anchors ``(k, n_features)``: first the input, then uniform masks.

    There are at most ``2**n_features`` different ones; asking for more gives all.
    """
    wanted = min(n_anchors, 1 << min(n_features, 30))
    anchors = np.ones((1, n_features), dtype=bool)
    while len(anchors) < wanted:
        more = rng.random((wanted - len(anchors), n_features)) < 0.5
        both = np.concatenate([anchors, more])
        _, first = np.unique(both, axis=0, return_index=True)
        anchors = both[np.sort(first)]
    return anchors
