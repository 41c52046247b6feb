"""Whether a later call asks for what an earlier one has already found out.

Everything that can change under our hands is compared by content: tensors, weights,
modes, hooks. What can not be compared is never reused.
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
_CONTAINERS = (dict, list, tuple, set, frozenset)
_DEPTH = 4
# A container with more parts is not looked through.
_MOST_PARTS = 10_000


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
    """Return a picture of the weights, modes and hooks that ``forward_func`` reads.

    It sees a module, and the modules and tensors that a function, method, partial,
    container or callable object holds, a few steps deep. Python numbers are not
    compared: a model that counts its calls is still the same model.
    """
    held = list(_held(forward_func, _DEPTH, set()))
    modules = [one for one in held if isinstance(one, nn.Module)]
    tensors = [one for one in held if isinstance(one, Tensor)]
    weights = itertools.chain.from_iterable(
        itertools.chain(module.parameters(), module.buffers()) for module in modules
    )
    parts = [part for module in modules for part in module.modules()]
    modes = tuple((part.training, _hooks(part)) for part in parts)
    return modes, tuple(_weight(one) for one in itertools.chain(weights, tensors))


def _hooks(module: nn.Module) -> tuple[int, ...]:
    """Numbers that torch gave the hooks of a module's forward."""
    return (*module._forward_hooks, *module._forward_pre_hooks)


def _held(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """Modules and tensors that a callable can reach in a few steps."""
    if id(value) in seen or depth < 0 or _is_fixed(value):
        return
    seen.add(id(value))
    if isinstance(value, (nn.Module, Tensor)):
        yield value
    if isinstance(value, Tensor):
        return
    parts = _parts(value)
    if len(parts) > _MOST_PARTS:
        raise NotComparable(f"{len(parts)} parts")
    for part in parts:
        if isinstance(part, (nn.Module, Tensor, *_CONTAINERS)) or callable(part):
            yield from _held(part, depth - 1, seen)


def _is_fixed(value: Any) -> bool:
    """Whether a value is code that nobody changes between two calls."""
    return inspect.ismodule(value) or inspect.isclass(value) or inspect.isbuiltin(value)


def _weight(tensor: Tensor) -> Any:
    """Return a cheap picture of a weight: one pass, no copy.

    The sum also sees changes through ``.data``, which leave the version as it was.
    """
    if tensor.layout != torch.strided or tensor.is_meta:
        raise NotComparable("weight without plain memory")
    total = tensor.detach().sum(dtype=torch.float64) if tensor.numel() else 0.0
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), version, tuple(tensor.shape), repr(complex(total))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, _CONTAINERS):
        return list(value)
    if isinstance(value, nn.Module):
        return [v for part in value.modules() for v in _attributes(part)]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isfunction(value):
        return _parts_of_function(value)
    return list(getattr(value, "__dict__", {}).values())


def _attributes(module: nn.Module) -> list[Any]:
    """What a module holds beside torch's own bookkeeping, its weights and its parts."""
    return [value for name, value in vars(module).items() if not name.startswith("_")]


def _parts_of_function(function: Any) -> list[Any]:
    try:
        found = inspect.getclosurevars(function)
    except ValueError as error:  # a variable that is not bound yet
        raise NotComparable(str(error)) from error
    return [
        *found.nonlocals.values(),
        *found.globals.values(),
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
        *vars(function).values(),
    ]
