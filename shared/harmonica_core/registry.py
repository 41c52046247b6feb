"""Other people's methods and metrics, by name, in a few lines.

A method explains: it takes ``(value_function, n_features, *, budget, seed)`` and
returns a function of masks. A metric judges: it takes ``(f, g, n_features)`` and
returns an `Estimate`. Whatever is registered here takes part in the comparisons; on
the command line, ``harmonica compare --plugin module`` imports your module first.

Examples
--------
>>> import numpy as np
>>> from harmonica_core import Estimate, registry
>>> @registry.methods.register("constant")
... def constant(value_function, n_features, *, budget, seed):
...     value = value_function(np.ones((1, n_features), dtype=bool))[0]
...     return lambda masks: np.full(len(masks), value)
>>> @registry.metrics.register("gap_when_empty")
... def gap_when_empty(f, g, n_features):
...     empty = np.zeros((1, n_features), dtype=bool)
...     return Estimate(abs(float(f(empty)[0] - g(empty)[0])), 0.0, 1, exact=True)
>>> f = lambda masks: 1.0 * masks.sum(axis=1)
>>> g = registry.methods["constant"](f, 3, budget=10, seed=0)
>>> registry.metrics["gap_when_empty"](f, g, 3)
3 (exact)
>>> registry.methods.remove("constant"); registry.metrics.remove("gap_when_empty")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from harmonica_core import metrics as _metrics
from harmonica_core._types import Masks, ValueFunction
from harmonica_core.result.estimate import Estimate

Entry = TypeVar("Entry", bound=Callable[..., Any])


class Method(Protocol):
    """Explain a function of masks by another one."""

    def __call__(
        self,
        value_function: ValueFunction,
        n_features: int,
        *,
        budget: int,
        seed: int | np.random.Generator | None,
    ) -> Callable[[Masks], Any]:
        """Return g, callable on masks, from at most ``budget`` evaluations."""


class Metric(Protocol):
    """Judge g as an explanation of f."""

    def __call__(self, f: Any, g: Any, n_features: int) -> Estimate:
        """Return a number with its standard error; see `harmonica_core.metrics`."""


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, *, replace: bool = False) -> Callable[[Entry], Entry]:
        """Return a decorator that registers a callable under ``name``.

        Parameters
        ----------
        name : str
        replace : bool
            Whether an entry of that name may be there already.
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"{self._kind} name {name!r}; needed a non-empty string")
        if name in self._entries and not replace:
            raise ValueError(
                f"there is a {self._kind} {name!r} already; choose another name or "
                "pass replace=True"
            )

        def add(entry: Entry) -> Entry:
            if not callable(entry):
                raise TypeError(
                    f"{self._kind} {name!r} is {type(entry).__name__}; needed a "
                    "callable"
                )
            self._entries[name] = entry
            return entry

        return add

    def remove(self, name: str) -> None:
        """Forget the entry ``name``."""
        self[name]
        del self._entries[name]

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise KeyError(
                f"no {self._kind} {name!r}; registered: {', '.join(self) or 'none'}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


methods: Registry[Method] = Registry("method")
metrics: Registry[Metric] = Registry("metric")

for _name in (
    "interpretation_error",
    "truthful_gap",
    "r_squared",
    "infidelity",
    "efficiency_gap",
):
    metrics.register(_name)(getattr(_metrics, _name))
