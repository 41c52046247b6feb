"""Whether a later call asks for what an earlier one has already found out.

Everything that can change under our hands is compared by content: tensors, weights,
train or eval mode. What can not be compared is never reused.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_DEPTH = 4


class NotComparable(Exception):
    """An argument's content can not be compared with an earlier one's."""


def content(value: Any) -> Any:
    """Return a comparable picture of a value, or raise `NotComparable`.

    Examples
    --------
    >>> content(torch.tensor([1.0])) == content(torch.tensor([1.0]))
    True
    >>> content([1, 2]) == content((1, 2))
    False
    """
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, Tensor):
        return "tensor", str(value.device), str(value.dtype), _digest(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return "array", value.shape, value.dtype.str, _hash(value.tobytes())
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(content(one) for one in value)
    if isinstance(value, dict):
        return "dict", tuple((content(k), content(v)) for k, v in value.items())
    raise NotComparable(type(value).__name__)


def _digest(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise NotComparable("tensor without plain memory")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return tuple(tensor.shape), _hash(flat.view(torch.uint8).numpy().tobytes())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def model_state(forward_func: Any) -> Any:
    """Return a picture of the weights and modes that ``forward_func`` reads.

    It sees a module, and the modules and tensors that a function, method, partial or
    callable object holds; Python numbers that a function reads are not compared.
    """
    held = list(_held(forward_func, _DEPTH, set()))
    modules = [one for one in held if isinstance(one, nn.Module)]
    tensors = [one for one in held if isinstance(one, Tensor)]
    weights = itertools.chain.from_iterable(
        itertools.chain(module.parameters(), module.buffers()) for module in modules
    )
    modes = tuple(part.training for module in modules for part in module.modules())
    return modes, tuple(_weight(one) for one in itertools.chain(weights, tensors))


def _weight(tensor: Tensor) -> Any:
    """Return a cheap picture of a weight: one pass, no copy.

    The sum also sees changes through ``.data``, which leave the version as it was.
    """
    if tensor.layout != torch.strided or tensor.is_meta:
        raise NotComparable("weight without plain memory")
    total = tensor.detach().sum(dtype=torch.float64) if tensor.numel() else 0.0
    return tensor.data_ptr(), tensor._version, tuple(tensor.shape), repr(float(total))


def _held(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """Modules and tensors that a callable can reach in a few steps."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if isinstance(value, (nn.Module, Tensor)):
        yield value
        return
    for part in _parts(value):
        if isinstance(part, (nn.Module, Tensor)) or callable(part):
            yield from _held(part, depth - 1, seen)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isfunction(value):
        found = inspect.getclosurevars(value)
        return [*found.nonlocals.values(), *found.globals.values()]
    if inspect.isclass(value) or inspect.isbuiltin(value):
        return []
    return list(getattr(value, "__dict__", {}).values())
