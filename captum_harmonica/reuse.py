"""Whether a later call asks for what an earlier one has already found out.

Everything that can change under our hands is compared by content: tensors, arrays,
weights, modes, hooks. What can not be compared is never reused.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import logging
import re
import types
import weakref
from collections.abc import Collection, Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_CONTAINERS = (dict, list, tuple, set, frozenset)
# What a model holds is compared if it is one of these, and passed over if of those.
_LEAVES = (Tensor, np.ndarray, np.generic, bool, float, complex, str, bytes)
_IGNORED = (
    *(*_PLAIN, range, slice, re.Pattern, PurePath, logging.Logger),
    *(torch.layout, torch.memory_format),
)
_COMPILED = (
    *(np.ufunc, type(np.where)),
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
)
# Steps from the model, and parts of one container or of all of it, at most.
_DEPTH = 8
_MOST_PARTS = 100_000
# Torch's own attributes of a module.
_TORCHS_OWN = frozenset(vars(nn.Module())) | {"_compiled_call_impl"}


class _Empty:
    """As large as a Python object is that holds attributes and nothing else."""


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
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcSU":
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
    """Return a picture of all that ``forward_func`` reads, or raise `NotComparable`.

    It sees modules, tensors, arrays, functions, text and fractions that a module,
    function, method, partial, container or Python object holds, a few steps deep; what
    hides its content, such as a tree of scikit-learn, can not be compared. Whole
    numbers are left out: a model that counts its calls is still the same model.
    """
    try:
        held = list(_held(forward_func, _DEPTH, set()))
    except Exception as error:  # whatever a stranger's attribute raises when read
        raise NotComparable(str(error)) from error
    modules = [one for one in held if isinstance(one, nn.Module)]
    others = [one for one in held if not isinstance(one, nn.Module)]
    weights = itertools.chain.from_iterable(
        itertools.chain(module.parameters(), module.buffers()) for module in modules
    )
    parts = [part for module in modules for part in module.modules()]
    modes = tuple((_name(type(part)), part.training, _hooks(part)) for part in parts)
    return modes, tuple(_leaf(one) for one in itertools.chain(weights, others))


def _leaf(value: Any) -> Any:
    return _weight(value) if isinstance(value, Tensor) else content(value)


def _hooks(module: nn.Module) -> tuple[int, ...]:
    """Numbers that torch gave the hooks of a module's forward."""
    return (*module._forward_hooks, *module._forward_pre_hooks)


def _held(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """Modules, tensors, arrays and plain values that can be reached in a few steps."""
    if isinstance(value, _LEAVES):
        yield value
        return
    if id(value) in seen or isinstance(value, _IGNORED):
        return
    seen.add(id(value))
    if depth < 0 or len(seen) > _MOST_PARTS:
        raise NotComparable(f"more than {_DEPTH} steps or {_MOST_PARTS} parts")
    if isinstance(value, nn.Module):
        yield value
    if callable(value):
        yield _name(value)
    for part in [] if _is_fixed(value) else _parts(value):
        yield from _held(part, depth - 1, seen)


def _is_fixed(value: Any) -> bool:
    """Whether a value is code that nobody changes between two calls."""
    if inspect.isbuiltin(value):
        return value.__self__ is None or _is_fixed(value.__self__)
    if inspect.isfunction(value):
        library = (value.__module__ or "").partition(".")[0] in ("torch", "numpy")
        return library and value.__closure__ is None
    if inspect.ismodule(value) or inspect.isclass(value):
        return True
    return isinstance(value, _COMPILED)


def _name(value: Any) -> str:
    """Return what tells one piece of code from another."""
    if inspect.isfunction(value):
        return repr(value.__code__)
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(kind, '__module__', None)}.{kind.__qualname__}"


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
        return _few(value.values())
    if isinstance(value, _CONTAINERS):
        return _few(value)
    if isinstance(value, nn.Module):
        return [v for part in value.modules() for v in _parts_of_module(part)]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, weakref.ref):
        return [value()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isbuiltin(value):
        return [value.__self__]
    if inspect.isfunction(value):
        return _parts_of_function(value)
    return _parts_of_object(value)


def _few(values: Collection[Any]) -> list[Any]:
    if len(values) > _MOST_PARTS:
        raise NotComparable(f"{len(values)} parts")
    return list(values)


def _parts_of_module(module: nn.Module) -> list[Any]:
    """What a module holds beside torch's own bookkeeping, its weights and its parts."""
    hooks = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    around = _data_around(inspect.getattr_static(type(module), "forward", None))
    if type(module).__module__.startswith("torch._dynamo"):  # its part is compiled
        return [*hooks, *around]
    own = [v for name, v in vars(module).items() if name not in _TORCHS_OWN]
    return [*own, *hooks, *around]


def _parts_of_object(value: Any) -> list[Any]:
    """Attributes of an object that keeps nothing anywhere else."""
    kind = type(value)
    plain = _Empty if hasattr(value, "__dict__") else object
    if kind.__basicsize__ > plain.__basicsize__:  # slots, or memory of another language
        raise NotComparable(kind.__name__)
    code = inspect.getattr_static(kind, "__call__", None)
    return [*getattr(value, "__dict__", {}).values(), *_data_around(code)]


def _data_around(function: Any) -> list[Any]:
    """Modules, tensors and arrays that a class's code reads from around it."""
    if not inspect.isfunction(function) or _is_fixed(function):
        return []
    found = _parts_of_function(function)
    return [one for one in found if isinstance(one, (nn.Module, Tensor, np.ndarray))]


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
