"""Consistency metrics in the style of `captum.metrics`, for any Captum method.

Explanations are either surrogates from `Harmonica.explain`, or attributions of any
method, read as ``g(mask) = F(baselines) + sum of the kept features' attributions``.
Each metric evaluates a batch once, for all its examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from captum_harmonica.batch import Bar, Group, look
from captum_harmonica.features import FeatureMask, Reduction, as_tuple
from captum_harmonica.value_function import Inputs, MaskedForward, masked_forward
from harmonica_core import Estimate, Surrogate, from_attributions
from harmonica_core import metrics as core
from harmonica_core.anchored import AnchoredSurrogate
from harmonica_core.metrics import EvaluationSet

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
    seed : int
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
    seed: int
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
    function = _masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = _per_function(
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
    function = _masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = _per_function(
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
    function = _masked(forward_func, inputs, baselines, feature_mask, target, how)
    found = _per_function(
        function,
        inputs,
        attributions,
        how,
        lambda case: core.inconsistency(
            case.known, case.models(), case.known.n_features, case.regions()
        ),
    )
    return Inconsistency(*(_tensors(list(part)) for part in zip(*found, strict=True)))


@dataclass(frozen=True)
class _Case:
    """One function of masks, evaluated, and its explanation.

    Attributes
    ----------
    known : EvaluationSet
        On the features that the example has.
    whole : callable
        The explanation, on all features of the batch.
    f : MaskedForward
        Knows which columns of ``whole`` the example's features are.
    """

    known: EvaluationSet
    whole: Any
    f: MaskedForward

    def on_own_features(self, g: Any) -> Callable[[Any], Any]:
        return lambda masks: g(self.f.on_all_columns(masks))

    @property
    def g(self) -> Callable[[Any], Any]:
        return self.on_own_features(self.whole)

    def models(self) -> list[Any]:
        parts = getattr(self.whole, "surrogates", (self.whole,))
        if len(self.f.columns) == self.f.features.n_features:
            return list(parts)
        return [self.on_own_features(part) for part in parts]

    def regions(self) -> Callable[[Any], Any] | None:
        if isinstance(self.whole, AnchoredSurrogate):
            return self.on_own_features(self.whole.nearest)
        return None

    def renumber(self, terms: list[tuple[int, ...]] | None) -> Any:
        """Terms in the example's own numbering; those it can not have are left out."""
        if terms is None:
            return None
        place = {int(column): i for i, column in enumerate(self.f.columns)}
        held = [term for term in terms if all(i in place for i in term)]
        return [tuple(place[i] for i in term) for term in held]


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
    f = _masked(forward_func, inputs, baselines, feature_mask, target, how)
    f, groups = look(f, Bar(None))
    found: list[Any] = [None] * f.n_functions
    for group in groups:
        base = group.evaluate(np.zeros((1, group.n_features), dtype=bool))[0]
        explained = _explanations(attributions, f, group, inputs, base, how)
        for row, surrogate in zip(group.rows, explained, strict=True):
            found[row] = surrogate
    return found


def _masked(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    baselines: Any,
    feature_mask: FeatureMask,
    target: Any,
    how: How,
) -> MaskedForward:
    return masked_forward(
        forward_func,
        inputs,
        baselines,
        target,
        how.get("additional_forward_args"),
        feature_mask,
        how.get("perturbations_per_eval", 256),
    )


@torch.no_grad()
def _per_function(
    f: MaskedForward,
    inputs: Inputs,
    attributions: Any,
    how: How,
    metric: Callable[[_Case], Any],
    radius: int | None = None,
) -> list[Any]:
    """Evaluate each group of examples once and apply a metric to each of them."""
    f, groups = look(f, Bar(None))
    found: list[Any] = [None] * f.n_functions
    for group in groups:
        known = EvaluationSet.draw(
            _flat(group),
            group.n_features,
            (radius,),
            max_evaluations=how.get("max_evaluations", 1 << 14),
            seed=how.get("seed", 0),
            batch_size=group.f.masks_per_call,
        )
        base = group.evaluate(np.zeros((1, group.n_features), dtype=bool))[0]
        explained = _explanations(attributions, f, group, inputs, base, how)
        columns = known.columns().reshape(len(known), len(group.rows), -1)
        for i, (row, whole) in enumerate(zip(group.rows, explained, strict=True)):
            values = columns[:, i, 0] if base.ndim == 1 else columns[:, i]
            case = _Case(replace(known, values=values), whole, group.f)
            found[row] = metric(case)
    return found


def _flat(group: Group) -> Callable[[Any], NDArray[np.float64]]:
    return lambda masks: group.evaluate(masks).reshape(len(masks), -1)


def _explanations(
    attributions: Any,
    f: MaskedForward,
    group: Group,
    inputs: Inputs,
    base: NDArray[np.float64],
    how: How,
) -> list[Any]:
    """Return a function of all features' masks for each row of a group."""
    given = attributions if isinstance(attributions, (list, tuple)) else [attributions]
    if not isinstance(given[0], Tensor):
        if len(given) != f.n_functions:
            raise ValueError(
                f"got {len(given)} surrogates for {f.n_functions} explained functions; "
                "needed one per example"
            )
        return [given[row] for row in group.rows]
    n_outputs = 1 if base.ndim == 1 else base.shape[1]
    scores = _scores(tuple(given), f, inputs, n_outputs, how.get("reduction", "auto"))
    return [
        from_attributions(scores[row] if base.ndim > 1 else scores[row, :, 0], one)
        for row, one in zip(group.rows, base, strict=True)
    ]


def _scores(
    given: tuple[Tensor, ...],
    f: MaskedForward,
    inputs: Inputs,
    n_outputs: int,
    reduction: Reduction,
) -> NDArray[np.float64]:
    """Scores ``(n_functions, n_features, n_outputs)`` from attributions."""
    n_rows, n_features = f.n_functions * n_outputs, f.features.n_features
    tensors = as_tuple(inputs)
    if len(given) == 1 and tuple(given[0].shape) == (n_rows, n_features):
        rows = given[0].detach().cpu().double()
    else:
        _check_shapes(given, tensors, n_rows)
        owner = torch.arange(f.n_functions).repeat_interleave(n_outputs)
        rows = f.features.gather(given, owner, tensors, f.joint, reduction)
    return rows.reshape(f.n_functions, n_outputs, n_features).numpy().swapaxes(1, 2)


def _check_shapes(
    given: tuple[Tensor, ...], inputs: tuple[Tensor, ...], n_rows: int
) -> None:
    got = [tuple(one.shape) for one in given]
    needed = [(n_rows, *tensor.shape[1:]) for tensor in inputs]
    if got != needed:
        raise ValueError(
            f"attributions have shapes {got}; needed {needed}, like the inputs, or one "
            "tensor (n_examples, n_features)"
        )


def _tensors(found: list[Estimate], return_standard_error: bool = False) -> Any:
    value = torch.tensor(np.stack([one.value for one in found]), dtype=torch.float32)
    if not return_standard_error:
        return value
    spread = np.stack([one.standard_error for one in found])
    return value, torch.tensor(spread, dtype=torch.float32)
