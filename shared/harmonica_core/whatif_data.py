"""What the what-if page shows, as plain JSON values."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from harmonica_core import picture
from harmonica_core._types import Floats, Masks, Values
from harmonica_core.checks import check_names
from harmonica_core.evaluate import Evaluated
from harmonica_core.result import smallest_change as search
from harmonica_core.result.estimate import Estimate
from harmonica_core.text import number, shown, visible

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate

Json: TypeAlias = dict[str, Any]


class AnySurrogate(Protocol):
    """What a plain and an anchored surrogate have in common."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def n_evaluations(self) -> int:
        """Model evaluations that were paid for it."""

    @property
    def error(self) -> Estimate | None:
        """Stated error."""

    @property
    def radius(self) -> int | None:
        """Neighbourhood it was fitted on."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if given."""

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """Names of the outputs, if given."""

    @property
    def evaluated(self) -> Evaluated | None:
        """Masks and values it was fitted to."""

    def output(self, k: int) -> AnySurrogate:
        """Return the surrogate of output k."""

    def __call__(self, masks: Any) -> Values:
        """Predict."""


def collect(
    surrogate: AnySurrogate,
    *,
    feature_names: Iterable[str] | None,
    feature_values: Iterable[Any] | None,
    tokens: Iterable[str | tuple[str, int | None]] | None,
    image: Any,
    segments: Any,
    threshold: float | None,
    output: int | str,
    start: Masks,
    max_evaluated: int,
    removed: str | None,
) -> Json:
    """Return everything the page needs; the parameters are those of `what_if`."""
    if (image is None) != (segments is None):
        raise ValueError("got only one of image and segments; needed both or neither")
    if threshold is not None:
        search.check_threshold(threshold)
    one = one_output(surrogate, output)
    n = one.n_features
    words = None if tokens is None else token_pairs(tokens, n)
    names = _names(one, feature_names, words, image)
    known = carried(one.evaluated, max_evaluated)
    local = pieces(one)[0]  # the one at the input, for the additive answer
    return {
        "n": n,
        "names": [visible(name) for name in names],
        "marks": _marks(names),
        "given": _given(feature_values, n),
        "order": _by_influence(one),
        "tokens": words and [(visible(text), i) for text, i in words],
        "picture": None if image is None else picture.encode(image, segments, n),
        "pieces": [_polynomial(piece) for piece in pieces(one)],
        "anchors": anchors(one).astype(int).tolist(),
        "base": float(local.base_value),
        "shapley": local.shapley_values().tolist(),
        "error": None if one.error is None else np.ravel(one.error.value).item(),
        "exact": one.error is not None and one.error.exact,
        "radius": one.radius,
        "evaluated": known and _packed(known),
        "range": _range(one, known, threshold),
        "tolerance": tolerance(one),
        "maxTries": search.MAX_TRIES,
        "threshold": None if threshold is None else float(threshold),
        "start": start.astype(int).tolist(),
        "output": visible(one.output_names[0]) if one.output_names else None,
        "removed": None if removed is None else visible(str(removed)),
        "summary": _summary(one),
        "notes": [
            _error_note(one),
            _evaluated_note(one, known),
            _additive_note(one),
            _terms_note(one),
        ],
    }


def one_output(surrogate: AnySurrogate, output: int | str) -> AnySurrogate:
    """Return the surrogate of one output, given by its number or its name."""
    if isinstance(output, str):
        output = _numbered(output, surrogate.output_names or ())
    if pieces(surrogate)[0].coef.ndim == 2:
        return surrogate.output(output)
    if output != 0:
        raise ValueError(f"output={output}; this surrogate has one output, needed 0")
    return surrogate


def _numbered(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        known = ", ".join(map(repr, names)) or "none: give its number"
        raise ValueError(f"output={name!r}; needed one of its outputs ({known})")
    return names.index(name)


def pieces(surrogate: AnySurrogate) -> tuple[Surrogate, ...]:
    """Polynomials of a surrogate: one, or one per anchor."""
    own: Any = getattr(surrogate, "surrogates", (surrogate,))
    return tuple(own)


def anchors(surrogate: AnySurrogate) -> Masks:
    """Masks ``(n_pieces, n_features)`` that choose among the pieces."""
    everything = np.ones((1, surrogate.n_features), dtype=bool)
    return np.asarray(getattr(surrogate, "anchors", everything))


def tolerance(surrogate: AnySurrogate) -> float:
    """Rounding error that a value of g may carry."""
    return 1e-12 * max(float(np.abs(piece.coef).sum()) for piece in pieces(surrogate))


def token_pairs(
    tokens: Iterable[str | tuple[str, int | None]], n_features: int
) -> list[tuple[str, int | None]]:
    """Return ``(text, feature or None)`` for every token, each feature at least once.

    Examples
    --------
    >>> token_pairs(["not", "bad"], 2)
    [('not', 0), ('bad', 1)]
    """
    pairs: list[tuple[str, int | None]] = []
    for position, token in enumerate(tokens):
        text, i = (token, position) if isinstance(token, str) else token
        pairs.append((str(text), None if i is None else int(i)))
    features = {i for _, i in pairs if i is not None}
    if features != set(range(n_features)):
        raise ValueError(
            f"tokens name {len(features)} features; needed one string for each of the "
            f"{n_features} features, or pairs (text, feature) that name each of 0 to "
            f"{n_features - 1}"
        )
    return pairs


def carried(evaluated: Evaluated | None, limit: int) -> Evaluated | None:
    """Evaluated masks to put on the page: at most ``limit``, fewest removed first."""
    if evaluated is None or limit <= 0 or not len(evaluated):
        return None
    removed = (~evaluated.masks).sum(axis=1)
    rows = np.argsort(removed, kind="stable")[:limit]
    return Evaluated(evaluated.masks[rows], np.ravel(evaluated.values[rows]))


def _packed(evaluated: Evaluated) -> Json:
    bits = np.packbits(evaluated.masks, axis=1, bitorder="little")
    values = evaluated.values.astype("<f8")
    return {
        "masks": base64.b64encode(bits.tobytes()).decode(),
        "values": base64.b64encode(values.tobytes()).decode(),
    }


def _polynomial(piece: Surrogate) -> Json:
    return {"terms": [list(term) for term in piece.terms], "coef": piece.coef.tolist()}


def _names(
    surrogate: AnySurrogate,
    feature_names: Iterable[str] | None,
    words: list[tuple[str, int | None]] | None,
    image: Any,
) -> list[str]:
    n = surrogate.n_features
    chosen = check_names(feature_names, n, "feature_names") or surrogate.feature_names
    if chosen is not None:
        return list(chosen)
    if words is not None:
        return [" ".join(text for text, k in words if k == i) for i in range(n)]
    prefix = "x" if image is None else "superpixel "
    return [f"{prefix}{i}" for i in range(n)]


def _marks(names: list[str]) -> list[str]:
    """Return what stands in each superpixel: the number in its name, or its place."""
    numbers = [re.fullmatch(r"\D*(\d+)", name) for name in names]
    found = [hit[1] for hit in numbers if hit]
    if len(set(found)) == len(names):
        return found
    return [str(i) for i in range(len(names))]


def _given(feature_values: Iterable[Any] | None, n_features: int) -> list[str] | None:
    if feature_values is None:
        return None
    texts = (shown(value) for value in feature_values)
    return list(check_names(texts, n_features, "feature_values") or ())


def _by_influence(surrogate: AnySurrogate) -> list[int]:
    """Features by the total size of the terms that hold them, largest first."""
    mass = np.zeros(surrogate.n_features + 1)
    for piece in pieces(surrogate):
        for column in piece.table.T:
            np.add.at(mass, column, np.abs(piece.coef))
    return [int(i) for i in np.argsort(-mass[:-1], kind="stable")]


def _range(
    surrogate: AnySurrogate, known: Evaluated | None, threshold: float | None
) -> tuple[float, float]:
    """Ends of the scale: what f and g take on masks that the page may well visit."""
    n = surrogate.n_features
    rng = np.random.default_rng(0)
    masks = np.concatenate([np.eye(n, dtype=bool), rng.random((256, n)) < 0.5])
    masks = np.concatenate([masks, ~masks[:n], np.ones((1, n), bool)])
    values: list[Floats] = [surrogate(masks), surrogate(np.zeros((1, n), bool))]
    if known is not None:
        values.append(known.values)
    if threshold is not None:
        values.append(np.array([threshold]))
    every = np.concatenate(values)
    low, high = float(every.min()), float(every.max())
    pad = 0.04 * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - pad, high + pad


def _summary(surrogate: AnySurrogate) -> str:
    return (
        f"{surrogate.n_features} features · the model was asked "
        f"{surrogate.n_evaluations:,} times"
    )


def _error_note(surrogate: AnySurrogate) -> str:
    error = surrogate.error
    if error is None:
        return (
            "How far the estimate is off is not known: it was made from given numbers."
        )
    where = (
        "all combinations"
        if surrogate.radius is None
        else f"combinations with 1 to {surrogate.radius} features removed"
    )
    value, spread = float(error), float(np.ravel(error.standard_error)[0])
    if value <= tolerance(surrogate):
        checked = f"the {error.n_evaluations:,} combinations held back to check it"
        return f"The estimate equals the model on {where if error.exact else checked}."
    what = f"The estimate is typically off by {number(value, 3)}"
    if error.exact:
        return (
            f"{what} (root mean square over {where}, all of them asked). A single "
            "answer can be off by more."
        )
    return (
        f"{what} ± {number(spread, 2)} (root mean square over {where}, measured on "
        f"{error.n_evaluations:,} answers of the model that were held back). A single "
        "answer can be off by more."
    )


def _evaluated_note(surrogate: AnySurrogate, known: Evaluated | None) -> str:
    if known is None or surrogate.evaluated is None:
        return "This page holds no answers of the model itself."
    total = len(surrogate.evaluated)
    if len(known) == total:
        return f"The model's own answer is shown for all {total:,} combinations asked."
    return (
        f"The model's own answer is shown for {len(known):,} of the {total:,} "
        "combinations asked, those with the fewest features removed."
    )


def _additive_note(surrogate: AnySurrogate) -> str:
    what = (
        "Adding up single effects is what a SHAP chart does: the answer with "
        "everything removed, plus one number for each feature that is kept. "
    )
    if len(pieces(surrogate)) > 1:
        return f"{what}The numbers are those of the input as it is."
    return (
        f"{what}It agrees with the estimate when everything is kept or everything is "
        "removed; in between it leaves out how features work together."
    )


def _terms_note(surrogate: AnySurrogate) -> str:
    own = pieces(surrogate)
    n_terms = sum(len(piece.terms) for piece in own)
    degree = max(piece.degree for piece in own)
    places = "" if len(own) == 1 else f" in {len(own)} local models"
    return (
        f"The estimate is a sum of {n_terms:,} terms{places}, of up to {degree} "
        "features together."
    )
