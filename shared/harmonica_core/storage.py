"""Files of our own: one .npz of plain arrays plus a JSON header, never pickle."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_core.estimate import Estimate
from harmonica_core.evaluate import Evaluated

FORMAT = "harmonica"
VERSION = 1

Arrays = dict[str, np.ndarray]
Header = dict[str, Any]


def write(
    path: str | os.PathLike[str], kind: str, header: Header, arrays: Arrays
) -> None:
    """Write atomically: the file at ``path`` is either the old one or complete."""
    target = Path(path)
    full = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    text = np.frombuffer(json.dumps(full).encode(), dtype=np.uint8)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, header=text, **arrays)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def read(path: str | os.PathLike[str], kind: str) -> tuple[Header, Arrays]:
    """Read a file that `write` wrote for the same ``kind``."""
    try:
        # Opened here, because np.load leaves a damaged file open.
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
    except FileNotFoundError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        AttributeError,
        TypeError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is damaged or not a file of ours ({error}); needed "
            f"a file written by save()"
        ) from error
    _check_header(path, header, kind)
    return header, arrays


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


def pack(surrogate: Any, prefix: str = "") -> tuple[Header, Arrays]:
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
    n_features = int(header["n_features"])
    table = arrays[prefix + "table"]
    names, outputs = header["feature_names"], header["output_names"]
    return {
        "n_features": n_features,
        "table": table,
        "coef": arrays[prefix + "coef"],
        "error": _unpack_error(header["error"]),
        "n_evaluations": int(header["n_evaluations"]),
        "alpha": _scalar_or_array(header["alpha"]),
        "radius": header["radius"],
        "max_degree": int(header["max_degree"]),
        "feature_names": None if names is None else tuple(names),
        "output_names": None if outputs is None else tuple(outputs),
        "stopped": None if header["stopped"] is None else str(header["stopped"]),
        "evaluated": _unpack_evaluated(arrays, prefix, n_features),
    }


def _unpack_error(error: dict[str, Any] | None) -> Estimate | None:
    if error is None:
        return None
    return Estimate(
        _scalar_or_array(error["value"]),
        _scalar_or_array(error["standard_error"]),
        int(error["n_evaluations"]),
        bool(error["exact"]),
    )


def _unpack_evaluated(arrays: Arrays, prefix: str, n_features: int) -> Evaluated | None:
    if prefix + "masks" not in arrays:
        return None
    packed = arrays[prefix + "masks"]
    masks = np.unpackbits(packed, axis=1, count=n_features).astype(bool)
    values = arrays[prefix + "values"]
    if len(values) != len(masks):
        raise ValueError(
            f"the file has {len(masks)} masks but {len(values)} values; it is damaged"
        )
    return Evaluated(masks, values)


def _scalar_or_array(number: Any) -> Any:
    array = np.asarray(number, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
