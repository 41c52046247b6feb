"""One input to explain: a function of masks, and what some methods need beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core._types import Floats, Masks, ValueFunction
from harmonica_core.text import visible


@dataclass(frozen=True)
class About:
    """What a case is, in words that the report shows.

    Attributes
    ----------
    data, model : str
        Names of the data set and of the model.
    output : str
        The number that is explained.
    removed : str
        What happens to a feature that a mask removes.
    """

    data: str = ""
    model: str = ""
    output: str = ""
    removed: str = ""


@dataclass(frozen=True)
class Case:
    """One input of a task.

    Attributes
    ----------
    name : str
        Unique within the task.
    n_features : int
    value_function : callable, bool (m, n_features) -> float64 (m,)
    relaxed : callable, optional
        The same model on fractional masks, for gradient methods: a torch tensor
        ``(m, n_features)`` in [0, 1] to a tensor ``(m,)``, differentiable.
    no_gradient : str
        Why ``relaxed`` is missing, said in the cells of gradient methods.
    feature_names : tuple of str, optional
    about : About
    tree_shapley : callable, optional
        Returns the exact Shapley values ``(n_features,)`` from the inside of a tree
        model, without model calls.
    probability : bool
        Whether the values are probabilities, so that a logit of them makes sense.
    """

    name: str
    n_features: int
    value_function: ValueFunction
    relaxed: Callable[[Any], Any] | None = None
    no_gradient: str = "the model gives no gradients"
    feature_names: tuple[str, ...] | None = None
    about: About = About()
    tree_shapley: Callable[[], Floats] | None = None
    probability: bool = False


def one_line(error: BaseException) -> str:
    """Return an error's message without line breaks and control characters."""
    return visible(" ".join(str(error).split()))


def told(error: BaseException) -> str:
    """Return an error's kind and message in one line."""
    return f"{type(error).__name__}: {one_line(error)}"


class NotApplicableError(Exception):
    """A method can not run on this case; the message goes into its cell."""


class BudgetExceededError(Exception):
    """A method asked for more model evaluations than it was given."""


class Counted:
    """A value function that counts its rows and stops at the budget.

    Integer, float and bool masks are accepted, because the peers differ in that.
    ``seen`` holds the masks and values so far.
    """

    def __init__(self, value_function: ValueFunction, budget: int) -> None:
        self.value_function = value_function
        self.budget = budget
        self.n_calls = 0
        self.seen: list[tuple[Masks, Floats]] = []

    def charge(self, rows: int) -> None:
        """Book ``rows`` evaluations, or refuse."""
        if self.n_calls + rows > self.budget:
            raise BudgetExceededError(
                f"asked for {self.n_calls + rows} of {self.budget} evaluations"
            )
        self.n_calls += rows

    def __call__(self, masks: Any) -> Floats:
        """Evaluate ``(m, n_features)`` masks: float64 ``(m,)``."""
        kept: Masks = np.atleast_2d(np.asarray(masks)) > 0.5
        self.charge(len(kept))
        values = np.asarray(self.value_function(kept), dtype=np.float64)
        self.seen.append((kept, values))
        return values
