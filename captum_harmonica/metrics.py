"""Consistency metrics in the style of `captum.metrics`, for any Captum method.

Explanations are either surrogates from `Harmonica.explain`, or attributions of any
method, read as ``g(mask) = F(baselines) + sum of the kept features' attributions``.
Each example becomes a function of masks, and `harmonica_core.metrics` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from torch import Tensor

from captum_harmonica.features import FeatureMask, Inputs
from captum_harmonica.metric_cases import How, cases_of
from harmonica_core import Surrogate
from harmonica_core import metrics as core

__all__ = [
    "How",
    "Inconsistency",
    "additive_surrogates",
    "inconsistency",
    "interpretation_error",
    "truthful_gap",
]


class Inconsistency(NamedTuple):
    """What several local models cost, ``(n_examples,)`` each.

    Attributes
    ----------
    log_k : Tensor
        Logarithm of the number of models; 0 for one explanation of everything.
    I_total : Tensor
        Sum of the models' errors on their own parts.
    D_total : Tensor
        Sum of the models' distances from their mean.

    Examples
    --------
    >>> from captum_harmonica import HarmonicaAnchor
    >>> f, x = (lambda x: x[:, 0] * x[:, 1]), torch.tensor([[2.0, 3.0]])
    >>> found = inconsistency(f, x, HarmonicaAnchor(f, anchors=2, seed=0).explain(x))
    >>> found.log_k
    tensor([0.6931])
    """

    log_k: Tensor
    I_total: Tensor
    D_total: Tensor


def interpretation_error(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any = None,
    feature_mask: FeatureMask = None,
    target: Any = None,
    radius: int | None = None,
    p: Any = 2,
    *,
    threshold: float = 0.1,
    return_standard_error: bool = False,
    **how: Unpack[How],
) -> Any:
    """Return ``I_p = (E |F(mask) - g(mask)|^p)^(1/p)`` of each example's explanation.

    Parameters
    ----------
    forward_func, inputs, baselines, feature_mask, target
        As given to the method that made the explanation.
    attributions : Tensor, tuple of Tensors, or list of surrogates
        Of any method: shaped like the inputs or ``(n_examples, n_features)``.
    radius : int, optional
        Masks with 1 to ``radius`` features removed; None: all masks.
    p : float, "inf" or "L0"
        "L0" is the share of masks with an error of at least ``threshold``.
    threshold : float
    return_standard_error : bool
        Also return the standard errors (0 where all masks were enumerated).
    **how
        See `How`.

    Returns
    -------
    Tensor (n_examples,) or (n_examples, n_outputs), or a pair of them

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> interpretation_error(f, x, torch.tensor([[3.0, 3.0, 1.0]]))
    tensor([2.1213])
    >>> from captum_harmonica import Harmonica
    >>> interpretation_error(f, x, Harmonica(f).explain(x))
    tensor([0.])
    """
    cases = cases_of(
        forward_func, inputs, attributions, baselines, feature_mask, target, how
    )
    found = [
        core.interpretation_error(*one.fgn, p, radius, threshold, **one.sampling)
        for one in cases
    ]
    return _tensors(found, return_standard_error)


def truthful_gap(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any = None,
    feature_mask: FeatureMask = None,
    target: Any = None,
    degree: int | None = None,
    terms: Iterable[Sequence[int]] | None = None,
    *,
    return_standard_error: bool = False,
    **how: Unpack[How],
) -> Any:
    """Return ``T_C = sum_{S in C} <F - g, chi_S>^2``: what g leaves of readable terms.

    Parameters
    ----------
    forward_func, inputs, attributions, baselines, feature_mask, target, \
return_standard_error, **how
        As in `interpretation_error`.
    degree : int, optional
        C = all terms up to this size; 3 if ``terms`` is not given either.
    terms : iterable of tuples, optional
        C = these terms of features.

    Returns
    -------
    Tensor (n_examples,) or (n_examples, n_outputs), or a pair of them

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> truthful_gap(f, x, torch.tensor([[3.0, 3.0, 1.0]]), degree=2)
    tensor([4.5000])
    """
    wanted = None if terms is None else [tuple(term) for term in terms]
    cases = cases_of(
        forward_func, inputs, attributions, baselines, feature_mask, target, how
    )
    found = [
        core.truthful_gap(
            *one.fgn, degree, one.masked.own_terms(wanted), **one.sampling
        )
        for one in cases
    ]
    return _tensors(found, return_standard_error)


def inconsistency(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any = None,
    feature_mask: FeatureMask = None,
    target: Any = None,
    **how: Unpack[How],
) -> Inconsistency:
    """Return ``log k``, ``I_total`` and ``D_total`` of each example's local models.

    One explanation of all masks has ``log k = 0`` and ``D_total = 0``, and its
    ``I_total`` is `interpretation_error`; a surrogate from `HarmonicaAnchor` pays for a
    lower ``I_total`` with the other two. Parameters as in `interpretation_error`.

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> inconsistency(f, x, torch.tensor([[3.0, 3.0, 1.0]])).I_total
    tensor([2.1213])
    """
    cases = cases_of(
        forward_func, inputs, attributions, baselines, feature_mask, target, how
    )
    found = [core.inconsistency(*one.models, **one.sampling) for one in cases]
    return Inconsistency(*(_tensors(list(part)) for part in zip(*found, strict=True)))


def additive_surrogates(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any = None,
    feature_mask: FeatureMask = None,
    target: Any = None,
    **how: Unpack[How],
) -> list[Surrogate]:
    """Return what the scores of any Captum method say about removals.

    ``g(mask) = F(all removed) + sum of the scores of what is kept``, one `Surrogate`
    for each example, at the price of one evaluation; for what-if pages, plots and
    metrics. Arguments as in `interpretation_error`.

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1]
    >>> x = torch.tensor([[2.0, 3.0]])
    >>> (g,) = additive_surrogates(f, x, torch.tensor([[3.0, 3.0]]))
    >>> g([[True, True], [True, False]]).tolist()
    [6.0, 3.0]
    """
    cases = cases_of(
        forward_func, inputs, attributions, baselines, feature_mask, target, how
    )
    return [one.whole for one in cases]


def _tensors(found: list[Any], return_standard_error: bool = False) -> Any:
    value = torch.tensor(np.stack([one.value for one in found]), dtype=torch.float32)
    if not return_standard_error:
        return value
    spread = np.stack([one.standard_error for one in found])
    return value, torch.tensor(spread, dtype=torch.float32)
