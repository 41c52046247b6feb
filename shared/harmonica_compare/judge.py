"""Numbers of one explanation: how far it is from the truth, and whether it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harmonica_compare.explained import Explained
from harmonica_compare.truth import Truth, relative_error
from harmonica_core import AnchoredSurrogate, metrics
from harmonica_core._types import Floats, Masks, ValueFunction
from harmonica_core.metrics import EvaluationSet

Pair = list[float]
Radii = Sequence[int | None]
# Half the width of a 95% interval in standard deviations.
_Z = 1.959964


def radius_name(radius: float | None) -> str:
    """Return how a radius is written in names and tables."""
    return "inf" if radius is None else f"{radius:g}"


def judge(
    said: Explained,
    truth: Truth,
    known: EvaluationSet,
    radii: Radii,
    model: ValueFunction,
    others: Mapping[str, Any],
) -> dict[str, Pair]:
    """Return ``{name: [value, standard error]}`` of everything that is measured.

    ``shapley`` and ``pairs`` are RMS errors relative to the RMS of the truth;
    ``whatif@r`` is I_2 within radius r relative to the spread of the model over all
    masks; ``coverage`` is the share of 95% intervals that hold the truth, and
    ``sharpness`` their half-width, relative as the error is.
    """
    found: dict[str, Any] = {}
    found.update(_against_truth(said.shapley, said.shapley_std, truth.shapley, ""))
    found.update(_against_truth(said.pairs, said.pairs_std, truth.pairs, "_pairs"))
    found.update(_what_if(said, known, radii))
    found.update(_paper(said, known, radii, model))
    pairs = _registered(said, model, known.n_features, others)
    pairs.update({name: _pair(number) for name, number in found.items()})
    # What is undefined (R2 of a constant) is left out; JSON has no word for it.
    return {name: pair for name, pair in pairs.items() if np.isfinite(pair).all()}


def _against_truth(
    values: Floats | None, std: Floats | None, truth: Floats | None, kind: str
) -> dict[str, float]:
    if values is None or truth is None or not len(truth):
        return {}
    error = relative_error(values, truth)
    found = {"pairs" if kind else "shapley": error}
    if std is not None:
        size = float(np.sqrt(np.mean(truth**2)))
        found |= _interval(values - truth, std, size, kind)
    return found


def _interval(
    gap: Floats, std: Floats, size: float, kind: str, weights: Floats | None = None
) -> dict[str, float]:
    """Coverage and sharpness of 95% intervals; ``size`` is what errors relate to."""
    inside = np.abs(gap) <= _Z * std + 1e-9 * size
    width = _Z * float(np.sqrt(np.average(std**2, weights=weights)))
    return {
        f"coverage{kind}": float(np.average(inside, weights=weights)),
        f"sharpness{kind}": width / size if size > 0 else np.inf,
    }


def _what_if(said: Explained, known: EvaluationSet, radii: Radii) -> dict[str, Any]:
    """I_2 by radius, absolute and relative, R2, and intervals of answers."""
    profile = metrics.profile(known, {"g": said.answer}, known.n_features, radii)
    masks, values, weights = _widest(known, radii)
    spread = float(np.sqrt(weights @ (values - weights @ values) ** 2))
    found: dict[str, Any] = {}
    for _, radius, p, error in profile.rows():
        norm = p if isinstance(p, str) else f"L{p:g}"
        found[f"{norm}@{radius_name(radius)}"] = error
        if norm == "L2" and spread > 0:
            relative = [float(part) / spread for part in error]
            found[f"whatif@{radius_name(radius)}"] = relative
    if None in radii:
        found["R2"] = metrics.r_squared(known, said.answer, known.n_features)
        true = float(found["L2@inf"])
        if said.stated is not None and true > 0:
            found["stated_over_true"] = said.stated / true
    if said.answer_std is not None:
        gap, std = said.answer(masks) - values, said.answer_std(masks)
        found |= _interval(gap, std, spread, "_whatif", weights)
    return found


def _widest(known: EvaluationSet, radii: Radii) -> tuple[Masks, Floats, Floats]:
    """Masks, values and weights (they sum to 1) of the widest neighbourhood."""
    parts = known.parts(radii[-1])
    rows = np.concatenate([np.arange(p.rows.start, p.rows.stop) for p in parts])
    weights = np.concatenate([np.full(len(p), p.weight / len(p)) for p in parts])
    return known.masks[rows], known.values[rows], weights


def _paper(
    said: Explained, known: EvaluationSet, radii: Radii, model: ValueFunction
) -> dict[str, Any]:
    """The paper's other numbers: truthful gap, inconsistency, insertion, deletion."""
    n = known.n_features
    found: dict[str, Any] = {}
    if None in radii:
        for degree in range(1, min(3, n) + 1):
            gap = metrics.truthful_gap(known, said.answer, n, degree=degree)
            found[f"truthful@{degree}"] = gap
    found["efficiency_gap"] = metrics.efficiency_gap(model, said.answer, n)
    if isinstance(said.source, AnchoredSurrogate):
        parts = metrics.inconsistency(known, said.source, n)
        found["log_k"], found["I_total"] = parts.log_k, parts.I_total
        found["D_total"] = parts.D_total
    if said.shapley is not None:
        curves = metrics.insertion_deletion(
            model, said.answer, n, attributions=said.shapley
        )
        found["insertion"] = curves.insertion_auc
        found["deletion"] = curves.deletion_auc
    return found


def _registered(
    said: Explained, model: ValueFunction, n: int, others: Mapping[str, Any]
) -> dict[str, Pair]:
    """Numbers of registered metrics; one that fails costs only its number."""
    found = {}
    for name, metric in others.items():
        try:
            number = metric(model, said.source or said.answer, n)
            if number is not None:
                found[name] = _pair(number)
        except Exception:  # noqa: S112 - its absence from the cell tells
            continue
    return found


def _pair(number: Any) -> Pair:
    if isinstance(number, (int, float, np.number)):
        return [float(number), 0.0]
    value, standard_error = number
    return [float(value), float(standard_error)]
