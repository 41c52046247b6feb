"""explain.json: what the attributions in a folder were made from.

Parts of different models, data or settings must not end up in one folder unnoticed:
`open_folder` compares the contents, not names or times, and says what differs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_core.files import is_leftover, remove_leftovers, replacing
from harmonica_core.storage import parse_json

Manifest = dict[str, Any]

_NAME = "explain.json"
# Hashes and numbers that say nothing to a reader: what they stand for.
_WORDS = {
    "code": "the model's file has changed",
    "answers": "the model answers otherwise",
    "rows": "the data has changed",
    "background": "the background has changed",
}
# Parts of other columns or sizes do not fit beside each other, whatever is forced.
_SHAPE = ("features", "chunk", "format")
# The same rows under another name are the same rows.
_FOR_READERS = ("data", "forced")
# Answers of the same model differ by rounding: other batches, devices, threads.
_SAME_ANSWER = 1e-5


def open_folder(out: Path, wanted: Manifest, *, resume: bool, force: bool) -> None:
    """Make the folder, or check that it is the one to go on with.

    Parameters
    ----------
    out : Path
    wanted : dict
        What the run is made from.
    resume : bool
        Go on in a folder that holds explained rows.
    force : bool
        Even when they were made from something else.
    """
    if out.is_dir():
        remove_leftovers(out)
    if _is_fresh(out, wanted):
        out.mkdir(parents=True, exist_ok=True)
        _write(out, wanted)
    elif not resume:
        raise ValueError(
            f"{out} exists and is not empty; nothing was changed: add --resume to go "
            "on with it, or give --out another folder"
        )
    else:
        _go_on(out, wanted, force)


def _is_fresh(out: Path, wanted: Manifest) -> bool:
    """Whether there is no folder yet, or one without a single explained row."""
    if not out.is_dir():
        return not out.exists()
    found = [path for path in out.iterdir() if not is_leftover(path)]
    return not found or (found == [out / _NAME] and _is_ours(out, wanted))


def _is_ours(out: Path, wanted: Manifest) -> bool:
    """Whether the manifest is from an earlier run, of whatever settings."""
    try:
        return set(wanted) <= set(_read(out))
    except ValueError:
        return False


def _go_on(out: Path, wanted: Manifest, force: bool) -> None:
    found = _read(out)
    other = [name for name in wanted if not _same(name, found.get(name), wanted[name])]
    if "answers" in other and {"rows", "background"} & set(other):
        other.remove("answers")  # to other questions
    told = ", ".join(_difference(name, found.get(name), wanted[name]) for name in other)
    if any(name in _SHAPE for name in other):
        raise ValueError(
            f"{out} holds parts of another shape ({told}); nothing was changed: use "
            "the same options, or give --out another folder"
        )
    if other and not force:
        raise ValueError(
            f"{out} was made from something else ({told}); nothing was changed: give "
            "--out another folder, or add --force to keep the rows that are there"
        )
    if other:
        forced = sorted({*found.get("forced", ()), *other})
        _write(out, {**wanted, "forced": forced})


def _same(name: str, old: Any, new: Any) -> bool:
    if name in _FOR_READERS:
        return True
    return _same_answers(old, new) if name == "answers" else bool(old == new)


def _same_answers(old: Any, new: list[list[float | None]]) -> bool:
    try:
        before, now = np.array(old, dtype=float), np.array(new, dtype=float)
    except (TypeError, ValueError):
        return False
    if before.shape != now.shape:
        return False
    largest = np.nanmax(np.abs(now), initial=0.0)
    return np.allclose(before, now, 0.0, _SAME_ANSWER * largest, equal_nan=True)


def _difference(name: str, old: Any, new: Any) -> str:
    return _WORDS.get(name, f"--{name} was {old!r}, is {new!r}")


def _write(out: Path, content: Manifest) -> None:
    with replacing(out / _NAME) as file:
        file.write(json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")


def _read(out: Path) -> Manifest:
    try:
        found = parse_json((out / _NAME).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{out} was not made by harmonica explain ({error}); nothing was changed: "
            "give --out another folder"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("forced", []), list):
        raise ValueError(
            f"{out / _NAME} is damaged; nothing was changed: give --out another folder"
        )
    return found
