"""`HarmonicaExplainer`: SHAP's explainer protocol over Harmonica's surrogates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import shap
from shap._serializable import Deserializer, Serializer

from harmonica_core import Settings, indices
from shap_harmonica.arguments import (
    check_batch_size,
    check_interactions,
    check_pair_index,
    check_rows,
    is_one_row,
    masked_arguments,
    refuse_unknown,
    table_names,
    warn_about_l1,
)
from shap_harmonica.background import Background
from shap_harmonica.explanation import Layout, explanations
from shap_harmonica.kernel_calls import KernelCalls
from shap_harmonica.links import check_link
from shap_harmonica.masker_values import MaskedRow, check_masker, masked_functions
from shap_harmonica.model_function import as_function, class_names
from shap_harmonica.priors import Priors
from shap_harmonica.surrogates import Rows, Task, explain_rows, learn_from_rows
from shap_harmonica.table_values import Table
from shap_harmonica.whatif import named

_BLOCK = "shap_harmonica.HarmonicaExplainer"


class HarmonicaExplainer(KernelCalls, shap.Explainer):
    """Explain any model by polynomials of "which features are kept".

    A swap-in for `shap.KernelExplainer` that also has interactions, a surrogate per row
    that answers what-if questions, and a standard deviation of every value.

    Parameters
    ----------
    model : callable or torch.nn.Module
        Rows in, ``(n_rows,)`` or ``(n_rows, n_outputs)`` out.
    masker : background or masker
        An array, DataFrame, Series, sparse matrix, ``shap.kmeans`` summary or
        `shap.maskers` object; or a function ``masker(mask, x)``. A background is used
        whole (SHAP's maskers keep 100 rows of it).
    link : callable, "identity" or "logit"
        ``link(E model)`` is explained; probabilities are clipped before the logit.
    feature_names, output_names : list of str, optional
        Outputs are named by the model's ``classes_`` where it has them.
    degree, engine, alpha, terms, ends
        See `harmonica_core.Settings`. With terms given, features that equal the
        background are not skipped.
    index : str
        Attribution reported: "SV" (Shapley values, which add up) or "BV" (Banzhaf).
    interaction_index : str
        Pairs in the interaction cube: "SII" is SHAP's convention (TreeExplainer);
        "STII" is Shapley-Taylor. Off the diagonal each half holds half of the pair.
    seed : int, Generator or None
        Also as ``random_state``.
    groups : labels or callable, optional
        Columns (pixels) that are removed together; each gets an equal share of the
        group's value. Images without groups are cut into 7 x 7 patches.
    n_jobs : int
        Processes for evaluating and fitting (joblib); changes nothing else.
    max_evals, batch_size : int or "auto"
        Defaults of the call's arguments.
    prior : mapping, optional
        Of another explainer of the same model: its ``prior``.

    Attributes
    ----------
    surrogates : list
        One `harmonica_core.Surrogate` per row of the latest call.
    prior : Priors
        ``{features that vary: prior}``: what rows explained together taught of the
        model. Later calls use it; `learn` learns it ahead. With a prior given, the
        result of a row depends on that row alone.
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

    _method = "harmonica"
    _settings: tuple[str, ...] = (
        *("feature_names", "output_names", "degree", "alpha", "index", "engine"),
        *("interaction_index", "terms", "ends", "seed", "groups", "n_jobs"),
        *("max_evals", "batch_size"),
    )
    # What a variant takes beside these, with its default.
    _own: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Any = shap.links.identity,
        *,
        feature_names: Any = None,
        output_names: Any = None,
        degree: int | None = None,
        engine: Literal["auto", "bayes", "lasso"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        index: str = "SV",
        interaction_index: str = "SII",
        terms: Any = None,
        ends: bool = True,
        seed: Any = 0,
        groups: Any = None,
        n_jobs: int = 1,
        max_evals: int | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        prior: Any = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(model, _Saved):
            type(self).__init__(self, model.model, masker, link, **model.settings)
            return
        masker = kwargs.pop("data", masker)
        max_evals = kwargs.pop("nsamples", max_evals)
        seed = kwargs.pop("random_state", seed)
        for name, default in self._own.items():
            setattr(self, name, kwargs.pop(name, default))
        warn_about_l1(kwargs)
        refuse_unknown(kwargs)
        if isinstance(masker, (list, tuple)):
            masker = shap.maskers.Composite(*masker)
        background = Background.of(masker)
        given = background is not None and not isinstance(masker, shap.maskers.Masker)
        super().__init__(
            model,
            background.as_masker() if background and given else masker,
            link=check_link(link),
            output_names=output_names,
            feature_names=feature_names,
        )
        if self.masker is None:
            check_masker(None)
        self.degree, self.alpha, self.index = degree, alpha, index
        self.interaction_index, self.ends, self.engine = interaction_index, ends, engine
        self.terms = list(terms) if isinstance(terms, Iterator) else terms
        self.seed, self.groups, self.n_jobs = seed, groups, n_jobs
        self.max_evals, self.batch_size = max_evals, batch_size
        self.prior = Priors(prior)
        self.surrogates: list[Any] = []
        self._background, self._given_data = background, given
        self._cached_table: Table | None = None

    @property
    def expected_value(self) -> Any:
        """Base value ``link(E model(background))``: a float, or (n_outputs,)."""
        if self._background is None:
            raise AttributeError(
                f"a {type(self.masker).__name__} masker has no fixed expected value; "
                "read base_values of the explanation"
            )
        return self._table().expected_value()

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
            A table (array, DataFrame, sparse), one row of it, a list of texts, an
            array of images.
        max_evals : int or "auto"
            Masks per row; each costs one model row per background row. Values are exact
            where this covers all masks.
        main_effects : bool
            Also return ``g(only i kept) - base`` as ``main_effects``.
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
            ``values (n_rows, n[, n_outputs])``, ``base_values (n_rows[, n_outputs])``,
            and ``error_std``: the standard deviation of each value. Of one row ``(n,)``
            without the first axis. A list when the model has several arguments.

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
        cube = self.interaction_index if check_interactions(interactions) else None
        task = self._task(max_evals, outputs, silent)
        rows, layout = self._functions(args, task, batch_size)
        found = explain_rows(rows, task, self.prior)
        index, names = indices.check_index(self.index), task.output_names
        parts = explanations(found, layout, names, index, cube, main_effects)
        for part in parts:
            part.compute_time = time.perf_counter() - start
        self.surrogates = named([row.surrogate for row in found], parts)
        if self._background is not None and len(args) == 1 and is_one_row(args[0]):
            return parts[0][0]
        return parts[0] if len(parts) == 1 else parts

    def learn(
        self,
        X: Any,
        max_evals: int | Literal["auto"] | None = None,
        batch_size: int | Literal["auto"] | None = None,
    ) -> HarmonicaExplainer:
        """Learn from a sample of rows what all rows share; return the explainer.

        Up to 32 rows with the same varying features are evaluated. Their prior is kept
        in ``prior``, and every later call uses it instead of learning its own.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(40, 12))
        >>> f = lambda x: np.tanh(x[:, 0] * x[:, 1]) + x[:, 2]
        >>> explainer = HarmonicaExplainer(f, np.zeros((1, 12))).learn(X, max_evals=80)
        >>> one_by_one = [explainer(row, max_evals=80).values for row in X]
        >>> bool((explainer(X, max_evals=80).values == one_by_one).all())
        True
        """
        task = self._task(max_evals, None, True)
        rows, _ = self._functions((X,), task, batch_size)
        learn_from_rows(rows, task, self.prior)
        return self

    def save(
        self, out_file: Any, model_saver: Any = ".save", masker_saver: Any = ".save"
    ) -> None:
        """Write model, masker, link, settings and prior to a file stream."""
        super().save(out_file, model_saver, masker_saver)
        with Serializer(out_file, _BLOCK, version=1) as block:
            block.save("background", self._background if self._given_data else None)
            names = (*self._settings, *self._own)
            block.save("settings", {name: getattr(self, name) for name in names})
            block.save("prior", self.prior, encoder=Priors.write)

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
        with Deserializer(in_file, _BLOCK, min_version=1, max_version=1) as block:
            background = block.load("background")
            settings = block.load("settings")
            settings["prior"] = block.load("prior", decoder=Priors.read)
        if background is not None:
            kwargs["masker"] = background
        return {**kwargs, "model": _Saved(kwargs["model"], settings)}

    def _task(self, max_evals: Any, outputs: Any, silent: bool) -> Task:
        """Return what a call asks for; wrong settings are refused here."""
        own = {*self._settings, *self._own} & set(Settings.__dataclass_fields__)
        indices.check_index(self.index)
        check_pair_index(self.interaction_index)
        names = self.output_names or getattr(self.model, "output_names", None)
        return Task(
            settings=Settings(self._method, **{k: getattr(self, k) for k in own}),
            seed=self.seed,
            max_evals=self.max_evals if max_evals is None else max_evals,
            outputs=outputs,
            output_names=names or class_names(self.model),
            n_jobs=self.n_jobs,
            silent=silent,
            title=type(self).__name__,
        )

    def _functions(
        self, args: tuple[Any, ...], task: Task, batch_size: Any
    ) -> tuple[Rows, Layout]:
        """Return the rows as functions of masks, and how their features lie."""
        size = check_batch_size(self.batch_size if batch_size is None else batch_size)
        everything = task.settings.terms is not None
        background = self._background
        if background is None or len(args) > 1:
            model = as_function(self.model)
            inputs = [
                MaskedRow(model, self.masker, self.link, one, self.groups)
                for one in masked_arguments(args)
            ]
            layout = Layout.of_masker(self.masker, inputs, self.feature_names)
            return masked_functions(inputs, size, everything), layout
        rows, shown = check_rows(args[0], background)
        table = self._table()
        task.settings.check_features(table.n_features)
        functions = table.as_functions(rows, size, everything)
        names = table_names(self.feature_names, rows, background, table.n_features)
        groups = None if self.groups is None else table.feature_of
        base = table.expected_value()
        return functions, Layout.of_table(shown, names, groups, base)

    def _table(self) -> Table:
        """Return the model on its background, made once: it remembers the form."""
        if self._cached_table is None:
            background: Any = self._background
            model = as_function(self.model)
            self._cached_table = Table(model, background, self.link, self.groups)
        return self._cached_table


@dataclass(frozen=True)
class _Saved:
    """A loaded model with the settings: SHAP's loader passes positionals only."""

    model: Any
    settings: dict[str, Any]
