"""From a surrogate of some features to one of all features.

The others have no effect: they equal the background, or an example does not have them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Masks
from harmonica_core.basis import trim
from harmonica_core.evaluate import Evaluated
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.result.surrogate import Surrogate


def lift(
    surrogates: list[Any], features: NDArray[np.int64], n_features: int
) -> list[Any]:
    """Relabel features: number k of surrogate r becomes ``features[r, k]``.

    Surrogates of the same features share their lifted masks.

    Examples
    --------
    >>> g = Surrogate(2, ((0,), (0, 1)), np.array([0.5, 0.25]))
    >>> (lifted,) = lift([g], np.array([[1, 4]]), n_features=5)
    >>> lifted.spectrum
    {(1,): 0.5, (1, 4): 0.25}
    """
    if features.shape[1] == n_features:
        return surrogates
    lifters: dict[bytes, _Lifter] = {}
    out = []
    for surrogate, own in zip(surrogates, features, strict=True):
        lifter = lifters.setdefault(own.tobytes(), _Lifter(own, n_features))
        out.append(lifter(surrogate))
    return out


class _Lifter:
    def __init__(self, features: NDArray[np.int64], n_features: int) -> None:
        self.features, self.n_features = features, n_features
        self.label = np.append(features, -1).astype(np.int32)  # padding stays padding
        self.lifted: dict[int, tuple[Masks, Masks]] = {}

    def __call__(self, surrogate: Any) -> Any:
        if not isinstance(surrogate, AnchoredSurrogate):
            return self.polynomial(surrogate)
        # Anchors that agree in a column are equally far from every mask there.
        anchors = np.ones((surrogate.n_anchors, self.n_features), dtype=bool)
        anchors[:, self.features] = surrogate.anchors
        return replace(
            surrogate,
            anchors=anchors,
            surrogates=tuple(self.polynomial(g) for g in surrogate.surrogates),
            evaluated=self.evaluated(surrogate.evaluated),
            exact=surrogate.exact and self.polynomial(surrogate.exact),
        )

    def polynomial(self, surrogate: Surrogate) -> Surrogate:
        evaluated = self.evaluated(surrogate.evaluated)
        if surrogate.mean is not None:
            return surrogate.changed(
                n_features=self.n_features,
                mean=surrogate.mean.relabelled(self.features),
                evaluated=evaluated,
            )
        return surrogate.changed(
            n_features=self.n_features,
            table=trim(self.label[surrogate.table]),
            coef=surrogate.coef,
            evaluated=evaluated,
        )

    def evaluated(self, known: Evaluated | None) -> Evaluated | None:
        return known and Evaluated(self.masks(known.masks), known.values)

    def masks(self, masks: Masks) -> Masks:
        """Give the other features the first column: both ends stay both ends.

        The same array is lifted once.
        """
        if id(masks) not in self.lifted:
            first = masks[:, :1] if masks.shape[1] else np.ones((len(masks), 1), bool)
            full = np.repeat(first, self.n_features, axis=1)
            full[:, self.features] = masks
            self.lifted[id(masks)] = masks, full  # held, so that its id stays its own
        return self.lifted[id(masks)][1]
