"""Several polynomials, each for its share of the cube: less error, less consistency.

Every mask belongs to its nearest anchor and is explained by that anchor's polynomial.
With k anchors the inconsistency is ``log k``; how far the polynomials are from each
other and from their mean says what it amounts to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from harmonica_core import basis, storage
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.design.masks import check_masks
from harmonica_core.evaluate import Evaluated
from harmonica_core.result.by_name import answer_by_name
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.scaling import unit_of
from harmonica_core.whatif import Askable


def nearest_anchor(masks: Masks, anchors: Masks) -> np.ndarray:
    """Index ``(m,)`` of each mask's nearest anchor, the lowest one on ties.

    Hamming distance; on masks every L_p distance with finite p orders the same way.

    Examples
    --------
    >>> anchors = np.array([[True, True, True], [False, False, True]])
    >>> masks = np.array([[True, True, False], [False, False, False]])
    >>> nearest_anchor(masks, anchors).tolist()
    [0, 1]
    """
    # |x - a|_1 = |x| + |a| - 2 x.a, and |x| is the same for every anchor.
    overlap = masks.astype(np.float32) @ anchors.T.astype(np.float32)
    return np.asarray((anchors.sum(axis=1) - 2 * overlap).argmin(axis=1))


def common_terms(surrogates: Sequence[Surrogate]) -> tuple[Table, Floats]:
    """Return the union of all terms and ``coef (k, n_terms, n_outputs)`` on it."""
    width = max(g.table.shape[1] for g in surrogates)
    tables = [
        np.pad(g.table, ((0, 0), (0, width - g.table.shape[1])), constant_values=-1)
        for g in surrogates
    ]
    if width == 0:  # numpy finds no distinct rows among rows without columns
        constants = [g.coef_columns.sum(axis=0, keepdims=True) for g in surrogates]
        return np.zeros((1, 0), dtype=np.int32), np.stack(constants)
    union, place = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    order = np.argsort(basis.term_sizes(union), kind="stable")
    place = np.argsort(order)[place.ravel()]
    coef = np.zeros((len(surrogates), len(union), surrogates[0].n_outputs))
    start = 0
    for row, g in zip(coef, surrogates, strict=True):
        row[place[start : start + len(g.table)]] = g.coef_columns
        start += len(g.table)
    return union[order], coef


@dataclass(frozen=True, eq=False)
class AnchoredSurrogate(Askable):
    """``g(x) = g_i(x)`` with i the nearest anchor of x: frozen, callable on masks.

    Attributes
    ----------
    anchors : bool (k, n_features)
        The first one is the input itself: everything kept.
    surrogates : tuple of Surrogate, one per anchor
    error : Estimate or None
        Honest estimate of ``I_2`` of the whole g over uniform masks, per output.
    n_evaluations : int
        Model evaluations that were paid for all of it.
    feature_names, output_names : tuple of str, optional
    evaluated : Evaluated, optional
        The masks and values it was fitted to.
    exact : Surrogate, optional
        f itself, where all masks were evaluated: then Shapley values and interactions
        are read from it.

    Examples
    --------
    >>> near = Surrogate(2, ((), (0,)), np.array([1.0, 0.5]))
    >>> far = Surrogate(2, ((), (1,)), np.array([0.0, 1.0]))
    >>> g = AnchoredSurrogate([[True, True], [False, False]], (near, far))
    >>> g([[True, True], [False, False]]), g.nearest([[False, False]])
    (array([ 1.5, -1. ]), array([1]))
    >>> g.shapley_values(), g.mean.spectrum[()]  # of `own`; of all pieces' mean
    (array([1., 0.]), 0.5)
    >>> g.spectrum_distances()
    array([[0. , 1.5],
           [1.5, 0. ]])
    """

    anchors: Masks
    surrogates: tuple[Surrogate, ...]
    error: Estimate | None = None
    n_evaluations: int = 0
    feature_names: tuple[str, ...] | None = None
    output_names: tuple[str, ...] | None = None
    evaluated: Evaluated | None = field(default=None, repr=False)
    exact: Surrogate | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        pieces = tuple(self.surrogates)
        if not pieces:
            raise ValueError("got no surrogates; needed at least one, with its anchor")
        anchors = check_masks(self.anchors, pieces[0].n_features).copy()
        if len(anchors) != len(pieces):
            raise ValueError(
                f"got {len(anchors)} anchors and {len(pieces)} surrogates; needed one "
                "surrogate per anchor"
            )
        if len({(g.n_features, g.coef.shape[1:]) for g in pieces}) > 1:
            raise ValueError(
                "the surrogates differ in their features or outputs; needed the same"
            )
        anchors.flags.writeable = False
        names = (self.feature_names, self.output_names)
        pieces = tuple(g.with_names(*names) for g in pieces)
        object.__setattr__(self, "anchors", anchors)
        object.__setattr__(self, "surrogates", pieces)
        object.__setattr__(self, "feature_names", pieces[0].feature_names)
        object.__setattr__(self, "output_names", pieces[0].output_names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.own.n_features

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.own.n_outputs

    @property
    def n_anchors(self) -> int:
        """Number of anchors k."""
        return len(self.surrogates)

    @property
    def log_k(self) -> float:
        """Inconsistency ``log k``: 0 for one polynomial."""
        return math.log(self.n_anchors)

    @property
    def own(self) -> Surrogate:
        """The polynomial of the input's own anchor, the first one."""
        return self.surrogates[0]

    @property
    def degree(self) -> int:
        """Size of the largest term of any piece."""
        return max(g.degree for g in self.surrogates)

    @property
    def max_degree(self) -> int:
        """Size of the largest term that was a candidate."""
        return max(g.max_degree for g in self.surrogates)

    @property
    def radius(self) -> None:
        """None: it answers for all masks."""
        return None

    def nearest(self, masks: Any) -> np.ndarray:
        """Index ``(n_masks,)`` of the anchor that each mask belongs to."""
        return nearest_anchor(check_masks(masks, self.n_features), self.anchors)

    def __call__(self, masks: Any) -> Any:
        """Predict: ``(n_masks,)`` or ``(n_masks, n_outputs)``; see `Surrogate`."""
        if isinstance(masks, Mapping):
            return answer_by_name(self, masks)
        checked = check_masks(masks, self.n_features)
        cell = nearest_anchor(checked, self.anchors)
        out = np.zeros((len(checked), *self.own.coef.shape[1:]))
        for k, piece in enumerate(self.surrogates):
            rows = cell == k
            if rows.any():
                out[rows] = piece(checked[rows])
        return out

    @property
    def attributed(self) -> Surrogate:
        """What attributions are read from: f itself if it is known, else ``own``."""
        return self.own if self.exact is None else self.exact

    def without(self, *features: str | int) -> Any:
        """Return the answer when features, by name or number, are removed."""
        return self(dict.fromkeys(features, False))

    def shapley_values(self, return_std: bool = False) -> Any:
        """Return the Shapley values of ``attributed``.

        They sum to ``own(all kept) - own(all removed)`` where not all masks are known;
        the second is not the whole g's ``base_value`` when "all removed" belongs to
        another anchor. With ``return_std`` as in `Surrogate.shapley_values`.
        """
        one = self.attributed
        one = one if one.error is not None else self._in_one(one)
        return one.shapley_values(return_std)

    def interactions(
        self, order: int = 2, index: str = "SII", return_std: bool = False
    ) -> Any:
        """Interactions of ``attributed``: see `Surrogate.interactions`."""
        return self.attributed.interactions(order, index, return_std)

    def interaction_matrix(self, index: str = "SII", return_std: bool = False) -> Any:
        """Pairs of ``attributed``: see `Surrogate.interaction_matrix`."""
        return self.attributed.interaction_matrix(index, return_std)

    def to_shapiq(self, order: int = 2, index: str = "k-SII") -> Any:
        """Return ``attributed`` in shapiq: see `Surrogate.to_shapiq`."""
        return self.attributed.to_shapiq(order, index)

    @cached_property
    def mean(self) -> Surrogate:
        """The polynomial ``gbar = mean_i g_i``, one for all masks."""
        table, coef = common_terms(self.surrogates)
        middle = coef.mean(axis=0)
        return self.own.changed(
            table=table,
            coef=middle[:, 0] if self.own.one_output else middle,
            error=None,
            n_evaluations=self.n_evaluations,
            max_degree=self.max_degree,
        )

    def spectrum_distances(self, p: float = 2) -> Floats:
        """``D_p(g_i, g_j)`` between all pieces: ``(k, k)`` or ``(k, k, n_outputs)``."""
        p = _check_power(p)
        _, coef = common_terms(self.surrogates)
        gaps = [_norms(coef - one, p) for one in coef]
        return self._squeeze(np.stack(gaps))

    def distances_to_mean(self, p: float = 2) -> Floats:
        """``D_p(g_i, gbar)`` of each piece: ``(k,)`` or ``(k, n_outputs)``.

        Their sum for p = 2 is ``D_total`` of the trade-off theorem.
        """
        p = _check_power(p)
        _, coef = common_terms(self.surrogates)
        return self._squeeze(_norms(coef - coef.mean(axis=0), p))

    def _squeeze(self, gaps: Floats) -> Floats:
        return gaps[..., 0] if self.own.coef.ndim == 1 else gaps

    def output(self, k: int) -> AnchoredSurrogate:
        """Return the surrogate of output ``k`` alone."""
        whole = self._in_one(self.mean).output(k)
        return replace(
            self,
            surrogates=tuple(g.output(k) for g in self.surrogates),
            error=whole.error,
            output_names=whole.output_names,
            evaluated=whole.evaluated,
            exact=self.exact and self.exact.output(k),
        )

    def with_names(
        self,
        feature_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
    ) -> AnchoredSurrogate:
        """Return a copy that carries names."""
        return replace(
            self,
            feature_names=None if feature_names is None else tuple(feature_names),
            output_names=None if output_names is None else tuple(output_names),
        )

    def __repr__(self) -> str:
        lines = [
            f"AnchoredSurrogate of {self.n_features} features, {self.n_anchors} anchors"
            f" (log k = {self.log_k:.3g}), {self.n_evaluations} evaluations"
        ]
        if self.error is not None:
            lines.append(f"  error (I_2): {self.error!r}")
        away = self.distances_to_mean().reshape(self.n_anchors, -1).max(axis=1)
        for anchor, piece, gap in zip(self.anchors, self.surrogates, away, strict=True):
            kept = "all" if anchor.all() else str(int(anchor.sum()))
            lines.append(
                f"  anchor keeping {kept}: {len(piece.terms)} terms up to degree "
                f"{piece.degree}, {gap:.3g} from the mean"
            )
        return "\n".join(lines)

    def _in_one(self, polynomial: Surrogate) -> Surrogate:
        """Return a polynomial that carries the whole's error, cost and evaluations."""
        return polynomial.changed(
            error=self.error,
            n_evaluations=self.n_evaluations,
            evaluated=self.evaluated,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``path`` (one .npz file, no pickle); an old file is replaced.

        The file holds the mean polynomial with what is known of the whole, the
        anchors, and each piece.
        """
        header, arrays = storage.pack(self._in_one(self.mean))
        header["parts"] = []
        for k, piece in enumerate(self.surrogates):
            one, more = storage.pack(piece, prefix=f"part{k}_")
            header["parts"].append(one)
            arrays |= more
        if self.exact is not None:
            header["exact"], more = storage.pack(self.exact, prefix="exact_")
            arrays |= more
        arrays["anchors"] = np.packbits(self.anchors, axis=1)
        storage.write(path, "anchored", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AnchoredSurrogate:
        """Read what `save` wrote; anything else is refused with a ValueError."""
        header, arrays = storage.read(path, "anchored")
        whole = Surrogate(**storage.unpack(header, arrays))
        if not isinstance(header.get("parts"), list) or "anchors" not in arrays:
            raise ValueError(
                f"{os.fspath(path)!r} lacks its pieces: it is damaged; needed a file "
                "written by save()"
            )
        packed = np.atleast_2d(arrays["anchors"])
        if packed.dtype != np.uint8 or packed.shape[1] != -(-whole.n_features // 8):
            raise ValueError(
                f"{os.fspath(path)!r} has odd anchors: it is damaged; needed a file "
                "written by save()"
            )
        return cls(
            anchors=np.unpackbits(packed, axis=1, count=whole.n_features).astype(bool),
            surrogates=tuple(
                Surrogate(**storage.unpack(one, arrays, prefix=f"part{k}_"))
                for k, one in enumerate(header["parts"])
            ),
            error=whole.error,
            n_evaluations=whole.n_evaluations,
            feature_names=whole.feature_names,
            output_names=whole.output_names,
            evaluated=whole.evaluated,
            exact=Surrogate(**storage.unpack(header["exact"], arrays, prefix="exact_"))
            if "exact" in header
            else None,
        )


def own_polynomial(surrogate: Surrogate | AnchoredSurrogate) -> Surrogate:
    """Return the polynomial that attributions are read from."""
    return (
        surrogate.attributed if isinstance(surrogate, AnchoredSurrogate) else surrogate
    )


def _norms(gaps: Floats, p: float) -> Floats:
    """p-norms over the terms ``(k, n_terms, n_outputs)``, free of overflow."""
    unit = unit_of(np.abs(gaps).max(initial=0.0))
    return np.asarray(unit * np.linalg.norm(gaps / unit, ord=p, axis=1))


def _check_power(p: object) -> float:
    """Return p > 0, also infinite."""
    number = isinstance(p, (int, float, np.number)) and not isinstance(p, bool)
    if not number or not float(p) > 0:  # type: ignore[arg-type]
        raise ValueError(f"p={p!r}; needed a number > 0 (numpy.inf: the largest)")
    return float(p)  # type: ignore[arg-type]
