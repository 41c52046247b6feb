"""The model as a function of masks: inputs, baselines and feature ids applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from captum_harmonica._captum import format_args, run_forward
from captum_harmonica.features import (
    FeatureMap,
    FeatureMask,
    as_tuple,
    feature_map,
    pick_columns,
)
from harmonica_core.checks import is_whole

Inputs = Tensor | tuple[Tensor, ...]
Masks = NDArray[np.bool_]

_MASKS_AT_LEAST = 32


def _nothing() -> None:
    """Do nothing after a forward."""


@dataclass(frozen=True)
class MaskedForward:
    """``f(masks)`` for some examples of a batch: bool ``(m, n)`` -> ``(m, B * K)``.

    A removed feature takes its baseline. A call of f hands no forward more than
    ``rows_per_call`` rows, whatever the number of masks and examples; two exceptions
    see the whole batch at once: the first look at it (`batch.look`), and every forward
    of a ``joint`` function.

    Attributes
    ----------
    forward_func : callable
    inputs, baselines : tuples of tensors
        Baselines broadcast to their inputs and have the same dtype.
    features : FeatureMap
    examples : int64 (B,)
        The examples of the batch that are evaluated, in this order.
    columns : int64 (n,)
        The feature that each mask column stands for; the others are kept.
    target, args : as in Captum's ``attribute``
    rows_per_call : int
    joint : bool
        Whether the forward returns values of the whole batch instead of one row per
        example; then there is one function, of all examples masked alike.
    on_forward : callable
        Called after each forward (a progress bar).
    """

    forward_func: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    baselines: tuple[Tensor, ...]
    features: FeatureMap
    examples: NDArray[np.int64]
    columns: NDArray[np.int64]
    target: Any = None
    args: tuple[Any, ...] | None = None
    rows_per_call: int = 1
    joint: bool = False
    on_forward: Callable[[], Any] = _nothing

    @property
    def n_examples(self) -> int:
        """Size of the batch that was given."""
        return int(self.inputs[0].shape[0])

    @property
    def n_functions(self) -> int:
        """Number of functions that are explained: examples, or 1 for the batch."""
        return 1 if self.joint else len(self.examples)

    @property
    def masks_per_call(self) -> int:
        """Masks to hand over at once: those of one forward, or several forwards'.

        Handing over single masks would cost more than a small model's forward.
        """
        return max(_MASKS_AT_LEAST, self.rows_per_call // self.n_functions)

    def n_forwards(self, n_masks: int) -> int:
        """Number of forwards for ``n_masks`` masks in steps of `masks_per_call`."""
        full, rest = divmod(n_masks, self.masks_per_call)
        steps = [self.masks_per_call] * full + [rest]
        return sum(-(-n * self.n_functions // self.rows_per_call) for n in steps)

    def of(
        self, examples: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> MaskedForward:
        """Return the function of these examples and features only."""
        return replace(self, examples=examples, columns=columns)

    def __call__(self, masks: Masks) -> NDArray[np.float64]:
        """Evaluate: ``(m, n_functions * n_outputs)``, outputs of a function adjacent.

        Parameters
        ----------
        masks : bool (m, len(columns))
        """
        kept = self.on_all_columns(masks)
        owner = np.tile(self.examples[: self.n_functions], len(masks))
        row_of = np.repeat(np.arange(len(masks)), self.n_functions)
        parts = []
        for start in range(0, len(owner), self.rows_per_call):
            rows = slice(start, start + self.rows_per_call)
            parts.append(self.forward(kept[row_of[rows]], owner[rows]))
        return np.concatenate(parts).reshape(len(masks), -1)

    def on_all_columns(self, masks: Masks) -> Masks:
        """Return masks of all features; those that are not in ``columns`` are kept."""
        n = self.features.n_features
        if len(self.columns) == n:
            return masks
        kept = np.ones((len(masks), n), dtype=bool)
        kept[:, self.columns] = masks
        return kept

    def own_terms(self, terms: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
        """Terms in the numbering of ``columns``; those that need others are left out.

        Examples
        --------
        >>> f = masked_forward(lambda x: x.sum(1), torch.ones(1, 3))
        >>> f.of(np.array([0]), np.array([0, 2])).own_terms([(0, 2), (1,), (2,)])
        [(0, 1), (1,)]
        """
        place = {int(column): i for i, column in enumerate(self.columns)}
        held = [term for term in terms if all(i in place for i in term)]
        return [tuple(place[i] for i in term) for term in held]

    def forward(self, masks: Masks, owner: NDArray[np.int64]) -> NDArray[np.float64]:
        """One forward: row r is example ``owner[r]`` under ``masks[r]``: ``(R, K)``."""
        output = self.run(torch.from_numpy(masks), torch.from_numpy(owner))
        self.on_forward()
        return as_rows(output, len(owner))

    def run(self, masks: Tensor, owner: Tensor) -> Any:
        """Call the model on masked rows and return its selected output."""
        masked = tuple(
            self._masked(j, masks, owner).flatten(0, 1) for j in range(len(self.inputs))
        )
        target = self._selected(self.target, owner, lone_number=True)
        args = self.args and tuple(self._selected(arg, owner) for arg in self.args)
        return run_forward(self.forward_func, masked, target, args)

    def _masked(self, j: int, masks: Tensor, owner: Tensor) -> Tensor:
        """Input j under all masks: ``(R, rows of one example, ...)``."""
        device = self.inputs[j].device
        masks, owner = masks.to(device), owner.to(device)
        kept = pick_columns(masks, self._blocks(j, self.features.ids[j]), owner)
        value = self._blocks(j, self.inputs[j])
        baseline = self._blocks(j, self.baselines[j])
        if len(value) > 1:
            value, baseline = value[owner], baseline[owner]
        return torch.where(kept, value, baseline)

    def _blocks(self, j: int, tensor: Tensor) -> Tensor:
        """View a tensor as ``(examples, rows of one example, ...)``.

        A tensor without one row per example belongs as a whole to every example.
        """
        own = self.inputs[j].shape[0] == self.n_examples and not self.joint
        return tensor.unsqueeze(1 if own else 0)

    def _selected(self, value: Any, owner: Tensor, lone_number: bool = False) -> Any:
        """Give each row its example's entry; what has no entry per example is shared.

        ``lone_number``: a tensor of one element is one target for all rows.
        """
        if self.joint:
            return value
        if isinstance(value, Tensor):
            shared = value.dim() == 0 or (lone_number and value.numel() == 1)
            if shared or len(value) != self.n_examples:
                return value
            return value[owner.to(value.device)]
        if isinstance(value, list) and len(value) == self.n_examples:
            return [value[i] for i in owner.tolist()]
        return value


def masked_forward(
    forward_func: Callable[..., Any],
    inputs: Inputs,
    baselines: Any = None,
    target: Any = None,
    additional_forward_args: Any = None,
    feature_mask: FeatureMask = None,
    rows_per_call: int = 1,
) -> MaskedForward:
    """Build the function of masks from the arguments of Captum's ``attribute``.

    Examples
    --------
    >>> f = masked_forward(lambda x: x.sum(1), torch.tensor([[1.0, 2.0, 4.0]]))
    >>> f(np.array([[True, True, True], [True, False, False]])).ravel().tolist()
    [7.0, 1.0]
    """
    tensors = _checked_inputs(inputs)
    features = feature_map(feature_mask, tensors)
    return MaskedForward(
        forward_func,
        *_with_common_dtypes(tensors, baselines),
        features,
        examples=np.arange(tensors[0].shape[0]),
        columns=np.arange(features.n_features),
        target=target,
        args=format_args(additional_forward_args),
        rows_per_call=_checked_rows(rows_per_call),
    )


def as_rows(output: Any, n_rows: int) -> NDArray[np.float64]:
    """Return a forward's output as float64 ``(n_rows, n_outputs)``."""
    if isinstance(output, torch.Future):
        raise NotImplementedError(
            "forward_func returned a Future; needed the value itself: wait for it in "
            "forward_func"
        )
    if isinstance(output, (int, float, np.number)):
        output = torch.tensor(float(output), dtype=torch.float64)
    if not isinstance(output, Tensor):
        raise TypeError(
            f"forward_func returned {type(output).__name__}; needed a tensor or a "
            "number; wrap the model, for instance `lambda x: model(x).logits`"
        )
    per_row = output.dim() > 0 and output.shape[0] == n_rows
    if not per_row and n_rows > 1:
        raise ValueError(
            f"forward_func returned shape {tuple(output.shape)} for {n_rows} rows; "
            f"needed ({n_rows},) or ({n_rows}, ...), one row per perturbed example; "
            "for a forward_func that returns one value for its whole input set "
            "perturbations_per_eval=1"
        )
    return output.detach().to("cpu", torch.float64).reshape(n_rows, -1).numpy()


def _checked_inputs(inputs: Inputs) -> tuple[Tensor, ...]:
    tensors = as_tuple(inputs)
    for j, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"input {j} is {type(tensor).__name__}; needed a tensor")
        if tensor.dim() == 0:
            raise ValueError(
                f"input {j} has no dimensions; needed the examples along dimension 0"
            )
    if not tensors or tensors[0].shape[0] == 0:
        raise ValueError("the inputs hold no example; needed at least one")
    return tuple(tensor.detach() for tensor in tensors)


def _checked_rows(perturbations_per_eval: object) -> int:
    if not is_whole(perturbations_per_eval) or perturbations_per_eval < 1:
        raise ValueError(
            f"perturbations_per_eval={perturbations_per_eval!r}; needed a whole number "
            "of rows per forward, at least 1"
        )
    return int(perturbations_per_eval)


def _with_common_dtypes(
    inputs: tuple[Tensor, ...], baselines: Any
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return inputs and baselines, pairwise of one dtype; integers stay integers."""
    if baselines is None:
        baselines = (0,) * len(inputs)
    baselines = as_tuple(baselines)
    if len(baselines) != len(inputs):
        raise ValueError(
            f"got {len(baselines)} baselines for {len(inputs)} input tensors; needed "
            "one per tensor, in a tuple of the same length"
        )
    pairs = [_common_dtype(*pair) for pair in zip(inputs, baselines, strict=True)]
    return tuple(value for value, _ in pairs), tuple(base for _, base in pairs)


def _common_dtype(value: Tensor, baseline: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(baseline, (Tensor, int, float)):
        raise TypeError(
            f"a baseline is {type(baseline).__name__}; needed a tensor or a number"
        )
    base = torch.as_tensor(baseline, device=value.device).detach()
    cast = base.to(value.dtype)
    if not value.dtype.is_floating_point and not torch.equal(cast.to(base.dtype), base):
        # Like Captum: a fractional baseline turns whole-number inputs into floats.
        value, cast = value.to(base.dtype), base
    try:
        return value, cast.expand(value.shape)
    except RuntimeError:
        raise ValueError(
            f"a baseline has shape {tuple(base.shape)} for an input of shape "
            f"{tuple(value.shape)}; needed that shape, the same with 1 example, or a "
            "number"
        ) from None
