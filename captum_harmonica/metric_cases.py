"""Any Captum method's explanations as functions of masks, beside the model's values.

Explanations are surrogates, or attributions read as
``g(mask) = F(baselines) + sum of the kept features' attributions``.
A batch is evaluated once, for all its examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from captum_harmonica.batch import Bar, Group, look
from captum_harmonica.features import FeatureMask, Reduction, as_tuple
from captum_harmonica.value_function import Inputs, MaskedForward, masked_forward
from harmonica_core import from_attributions
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.checks import check_keywords
from harmonica_core.metrics import EvaluationSet


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
    >>> from captum_harmonica.metrics import interpretation_error
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


@dataclass(frozen=True)
class Case:
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
        """Return g of masks of the features that the example has."""
        return lambda masks: g(self.f.on_all_columns(masks))

    @property
    def g(self) -> Callable[[Any], Any]:
        """The explanation, on the example's own features."""
        return self.on_own_features(self.whole)

    def models(self) -> list[Any]:
        """Return the local models of the explanation, often a single one."""
        parts = getattr(self.whole, "surrogates", (self.whole,))
        if len(self.f.columns) == self.f.features.n_features:
            return list(parts)
        return [self.on_own_features(part) for part in parts]

    def regions(self) -> Callable[[Any], Any] | None:
        """Return which local model each mask belongs to, None for a single one."""
        if isinstance(self.whole, AnchoredSurrogate):
            return self.on_own_features(self.whole.nearest)
        return None

    def renumber(self, terms: list[tuple[int, ...]] | None) -> Any:
        """Terms in the example's own numbering; those it can not have are left out."""
        return None if terms is None else self.f.own_terms(terms)


def masked(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    baselines: Any,
    feature_mask: FeatureMask,
    target: Any,
    how: How,
) -> MaskedForward:
    """Return the batch as a function of masks; refuse keywords that there are not."""
    _check_how(how)
    return masked_forward(
        forward_func,
        inputs,
        baselines,
        target,
        how.get("additional_forward_args"),
        feature_mask,
        how.get("perturbations_per_eval", 256),
    )


def _check_how(how: How) -> None:
    check_keywords(how, How.__annotations__)
    reduction = how.get("reduction", "auto")
    if reduction not in get_args(Reduction):
        raise ValueError(
            f'reduction={reduction!r}; needed "auto", "value" or "sum", the way a '
            "feature's value is read off its input positions"
        )


@torch.no_grad()
def per_function(
    f: MaskedForward,
    inputs: Inputs,
    attributions: Any,
    how: How,
    metric: Callable[[Case], Any],
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
        explained = explanations(attributions, f, group, inputs, base, how)
        columns = known.columns().reshape(len(known), len(group.rows), -1)
        for i, (row, whole) in enumerate(zip(group.rows, explained, strict=True)):
            values = columns[:, i, 0] if base.ndim == 1 else columns[:, i]
            case = Case(replace(known, values=values), whole, group.f)
            found[row] = metric(case)
    return found


def _flat(group: Group) -> Callable[[Any], NDArray[np.float64]]:
    return lambda masks: group.evaluate(masks).reshape(len(masks), -1)


def explanations(
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
