"""The model as a function of masks: inputs, baselines and feature ids applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from captum_harmonica._captum import format_args, select_targets
from captum_harmonica.features import (
    FeatureMap,
    FeatureMask,
    Inputs,
    as_tuple,
    feature_map,
    is_whole,
    pick_columns,
)

Masks = NDArray[np.bool_]

# Masks handed over at once, at least: single ones cost more than a small model's
# forward.
_MASKS_AT_LEAST = 32


@dataclass(frozen=True)
class MaskedForward:
    """``f(masks)`` for some examples of a batch: bool ``(m, n)`` -> ``(m, B * K)``.

    A removed feature takes its baseline. No forward gets more than ``rows_per_call``
    rows, whatever the number of masks and examples; two exceptions see the whole batch
    at once: the first look at it (`batch.look`), and every forward of a ``joint``
    function.

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
    one_output : bool
        Refuse a forward with several values per example.
    joint : bool
        Whether the forward returns values of the whole batch instead of one row per
        example; then there is one function, of all examples masked alike.
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
    one_output: bool = False
    joint: bool = False

    @property
    def n_examples(self) -> int:
        """Size of the batch that was given."""
        return int(self.inputs[0].shape[0])

    @property
    def n_functions(self) -> int:
        """Number of functions that are explained: examples, or 1 for the batch."""
        return 1 if self.joint else len(self.examples)

    @property
    def masks_at_once(self) -> int:
        """Masks whose rows fill one forward."""
        return max(1, self.rows_per_call // self.n_functions)

    @property
    def masks_per_call(self) -> int:
        """Masks to hand over at once: those of one forward, or several forwards'."""
        return max(_MASKS_AT_LEAST, self.masks_at_once)

    def of(
        self, examples: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> MaskedForward:
        """Return the function of these examples and features only."""
        if self.joint:
            return replace(self, columns=columns)
        return replace(self, examples=examples, columns=columns)

    def __call__(self, masks: Masks) -> NDArray[np.float64]:
        """Evaluate: ``(m, n_functions * n_outputs)``, outputs of a function adjacent.

        Parameters
        ----------
        masks : bool (m, len(columns))
        """
        kept = torch.from_numpy(self.on_all_columns(masks))
        owner = torch.from_numpy(np.tile(self.examples[: self.n_functions], len(masks)))
        row_of = torch.arange(len(masks)).repeat_interleave(self.n_functions)
        parts = []
        for start in range(0, len(owner), self.rows_per_call):
            rows = slice(start, start + self.rows_per_call)
            output = self.run(kept[row_of[rows]], owner[rows])
            parts.append(as_rows(output, len(owner[rows])))
        return np.concatenate(parts).reshape(len(masks), -1)

    def on_all_columns(self, masks: Masks) -> Masks:
        """Return masks of all features; those that are not in ``columns`` are kept."""
        n = self.features.n_features
        if len(self.columns) == n:
            return masks
        kept = np.ones((len(masks), n), dtype=bool)
        kept[:, self.columns] = masks
        return kept

    def own_terms(self, terms: Iterable[Sequence[int]] | None) -> Any:
        """Return terms in the numbering of ``columns``, without those of others."""
        if terms is None:
            return None
        place = {int(column): i for i, column in enumerate(self.columns)}
        held = [term for term in terms if all(i in place for i in term)]
        return [tuple(place[i] for i in term) for term in held]

    def run(self, masks: Tensor, owner: Tensor) -> Any:
        """Return the selected output of one forward of masked rows."""
        masked = tuple(
            self._masked(j, masks, owner).flatten(0, 1) for j in range(len(self.inputs))
        )
        args = (self._selected(arg, owner) for arg in self.args or ())
        output = self.forward_func(*masked, *args)
        output = _select(output, self._selected(self.target, owner, lone_number=True))
        one = not isinstance(output, Tensor) or output.numel() in (1, len(owner))
        if self.one_output and not one:
            ask_for_target(tuple(output.shape), self.target)
        return output

    def _masked(self, j: int, masks: Tensor, owner: Tensor) -> Tensor:
        """Return input j under all masks: ``(R, rows of one example, ...)``."""
        device = self.inputs[j].device
        masks, owner = masks.to(device), owner.to(device)
        kept = pick_columns(masks, self._blocks(j, self.features.ids[j]), owner)
        value = self._blocks(j, self.inputs[j])
        baseline = self._blocks(j, self.baselines[j])
        if len(value) > 1:
            value, baseline = value[owner], baseline[owner]
        return torch.where(kept, value, baseline)

    def _blocks(self, j: int, tensor: Tensor) -> Tensor:
        """Return a view ``(examples, rows of one example, ...)`` of a tensor.

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
    one_output: bool = False,
) -> MaskedForward:
    """Return the function of masks that Captum's arguments of ``attribute`` describe.

    Examples
    --------
    >>> f = masked_forward(lambda x: x.sum(1), torch.tensor([[1.0, 2.0, 4.0]]))
    >>> f(np.array([[True, True, True], [True, False, False]])).ravel().tolist()
    [7.0, 1.0]
    """
    tensors = _checked_inputs(inputs)
    if not is_whole(rows_per_call) or rows_per_call < 1:
        raise ValueError(
            f"perturbations_per_eval={rows_per_call!r}; needed a whole number of rows "
            "per forward, at least 1"
        )
    features = feature_map(feature_mask, tensors)
    return MaskedForward(
        forward_func,
        *_with_common_dtypes(tensors, baselines),
        features,
        examples=np.arange(tensors[0].shape[0]),
        columns=np.arange(features.n_features),
        target=target,
        args=format_args(additional_forward_args),
        rows_per_call=int(rows_per_call),
        one_output=one_output,
    )


def _select(output: Any, target: Any) -> Any:
    """Return what ``target`` selects, as Captum does; refuse one that is not there."""
    if target is None or isinstance(output, torch.Future):
        return output
    try:
        return select_targets(output, target)
    except (IndexError, AssertionError, RuntimeError) as error:
        raise ValueError(
            f"target={target!r} selects nothing from an output of shape "
            f"{tuple(output.shape)}; needed a whole number below {output.shape[-1]}, a "
            f"tuple of them for deeper outputs, or one for each example ({error})"
        ) from error


def ask_for_target(shape: tuple[int, ...], target: Any) -> None:
    """Refuse several values per example, with KernelShap's kind of error."""
    raise AssertionError(
        f"with target={target!r} forward_func returns shape {shape}: several values "
        "per example; needed one: pass target=, the number of the output to explain, "
        "or call explain(), whose surrogates explain all outputs from the same forwards"
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


def _with_common_dtypes(
    inputs: tuple[Tensor, ...], baselines: Any
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return inputs and baselines, pairwise of one dtype; integers stay integers."""
    given = (0,) * len(inputs) if baselines is None else as_tuple(baselines)
    if len(given) != len(inputs):
        raise ValueError(
            f"got {len(given)} baselines for {len(inputs)} input tensors; needed "
            "one per tensor, in a tuple of the same length"
        )
    pairs = [_common_dtype(*pair) for pair in zip(inputs, given, strict=True)]
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
