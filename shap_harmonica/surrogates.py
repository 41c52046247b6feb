"""From rows to surrogates: share masks and priors, evaluate across rows, fit, lift."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from harmonica_core import (
    Design,
    Prior,
    Settings,
    Surrogate,
    draw_design,
    fit_functions,
    iterate_parallel,
    learn_prior,
    lift,
)
from shap_harmonica._types import Key, Masks, Numbers, Values
from shap_harmonica.outputs import select
from shap_harmonica.priors import ENOUGH_ROWS, Priors

# Rows that teach a prior; more of them change little.
_TEACHERS = 32
# Bytes of values and rows of one job. Fewer rows are halved where each half has at
# least so many values, so that a second worker finds something to do.
_JOB_BYTES, _JOB_ROWS, _WORTH_A_JOB = 1 << 27, 256, 4096
# SHAP's own bars appear only after this many seconds.
_BAR_DELAY = 10

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Task:
    """What one call of an explainer asks for.

    ``max_evals`` are masks per row; for ``outputs`` see `outputs.select`; ``title`` is
    that of the progress bar.
    """

    settings: Settings
    seed: Any = 0
    max_evals: Any = "auto"
    outputs: Any = None
    output_names: Any = None
    n_jobs: int = 1
    silent: bool = True
    title: str = "Harmonica"

    def __post_init__(self) -> None:
        self._draw(Settings(), 1)  # refuses a wrong budget or seed

    def design(self, n_varying: int) -> Design:
        """Return the masks of rows with so many varying features."""
        if n_varying == 0:
            return Design(np.ones((1, 0), dtype=bool))
        return self._draw(self.settings, n_varying)

    def _draw(self, settings: Settings, n_features: int) -> Design:
        try:
            return draw_design(settings, n_features, self.max_evals, self.seed)
        except ValueError as error:
            # Refused as the caller named it.
            text = str(error).replace("budget=", "max_evals=")
            raise ValueError(text) from None


@dataclass(frozen=True)
class Rows:
    """Inputs as functions of masks.

    ``evaluate(rows, masks, advance)`` returns values ``(m[, n_outputs])`` of each of
    the numbered rows for masks ``(m, v)`` of its own ``features``: those that change
    it, ascending. ``alike``: a feature means the same in every row, so that rows share
    a prior.
    """

    evaluate: Callable[[Numbers, Masks, Advance], list[Values]]
    features: list[Numbers]
    n_features: list[int]
    n_outputs: int = 1
    alike: bool = True

    def groups(self) -> dict[Key, Numbers]:
        """Return rows by the features that vary; those of most features first."""
        out: dict[Key, list[int]] = {}
        for row, features in enumerate(self.features):
            out.setdefault(tuple(features.tolist()), []).append(row)
        ordered = sorted(out, key=lambda key: (-len(key), -len(out[key])))
        return {key: np.array(out[key]) for key in ordered}


@dataclass(frozen=True)
class Explained:
    """One row's result: its surrogate and which model outputs it is about."""

    surrogate: Any
    outputs: np.ndarray | None


@dataclass(frozen=True)
class _Part:
    """Rows with the same varying features, and their prior.

    Without one a fit learns its own; ``teaches``: others use it, too.
    """

    key: Key
    rows: Numbers
    prior: Prior | None = None
    teaches: bool = False

    def split(self, most: int) -> list[_Part]:
        """Return parts of at most so many rows; what learns stays together."""
        if self.teaches or len(self.rows) <= most:
            return [self]
        pieces = np.array_split(self.rows, -(-len(self.rows) // most))
        return [replace(self, rows=rows) for rows in pieces]


def explain_rows(rows: Rows, task: Task, priors: Priors) -> list[Explained]:
    """Explain every row; priors learnt from several rows are kept in ``priors``.

    Rows with the same varying features share masks and one prior, learnt from a spread
    of them. What is drawn and what is refused is decided before any model call.
    """
    work = _Work.of(rows, task)
    first, later = work.plan(priors)
    total = sum(work.n_masks(features) for features in rows.features)
    with tqdm(
        total=total, desc=task.title, disable=task.silent, delay=_BAR_DELAY, unit="eval"
    ) as bar:
        work.run(first, bar.update)
        for key, (prior, n_rows) in work.learnt.items():
            priors.keep(key, prior, n_rows, work.n_masks(key))
        # Engines that learn nothing leave None.
        known = [replace(part, prior=priors.find(part.key, 0, 0)) for part in later]
        work.run(known, bar.update)
    return [work.found[row] for row in range(len(rows.features))]


def learn_from_rows(rows: Rows, task: Task, priors: Priors) -> None:
    """Learn priors of the sets of varying features, and keep them for good."""
    if not rows.alike:
        raise ValueError(
            "these inputs have features of their own (words, segments); needed rows of "
            "a table, or images with the same groups, to learn what they share"
        )
    work = _Work.of(rows, task)
    first, _ = work.plan(Priors())
    work.run([replace(part, teaches=True) for part in first if part.key])
    for key, (prior, _) in work.learnt.items():
        priors.give(key, prior)


@dataclass
class _Work:
    """Rows to explain, their designs by number of features, and what was found."""

    rows: Rows
    task: Task
    designs: dict[int, Design]
    found: dict[int, Explained] = field(default_factory=dict)
    learnt: dict[Key, tuple[Prior, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Rows, task: Task) -> _Work:
        for n_features in set(rows.n_features):
            task.settings.check_features(n_features)
        counts = {len(features) for features in rows.features}
        return cls(rows, task, {n: task.design(n) for n in sorted(counts)})

    def n_masks(self, features: Sized) -> int:
        return len(self.designs[len(features)].masks)

    def plan(self, priors: Priors) -> tuple[list[_Part], list[_Part]]:
        """Return what is evaluated first, to learn from, and what is only fitted."""
        if not self.rows.alike:
            keys = [tuple(features.tolist()) for features in self.rows.features]
            return [_Part(key, np.array([k])) for k, key in enumerate(keys)], []
        first, later = [], []
        lenders: list[Key] = []
        for key, members in self.rows.groups().items():
            teachers = _spread(members)
            lent = key not in priors and any(set(key) < set(one) for one in lenders)
            if lent or priors.find(key, len(teachers), self.n_masks(key)) is not None:
                later.append(_Part(key, members))
                continue
            first.append(_Part(key, teachers, teaches=len(teachers) > 1))
            if len(teachers) >= ENOUGH_ROWS:
                lenders.append(key)
            rest = np.setdiff1d(members, teachers)
            if len(rest):
                later.append(_Part(key, rest))
        return first, later

    def run(self, parts: list[_Part], advance: Advance = lambda count: None) -> None:
        """Evaluate and fit parts, here or on workers."""
        if self.task.n_jobs == 1:
            for job in self.jobs(parts):
                self.update(self.explain(job, advance))
            return
        alone = _Work(self.rows, self.task, self.designs)
        for done in iterate_parallel(alone.explain, self.jobs(parts), self.task.n_jobs):
            self.update(done)
            for row in done[0]:
                advance(self.n_masks(self.rows.features[row]))

    def update(self, done: tuple[dict[int, Explained], dict[Key, Any]]) -> None:
        self.found.update(done[0])
        self.learnt.update(done[1])

    def jobs(self, parts: list[_Part]) -> Iterator[list[_Part]]:
        """Group parts with the same masks into jobs that fit into memory.

        The number of workers has no say: results are the same on any number of them.
        """
        for count, design in self.designs.items():
            own = [part for part in parts if len(part.key) == count]
            n_rows = sum(len(part.rows) for part in own)
            per_row = self.rows.n_outputs * len(design.masks)
            by_work = -(-n_rows // max(1, min(2, n_rows * per_row // _WORTH_A_JOB)))
            most = max(1, min(_JOB_ROWS, by_work, _JOB_BYTES // (8 * per_row)))
            job: list[_Part] = []
            for piece in (piece for part in own for piece in part.split(most)):
                if job and sum(len(p.rows) for p in job) + len(piece.rows) > most:
                    yield job
                    job = []
                job.append(piece)
            if job:
                yield job

    def explain(
        self, job: list[_Part], advance: Advance = lambda count: None
    ) -> tuple[dict[int, Explained], dict[Key, tuple[Prior, int]]]:
        """Evaluate the rows of a job in common model calls, and fit each part."""
        masks = self.designs[len(job[0].key)].masks
        numbers = np.concatenate([part.rows for part in job])
        found = self.rows.evaluate(numbers, masks, advance)
        values = dict(zip(numbers.tolist(), found, strict=True))
        explained: dict[int, Explained] = {}
        learnt: dict[Key, tuple[Prior, int]] = {}
        for part in job:
            own = part.rows.tolist()
            # Texts may differ in their number of outputs.
            for shape in sorted({values[row].shape for row in own}):
                alike = [row for row in own if values[row].shape == shape]
                stacked = np.stack([values[row] for row in alike], axis=1)
                results, prior = self.fit(part, stacked, self.rows.n_features[own[0]])
                explained.update(zip(alike, results, strict=True))
                if part.teaches and prior is not None:
                    learnt[part.key] = prior, len(alike)
        return explained, learnt

    def fit(
        self, part: _Part, values: Values, n_features: int
    ) -> tuple[list[Explained], Prior | None]:
        """Fit the chosen outputs of ``values (m, R[, K])`` of rows that vary alike."""
        task, design, prior = self.task, self.designs[len(part.key)], part.prior
        values, chosen = select(task.outputs, design.masks, values, task.output_names)
        if not part.key:
            fitted: list[Any] = [_constant(value) for value in values[0]]
        else:
            if part.teaches:
                prior = learn_prior(design, values, task.settings)
            fitted = fit_functions(design, values, task.settings, prior)
        lifted = lift(fitted, np.tile(part.key, (len(fitted), 1)), n_features)
        picks = [None] * len(lifted) if chosen is None else list(chosen)
        return list(map(Explained, lifted, picks)), prior


def _spread(members: Numbers) -> Numbers:
    """Return up to 32 rows, spread over all of them."""
    places = np.linspace(0, len(members) - 1, min(len(members), _TEACHERS))
    return members[np.unique(places.astype(int))]


def _constant(value: Any) -> Surrogate:
    return Surrogate(0, np.zeros((1, 0), dtype=np.int32), np.asarray(value)[None])
