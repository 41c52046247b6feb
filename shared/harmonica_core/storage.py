"""Files of our own: one .npz of plain arrays plus a JSON header, never pickle."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.evaluate import Evaluated, check_values
from harmonica_core.files import replacing
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.stored_mean import pack_mean, unpack_mean

FORMAT = "harmonica"
VERSION = 1

Arrays = Mapping[str, np.ndarray]
Header = dict[str, Any]


def write(
    path: str | os.PathLike[str], kind: str, header: Header, arrays: Arrays
) -> None:
    """Write atomically: the file at ``path`` is either the old one or complete."""
    full = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    try:
        text = json.dumps(full, allow_nan=False).encode()
    except ValueError as error:
        raise ValueError(
            f"a {kind} whose error or alpha is NaN or infinite can not be saved; "
            "needed finite numbers: surrogate.changed(error=None) has none"
        ) from error
    content = np.frombuffer(text, dtype=np.uint8)
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, header=content, **arrays)


def read(path: str | os.PathLike[str], kind: str) -> tuple[Header, Arrays]:
    """Read a file that `write` wrote for the same ``kind``."""
    arrays = read_arrays(path)
    try:
        header = parse_json(arrays["header"].tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    _check_header(path, header, kind)
    return header, arrays


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text says; NaN and Infinity, which are not JSON, are refused.

    Examples
    --------
    >>> parse_json("[1, 2]")
    [1, 2]
    """
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} where a finite number was expected")


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Return the arrays of an .npz file by name; each is unpacked when asked for.

    Whatever is wrong with the file, or with the array asked for, is a ValueError.
    """
    return _Members(path)


class _Members(Mapping[str, np.ndarray]):
    """What an .npz file holds; members that nobody asks for are never unpacked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        content = Path(path).read_bytes()
        try:
            self._file = np.load(io.BytesIO(content), allow_pickle=False)
            self._names = tuple(self._file.files)
        # zipfile, zlib, struct, tokenize and numpy all have their own ways to fail on
        # a damaged file, and an array can announce more memory than there is.
        except Exception as error:
            raise _damaged(path, error) from error

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self:
            raise KeyError(name)
        try:
            array = self._file[name]
        except Exception as error:
            raise _damaged(self._path, error) from error
        if not isinstance(array, np.ndarray):
            raise _damaged(self._path, f"{name!r} is not an array")
        return array

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name != "header")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _damaged(path: str | os.PathLike[str], reason: object) -> ValueError:
    return ValueError(
        f"{os.fspath(path)!r} is damaged or not a file of ours ({reason}); needed a "
        "file written by save()"
    )


def _check_header(path: str | os.PathLike[str], header: Any, kind: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)!r} was not written by Harmonica's save()")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{os.fspath(path)!r} has format version {header.get('version')!r}; this "
            f"release reads version {VERSION}: upgrade harmonica-xai"
        )
    if header.get("kind") != kind:
        raise ValueError(
            f"{os.fspath(path)!r} holds a {header.get('kind')!r}; needed a {kind!r}"
        )


def pack(surrogate: Any, prefix: str = "") -> tuple[Header, dict[str, np.ndarray]]:
    """Header and arrays of one surrogate; ``prefix`` tells several apart in a file."""
    error = surrogate.error
    header = {
        "n_features": surrogate.n_features,
        "n_evaluations": surrogate.n_evaluations,
        "radius": surrogate.radius,
        "max_degree": surrogate.max_degree,
        "feature_names": surrogate.feature_names,
        "output_names": surrogate.output_names,
        "stopped": surrogate.stopped,
        "alpha": np.asarray(surrogate.alpha).tolist(),
        "error": error
        and {
            "value": np.asarray(error.value).tolist(),
            "standard_error": np.asarray(error.standard_error).tolist(),
            "n_evaluations": error.n_evaluations,
            "exact": error.exact,
        },
    }
    arrays = {prefix + "table": surrogate.table, prefix + "coef": surrogate.coef}
    if surrogate.evaluated is not None:
        arrays[prefix + "masks"] = np.packbits(surrogate.evaluated.masks, axis=1)
        arrays[prefix + "values"] = surrogate.evaluated.values
    if surrogate.mean is not None:
        own = pack_mean(surrogate.mean)
        arrays |= {prefix + name: array for name, array in own.items()}
    return header, arrays


def unpack(header: Header, arrays: Arrays, prefix: str = "") -> dict[str, Any]:
    """Keyword arguments of the surrogate that `pack` was given."""
    try:
        return _unpack(header, arrays, prefix)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(
            f"the file's contents do not fit together ({error!r}); it is damaged"
        ) from error


def _unpack(header: Header, arrays: Arrays, prefix: str) -> dict[str, Any]:
    n_features = _whole(header["n_features"])
    coef = arrays[prefix + "coef"]
    outputs = coef.shape[1:]
    radius, stopped = header["radius"], header["stopped"]
    return {
        "n_features": n_features,
        "table": arrays[prefix + "table"],
        "coef": coef,
        "error": _unpack_error(header["error"], outputs),
        "n_evaluations": _whole(header["n_evaluations"]),
        "alpha": _at_least_zero(header["alpha"], outputs),
        "radius": None if radius is None else _whole(radius, n_features),
        "max_degree": _whole(header["max_degree"]),
        "feature_names": _names(header["feature_names"]),
        "output_names": _names(header["output_names"]),
        "stopped": None if stopped is None else _text(stopped),
        "evaluated": _unpack_evaluated(arrays, prefix, n_features, outputs),
        "mean": unpack_mean(arrays, prefix, n_features),
    }


def _unpack_error(error: Header | None, outputs: tuple[int, ...]) -> Estimate | None:
    if error is None:
        return None
    return Estimate(
        _at_least_zero(error["value"], outputs),
        _at_least_zero(error["standard_error"], outputs),
        _whole(error["n_evaluations"]),
        bool(error["exact"]),
    )


def _unpack_evaluated(
    arrays: Arrays, prefix: str, n_features: int, outputs: tuple[int, ...]
) -> Evaluated | None:
    if prefix + "masks" not in arrays:
        return None
    packed, values = arrays[prefix + "masks"], arrays[prefix + "values"]
    if packed.dtype != np.uint8 or packed.shape[1:] != (-(-n_features // 8),):
        raise TypeError(f"masks {packed.dtype} {packed.shape}")
    if values.dtype != np.float64 or values.shape != (len(packed), *outputs):
        raise TypeError(f"values {values.dtype} {values.shape}")
    masks = np.unpackbits(packed, axis=1, count=n_features).astype(bool)
    return Evaluated(masks, check_values(values, masks))


def _whole(number: Any, most: int = 1 << 62) -> int:
    if type(number) is not int or not 0 <= number <= most:
        raise TypeError(f"{number!r} where a whole number up to {most} was expected")
    return number


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{text!r} where a text was expected")
    return text


def _names(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(_text(name) for name in names)


def _at_least_zero(numbers: Any, outputs: tuple[int, ...]) -> float | Floats:
    """Return one number, or one per output: errors and strengths, finite and >= 0."""
    array = np.asarray(numbers, dtype=np.float64)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise TypeError(f"{numbers!r} where finite numbers >= 0 were expected")
    if array.ndim == 0:
        return float(array)
    if array.shape != outputs:
        raise TypeError(f"{len(array)} numbers for outputs of shape {outputs}")
    return array
