"""Which input positions make up one feature: Captum's ``feature_mask``, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonica_core.checks import MOST_FEATURES, is_whole

FeatureMask = Tensor | tuple[Tensor, ...] | None
Reduction = Literal["auto", "value", "sum"]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return Captum's "one or a tuple of them" as a tuple."""
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True)
class FeatureMap:
    """Feature numbers of all input positions.

    Attributes
    ----------
    ids : tuple of int64 tensors
        ``ids[j]`` broadcasts to ``inputs[j]``; its first dimension is 1 (all examples
        alike) or that of the input. Numbers run from 0 to ``n_features - 1``; a number
        that occurs nowhere is a feature without any effect.
    n_features : int
    names : tuple of str
    """

    ids: tuple[Tensor, ...]
    n_features: int
    names: tuple[str, ...]

    def present(self, n_examples: int) -> NDArray[np.bool_]:
        """Whether each example has each feature: bool ``(n_examples, n_features)``."""
        out = torch.zeros(n_examples, self.n_features, dtype=torch.bool)
        for ids in self.ids:
            own = ids.shape[0] == n_examples
            flat = ids.reshape(n_examples if own else 1, -1).cpu()
            out.scatter_(1, flat.expand(n_examples, -1), True)
        return out.numpy()

    def spread(
        self, values: Tensor, owner: Tensor, inputs: Sequence[Tensor], joint: bool
    ) -> tuple[Tensor, ...]:
        """Copy each feature's value to all its positions.

        Parameters
        ----------
        values : float (n_rows, n_features)
        owner : int64 (n_rows,)
            The example that each row explains.
        joint : bool
            Whether a row explains the whole batch: it is shown on the first example.

        Returns
        -------
        tuple of float tensors, ``(n_rows, *inputs[j].shape[1:])``
        """
        n_examples = inputs[0].shape[0]
        return tuple(
            _spread_one(values, owner, ids, tensor, n_examples, joint)
            for ids, tensor in zip(self.ids, inputs, strict=True)
        )

    def gather(
        self,
        attributions: Sequence[Tensor],
        owner: Tensor,
        inputs: Sequence[Tensor],
        joint: bool,
        reduction: Reduction,
    ) -> Tensor:
        """Read one value per feature off attributions shaped like the inputs.

        Parameters
        ----------
        attributions : tensors ``(n_rows, *inputs[j].shape[1:])``
        owner, inputs, joint : as in `spread`
        reduction : {"auto", "value", "sum"}
            "value": all positions of a feature hold its value, as Captum's
            perturbation methods return it. "sum": each position holds its own share,
            as gradient methods do. "auto": the first if positions of a feature agree.

        Returns
        -------
        float64 (n_rows, n_features)
        """
        rows = [
            _flat_rows(ids, tensor, one, owner, inputs[0].shape[0], joint)
            for ids, tensor, one in zip(self.ids, inputs, attributions, strict=True)
        ]
        values = torch.cat([value for value, _ in rows], dim=1)
        ids = torch.cat([which for _, which in rows], dim=1)
        sums = torch.zeros(len(owner), self.n_features, dtype=torch.float64)
        counts = sums.scatter_add(1, ids, torch.ones_like(values)).clamp_(min=1)
        sums = sums.scatter_add(1, ids, values)
        means = sums / counts
        apart = (values - means.gather(1, ids)).abs().max()
        agree = float(apart) <= 1e-5 * float(values.abs().max())
        as_value = reduction == "value" or (reduction == "auto" and agree)
        return means if as_value else sums


def _flat_rows(
    ids: Tensor,
    tensor: Tensor,
    attribution: Tensor,
    owner: Tensor,
    n_examples: int,
    joint: bool,
) -> tuple[Tensor, Tensor]:
    """Values and feature ids of all positions, ``(n_rows, n_positions)`` each."""
    if joint:
        ids, tensor = ids[:1], tensor[:1]
    own = tensor.shape[0] == n_examples and not joint
    positions = ids.expand(tensor.shape).cpu()
    block = positions.unsqueeze(1) if own else positions.unsqueeze(0)
    which = block[owner] if own else block.expand(len(owner), *positions.shape)
    values = attribution.detach().cpu().double()
    return values.reshape(len(owner), -1), which.reshape(len(owner), -1)


def _spread_one(
    values: Tensor,
    owner: Tensor,
    ids: Tensor,
    tensor: Tensor,
    n_examples: int,
    joint: bool,
) -> Tensor:
    values, owner = values.to(tensor.device), owner.to(tensor.device)
    if joint:
        ids, tensor = ids[:1], tensor[:1]
    own = tensor.shape[0] == n_examples and not joint
    positions = ids.unsqueeze(1) if own else ids.unsqueeze(0)
    picked = pick_columns(values, positions, owner)
    shape = (len(values), 1 if own else tensor.shape[0], *tensor.shape[1:])
    return picked.expand(shape).flatten(0, 1).contiguous()


def pick_columns(rows: Tensor, ids: Tensor, owner: Tensor) -> Tensor:
    """Return ``rows[r, ids[owner[r]]]``: ``(n_rows, *ids.shape[1:])``.

    ``ids`` with a first dimension of 1 serve all rows.
    """
    flat = ids.reshape(ids.shape[0], -1)
    if ids.shape[0] == 1:
        picked = rows.index_select(1, flat[0])
    else:
        picked = rows.gather(1, flat[owner])
    return picked.reshape(len(rows), *ids.shape[1:])


def feature_map(feature_mask: FeatureMask, inputs: tuple[Tensor, ...]) -> FeatureMap:
    """Read a ``feature_mask`` as Captum does, and refuse what can not be meant.

    Without a mask every input position is a feature. The smallest id becomes feature
    0, ids shared by several tensors are one feature, gaps are features without effect.

    Examples
    --------
    >>> image = torch.zeros(1, 3, 2, 2)
    >>> feature_map(torch.tensor([[4, 4], [6, 6]]), (image,)).names
    ('feature 4', 'feature 5', 'feature 6')
    """
    if feature_mask is None:
        return _one_feature_per_position(inputs)
    masks = as_tuple(feature_mask)
    if len(masks) != len(inputs):
        raise ValueError(
            f"got {len(masks)} feature masks for {len(inputs)} input tensors; needed "
            "one mask per tensor, in a tuple of the same length"
        )
    ids = tuple(
        _checked_ids(mask, tensor, j)
        for j, (mask, tensor) in enumerate(zip(masks, inputs, strict=True))
    )
    filled = [one for one in ids if one.numel()]
    if not filled:
        raise ValueError("feature_mask is empty; needed at least one feature id")
    first = min(int(one.min()) for one in filled)
    last = max(int(one.max()) for one in filled)
    if last - first >= MOST_FEATURES:
        raise ValueError(
            f"feature_mask has ids from {first} to {last}, and gaps are features too; "
            f"needed at most {MOST_FEATURES}: number the features 0, 1, 2, ..."
        )
    names = tuple(f"feature {i}" for i in range(first, last + 1))
    return FeatureMap(tuple(one - first for one in ids), last - first + 1, names)


def explained_features(
    n_features: int, inputs: Any, feature_mask: FeatureMask
) -> FeatureMap:
    """Return the features of inputs that a surrogate explains; refuse other inputs."""
    features = feature_map(feature_mask, as_tuple(inputs))
    if n_features != features.n_features:
        raise ValueError(
            f"a surrogate has {n_features} features and the inputs with this "
            f"feature_mask {features.n_features}; needed those that were explained"
        )
    return features


def check_example(example: object, inputs: Any) -> int:
    """Return the place of an example in its batch, counted from the first one."""
    n_examples = len(as_tuple(inputs)[0])
    place = int(example) if is_whole(example) else n_examples
    if not -n_examples <= place < n_examples:
        raise ValueError(
            f"example={example!r} with a batch of {n_examples}; needed a whole number "
            f"from 0 to {n_examples - 1}"
        )
    return place % n_examples


def _checked_ids(mask: Tensor, tensor: Tensor, j: int) -> Tensor:
    """Return a mask as int64 with as many dimensions as its input tensor."""
    if not isinstance(mask, Tensor) or mask.is_complex():
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"feature mask {j} is {kind}; needed an integer tensor")
    ids = mask.detach().to(tensor.device).long()
    if not torch.equal(ids.to(mask.dtype), mask.detach().to(tensor.device)):
        raise ValueError(f"feature mask {j} holds fractions; needed whole feature ids")
    if ids.dim() < tensor.dim():
        ids = ids.reshape((1,) * (tensor.dim() - ids.dim()) + tuple(ids.shape))
    fits = ids.dim() == tensor.dim() and all(
        got in (1, needed) for got, needed in zip(ids.shape, tensor.shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"feature mask {j} has shape {tuple(mask.shape)}, which does not broadcast "
            f"to its input of shape {tuple(tensor.shape)}; needed that shape, or 1 "
            "where all positions share an id"
        )
    return ids


def _one_feature_per_position(inputs: tuple[Tensor, ...]) -> FeatureMap:
    ids: list[Tensor] = []
    names: list[str] = []
    for j, tensor in enumerate(inputs):
        shape = tensor.shape[1:]
        count = math.prod(shape)
        numbers = torch.arange(len(names), len(names) + count, device=tensor.device)
        ids.append(numbers.reshape(1, *shape))
        prefix = "input" if len(inputs) == 1 else f"input{j}"
        names.extend(prefix + _position(i, shape) for i in range(count))
    if not names:
        raise ValueError("the inputs are empty; needed at least one input position")
    return FeatureMap(tuple(ids), len(names), tuple(names))


def _position(i: int, shape: Sequence[int]) -> str:
    """Return ``[row, column]`` of the i-th position, nothing for a lone number."""
    return str([int(k) for k in np.unravel_index(i, tuple(shape))]) if shape else ""
