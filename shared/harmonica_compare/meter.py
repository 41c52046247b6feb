"""Own time and memory of a call: without the model's time, and without imports."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from harmonica_compare.case import Case, Counted
from harmonica_compare.method import Method
from harmonica_core._types import Floats, Masks, ValueFunction

# The kernel's account of this process: Linux only.
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_TOY = 8


@dataclass(frozen=True)
class Cost:
    """Seconds without the model's, and peak memory beside what was there (MB)."""

    seconds: float
    peak_mb: float | None


class Remembered:
    """A value function that evaluates no mask twice and times the model.

    Methods are compared on the same function, so what one of them has paid for is
    not computed again for the next; each one's own count is kept by `Counted`.
    """

    def __init__(self, value_function: ValueFunction) -> None:
        self.value_function = value_function
        self.known: dict[bytes, float] = {}
        self.seconds = 0.0

    def __call__(self, masks: Masks) -> Floats:
        """Values ``(m,)`` of the masks."""
        start = time.perf_counter()
        packed = np.packbits(masks, axis=1)
        keys = [row.tobytes() for row in packed]
        new = {key: k for k, key in enumerate(keys) if key not in self.known}
        if new:
            values = self.value_function(masks[list(new.values())])
            self.known.update(zip(new, np.asarray(values).tolist(), strict=True))
        found = np.array([self.known[key] for key in keys])
        self.seconds += time.perf_counter() - start
        return found


def measured(run: Callable[[], Any], model: Remembered) -> tuple[Any, Cost]:
    """Return what ``run()`` returns, and what it cost beside the model."""
    before = _memory("VmRSS") if _reset_peak() else None
    model_before, start = model.seconds, time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start - (model.seconds - model_before)
    peak = None if before is None else max(0.0, _memory("VmHWM") - before)
    return found, Cost(seconds, peak)


def _reset_peak() -> bool:
    """Let the kernel count this process's peak from now; False where it can not."""
    try:
        # Pages that earlier calls have freed would be used again, and not counted.
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")
    except (OSError, AttributeError, TypeError):  # not Linux, or not glibc
        return False
    return True


def _memory(name: str) -> float:
    """Return a line of the status file, in MB."""
    lines = _STATUS.read_text().splitlines()
    kilobytes = next(line for line in lines if line.startswith(f"{name}:")).split()[1]
    return int(kilobytes) / 1024


_FIRST: dict[str, float] = {}


def first_call(method: Method) -> float:
    """Run a method once in this process, on a toy; return its seconds.

    What it needs is imported before. Compilers, lazy imports and thread pools of the
    libraries are paid for here, so that later times are those of a warm process.
    """
    if method.name in _FIRST:
        return _FIRST[method.name]
    for name in method.needs:
        with suppress(ImportError):
            importlib.import_module(name)
    start = time.perf_counter()
    # Its own cells say what is wrong with it.
    with threadpool_limits(limits=1), suppress(Exception, SystemExit):
        method.run(_toy(), Counted(_toy_values, 64), 0)
    _FIRST[method.name] = time.perf_counter() - start
    return _FIRST[method.name]


def _toy() -> Case:
    return Case("toy", _TOY, _toy_values, relaxed=_toy_relaxed, probability=True)


def _toy_values(masks: Masks) -> Floats:
    x = np.asarray(masks, dtype=np.float64)
    score = x @ np.linspace(-1, 1, _TOY) + x[:, 0] * x[:, 1]
    return np.asarray(1 / (1 + np.exp(-score)))


def _toy_relaxed(share: Any) -> Any:
    return (share.sum(dim=1) + share[:, 0] * share[:, 1]).sigmoid()
