"""Link functions: SHAP's callables, KernelExplainer's names, clipped probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import shap

from shap_harmonica._types import Floats

Link = Callable[[Any], Any]

# KernelExplainer's clipping of probabilities in front of the logit.
_EPSILON = 1e-15

_NAMED = {"identity": shap.links.identity, "logit": shap.links.logit}


def check_link(link: object) -> Link:
    """Return a callable link from a callable, a name, or a legacy link object."""
    name = link if isinstance(link, str) else str(link)
    if name in _NAMED:
        return cast(Link, _NAMED[name])
    if not callable(link):
        raise TypeError(
            f'link={link!r}; needed "identity", "logit" or a function such as '
            "shap.links.logit"
        )
    return link


def apply_link(link: Link, values: Floats) -> Floats:
    """Map averaged outputs of any shape to the units that are explained.

    Probabilities are clipped to ``[1e-15, 1 - 1e-15]`` in front of the logit, as
    KernelExplainer does, so that 0 and 1 stay finite.
    """
    name = getattr(link, "__name__", "")
    if name == "identity":
        return values
    flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
    if name == "logit":
        flat = np.clip(flat, _EPSILON, 1 - _EPSILON)
    return np.asarray(link(flat), dtype=np.float64).reshape(values.shape)
