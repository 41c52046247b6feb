"""Priors that rows of a table share, by the features that vary; saved as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from harmonica_core import Prior
from shap_harmonica._types import Key

# Rows a prior is learnt from before rows with fewer varying features use it, too.
ENOUGH_ROWS = 8
# A call that has so many times the evaluations of an earlier one learns anew.
_MORE = 4
# What was learnt by `learn`, loaded or given by the user is never replaced.
_GIVEN = 1 << 60


class Priors(dict[Key, Prior]):
    """``{features that vary: prior}``, with the evaluations each was learnt from.

    Examples
    --------
    >>> from shap_harmonica import HarmonicaExplainer
    >>> X = np.random.default_rng(0).normal(size=(20, 12))
    >>> explainer = HarmonicaExplainer(lambda x: np.tanh(x.sum(axis=1)), X[:1])
    >>> explanation = explainer(X[1:], max_evals=60)
    >>> [len(features) for features in explainer.prior]
    [12]
    """

    def __init__(self, given: Mapping[Key, Prior] | None = None) -> None:
        super().__init__(given or {})
        known = getattr(given, "learnt_from", {})
        self.learnt_from: dict[Key, tuple[int, int]] = {
            key: known.get(key, (_GIVEN, _GIVEN)) for key in self
        }

    def keep(self, key: Key, prior: Prior, n_rows: int, n_masks: int) -> None:
        """Remember what so many rows and masks taught."""
        self[key] = prior
        self.learnt_from[key] = n_rows, n_masks

    def give(self, key: Key, prior: Prior) -> None:
        """Remember a prior for good."""
        self.keep(key, prior, _GIVEN, _GIVEN)

    def find(self, key: Key, n_rows: int, n_masks: int) -> Prior | None:
        """Return the prior of these features, or that of more features without them.

        None where there is none yet, or where rows and masks offer much more.
        """
        if key in self:
            rows, masks = self.learnt_from.get(key, (_GIVEN, _GIVEN))
            return None if n_rows * n_masks >= _MORE * rows * masks else self[key]
        return self.lent(key)

    def lent(self, key: Key) -> Prior | None:
        """Return the prior of the fewest features that hold these, for these alone."""
        larger = [
            other
            for other in self
            if set(key) < set(other)
            and self.learnt_from.get(other, (_GIVEN, 0))[0] >= ENOUGH_ROWS
        ]
        if not larger:
            return None
        source = min(larger, key=len)
        place = np.searchsorted(source, key)
        whole = self[source]
        return replace(
            whole,
            relevance=whole.relevance[place],
            orders=whole.orders[: len(place)],
            rates=whole.rates[:, place],
        )

    def write(self, stream: Any) -> None:
        """Write arrays, one after the other; no pickle."""
        np.save(stream, np.array(len(self)))
        for key, prior in self.items():
            np.save(stream, np.array(key, dtype=np.int64))
            np.save(stream, np.array(self.learnt_from.get(key, (_GIVEN, _GIVEN))))
            for field in fields(Prior):
                np.save(stream, np.asarray(getattr(prior, field.name)))

    @classmethod
    def read(cls, stream: Any) -> Priors:
        """Read what `write` wrote."""
        out = cls()
        for _ in range(int(_array(stream))):
            key = tuple(_array(stream).tolist())
            n_rows, n_masks = _array(stream).tolist()
            arrays = {field.name: _array(stream) for field in fields(Prior)}
            out.keep(key, Prior(**arrays), n_rows, n_masks)
        return out


def _array(stream: Any) -> np.ndarray:
    return np.asarray(np.load(stream, allow_pickle=False))
