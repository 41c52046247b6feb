"""Everything that the installed shapiq estimates from model calls."""

from __future__ import annotations

import inspect
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import comb
from typing import Any

import numpy as np

from harmonica_compare.case import Case, Counted, NotApplicableError
from harmonica_compare.method import Method
from harmonica_core import from_attributions


def approximate(case: Case, f: Counted, seed: int, name: str, **settings: Any) -> Any:
    """Estimate with shapiq's approximator of this name.

    Its index is extended to all masks: ``g(mask) = f(all removed) + sum of the scores
    of the sets that are kept``.
    """
    n = case.n_features
    # Masks in complementary pairs are better wherever they can be asked for.
    default = {"n": n, "random_state": seed, "pairing_trick": True}
    approximator = _make(name, {**default, **settings})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = approximator.approximate(f.budget - 1, f)
        except ValueError as error:
            if "budget" in str(error).lower():
                raise NotApplicableError(str(error)) from error
            raise
    for warning in said:
        if "too small to perform" in str(warning.message):
            raise NotApplicableError(str(warning.message))
    base = float(f(np.zeros((1, n)))[0])
    scores = {tuple(t): float(found[t]) for t in found.interaction_lookup}
    own_base = scores.pop((), base)
    if found.index == "FBII":  # best on all masks, with an intercept of its own
        same = own_base == base  # it gives none: the one that fits what it has seen
        base = _intercept(f, from_attributions(scores, 0.0, n_features=n), n)
        base = base if same else own_base
    if found.index == "kADD-SHAP":  # its singles are Shapley values of the whole
        for i in range(n):
            pairs = sum(value for t, value in scores.items() if len(t) == 2 and i in t)
            scores[(i,)] = scores.get((i,), 0.0) - pairs / 2
    return from_attributions(scores, base, n_features=n)


def _intercept(f: Counted, g: Any, n_features: int) -> float:
    """Return the mean of f - g, with every size weighted as on the whole cube."""
    masks, values = (np.concatenate(part) for part in zip(*f.seen, strict=True))
    sizes = masks.sum(axis=1)
    count = np.bincount(sizes, minlength=n_features + 1)
    weights = np.array([comb(n_features, int(k)) / count[k] for k in sizes])
    return float(np.average(values - g(masks), weights=weights))


def _make(name: str, settings: dict[str, Any]) -> Any:
    from shapiq import approximator

    maker = getattr(approximator, name, None)
    if maker is None:
        raise NotApplicableError(f"shapiq {version('shapiq')} has no {name}")
    taken = inspect.signature(maker).parameters
    return maker(**{key: value for key, value in settings.items() if key in taken})


_PAIRS = {"index": "k-SII", "max_order": 2}
_FBII_3 = {"index": "FBII", "max_order": 3}
# (name, label, shapiq's class, settings, cost). The first block is for Shapley values,
# the second for pairs too; classes that came after shapiq 1.4.1 run where they exist.
_TABLE: tuple[tuple[str, str, str, dict[str, Any], float], ...] = (
    ("shapiq-kernelshap", "shapiq KernelSHAP", "KernelSHAP", {}, 1),
    ("unbiased-kernelshap", "shapiq unbiased KernelSHAP", "UnbiasedKernelSHAP", {}, 1),
    ("svarm", "shapiq SVARM", "SVARM", {}, 1),
    ("permutation-sv", "shapiq permutations", "PermutationSamplingSV", {}, 1),
    ("stratified-sv", "shapiq stratified", "StratifiedSamplingSV", {}, 1),
    ("owen-sv", "shapiq Owen", "OwenSamplingSV", {}, 1),
    ("leverageshap", "shapiq LeverageSHAP", "LeverageSHAP", {}, 1),
    ("oddshap", "shapiq OddSHAP", "OddSHAP", {}, 10),
    ("polyshap", "shapiq PolySHAP", "PolySHAP", {"max_order": 2}, 2),
    ("regressionmsr", "shapiq RegressionMSR", "RegressionMSR", {"index": "SV"}, 5),
    ("kaddshap", "shapiq kADD-SHAP 2", "kADDSHAP", {"max_order": 2}, 1),
    ("kernelshapiq", "shapiq KernelSHAP-IQ 2", "KernelSHAPIQ", _PAIRS, 1),
    (
        *("inconsistent-kernelshapiq", "shapiq inconsistent KernelSHAP-IQ 2"),
        *("InconsistentKernelSHAPIQ", _PAIRS, 1),
    ),
    ("shapiq", "shapiq SHAP-IQ 2", "SHAPIQ", _PAIRS, 1),
    ("svarmiq", "shapiq SVARM-IQ 2", "SVARMIQ", _PAIRS, 20),
    (
        "permutation-sii",
        "shapiq permutations SII 2",
        "PermutationSamplingSII",
        _PAIRS,
        1,
    ),
    (
        "shapley-taylor",
        "shapiq Shapley-Taylor 2",
        "PermutationSamplingSTII",
        {"max_order": 2},
        1,
    ),
    ("faith-shap", "shapiq Faith-Shap 2", "RegressionFSII", {"max_order": 2}, 1),
    ("fbii-2", "shapiq Faith-Banzhaf 2", "RegressionFBII", {"max_order": 2}, 1),
    ("fbii-3", "shapiq Faith-Banzhaf 3", "RegressionFBII", _FBII_3, 2),
    ("spex", "shapiq SPEX", "SPEX", {}, 80),
    ("proxyspex", "shapiq ProxySPEX", "ProxySPEX", {}, 30),
    ("proxyshap", "shapiq ProxySHAP 2", "ProxySHAP", _PAIRS, 5),
    ("proxyshap-3", "shapiq ProxySHAP 3", "ProxySHAP", _FBII_3, 5),
)


def _method(
    name: str, label: str, maker: str, settings: dict[str, Any], cost: float
) -> Method:
    shown = ", ".join(f"{key}={value}" for key, value in settings.items())
    run = partial(approximate, name=maker, **settings)
    return Method(
        name,
        label,
        run,
        settings=f"{shown or 'defaults'}, pairs of masks",
        cost=cost,
        needs=("shapiq",),
    )


SHAPIQ = tuple(_method(*row) for row in _TABLE)
_LATER = {"leverageshap", "oddshap", "polyshap", "regressionmsr"}


def not_installed() -> set[str]:
    """Return the methods that the installed shapiq is too old for."""
    try:
        release = version("shapiq").split(".")[:2]
    except PackageNotFoundError:
        return {method.name for method in SHAPIQ}
    old = tuple(map(int, release)) < (1, 8)
    return {*_LATER, "proxyshap", "proxyshap-3"} if old else set()
