"""`HarmonicaExplainer`: SHAP's explainer protocol over Harmonica's surrogates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import shap
from shap._serializable import Deserializer, Serializer

from harmonica_core.result.indices import check_index
from shap_harmonica.background import Background
from shap_harmonica.explanation import explain_like_masker, explain_like_table
from shap_harmonica.fitting import Harmonica, Method
from shap_harmonica.kernel_calls import KernelCalls
from shap_harmonica.links import check_link
from shap_harmonica.masked import MaskedRow
from shap_harmonica.models import as_function
from shap_harmonica.reading import (
    check_batch_size,
    check_interactions,
    check_pair_index,
    check_rows,
    masked_arguments,
    refuse_unknown,
    table_names,
    warn_about_l1,
)
from shap_harmonica.rows import Explained, Task, explain_masked, explain_table
from shap_harmonica.value_function import Table
from shap_harmonica.whatif import named

_BLOCK = "shap_harmonica.HarmonicaExplainer"


class HarmonicaExplainer(KernelCalls, shap.Explainer):
    """Explain any model by sparse polynomials of "which features are kept".

    A swap-in for `shap.KernelExplainer` and `shap.PermutationExplainer` that also has
    interactions, a surrogate per row that answers what-if questions, and a stated
    error.

    Parameters
    ----------
    model : callable or torch.nn.Module
        Rows in, ``(n_rows,)`` or ``(n_rows, n_outputs)`` out.
    masker : background or masker
        An array, DataFrame, Series, sparse matrix, ``shap.kmeans`` summary or
        `shap.maskers` object; or a function ``masker(mask, x)``. A plain background
        is used whole (SHAP's maskers keep 100 rows of it).
    link : callable, "identity" or "logit"
        ``link(E model)`` is explained; probabilities are clipped before the logit.
    feature_names, output_names : list of str, optional
    degree : int
        Largest interaction that is fitted.
    alpha : float or "auto"
        L1 strength, scikit-learn's convention. Only the lasso solver uses it; a number
        here selects that solver.
    index : str
        Attribution reported: "SV" (Shapley values, which add up) or "BV" (Banzhaf).
    interaction_index : str
        Pairs in the interaction cube: "SII" is SHAP's convention (TreeExplainer);
        "STII" is Shapley-Taylor. Off the diagonal each half holds half of the pair.
    terms : "auto", iterable of tuples, or None
        Readable set, see `harmonica_core.fit_surrogate`. None: all terms up to
        ``degree``, and everything where all masks are evaluated. With terms given,
        features that equal the background are not skipped.
    solver : {"auto", "ridge", "lasso"}
        How sampled masks are fitted. "ridge" shares one factorisation and masks of all
        sizes among all rows; "lasso" is the published sparse regression on uniform
        masks. "auto": ridge, unless ``alpha`` or ``terms`` is given or there are more
        than 65,536 terms or 8,192 masks.
    ends : bool
        Pass exactly through the model's output and the base value, so that values
        add up.
    seed : int, Generator or None
    groups : labels or callable, optional
        Columns (pixels) that are removed together; each gets an equal share of the
        group's value. Images without groups are cut into 7 x 7 patches.
    n_jobs : int
        Processes for evaluating and fitting (joblib). Rows are handed out in blocks
        of up to 32, the same ones for any number of processes.
    max_evals, batch_size : int or "auto"
        Defaults of the call's arguments.

    Attributes
    ----------
    surrogates : list
        One `harmonica_core.Surrogate` per row of the latest call.
    expected_value : float or (n_outputs,) array
        Base value; known before any call.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0]])
    >>> explainer = HarmonicaExplainer(lambda x: x[:, 0] * x[:, 1], X[:1])
    >>> explainer(X[1:]).values.tolist()
    [[1.0, 1.0]]
    """

    _settings: tuple[str, ...] = (
        "feature_names",
        "output_names",
        "degree",
        "alpha",
        "index",
        "interaction_index",
        "terms",
        "solver",
        "ends",
        "seed",
        "groups",
        "n_jobs",
        "max_evals",
        "batch_size",
    )

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Any = shap.links.identity,
        *,
        feature_names: Any = None,
        output_names: Any = None,
        degree: int = 3,
        alpha: float | Literal["auto"] = "auto",
        index: str = "SV",
        interaction_index: str = "SII",
        terms: Any = None,
        solver: Literal["auto", "ridge", "lasso"] = "auto",
        ends: bool = True,
        seed: Any = 0,
        groups: Any = None,
        n_jobs: int = 1,
        max_evals: int | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        **kwargs: Any,
    ) -> None:
        if isinstance(model, _Saved):
            type(self).__init__(self, model.model, masker, link, **model.settings)
            return
        masker = kwargs.pop("data", masker)
        max_evals = kwargs.pop("nsamples", max_evals)
        refuse_unknown(kwargs)
        if isinstance(masker, (list, tuple)):
            masker = shap.maskers.Composite(*masker)
        background = Background.of(masker)
        given_data = background is not None and not isinstance(
            masker, shap.maskers.Masker
        )
        super().__init__(
            model,
            background.as_masker() if background and given_data else masker,
            link=check_link(link),
            output_names=output_names,
            feature_names=feature_names,
        )
        self.degree, self.alpha, self.index = degree, alpha, index
        self.interaction_index, self.ends, self.solver = interaction_index, ends, solver
        self.terms = list(terms) if isinstance(terms, Iterator) else terms
        self.seed, self.groups, self.n_jobs = seed, groups, n_jobs
        self.max_evals, self.batch_size = max_evals, batch_size
        self.surrogates: list[Any] = []
        self._background = background
        self._given_data = given_data
        self._cached_table: Table | None = None

    @property
    def expected_value(self) -> Any:
        """Base value ``link(E model(background))``: a float, or (n_outputs,)."""
        if self._background is None:
            raise AttributeError(
                f"a {type(self.masker).__name__} masker has no fixed expected value; "
                "read base_values of the explanation"
            )
        return self._table(self._background).expected_value()

    def __call__(
        self,
        *args: Any,
        max_evals: int | Literal["auto"] | None = None,
        main_effects: bool = False,
        error_bounds: bool = False,
        batch_size: int | Literal["auto"] | None = None,
        outputs: Any = None,
        silent: bool = False,
        interactions: bool | int = False,
        **kwargs: Any,
    ) -> Any:
        """Explain every row of X.

        Parameters
        ----------
        *args : X, or one data set per argument of the model
            A table (array, DataFrame, sparse), a list of texts, an array of images.
        max_evals : int or "auto"
            Masks per row. Each costs one model row per background row. All masks are
            evaluated, and the values exact, where this covers them.
        main_effects : bool
            Also return ``g(only i kept) - base`` as ``main_effects``.
        error_bounds : bool
            Accepted for SHAP's sake; ``error_std`` is always there.
        batch_size : int or "auto"
            Model rows per call; "auto" bounds the memory. Changes nothing else.
        outputs : int, str, list or op chain, optional
            Which outputs to explain, such as ``shap.Explanation.argsort.flip[:2]``.
        silent : bool
            No progress bar (it appears after ten seconds).
        interactions : bool or 2
            Return the interaction cube ``(n_rows, n, n[, n_outputs])`` instead.

        Returns
        -------
        shap.Explanation
            ``values (n_rows, n[, n_outputs])``, ``base_values (n_rows[, n_outputs])``.
            A list of them when the model has several arguments.

        Examples
        --------
        >>> import numpy as np
        >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
        >>> explanation = HarmonicaExplainer(f, np.zeros((1, 3)))(np.ones((2, 3)))
        >>> explanation.values[0], explanation.base_values, explanation.error_std[0]
        (array([0.5, 0.5, 1. ]), array([0., 0.]), array([0., 0., 0.]))
        """
        start = time.perf_counter()
        warn_about_l1(kwargs)
        refuse_unknown(kwargs)
        task = Task(
            method=self._checked_method(),
            max_evals=self.max_evals if max_evals is None else max_evals,
            batch_size=check_batch_size(
                self.batch_size if batch_size is None else batch_size
            ),
            outputs=outputs,
            output_names=self._output_names(),
            n_jobs=self.n_jobs,
            silent=silent,
            title=type(self).__name__,
        )
        cube = self.interaction_index if check_interactions(interactions) else None
        if self._background is not None and len(args) == 1:
            found, explanation = self._explain_table(args[0], task, cube, main_effects)
        else:
            found, explanation = self._explain_masked(args, task, cube, main_effects)
        self.surrogates = named([row.surrogate for row in found], explanation)
        for part in explanation if isinstance(explanation, list) else [explanation]:
            part.compute_time = time.perf_counter() - start
        return explanation

    def save(
        self, out_file: Any, model_saver: Any = ".save", masker_saver: Any = ".save"
    ) -> None:
        """Write model, masker, link and all settings to a file stream.

        Examples
        --------
        >>> import contextlib, io
        >>> import numpy as np
        >>> f = lambda X: X[:, 0] * X[:, 1]
        >>> explainer = HarmonicaExplainer(f, np.zeros((1, 2)), degree=2)
        >>> explainer.save(stream := io.BytesIO())
        >>> _ = stream.seek(0)
        >>> with contextlib.redirect_stdout(None):  # SHAP prints what it loads
        ...     again = HarmonicaExplainer.load(stream)
        >>> again.degree
        2
        """
        super().save(out_file, model_saver, masker_saver)
        with Serializer(out_file, _BLOCK, version=0) as block:
            block.save("background", self._background if self._given_data else None)
            block.save("settings", {k: getattr(self, k) for k in self._settings})

    @classmethod
    def load(
        cls,
        in_file: Any,
        model_loader: Any = None,
        masker_loader: Any = None,
        instantiate: bool = True,
    ) -> Any:
        """Read what `save` wrote."""
        if instantiate:
            return cls._instantiated_load(
                in_file, model_loader=model_loader, masker_loader=masker_loader
            )
        kwargs = super().load(in_file, model_loader, masker_loader, instantiate=False)
        with Deserializer(in_file, _BLOCK, min_version=0, max_version=0) as block:
            background = block.load("background")
            settings = block.load("settings")
        if background is not None:
            kwargs["masker"] = background
        return {**kwargs, "model": _Saved(kwargs["model"], settings)}

    def _method(self) -> Method:
        """How masks are drawn and fitted; the variants differ here only."""
        return Harmonica(**self._common())

    def _checked_method(self) -> Method:
        """Return the method; wrong settings are refused before any model call."""
        method = self._method()
        method.check()
        check_index(self.index)
        check_pair_index(self.interaction_index)
        return method

    def _common(self) -> dict[str, Any]:
        names = ("degree", "alpha", "terms", "ends", "seed", "solver")
        return {name: getattr(self, name) for name in names}

    def _table(self, background: Background) -> Table:
        """Return the model on its background, made once: it remembers the form."""
        if self._cached_table is None:
            self._cached_table = Table(
                as_function(self.model), background, self.link, self.groups
            )
        return self._cached_table

    def _explain_table(
        self, X: Any, task: Task, cube: str | None, main_effects: bool
    ) -> tuple[list[Explained], Any]:
        background: Any = self._background
        table = self._table(background)
        rows, shown = check_rows(X, background)
        names = table_names(self.feature_names, rows, background, table.n_features)
        found = explain_table(table, rows, task)
        explanation = explain_like_table(
            found,
            shown,
            table.expected_value(),
            names,
            self._output_names(),
            index=check_index(self.index),
            interaction_index=cube,
            feature_of=None if self.groups is None else table.feature_of,
            with_main_effects=main_effects,
        )
        return found, explanation

    def _output_names(self) -> Any:
        """Those given, or the model's own."""
        if self.output_names is not None:
            return self.output_names
        return getattr(self.model, "output_names", None)

    def _explain_masked(
        self, args: tuple[Any, ...], task: Task, cube: str | None, main_effects: bool
    ) -> tuple[list[Explained], Any]:
        model = as_function(self.model)
        rows = [
            MaskedRow(model, self.masker, self.link, row, self.groups)
            for row in masked_arguments(args)
        ]
        found = explain_masked(rows, task)
        parts = explain_like_masker(
            found,
            rows,
            self.masker,
            self.feature_names,
            self._output_names(),
            index=check_index(self.index),
            interaction_index=cube,
            with_main_effects=main_effects,
        )
        return found, parts[0] if len(parts) == 1 else parts


@dataclass(frozen=True)
class _Saved:
    """A loaded model with the settings: SHAP's loader passes positionals only."""

    model: Any
    settings: dict[str, Any]
