"""Each example of a batch as a function of masks, beside its explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, get_args

import numpy as np
import torch
from torch import Tensor

from captum_harmonica.batch import groups_of, look
from captum_harmonica.features import FeatureMask, Inputs, Reduction, as_tuple
from captum_harmonica.value_function import MaskedForward, Masks, masked_forward
from harmonica_core import Surrogate, from_attributions


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
    """One function of the features that it has, and an explanation of all features."""

    masked: MaskedForward
    sampling: dict[str, Any]
    whole: Any = None

    @property
    def n_features(self) -> int:
        """Features that the function has."""
        return len(self.masked.columns)

    @torch.no_grad()
    def f(self, masks: Masks) -> Any:
        """Evaluate: ``(m,)`` or ``(m, n_outputs)``."""
        values = self.masked(masks)
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def fgn(self) -> tuple[Any, Any, int]:
        """f, its explanation, and their number of features."""
        return self.f, self._on_own_features(self.whole), self.n_features

    @property
    def models(self) -> tuple[Any, ...]:
        """f, its local models, the number of features, and who explains which mask."""
        parts = getattr(self.whole, "surrogates", (self.whole,))
        nearest = getattr(self.whole, "nearest", None)
        local = [self._on_own_features(g) for g in parts]
        return self.f, local, self.n_features, self._on_own_features(nearest)

    def _on_own_features(self, g: Any) -> Any:
        if g is None or self.n_features == self.masked.features.n_features:
            return g
        return lambda masks: g(self.masked.on_all_columns(masks))


def cases_of(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    attributions: Any,
    baselines: Any,
    feature_mask: FeatureMask,
    target: Any,
    how: How,
) -> list[Case]:
    """Return each function of a batch with its explanation; refuse wrong keywords."""
    known = sorted(How.__annotations__)
    unknown = sorted(set(how) - set(known))
    if unknown:
        raise TypeError(f"unknown arguments {unknown}; needed some of {known}")
    reduction = how.get("reduction", "auto")
    if reduction not in get_args(Reduction):
        raise ValueError(
            f'reduction={reduction!r}; needed "auto", "value" or "sum", the way a '
            "feature's value is read off its input positions"
        )
    args, rows = how.get("additional_forward_args"), how.get("perturbations_per_eval")
    f, _ = look(
        masked_forward(
            *(forward_func, inputs, baselines, target, args, feature_mask),
            256 if rows is None else rows,
        )
    )
    sampling = {k: v for k, v in how.items() if k in ("max_evaluations", "seed")}
    sampling["batch_size"] = f.masks_per_call
    cases = [Case(one, sampling) for group in groups_of(f) for one in group.functions]
    cases.sort(key=lambda case: case.masked.examples[0])
    given = attributions if isinstance(attributions, (list, tuple)) else [attributions]
    if isinstance(given[0], Tensor):
        given = _additive(given, cases, inputs, reduction)
    if len(given) != len(cases):
        raise ValueError(
            f"got {len(given)} surrogates for {len(cases)} explained functions; needed "
            "one per example"
        )
    return [replace(case, whole=one) for case, one in zip(cases, given, strict=True)]


def _additive(
    given: Sequence[Tensor], cases: list[Case], inputs: Inputs, reduction: Reduction
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
