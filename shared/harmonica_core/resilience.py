"""Models that fail, run out of memory, or cost time: how a value function is called.

Nothing here knows about masks or caches. `CallPolicy` says what is wanted, a `Caller`
carries it out for one run, and a `BatchSize` remembers what fits into memory.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from harmonica_core.checks import check_count, is_whole

Found = TypeVar("Found")

_LONGEST_PAUSE = 60.0
_SLOWEST = 1 / 86_400
_MEMORY_WORDS = (
    "out of memory",
    "defaultcpuallocator",
    "can't allocate memory",
    "alloc_failed",
    "resource_exhausted",
)
_MEMORY_TYPES = {"OutOfMemoryError", "ResourceExhaustedError"}


@dataclass(frozen=True)
class CallPolicy:
    """How a value function is called.

    Attributes
    ----------
    retries : int
        How often a call that raised is tried again.
    backoff : float
        Seconds before the first retry; the pause doubles each time, up to a minute,
        and is shortened at random so that many workers do not return in step.
    rate_limit : float, optional
        Evaluations (masks) per second, at most; no call gets more than one second's
        allowance.
    timeout : float, optional
        Seconds after which no further call is started. A call that is running is not
        interrupted.
    """

    retries: int = 0
    backoff: float = 1.0
    rate_limit: float | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_count(self.retries, "retries")
        _check_positive("backoff", self.backoff, "seconds", zero=True)
        if self.rate_limit is not None:
            _check_positive("rate_limit", self.rate_limit, "evaluations per second")
            if self.rate_limit < _SLOWEST:
                raise ValueError(
                    f"rate_limit={self.rate_limit} evaluations per second is less than "
                    f"one a day; needed at least {_SLOWEST:.2g}"
                )
        if self.timeout is not None:
            _check_positive("timeout", self.timeout, "seconds")


def _check_positive(name: str, number: Any, unit: str, zero: bool = False) -> None:
    real = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
    if not real or not (number > 0 or (zero and number == 0)):
        least = ">= 0" if zero else "> 0"
        raise ValueError(f"{name}={number!r}; needed a number of {unit}, {least}")


class BatchSize:
    """Masks per call: halved when memory runs out, and remembered.

    Pass one object to many fits (``batch_size=BatchSize(1024)``) and they all know
    what the first one found out.

    Examples
    --------
    >>> from harmonica_core import Calls, fit_surrogate
    >>> def f(masks):
    ...     if len(masks) > 2:
    ...         raise MemoryError
    ...     return masks.sum(axis=1)
    >>> size = BatchSize(1024)
    >>> g = fit_surrogate(f, n_features=3, calls=Calls(batch_size=size))
    >>> size
    BatchSize(2)
    """

    def __init__(self, size: int) -> None:
        self.size = check_batch_size(size)

    def run(
        self,
        call: Callable[[int], Found],
        most: int,
        allowed: Callable[[int], int] | None = None,
    ) -> Found:
        """Return ``call(n)``, with n halved as long as that runs out of memory.

        Parameters
        ----------
        call : callable
            Takes the most masks (or model rows) that it may put into one call.
        most : int
            What there is to call with; n is no more than that, or nothing is halved.
        allowed : callable, optional
            Lowers n before each try, such as `Caller.allowed_size`.
        """
        while True:
            n = min(most, self.size)
            n = n if allowed is None else allowed(n)
            try:
                return call(n)
            except Exception as error:
                if n <= 1 or not is_out_of_memory(error):
                    raise
            # Only here, after the exception has let go of the frames with the tensors.
            release_memory()
            self.size = min(self.size, n // 2)

    def __repr__(self) -> str:
        return f"BatchSize({self.size})"


def check_batch_size(batch_size: object) -> int:
    """Return a whole number of masks per call, at least 1."""
    if not is_whole(batch_size):
        raise ValueError(
            f"batch_size={batch_size!r}; needed a whole number of masks per call, >= 1"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size}; needed at least 1 mask per call")
    return int(batch_size)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: numpy's, torch's or another's.

    Recognised by name and text, so that no framework needs to be imported.
    """
    if isinstance(error, MemoryError):
        return True
    if _MEMORY_TYPES & {kind.__name__ for kind in type(error).__mro__}:
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(w in text for w in _MEMORY_WORDS)


def release_memory() -> None:
    """Give cached device memory back, when torch is in use at all."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class OutOfTime(Exception):  # noqa: N818 - a signal between two functions, not an error
    """The policy's timeout passed before the next call could start."""


class Caller:
    """Carries out a `CallPolicy` for one run; its clock starts when it is made."""

    def __init__(self, function: Callable[[Any], Any], policy: CallPolicy) -> None:
        self._function = function
        self._policy = policy
        timeout = policy.timeout
        now = time.monotonic()
        self._deadline = math.inf if timeout is None else now + timeout
        self._next_call = now
        rate = policy.rate_limit
        self._seconds_between = 0.0 if rate is None else 1.0 / rate
        self._seconds_per_mask: float | None = None
        self._last_size = 1

    def allowed_size(self, size: int) -> int:
        """Return how many masks, at most ``size``, the rate and the time have room for.

        With a timeout, batches start at two masks and grow by doubling, so that a slow
        model is found out before it overruns.
        """
        if self._policy.rate_limit is not None:
            size = min(size, max(1, int(self._policy.rate_limit)))
        if self._policy.timeout is None:
            return size
        if self._seconds_per_mask is None:
            return min(size, 2)
        left = max(self._deadline - time.monotonic(), 0.0)
        fits = left / max(self._seconds_per_mask, 1e-9)
        return int(max(1, min(size, 2 * self._last_size, fits)))

    def __call__(self, batch: Any) -> Any:
        """Call the function in its turn, again if it fails; or raise `OutOfTime`."""
        attempt = 0
        while True:
            self._wait_until(self._next_call)
            started = time.monotonic()
            self._next_call = started + len(batch) * self._seconds_between
            try:
                result = self._function(batch)
            except Exception as error:
                if is_out_of_memory(error) or attempt == self._policy.retries:
                    raise
            else:
                spent = (time.monotonic() - started) / len(batch)
                self._seconds_per_mask = max(spent, self._seconds_between)
                self._last_size = len(batch)
                return result
            self._wait_until(time.monotonic() + self._pause(attempt))
            attempt += 1

    def _pause(self, attempt: int) -> float:
        longest = min(self._policy.backoff * 2.0 ** min(attempt, 60), _LONGEST_PAUSE)
        return longest * np.random.default_rng().uniform(0.5, 1.0)

    def _wait_until(self, moment: float) -> None:
        now = time.monotonic()
        if max(moment, now) >= self._deadline:
            raise OutOfTime
        if moment > now:
            time.sleep(moment - now)
