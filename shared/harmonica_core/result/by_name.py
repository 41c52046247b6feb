"""Answers for people who think in names: ``surrogate({"home": 0})``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harmonica_core.checks import is_whole


def answer_by_name(surrogate: Any, kept: Mapping[Any, Any]) -> Any:
    """Return what a surrogate answers for one mask given by names or numbers.

    Parameters
    ----------
    surrogate : Surrogate or AnchoredSurrogate
    kept : mapping
        Whether a feature is kept (true, 1) or removed (false, 0); all others are kept.

    Returns
    -------
    float or (n_outputs,)
    """
    mask = np.ones((1, surrogate.n_features), dtype=bool)
    for feature, keep in kept.items():
        if keep not in (0, 1):
            raise ValueError(
                f"{feature!r}: {keep!r}; needed 1 (kept) or 0 (removed): a surrogate "
                "knows what removing does, not other values"
            )
        mask[0, _number(surrogate, feature)] = bool(keep)
    answer = surrogate(mask)[0]
    return float(answer) if np.ndim(answer) == 0 else answer


def _number(surrogate: Any, feature: Any) -> int:
    names = surrogate.feature_names or ()
    if feature in names:
        places = [i for i, name in enumerate(names) if name == feature]
        if len(places) > 1:
            raise ValueError(
                f"{len(places)} features are named {feature!r} (numbers {places}); "
                "needed a number"
            )
        return places[0]
    if is_whole(feature) and 0 <= feature < surrogate.n_features:
        return int(feature)
    shown = ", ".join(map(str, names[:20])) or "none were given"
    raise ValueError(
        f"feature {feature!r} is unknown; needed a number from 0 to "
        f"{surrogate.n_features - 1} or one of the names: {shown}"
    )
