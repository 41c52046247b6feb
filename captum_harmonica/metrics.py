"""Consistency metrics in the style of `captum.metrics`, for any Captum method.

Explanations are either surrogates from `Harmonica.explain`, or attributions of any
method, read as ``g(mask) = F(baselines) + sum of the kept features' attributions``.
Each metric evaluates a batch once, for all its examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from torch import Tensor

from captum_harmonica.batch import Bar, look
from captum_harmonica.features import FeatureMask
from captum_harmonica.metric_cases import How, explanations, masked, per_function
from captum_harmonica.value_function import Inputs
from harmonica_core import Estimate, Surrogate
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
    """``I_p = (E |F(mask) - g(mask)|^p)^(1/p)`` of each example's explanation.

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
    function = masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = per_function(
        function,
        inputs,
        attributions,
        how,
        lambda case: core.interpretation_error(
            case.known, case.g, case.known.n_features, p, radius, threshold
        ),
        radius,
    )
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
    """``T_C = sum_{S in C} <F - g, chi_S>^2``: what g leaves unsaid of readable terms.

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
    function = masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = per_function(
        function,
        inputs,
        attributions,
        how,
        lambda case: core.truthful_gap(
            case.known, case.g, case.known.n_features, degree, case.renumber(wanted)
        ),
    )
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
    """``log k``, ``I_total`` and ``D_total`` of each example's local models.

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
    function = masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = per_function(
        function,
        inputs,
        attributions,
        how,
        lambda case: core.inconsistency(
            case.known, case.models(), case.known.n_features, case.regions()
        ),
    )
    return Inconsistency(*(_tensors(list(part)) for part in zip(*found, strict=True)))


@torch.no_grad()
def additive_surrogates(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any = None,
    feature_mask: FeatureMask = None,
    target: Any = None,
    **how: Unpack[How],
) -> list[Surrogate]:
    """What the scores of any Captum method say about removals.

    ``g(mask) = F(all removed) + sum of the scores of what is kept``, one `Surrogate`
    for each example, at the price of one forward: for what-if pages, plots and metrics.
    Arguments as in `interpretation_error`.

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1]
    >>> x = torch.tensor([[2.0, 3.0]])
    >>> (g,) = additive_surrogates(f, x, torch.tensor([[3.0, 3.0]]))
    >>> g([[True, True], [True, False]]).tolist()
    [6.0, 3.0]
    """
    f = masked(forward_func, inputs, baselines, feature_mask, target, how)
    f, groups = look(f, Bar(None))
    found: list[Any] = [None] * f.n_functions
    for group in groups:
        base = group.evaluate(np.zeros((1, group.n_features), dtype=bool))[0]
        explained = explanations(attributions, f, group, inputs, base, how)
        for row, surrogate in zip(group.rows, explained, strict=True):
            found[row] = surrogate
    return found


def _tensors(found: list[Estimate], return_standard_error: bool = False) -> Any:
    value = torch.tensor(np.stack([one.value for one in found]), dtype=torch.float32)
    if not return_standard_error:
        return value
    spread = np.stack([one.standard_error for one in found])
    return value, torch.tensor(spread, dtype=torch.float32)
