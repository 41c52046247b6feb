"""Spectrum distance: how different two explanations are, term by term.

    D_p(g, h) = (sum_S |ghat_S - hhat_S|^p)^(1/p);

for p = 2 it equals ``I_2(g, h)`` over all masks (Parseval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.basis import term_numbers
from harmonica_core.basis.transform import spectrum_of_values
from harmonica_core.checks import check_feature_count
from harmonica_core.design.masks import all_masks
from harmonica_core.evaluate import as_columns
from harmonica_core.metrics.inputs import (
    Norm,
    check_norm,
    check_threshold,
    is_known,
    values_on,
)
from harmonica_core.result.anchored import common_terms
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.surrogate import Surrogate

# Features up to which a function without a spectrum is enumerated to find it.
_MAX_ENUMERATED = 20


def spectrum_distance(
    g: Any,
    h: Any,
    p: Norm = 2,
    n_features: int | None = None,
    *,
    tolerance: float = 1e-12,
) -> Estimate:
    """``D_p(g, h)``, exact.

    Parameters
    ----------
    g, h : Surrogate, {term: coef}, array (2**n[, n_outputs]), or callable on masks
        An array holds the *values* of all masks; a callable is enumerated.
    p : float > 0, "inf" or "L0"
        "L0" is the number of terms that differ by more than ``tolerance``.
    n_features : int, optional
        Needed when neither g nor h tells.
    tolerance : float
        For "L0" only.

    Examples
    --------
    >>> spectrum_distance({(): 1.0, (0, 1): 3.0}, {(): 1.0, (1,): 4.0}).value
    5.0
    """
    norm = check_norm(p)
    check_threshold(tolerance)
    if n_features is not None:
        n_features = check_feature_count(n_features)
    n_features = _common_width([g, h], n_features)
    first, second = _aligned([g, h], n_features)
    value = _norm(np.abs(first - second), norm, tolerance)
    one_output = len(value) == 1 and all(_is_flat(function) for function in (g, h))
    enumerated = (not isinstance(x, (Surrogate, Mapping)) for x in (g, h))
    return Estimate(
        float(value[0]) if one_output else value,
        0.0 if one_output else np.zeros_like(value),
        sum(enumerated) << n_features,
        exact=True,
    )


def _aligned(functions: Sequence[Any], n_features: int) -> Floats:
    """Spectra on the same terms, ``(2, n_terms, n_outputs)``."""
    found = [_polynomial(function, n_features) for function in functions]
    n_outputs = [_n_outputs(function) for function in found]
    if len(set(n_outputs)) > 1:
        raise ValueError(
            f"g has {n_outputs[0]} outputs and h {n_outputs[1]}; needed the same"
        )
    polynomials = [function for function in found if isinstance(function, Surrogate)]
    if len(polynomials) == len(found):
        return common_terms(polynomials)[1]
    return np.stack([_all_terms(function, n_features) for function in found])


def _n_outputs(function: Surrogate | Floats) -> int:
    """Return the number of outputs of a surrogate or of values of all masks."""
    if isinstance(function, Surrogate):
        return function.n_outputs
    return int(function.shape[1])


def _norm(gap: Floats, norm: Norm, tolerance: float) -> Floats:
    """Return the p-norm over the first axis, free of overflow."""
    if norm == "L0":
        return np.asarray((gap > tolerance).sum(axis=0, dtype=np.float64))
    unit = gap.max(axis=0, initial=0.0)
    if norm == np.inf:
        return np.asarray(unit)
    unit = np.where(unit > 0, unit, 1.0)
    powers = ((gap / unit) ** float(norm)).sum(axis=0)
    return np.asarray(np.where(gap.any(axis=0), unit * powers ** (1 / float(norm)), 0))


def _common_width(functions: Sequence[Any], n_features: int | None) -> int:
    """Return the one number of features that everything agrees on."""
    widths = {w for w in map(_width, functions) if w is not None}
    if n_features is not None:
        widths.add(int(n_features))
    if len(widths) > 1:
        raise ValueError(
            f"g, h and n_features speak of {sorted(widths)} features; needed the same "
            "number"
        )
    if widths:
        return widths.pop()
    named = [term for x in functions if isinstance(x, Mapping) for term in x]
    if len(named) == 0:
        raise ValueError("nothing tells the number of features; pass n_features")
    return max((max(term) for term in named if term), default=0) + 1


def _width(function: Any) -> int | None:
    """Return the number of features a function tells of itself."""
    if hasattr(function, "n_features"):
        return int(function.n_features)
    if callable(function) or isinstance(function, Mapping):
        return None
    if np.ndim(function) == 0:
        raise ValueError(
            f"got {function!r}; needed a surrogate, {{term: coef}}, the values of all "
            "masks, or a callable on masks"
        )
    return max(len(np.asarray(function)).bit_length() - 1, 0)


def _is_flat(function: Any) -> bool:
    """Whether a function has no axis for outputs, as far as it tells."""
    if isinstance(function, Surrogate):
        return function.coef.ndim == 1
    if isinstance(function, Mapping):
        return all(np.ndim(coef) == 0 for coef in function.values())
    return callable(function) or np.ndim(function) == 1


def _polynomial(function: Any, n_features: int) -> Surrogate | Floats:
    """Return a surrogate as it is, everything else as values of all masks."""
    if isinstance(function, Surrogate):
        return function
    if isinstance(function, Mapping):
        nothing = 0.0 * np.asarray(next(iter(function.values()), 0.0))
        spectrum = {(): nothing, **function}
        coef = np.array(list(spectrum.values()), dtype=np.float64)
        return Surrogate(n_features, tuple(spectrum), coef)
    if not is_known(function) and n_features > _MAX_ENUMERATED:
        raise ValueError(
            f"a callable of {n_features} features has no spectrum to read off; needed "
            f"a Surrogate, or at most {_MAX_ENUMERATED} features"
        )
    masks = all_masks(n_features)
    return as_columns(values_on(function, masks, n_features, "g or h"))


def _all_terms(function: Surrogate | Floats, n_features: int) -> Floats:
    """Spectrum on all 2**n terms."""
    if not isinstance(function, Surrogate):
        return spectrum_of_values(function)
    full = np.zeros((1 << n_features, function.n_outputs))
    full[term_numbers(function.table, n_features)] = function.coef_columns
    return full
