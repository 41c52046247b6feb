"""Consistency metrics in the style of `captum.metrics`, for any Captum method.

Explanations are either surrogates from `Harmonica.explain`, or attributions of any
method, read as ``g(mask) = F(baselines) + sum of the kept features' attributions``.
Each example becomes a function of masks, and `harmonica_core.metrics` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
import torch
from torch import Tensor

from captum_harmonica.batch import groups_of, look
from captum_harmonica.features import FeatureMask, Inputs, Reduction, as_tuple
from captum_harmonica.value_function import MaskedForward, Masks, masked_forward
from harmonica_core import AnchoredSurrogate, Surrogate, from_attributions
from harmonica_core import metrics as core

__all__ = [
    "How",
    "Inconsistency",
    "additive_surrogates",
    "inconsistency",
    "interpretation_error",
    "truthful_gap",
]


class How(TypedDict, total=False):
    """Keywords of every metric.

    Attributes
    ----------
    additional_forward_args
        As given to the method that made the explanation.
    perturbations_per_eval : int
        Rows per forward; default 256.
    max_evaluations : int
        Masks per example: up to so many are enumerated, and beyond that so many are
        sampled; default 2**14.
    seed : int, Generator or None
        Of the sampled masks; default 0.
    reduction : {"auto", "value", "sum"}
        How a feature's value is read off its input positions: "value" if each of them
        holds the whole (KernelShap, Lime, FeatureAblation), "sum" if each holds its
        share (gradient methods). "auto", the default, is "value" where they agree.

    Examples
    --------
    >>> how: How = {"max_evaluations": 1000, "perturbations_per_eval": 64}
    >>> f, x = (lambda x: x[:, 0] * x[:, 1]), torch.tensor([[2.0, 3.0]])
    >>> interpretation_error(f, x, torch.tensor([[3.0, 3.0]]), **how)
    tensor([2.1213])
    """

    additional_forward_args: Any
    perturbations_per_eval: int
    max_evaluations: int
    seed: int | np.random.Generator | None
    reduction: Reduction


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
    question = (forward_func, inputs, baselines, target, feature_mask)
    found = [
        core.interpretation_error(
            one.f, one.g, one.n_features, p, radius, threshold, **one.sampling
        )
        for one in _cases(question, attributions, how)
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
    question = (forward_func, inputs, baselines, target, feature_mask)
    found = [
        core.truthful_gap(
            one.f,
            one.g,
            one.n_features,
            degree,
            None if wanted is None else one.masked.own_terms(wanted),
            **one.sampling,
        )
        for one in _cases(question, attributions, how)
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
    question = (forward_func, inputs, baselines, target, feature_mask)
    found = [
        core.inconsistency(one.f, *one.models(), **one.sampling)
        for one in _cases(question, attributions, how)
    ]
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
    question = (forward_func, inputs, baselines, target, feature_mask)
    return [one.whole for one in _cases(question, attributions, how)]


@dataclass(frozen=True)
class _Case:
    """One function of the features that it has, and an explanation of all features."""

    masked: MaskedForward
    sampling: dict[str, Any]
    whole: Any = None

    @property
    def n_features(self) -> int:
        return len(self.masked.columns)

    @torch.no_grad()
    def f(self, masks: Masks) -> Any:
        values = self.masked(masks)
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def g(self) -> Any:
        return self._on_own_features(self.whole)

    def models(self) -> tuple[Any, ...]:
        """Return the local models, the number of features, and who explains what."""
        parts = getattr(self.whole, "surrogates", (self.whole,))
        local = [self._on_own_features(g) for g in parts]
        if not isinstance(self.whole, AnchoredSurrogate):
            return local, self.n_features
        return local, self.n_features, self._on_own_features(self.whole.nearest)

    def _on_own_features(self, g: Any) -> Any:
        if self.n_features == self.masked.features.n_features:
            return g
        return lambda masks: g(self.masked.on_all_columns(masks))


def _cases(question: tuple[Any, ...], attributions: Any, how: How) -> list[_Case]:
    """Return each function of a batch with its explanation; refuse wrong keywords."""
    unknown = sorted(set(how) - set(How.__annotations__))
    if unknown:
        raise TypeError(
            f"unknown arguments {unknown}; needed some of {sorted(How.__annotations__)}"
        )
    reduction = how.get("reduction", "auto")
    if reduction not in get_args(Reduction):
        raise ValueError(
            f'reduction={reduction!r}; needed "auto", "value" or "sum", the way a '
            "feature's value is read off its input positions"
        )
    f = masked_forward(
        *question[:4],
        how.get("additional_forward_args"),
        question[4],
        how.get("perturbations_per_eval", 256),
    )
    f, _ = look(f)
    options = {"batch_size": f.masks_per_call} | {
        name: value
        for name, value in how.items()
        if name in ("max_evaluations", "seed")
    }
    cases = [_Case(one, options) for group in groups_of(f) for one in group.functions()]
    cases.sort(key=lambda case: case.masked.examples[0])
    given = list(attributions) if isinstance(attributions, (list, tuple)) else None
    explained = [attributions] if given is None else given
    if isinstance(explained[0], Tensor):
        explained = _additive(explained, cases, question[1], reduction)
    if len(explained) != len(cases):
        raise ValueError(
            f"got {len(explained)} surrogates for {len(cases)} explained functions; "
            "needed one per example"
        )
    return [
        replace(case, whole=one) for case, one in zip(cases, explained, strict=True)
    ]


def _additive(
    given: list[Tensor], cases: list[_Case], inputs: Inputs, reduction: Reduction
) -> list[Surrogate]:
    """Return the surrogates of attributions, which need F(all removed)."""
    base = [one.f(np.zeros((1, one.n_features), dtype=bool))[0] for one in cases]
    features, joint = cases[0].masked.features, cases[0].masked.joint
    n_outputs = np.size(base[0])
    n_rows = len(cases) * n_outputs
    got = [tuple(one.shape) for one in given]
    needed = [(n_rows, *tensor.shape[1:]) for tensor in as_tuple(inputs)]
    if got == [(n_rows, features.n_features)]:
        rows = given[0].detach().cpu().double()
    elif got == needed:
        owner = torch.arange(len(cases)).repeat_interleave(n_outputs)
        rows = features.gather(given, owner, inputs, joint, reduction)
    else:
        raise ValueError(
            f"attributions have shapes {got}; needed {needed}, like the inputs, or one "
            "tensor (n_examples, n_features)"
        )
    scores = rows.reshape(len(cases), n_outputs, -1).numpy().swapaxes(1, 2)
    return [
        from_attributions(one if np.ndim(b) else one[:, 0], b)
        for one, b in zip(scores, base, strict=True)
    ]


def _tensors(found: list[Any], return_standard_error: bool = False) -> Any:
    value = torch.tensor(np.stack([one.value for one in found]), dtype=torch.float32)
    if not return_standard_error:
        return value
    spread = np.stack([one.standard_error for one in found])
    return value, torch.tensor(spread, dtype=torch.float32)
