"""Whether a later call asks what an earlier one has already found out.

A picture of a call is a digest of all that it depends on, made by Python's own pickling
of the arguments and of everything that ``forward_func`` holds: what was changed in
place has another picture, and what cannot be pickled is never reused.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# Bytes of a picture beside tensors: half a second of hashing.
_MOST_BYTES = 1 << 28
# Code of these is taken as fixed between two calls.
_LIBRARIES = {"torch", "numpy", *sys.stdlib_module_names}


def picture(arguments: Any, forward_func: Any) -> bytes | None:
    """Return a digest of a whole call, or None if it cannot be compared.

    Tensors among the arguments are compared by content, those that ``forward_func``
    holds by memory, version and sum: one pass, no copy.

    Examples
    --------
    >>> x, weight = torch.ones(2), torch.ones(2)
    >>> f = lambda rows: rows @ weight
    >>> before = picture(x, f)
    >>> before == picture(x.clone(), f)
    True
    >>> _ = weight.mul_(2)
    >>> before == picture(x, f)
    False
    """
    digest = _Digest()
    try:
        _Pickler(digest, _content).dump(arguments)
        _Pickler(digest, _weight).dump(forward_func)
    except Exception:  # whatever a stranger's object raises when it is pickled
        return None
    return digest.value.digest()


class _Digest:
    """A file that keeps a hash of what is written to it."""

    def __init__(self) -> None:
        self.value = hashlib.blake2b(digest_size=16)
        self.size = 0

    def write(self, data: Any) -> None:
        self.size += len(data)
        if self.size > _MOST_BYTES:
            raise pickle.PicklingError(f"more than {_MOST_BYTES} bytes")
        self.value.update(data)


class _Pickler(pickle.Pickler):
    """Pickles all that a value depends on, also what a function reads around it."""

    def __init__(self, file: Any, of_tensor: Any) -> None:
        super().__init__(file, protocol=5)
        self._of_tensor = of_tensor
        self._seen: dict[int, tuple[int, Any]] = {}  # held, so that ids stay their own

    def persistent_id(self, value: Any) -> Any:
        """Return what is pickled in place of a value; None: the value itself."""
        if isinstance(value, Tensor):
            return self._of_tensor(value)
        if isinstance(value, types.ModuleType):
            return "module", value.__name__
        if isinstance(value, weakref.ref):
            return "reference", value()
        if isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            fixed = owner is None or isinstance(owner, (type, types.ModuleType))
            return "builtin", value.__qualname__, None if fixed else owner
        if isinstance(value, torch.jit.ScriptModule):
            return "script", value.training, value.code, [*value.state_dict().values()]
        if isinstance(value, nn.Module) and _library(value) == "torch._dynamo":
            return "compiled", vars(value).get("_orig_mod") or value._modules
        if isinstance(value, (types.FunctionType, type)):
            if id(value) in self._seen:
                return "seen", self._seen[id(value)][0]
            self._seen[id(value)] = len(self._seen), value
            return _of_class(value) if isinstance(value, type) else _of_function(value)
        return None


def _content(tensor: Tensor) -> Any:
    flat = _plain(tensor).cpu().contiguous().reshape(-1).view(torch.uint8)
    digest = hashlib.blake2b(flat.numpy().data, digest_size=16).digest()
    return "tensor", str(tensor.device), str(tensor.dtype), tuple(tensor.shape), digest


def _weight(tensor: Tensor) -> Any:
    """Return a cheap picture of a weight.

    The sum also sees changes through ``.data``, which leave the version as it was.
    """
    plain = _plain(tensor)
    total = complex(plain.sum(dtype=torch.float64)) if plain.numel() else 0.0
    version = 0 if tensor.is_inference() else tensor._version
    return "weight", tensor.data_ptr(), version, tuple(tensor.shape), total


def _plain(tensor: Tensor) -> Tensor:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise pickle.PicklingError("a tensor without plain memory")
    return tensor.detach()


def _library(value: Any) -> str:
    """Return the first two names of the module that holds an object's class."""
    return ".".join(type(value).__module__.split(".")[:2])


def _is_fixed(code: Any) -> bool:
    return (code.__module__ or "").partition(".")[0] in _LIBRARIES


def _of_class(kind: type) -> Any:
    """Return a class's name, and the data that its code reads from around it."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if _is_fixed(kind):
        return "class", name
    held = []
    for method in (getattr(kind, name, None) for name in ("forward", "__call__")):
        if isinstance(method, types.FunctionType) and not _is_fixed(method):
            held += [method.__code__.co_code, *_read_around(method)]
    data = (nn.Module, Tensor, np.ndarray, bytes)
    return "class", name, id(kind), [one for one in held if isinstance(one, data)]


def _of_function(function: types.FunctionType) -> Any:
    """Return a function's code and all that it reads."""
    name = f"{function.__module__}.{function.__qualname__}"
    if _is_fixed(function) and function.__closure__ is None:
        return "function", name
    code = function.__code__
    return (
        *("function", name, code.co_code, repr(code.co_consts), code.co_names),
        *_read_around(function),
        *(function.__defaults__, function.__kwdefaults__, vars(function)),
    )


def _read_around(function: types.FunctionType) -> list[Any]:
    """Return the globals and the closure of a function."""
    around = function.__globals__
    names = sorted(set(_names(function.__code__)) & around.keys())
    cells = function.__closure__ or ()
    return [*(around[name] for name in names), *(one.cell_contents for one in cells)]


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function's code reads, also in functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
