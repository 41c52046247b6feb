"""Arrays of a posterior mean for a file, and back; checked, never pickled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.basis.kernel import Prior
from harmonica_core.basis.terms import check_table
from harmonica_core.engine.posterior import Observed, Posterior, Regression
from harmonica_core.result.mean import Mean

_PRIOR = ("relevance", "orders", "rates", "products", "white")
_DUAL = ("even", "odd", "single")


def pack_prior(prior: Prior) -> dict[str, np.ndarray]:
    """Return the arrays of a prior by name."""
    return {f"prior_{name}": getattr(prior, name) for name in _PRIOR}


def unpack_prior(arrays: Mapping[str, np.ndarray], prefix: str = "") -> Prior:
    """Return the prior that `pack_prior` was given, or raise a TypeError."""
    found = {name: _numbers(arrays[f"{prefix}prior_{name}"]) for name in _PRIOR}
    n = len(found["relevance"])
    n_products = len(found["rates"])
    shapes = {
        "relevance": (n,),
        "orders": (len(found["orders"]),),
        "rates": (n_products, n),
        "products": (2, n_products),
        "white": (2,),
    }
    for name, array in found.items():
        if array.shape != shapes[name] or (array < 0).any():
            raise TypeError(f"prior's {name} {array.shape} with numbers below 0")
    return Prior(**found)


def pack_mean(mean: Mean) -> dict[str, np.ndarray]:
    """Return all arrays of a mean by name."""
    posterior = mean.posterior
    arrays = pack_prior(posterior.regression.prior)
    arrays |= {f"dual_{name}": getattr(posterior.dual, name) for name in _DUAL}
    arrays |= {
        "intercept": posterior.intercept,
        "scale": posterior.scale,
        "calibration": mean.calibration,
        "exact_table": mean.table,
        "exact_coef": mean.coef,
        "seen_masks": np.packbits(mean.masks, axis=1),
        "seen_values": mean.values,
        "flags": np.array([mean.one_output, posterior.regression.exact_ends]),
    }
    if mean.features is not None:
        arrays["features"] = mean.features
    return arrays


def unpack_mean(
    arrays: Mapping[str, np.ndarray], prefix: str, n_features: int
) -> Mean | None:
    """Return the mean that `pack_mean` was given; None where there is none.

    Raises a TypeError where the arrays do not fit together.
    """
    if f"{prefix}seen_masks" not in arrays:
        return None
    prior = unpack_prior(arrays, prefix)
    n = prior.n_features
    packed = arrays[f"{prefix}seen_masks"]
    if packed.dtype != np.uint8 or packed.shape[1:] != (-(-n // 8),):
        raise TypeError(f"masks {packed.dtype} {packed.shape}")
    masks = np.unpackbits(packed, axis=1, count=n).astype(bool)
    values = _numbers(arrays[f"{prefix}seen_values"])
    n_outputs = values.shape[1]
    flags = arrays[f"{prefix}flags"].tolist()
    regression = Regression.of(prior, masks, bool(flags[1]))
    dual = Observed(*(_numbers(arrays[f"{prefix}dual_{name}"]) for name in _DUAL))
    rows = (len(regression.pairs), len(regression.pairs), len(regression.singles))
    found = {
        name: _numbers(arrays[prefix + name])
        for name in ("intercept", "scale", "calibration")
    }
    table = arrays[f"{prefix}exact_table"]
    coef = _numbers(arrays[f"{prefix}exact_coef"])
    shapes = [part.shape for part in (dual.even, dual.odd, dual.single)]
    fits = shapes == [(count, n_outputs) for count in rows]
    fits &= all(one.shape == (n_outputs,) for one in found.values())
    fits &= coef.shape == (len(table), n_outputs) and len(values) == len(masks)
    fits &= not any((found[name] < 0).any() for name in ("scale", "calibration"))
    features = arrays.get(f"{prefix}features")
    if features is not None:
        within = (features >= 0) & (features < n_features)
        fits &= features.shape == (n,) and bool(within.all())
    if not fits or (features is None and n != n_features):
        raise TypeError("the posterior's arrays do not fit together")
    posterior = Posterior(regression, dual, found["intercept"], found["scale"])
    if len(table):
        table = check_table(table, n)
    return Mean(
        posterior, values, bool(flags[0]), table, coef, found["calibration"], features
    )


def _numbers(array: np.ndarray) -> Floats:
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise TypeError(f"{array.dtype} where finite numbers were expected")
    return array
