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

Inputs = Tensor | tuple[Tensor, ...]
FeatureMask = Tensor | tuple[Tensor, ...] | None
Reduction = Literal["auto", "value", "sum"]

# Ids that lie further apart than this are a mistake: gaps count as features.
_MOST_FEATURES = 1_000_000


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return Captum's "one or a tuple of them" as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def is_whole(number: object) -> bool:
    """Return whether this is an integer; True, 2.0 and "2" are not."""
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


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
        """Return whether each example has each feature ``(n_examples, n_features)``."""
        out = torch.zeros(n_examples, self.n_features, dtype=torch.bool)
        for ids in self.ids:
            own = ids.shape[0] == n_examples
            flat = ids.reshape(n_examples if own else 1, -1).cpu()
            out.scatter_(1, flat.expand(n_examples, -1), True)
        return out.numpy()

    def spread(
        self, values: Tensor, owner: Tensor, inputs: Inputs, joint: bool
    ) -> Inputs:
        """Return each feature's value at all its positions, shaped like the inputs.

        Parameters
        ----------
        values : float (n_rows, n_features)
        owner : int64 (n_rows,)
            The example that each row explains.
        joint : bool
            Whether a row explains the whole batch: it is shown on the first example.
        """
        out = []
        for places, tensor in zip(
            self._places(owner, inputs, joint), as_tuple(inputs), strict=True
        ):
            flat = values.gather(1, places.flatten(1)).to(tensor.device)
            out.append(flat.reshape(places.shape).flatten(0, 1))
        return tuple(out) if isinstance(inputs, tuple) else out[0]

    def gather(
        self,
        attributions: Sequence[Tensor],
        owner: Tensor,
        inputs: Inputs,
        joint: bool,
        reduction: Reduction,
    ) -> Tensor:
        """Return one value per feature from attributions shaped like the inputs.

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
        n_rows = len(owner)
        values = torch.cat(
            [one.detach().cpu().double().reshape(n_rows, -1) for one in attributions], 1
        )
        places = self._places(owner, inputs, joint)
        ids = torch.cat([one.flatten(1) for one in places], dim=1)
        sums = torch.zeros(n_rows, self.n_features, dtype=torch.float64)
        counts = sums.scatter_add(1, ids, torch.ones_like(values)).clamp_(min=1)
        sums = sums.scatter_add(1, ids, values)
        means = sums / counts
        apart = (values - means.gather(1, ids)).abs().max()
        agree = float(apart) <= 1e-5 * float(values.abs().max())
        as_value = reduction == "value" or (reduction == "auto" and agree)
        return means if as_value else sums

    def _places(self, owner: Tensor, inputs: Inputs, joint: bool) -> list[Tensor]:
        """Return feature numbers ``(n_rows, rows of one example, ...)`` per tensor."""
        tensors = as_tuple(inputs)
        out = []
        for ids, tensor in zip(self.ids, tensors, strict=True):
            own = tensor.shape[0] == tensors[0].shape[0] and not joint
            full = ids.expand(tensor.shape).cpu()
            if own:
                out.append(full[owner].unsqueeze(1))
            else:
                full = full[:1] if joint else full
                out.append(full.unsqueeze(0).expand(len(owner), *full.shape))
        return out


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
    """Read a ``feature_mask`` as Captum does, and refuse what cannot be meant.

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
    if last - first >= _MOST_FEATURES:
        raise ValueError(
            f"feature_mask has ids from {first} to {last}, and gaps are features too; "
            f"needed at most {_MOST_FEATURES}: number the features 0, 1, 2, ..."
        )
    names = tuple(f"feature {i}" for i in range(first, last + 1))
    return FeatureMap(tuple(one - first for one in ids), len(names), names)


def explained_features(
    n_features: int, inputs: Inputs, feature_mask: FeatureMask
) -> FeatureMap:
    """Return the features of inputs that a surrogate explains; refuse other inputs."""
    features = feature_map(feature_mask, as_tuple(inputs))
    if n_features != features.n_features:
        raise ValueError(
            f"a surrogate has {n_features} features and the inputs with this "
            f"feature_mask {features.n_features}; needed those that were explained"
        )
    return features


def check_example(example: Any, inputs: Inputs) -> int:
    """Return the place of an example in its batch, counted from the first one."""
    n_examples = len(as_tuple(inputs)[0])
    if not is_whole(example) or not -n_examples <= example < n_examples:
        raise ValueError(
            f"example={example!r} with a batch of {n_examples}; needed a whole number "
            f"from 0 to {n_examples - 1}"
        )
    return int(example) % n_examples


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
        shape = tuple(tensor.shape[1:])
        count = math.prod(shape)
        numbers = torch.arange(len(names), len(names) + count, device=tensor.device)
        ids.append(numbers.reshape(1, *shape))
        prefix = "input" if len(inputs) == 1 else f"input{j}"
        # A tensor of one number per example needs no position.
        places = (str(list(place)) for place in np.ndindex(shape)) if shape else ("",)
        names.extend(prefix + place for place in places)
    if not names:
        raise ValueError("the inputs are empty; needed at least one input position")
    return FeatureMap(tuple(ids), len(names), tuple(names))
