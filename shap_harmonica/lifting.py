"""From surrogates of the varying features to surrogates of all features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harmonica_core import Evaluated, Surrogate
from harmonica_core._types import Masks
from harmonica_core.anchored import AnchoredSurrogate
from harmonica_core.basis import trim


def lift(surrogates: list[Any], varying: np.ndarray, n_features: int) -> list[Any]:
    """Relabel features: number k of surrogate r becomes ``varying[r, k]``.

    Features that equal the background do not occur in any term, so their attribution
    is zero. Rows with the same varying features share their lifted masks.
    """
    if varying.shape[1] == n_features:
        return surrogates
    lifters: dict[bytes, _Lifter] = {}
    out = []
    for surrogate, features in zip(surrogates, varying, strict=True):
        lifter = lifters.setdefault(features.tobytes(), _Lifter(features, n_features))
        out.append(lifter(surrogate))
    return out


class _Lifter:
    def __init__(self, features: np.ndarray, n_features: int) -> None:
        self.features, self.n_features = features, n_features
        self.label = np.append(features, -1).astype(np.int32)  # padding stays padding
        self.lifted: dict[int, tuple[Masks, Masks]] = {}

    def __call__(self, surrogate: Any) -> Any:
        if isinstance(surrogate, AnchoredSurrogate):
            return replace(
                surrogate,
                anchors=self.masks(surrogate.anchors),
                surrogates=tuple(self.polynomial(g) for g in surrogate.surrogates),
                evaluated=self.evaluated(surrogate.evaluated),
            )
        return self.polynomial(surrogate)

    def polynomial(self, surrogate: Surrogate) -> Surrogate:
        return replace(
            surrogate,
            n_features=self.n_features,
            table=trim(self.label[surrogate.table]),
            evaluated=self.evaluated(surrogate.evaluated),
        )

    def evaluated(self, known: Evaluated | None) -> Evaluated | None:
        return known and Evaluated(self.masks(known.masks), known.values)

    def masks(self, masks: Masks) -> Masks:
        """All other features are kept; the same array is lifted once."""
        if id(masks) not in self.lifted:
            full = np.ones((len(masks), self.n_features), dtype=bool)
            full[:, self.features] = masks
            self.lifted[id(masks)] = masks, full  # held, so that its id stays its own
        return self.lifted[id(masks)][1]
