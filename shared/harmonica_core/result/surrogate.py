"""The readable polynomial that explains every removal of one input's features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from harmonica_core import basis, storage
from harmonica_core._types import Floats, Table, Term, Values
from harmonica_core.basis.kernel import Prior
from harmonica_core.checks import (
    check_count,
    check_names,
    is_whole,
)
from harmonica_core.design.masks import check_masks
from harmonica_core.evaluate import Evaluated
from harmonica_core.result import indices
from harmonica_core.result.by_name import answer_by_name
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.mean import Mean
from harmonica_core.threads import one_thread
from harmonica_core.whatif import Askable


class Surrogate(Askable):
    """``g``: what f answers for every mask, as far as it was seen; callable on masks.

    A surrogate is a polynomial ``g(x) = sum_S coef_S chi_S(x)``, given by its terms, or
    the posterior mean of f given the evaluated masks. The latter answers with the value
    itself where a mask was evaluated, and its ``terms`` are found when they are asked
    for: all of them up to 12 features, beyond that all that matter up to the error.

    Parameters
    ----------
    n_features : int
    table : int32 (n_terms, degree)
        One term a row, padded with -1; an iterable of tuples is converted. The empty
        term is the intercept.
    coef : float64 (n_terms,) or (n_terms, n_outputs)
        Row k belongs to row k of ``table``, and to ``terms[k]``.
    error : Estimate or None
        Honest estimate of ``I_2 = sqrt(E (f - g)^2)`` over uniform masks (or over
        the neighbourhood the surrogate was fitted on), per output. None when the
        surrogate was not fitted but made from given numbers.
    n_evaluations : int
        Model evaluations that were paid for it.
    alpha : float or (n_outputs,)
        L1 strength used, scikit-learn's convention; 0 without one.
    radius : int or None
        Neighbourhood it was fitted on; None = all masks.
    max_degree : int, optional
        Largest term that was a candidate in the fit, at least ``degree``: an absent
        term up to this size is a finding, a larger one was never looked for.
    feature_names, output_names : tuple of str, optional
    stopped : "timeout", "tolerance", "budget" or None
        Why sampling ended early, or ended at all where a tolerance was given.
    evaluated : Evaluated, optional
        The masks and values it was fitted to.
    mean : Mean, optional
        The posterior, in place of ``table`` and ``coef``.

    Examples
    --------
    >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
    >>> g([[True, True], [False, True]])
    array([1.75, 0.25])
    >>> g.spectrum[(0, 1)], g.base_value
    (0.25, 0.75)
    """

    def __init__(
        self,
        n_features: int,
        table: Any = None,
        coef: Any = None,
        error: Estimate | None = None,
        n_evaluations: int = 0,
        alpha: float | Floats = 0.0,
        radius: int | None = None,
        max_degree: int | None = None,
        feature_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
        stopped: str | None = None,
        evaluated: Evaluated | None = None,
        mean: Mean | None = None,
    ) -> None:
        self.n_features = check_count(n_features, "n_features")
        self.n_evaluations = check_count(n_evaluations, "n_evaluations")
        self.error, self.alpha, self.radius = error, alpha, radius
        self.stopped, self.evaluated, self.mean = stopped, evaluated, mean
        self._largest = (
            None if max_degree is None else check_count(max_degree, "max_degree")
        )
        if mean is None:
            self._polynomial = _check_polynomial(table, coef, self.n_features)
        self.feature_names = check_names(
            feature_names, self.n_features, "feature_names"
        )
        self.output_names = check_names(output_names, self.n_outputs, "output_names")

    @cached_property
    def _polynomial(self) -> tuple[Table, Values]:
        """Terms and coefficients, found when they are first asked for."""
        if self.mean is None:  # __init__ has set it
            raise AttributeError("_polynomial")
        with one_thread():
            table, coef = self.mean.polynomial(self.n_features, self.error)
        return _frozen(table), _frozen(coef[:, 0] if self.mean.one_output else coef)

    @property
    def table(self) -> Table:
        """Terms ``(n_terms, degree)``: one a row, padded with -1."""
        return self._polynomial[0]

    @property
    def coef(self) -> Values:
        """Coefficients ``(n_terms,)`` or ``(n_terms, n_outputs)``."""
        return self._polynomial[1]

    def changed(self, **changes: Any) -> Surrogate:
        """Return a copy with other attributes; those of ``__init__``."""
        names = (
            "n_features error n_evaluations alpha radius feature_names output_names "
            "stopped evaluated mean"
        )
        now = {name: getattr(self, name) for name in names.split()}
        now["max_degree"] = self._largest
        if "table" in changes:
            now["mean"] = None
        elif self.mean is None:
            now |= {"table": self.table, "coef": self.coef}
        copy = type(self)(**(now | changes))
        if self.mean is not None and copy.mean is self.mean:
            found = self.__dict__.get("_polynomial")
            if found is not None and not changes.keys() & {"error", "n_features"}:
                copy.__dict__["_polynomial"] = found
        return copy

    @property
    def one_output(self) -> bool:
        """Whether answers are ``(n_masks,)`` rather than ``(n_masks, n_outputs)``."""
        return self.coef.ndim == 1 if self.mean is None else self.mean.one_output

    @property
    def n_outputs(self) -> int:
        """Number of outputs (1 also when answers are one-dimensional)."""
        if self.mean is not None:
            return self.mean.n_outputs
        return 1 if self.coef.ndim == 1 else self.coef.shape[1]

    @property
    def prior(self) -> Prior | None:
        """The learnt prior, for ``fit_surrogate(prior=)``; None without one."""
        return None if self.mean is None else self.mean.posterior.regression.prior

    @property
    def degree(self) -> int:
        """Size of the largest term."""
        return basis.largest_size(self.table)

    @property
    def max_degree(self) -> int:
        """Size of the largest candidate; ``n_features`` without limit."""
        if self._largest is not None:
            return max(self._largest, self.degree)
        return self.degree if self.mean is None else self.n_features

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms as sorted tuples of features; ``()`` is the intercept."""
        return basis.terms_of(self.table)

    @cached_property
    def coef_columns(self) -> Floats:
        """Coefficients as ``(n_terms, n_outputs)``."""
        return self.coef.reshape(len(self.coef), self.n_outputs)

    def __call__(self, masks: Any) -> Any:
        """Predict: ``(n_masks,)`` or ``(n_masks, n_outputs)``; a row for each mask.

        A mapping from names or numbers of features to "is it kept", such as
        ``{"home": 0}``, is one mask in which all others are kept; it gives a float, or
        ``(n_outputs,)``.
        """
        if isinstance(masks, Mapping):
            return answer_by_name(self, masks)
        checked = check_masks(masks, self.n_features)
        with one_thread():
            if self.mean is not None:
                out = self.mean.predict(checked)
            else:
                out = basis.predict(checked, self.table, self.coef_columns)
        return out[:, 0] if self.one_output else out

    def without(self, *features: str | int) -> Any:
        """Return the answer when features, by name or number, are removed.

        Examples
        --------
        >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
        >>> g = g.with_names(["age", "home"])
        >>> g.without("home"), g({"home": 0}), g.without("age", "home")
        (1.25, 1.25, 0.75)
        """
        return self(dict.fromkeys(features, False))

    def predict(self, masks: Any, return_std: bool = False) -> Any:
        """Return the answers for masks, with ``return_std`` also their deviations.

        Parameters
        ----------
        masks : bool (n_masks, n_features)
        return_std : bool
            Return ``(answers, std)``: standard deviations of ``f - g`` at each mask, 0
            where it was evaluated. As in scikit-learn.

        Examples
        --------
        >>> from harmonica_core import fit_surrogate
        >>> g = fit_surrogate(lambda masks: masks.sum(axis=1), n_features=20, budget=60)
        >>> answer, std = g.predict(np.ones((1, 20), dtype=bool), return_std=True)
        >>> answer.round(6).tolist(), std.tolist()
        ([20.0], [0.0])
        """
        answers = self(masks)
        if not return_std:
            return answers
        checked = check_masks(masks, self.n_features)
        if self.mean is not None:
            with one_thread():
                std = self.mean.predict_std(checked)
        else:
            least = 0.0 if self.error is None else np.asarray(self.error.value)
            std = np.zeros((len(checked), self.n_outputs)) + least
        return answers, std[:, 0] if self.one_output else std

    @cached_property
    def spectrum(self) -> dict[Term, Any]:
        """``{term: coef}``; the coef is a row ``(n_outputs,)`` for several outputs."""
        coef = self.coef.tolist() if self.coef.ndim == 1 else list(self.coef)
        return dict(zip(self.terms, coef, strict=True))

    def shapley_values(self, return_std: bool = False) -> Any:
        """Return Shapley values: ``(n_features,)`` or ``(n_features, n_outputs)``.

        ``phi_i = 2 * sum_{S contains i, |S| odd} a_S / |S|``; they sum to
        ``g(all kept) - g(all removed)``. With ``return_std`` a pair: the values and
        their standard deviations. A polynomial from m masks has coefficients with a
        standard error of about ``I_2 / sqrt(m)``, and a value is mostly twice its
        feature's coefficient.

        Examples
        --------
        >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
        >>> g.shapley_values()
        array([1., 0.])
        >>> float(g.shapley_values().sum()) == g.full_value - g.base_value
        True
        """
        phi = self._shapley()
        phi = phi[:, 0] if self.one_output else phi
        if not return_std:
            return phi
        if self.mean is not None:
            with one_thread():
                std = self.mean.shapley_std(self.n_features)
        else:
            std = np.zeros((self.n_features, self.n_outputs))
            if self.error is not None:
                std += 2 * self.error.value / np.sqrt(max(1, self.n_evaluations))
        return phi, std[:, 0] if self.one_output else std

    def _shapley(self) -> Floats:
        if self.mean is not None:
            with one_thread():
                return self.mean.shapley(self.n_features)
        return basis.shapley_of_terms(self.table, self.coef_columns, self.n_features)

    def interactions(
        self, order: int = 2, index: str = "SII", return_std: bool = False
    ) -> Any:
        """Return ``{term: value}`` for sizes 1 to ``order`` of any index of g.

        See `indices.interactions`: Moebius, BII, SII, k-SII, STII, FSII or FBII; zeros
        are left out and read as zero. With ``return_std`` a pair: the values and their
        standard deviations.

        Examples
        --------
        >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
        >>> g.interactions(order=2)
        {(0,): 1.0, (0, 1): 1.0}
        >>> g.interactions(order=2, index="Moebius")
        {(0,): 0.5, (1,): -0.5, (0, 1): 1.0}
        """
        with one_thread():
            return indices.interactions(self, order, index, return_std)

    def interaction_matrix(self, index: str = "SII", return_std: bool = False) -> Any:
        """Return pairs in SHAP's layout: see `indices.interaction_matrix`.

        Examples
        --------
        >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
        >>> g.interaction_matrix()
        array([[ 0.5,  0.5],
               [ 0.5, -0.5]])
        """
        with one_thread():
            return indices.interaction_matrix(self, index, return_std)

    def to_shapiq(self, order: int = 2, index: str = "k-SII") -> Any:
        """Return ``shapiq.InteractionValues``, for its network, force, upset plots.

        Examples
        --------
        >>> g = Surrogate(2, ((), (0,), (0, 1)), np.array([1.0, 0.5, 0.25]))
        >>> found = g.to_shapiq(order=2, index="k-SII")
        >>> float(found[(0, 1)]), found.index
        (1.0, 'k-SII')
        """
        from harmonica_core.result.shapiq_bridge import to_shapiq

        return to_shapiq(self, order, index)

    def output(self, k: int) -> Surrogate:
        """Return the surrogate of output ``k`` alone.

        Examples
        --------
        >>> coef = np.array([[1.0, 0.0], [0.5, 2.0]])
        >>> g = Surrogate(2, ((0,), (1,)), coef, output_names=("cat", "dog"))
        >>> dog = g.output(1)
        >>> dog.output_names, dog.spectrum
        (('dog',), {(1,): 2.0})
        """
        if self.one_output:
            raise ValueError("this surrogate has one output already; call it directly")
        if not is_whole(k) or not 0 <= k < self.n_outputs:
            raise ValueError(
                f"output {k!r}; needed a whole number from 0 to {self.n_outputs - 1}"
            )
        evaluated = self.evaluated and Evaluated(
            self.evaluated.masks, self.evaluated.values[:, k]
        )
        error = self.error and Estimate(
            float(np.ravel(self.error.value)[k]),
            float(np.ravel(self.error.standard_error)[k]),
            self.error.n_evaluations,
            self.error.exact,
        )
        changes: dict[str, Any] = {
            "error": error,
            "alpha": float(np.broadcast_to(self.alpha, self.n_outputs)[k]),
            "output_names": self.output_names and (self.output_names[k],),
            "evaluated": evaluated,
        }
        if self.mean is not None:
            return self.changed(mean=self.mean.output(k), **changes)
        active = basis.active_rows(self.table, self.coef[:, [k]])
        table = basis.trim(self.table[active])
        return self.changed(table=table, coef=self.coef[active, k], **changes)

    def with_names(
        self,
        feature_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
    ) -> Surrogate:
        """Return a copy that carries names.

        Examples
        --------
        >>> g = Surrogate(2, ((0,), (0, 1)), np.array([0.5, 0.25]))
        >>> g.with_names(["age", "income"]).term_name((0, 1))
        'age × income'
        """
        return self.changed(
            feature_names=None if feature_names is None else tuple(feature_names),
            output_names=None if output_names is None else tuple(output_names),
        )

    def term_name(self, term: Term) -> str:
        """Return a readable name: ``age × income``, or ``(intercept)``."""
        if not term:
            return "(intercept)"
        return " × ".join(self.feature_name(i) for i in term)

    def feature_name(self, i: int) -> str:
        """Return the name of feature i (``x3`` when no names were given)."""
        return self.feature_names[i] if self.feature_names else f"x{i}"

    def top_terms(self, n: int = 10) -> list[Term]:
        """Return the n terms of largest magnitude, the intercept left out.

        Examples
        --------
        >>> g = Surrogate(3, ((), (0,), (1, 2)), np.array([9.0, 0.5, -2.0]))
        >>> g.top_terms(1)
        [(1, 2)]
        """
        size = np.abs(self.coef_columns).max(axis=1, initial=0.0)
        order = np.argsort(-size, kind="stable")
        return [self.terms[row] for row in order if self.terms[row]][:n]

    def readable(self, k: int) -> Surrogate:
        """Return the polynomial of the k largest terms and the intercept.

        In an orthonormal basis no polynomial of k terms is nearer to g. Its error is
        that of g and of what it leaves out, which are about orthogonal.

        Examples
        --------
        >>> g = Surrogate(3, ((), (0,), (1, 2)), np.array([9.0, 0.5, -2.0]))
        >>> g.readable(1).spectrum
        {(): 9.0, (1, 2): -2.0}
        """
        k = check_count(k, "k")
        size = np.abs(self.coef_columns).max(axis=1, initial=0.0)
        empty = basis.term_sizes(self.table) == 0
        order = np.argsort(-np.where(empty, np.inf, size), kind="stable")
        kept = np.sort(order[: k + int(empty.any())])
        dropped = np.delete(self.coef_columns, kept, axis=0)
        error = self.error
        if error is not None:
            lost = np.sqrt((dropped**2).sum(axis=0))
            value = np.hypot(error.value, lost[0] if self.one_output else lost)
            error = replace(error, value=value)
        table = basis.trim(self.table[kept])
        return self.changed(table=table, coef=self.coef[kept], error=error)

    def __repr__(self) -> str:
        head = (
            f"Surrogate of {self.n_features} features, {len(self.terms)} terms up to "
            f"degree {self.degree}, {self.n_evaluations} evaluations"
        )
        if self.n_outputs > 1:
            head += f", {self.n_outputs} outputs"
        if self.stopped:
            head += f" (stopped: {self.stopped})"
        lines = [head]
        if self.error is not None:
            lines.append(f"  error (I_2): {self.error!r}")
        for term in [t for t in self.terms if not t] + self.top_terms():
            shown = np.array2string(np.asarray(self.spectrum[term]), precision=4)
            lines.append(f"  {shown:>12}  {self.term_name(term)}")
        hidden = len(self.terms) - (len(lines) - 1 - (self.error is not None))
        if hidden > 0:
            lines.append(f"  ... and {hidden} smaller terms")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: term, name, size, one column per output.

        Examples
        --------
        >>> g = Surrogate(2, ((0,), (0, 1)), np.array([0.5, 0.25]))
        >>> print(g.with_names(["age", "income"]).to_frame().to_string(index=False))
          term         name  size  coef
          (0,)          age     1  0.50
        (0, 1) age × income     2  0.25
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'to_frame() needs pandas: pip install "pandas>=2"'
            ) from error
        frame = pd.DataFrame(
            {
                "term": list(self.terms),
                "name": [self.term_name(term) for term in self.terms],
                "size": [len(term) for term in self.terms],
            }
        )
        names = self.output_names or tuple(
            "coef" if self.n_outputs == 1 else f"coef_{k}"
            for k in range(self.n_outputs)
        )
        for k, name in enumerate(names):
            column = self.coef_columns[:, k]
            frame.insert(3 + k, name, column, allow_duplicates=True)
        return frame

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``path`` (one .npz file, no pickle); an old file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> g = Surrogate(2, ((0,), (0, 1)), np.array([0.5, 0.25]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     g.save(folder + "/g.npz")
        ...     Surrogate.load(folder + "/g.npz").spectrum
        {(0,): 0.5, (0, 1): 0.25}
        """
        storage.write(path, "surrogate", *storage.pack(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Surrogate:
        """Read what `save` wrote; anything else is refused with a ValueError."""
        return cls(**storage.unpack(*storage.read(path, "surrogate")))


def _check_polynomial(table: Any, coef: Any, n_features: int) -> tuple[Table, Values]:
    """Return a valid table and finite coefficients, one row a term."""
    table = basis.check_table(table, n_features)
    given = np.asarray(coef)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"coef has dtype {given.dtype}; needed real numbers")
    coef = given.astype(np.float64)
    if coef.ndim not in (1, 2) or len(table) != len(coef) or 0 in coef.shape[1:]:
        raise ValueError(
            f"got {len(table)} distinct terms and coef of shape {coef.shape}; "
            "needed one row of coef per term"
        )
    if not np.isfinite(coef).all():
        raise ValueError("coef has NaN or infinite entries; needed finite numbers")
    return _frozen(table), _frozen(coef)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
