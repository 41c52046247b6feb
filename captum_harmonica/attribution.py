"""Harmonica as a Captum attribution: change the class name, keep the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from captum.log import log_usage

from captum_harmonica._captum import PerturbationAttribution
from captum_harmonica.batch import Group, explain_batch
from captum_harmonica.features import FeatureMap, FeatureMask, as_tuple
from captum_harmonica.reuse import NotComparable, content, model_state
from captum_harmonica.value_function import Inputs, Masks, masked_forward
from harmonica_core import Surrogate
from harmonica_core.result.anchored import own_polynomial
from harmonica_core.engine.explicit import Terms
from harmonica_core.fit import fit_surrogates
from harmonica_core.result.indices import check_index, feature_values
from harmonica_core.design.masks import all_masks, covers
from harmonica_core.ridge import check_solver, fit_ridge, shapley_masks, shares_ridge
from harmonica_core.settings import (
    check_alpha,
    check_degree,
    check_settings,
    draw_masks,
    near_share,
)
from harmonica_core.result.surrogates_of import surrogates_of

Budget = int | Literal["auto"]


@dataclass(frozen=True)
class _Explained:
    """What one call found out, and what it was asked."""

    surrogates: tuple[Any, ...]
    features: FeatureMap
    joint: bool
    question: Any = None
    forward_func: Any = None


class Harmonica(KernelShap, ShapleyValueSampling):
    """One polynomial for every removal, in place of `KernelShap`.

    One polynomial per example predicts the model's output for every subset of the
    features. `attribute` returns its Shapley values, on the scale and in the shape of
    ``KernelShap(forward_func).attribute``; `explain` returns the polynomials. It is a
    KernelShap and a ShapleyValueSampling only by type, so that `LLMAttribution` accepts
    it and also offers per-token attributions.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the same inputs.
    degree : int
        Largest term that is fitted. With 3 or more, a call whose ``n_samples`` covers
        all ``2**n`` masks keeps the whole exact spectrum, so that Shapley values are
        exact for any model; 1 and 2 are hard limits.
    alpha : float or "auto"
        L1 strength in scikit-learn's convention, or chosen by cross-validation in
        units of the output's spread. Only the lasso solver uses it; a number here
        selects that solver.
    seed : int, optional
        Which masks are drawn. None follows ``torch.manual_seed`` without using up any
        of torch's random numbers: the same torch seed, the same explanation.
    terms : "auto", iterable of tuples, or None
        As in `harmonica_core.fit_surrogate`: "auto" also looks for terms above
        ``degree``; tuples of features are fitted instead of all terms.
    solver : {"auto", "ridge", "lasso"}
        How sampled masks are fitted. "lasso" is the published sparse regression on
        uniform masks; it finds a sparse function exactly, and costs seconds to minutes
        per example beyond a few dozen features. "ridge" takes masks of all sizes, many
        of them near the input, and fits all examples of a batch at the price of one.
        "auto": ridge, unless ``alpha`` or ``terms`` is given or there are more than
        65,536 terms or 8,192 masks.
    ends : bool
        Make the polynomial pass exactly through F(inputs) and F(baselines), so that
        attributions sum to their difference.
    index : str
        What `attribute` returns: "SV" (Shapley values), "BV" (Banzhaf values), or the
        single-feature part of any index in `harmonica_core.result.indices`.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 1, bias=False))
    >>> _ = torch.nn.init.ones_(model[0].weight)
    >>> Harmonica(model).attribute(torch.tensor([[1.0, 2.0, 4.0]]))
    tensor([[1., 2., 4.]])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int = 3,
        alpha: float | Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        terms: Literal["auto"] | Iterable[tuple[int, ...]] | None = None,
        solver: Literal["auto", "ridge", "lasso"] = "auto",
        ends: bool = True,
        index: str = "SV",
    ) -> None:
        PerturbationAttribution.__init__(self, forward_func)
        self.degree = degree
        self.alpha = alpha
        self.seed = seed
        self.terms: Terms = terms
        if isinstance(terms, Iterable) and not isinstance(terms, str):
            self.terms = tuple(terms)
        self.solver = solver
        self.ends = ends
        self.index = index
        self._last: _Explained | None = None

    @log_usage(part_of_slo=True)
    @torch.no_grad()
    def attribute(
        self,
        inputs: Inputs,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: FeatureMask = None,
        n_samples: Budget = "auto",
        perturbations_per_eval: int = 1,
        return_input_shape: bool = True,
        show_progress: bool = False,
    ) -> Inputs:
        """Attribute the output of ``forward_func`` to the features of each example.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            Examples along dimension 0; each is explained on its own.
        baselines : Tensor, number or tuple of these, optional
            What a removed feature is replaced by; 0 if not given.
        target : int, tuple, Tensor or list, optional
            Output to explain. None with a forward of several outputs explains all of
            them from the same forwards.
        additional_forward_args : any or tuple, optional
            Further arguments of ``forward_func``; a tensor or list with one entry per
            example follows its example, everything else is passed on as it is.
        feature_mask : Tensor or tuple of Tensors, optional
            Feature ids that group input positions, broadcastable to the inputs. Equal
            ids are one feature, in the same tensor or across tensors.
        n_samples : int or "auto"
            Masks to evaluate per example. When it covers all of them the result is
            exact and no more are evaluated.
        perturbations_per_eval : int
            Rows per forward. Bounds memory and changes nothing else. The first forward
            of several examples sees all of them at once, and so does every forward if
            ``forward_func`` returns one value for the whole batch.
        return_input_shape : bool
            False: return ``(n_examples, n_features)`` instead of the inputs' shape.
        show_progress : bool

        Returns
        -------
        Tensor or tuple of Tensors, float32
            Shaped like the inputs. With K explained outputs the first dimension is
            ``n_examples * K``, the outputs of an example adjacent, as in Captum's
            FeatureAblation. A forward that returns one value for the whole batch gives
            one explanation, with first dimension 1.

        Examples
        --------
        >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
        >>> Harmonica(f).attribute(torch.tensor([[2.0, 3.0, 1.0]]), baselines=0)
        tensor([[3., 3., 1.]])
        """
        question = (inputs, baselines, target, additional_forward_args, feature_mask)
        found = self._reusable(question, n_samples) or self._find(
            *question, n_samples, perturbations_per_eval, show_progress
        )
        return self._shaped(found, inputs, return_input_shape)

    @torch.no_grad()
    def explain(
        self,
        inputs: Inputs,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: FeatureMask = None,
        n_samples: Budget = "auto",
        perturbations_per_eval: int = 1,
        return_input_shape: bool = True,
        show_progress: bool = False,
        *,
        feature_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
    ) -> list[Surrogate]:
        """Return the polynomials themselves, one per example.

        Takes what `attribute` takes (``return_input_shape`` has no effect). Feature i
        of a surrogate is the i-th feature id counted from the smallest one.

        An `attribute` with the same arguments right after it costs no model call: the
        arguments, the weights, the mode and all else that ``forward_func`` holds are
        compared by content, so what was changed in place is evaluated anew, and so is
        a model whose content can not be compared.

        Parameters
        ----------
        feature_names, output_names : iterable of str, optional
            Names for the surrogates; by default input positions or feature ids.

        Returns
        -------
        list of Surrogate
            One for the whole batch if ``forward_func`` returns one value for it.

        Examples
        --------
        >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
        >>> (g,) = Harmonica(f).explain(torch.tensor([[2.0, 3.0, 1.0]]))
        >>> g.spectrum[(0, 1)], g.term_name((0, 1))
        (1.5, 'input[0] × input[1]')
        """
        question = (inputs, baselines, target, additional_forward_args, feature_mask)
        found = self._find(*question, n_samples, perturbations_per_eval, show_progress)
        self._last = replace(
            found,
            question=self._comparable(question, n_samples),
            forward_func=self.forward_func,
        )
        names = found.features.names if feature_names is None else tuple(feature_names)
        outputs = None if output_names is None else tuple(output_names)
        return [one.with_names(names, outputs) for one in found.surrogates]

    def attribute_future(self) -> None:
        """Refuse: forwards that return Futures are not supported."""
        raise NotImplementedError(
            f"attribute_future is not implemented for {type(self).__name__}"
        )

    def _find(
        self,
        inputs: Inputs,
        baselines: Any,
        target: Any,
        additional_forward_args: Any,
        feature_mask: FeatureMask,
        n_samples: Budget,
        perturbations_per_eval: int,
        show_progress: bool,
    ) -> _Explained:
        """Evaluate and fit; wrong settings are refused before any model call."""
        self._check()
        f = masked_forward(
            self.forward_func,
            inputs,
            baselines,
            target,
            additional_forward_args,
            feature_mask,
            perturbations_per_eval,
        )
        n_features = f.features.n_features
        check_settings(n_features, self.degree, self.alpha, self.terms)
        title = f"{self.get_name()} attribution" if show_progress else None
        found, joint = explain_batch(f, n_samples, title, self._fit)
        return _Explained(tuple(found), f.features, joint)

    def _check(self) -> None:
        check_degree(self.degree)
        check_alpha(self.alpha)
        check_index(self.index)
        check_solver(self.solver, self.alpha, self.terms)

    def _fit(self, group: Group, budget: int) -> list[Any]:
        """Fit one surrogate to each function of a group that shares its masks."""
        n, terms = group.n_features, group.own_terms(self.terms)
        rng = np.random.default_rng(self._seed())
        if covers(n, budget):
            whole = terms is None and self.degree >= 3
            return self._fit_lasso(group, all_masks(n), "auto" if whole else terms)
        if shares_ridge(self.solver, self.alpha, terms, n, self.degree, budget):
            return self._fit_ridge(group, shapley_masks(n, budget, rng))
        share = near_share("auto", terms, self.alpha, (budget, n))
        masks = draw_masks(n, budget, rng, near=share, ends=self.ends)
        return self._fit_lasso(group, masks, terms, share)

    def _fit_ridge(self, group: Group, masks: Masks) -> list[Any]:
        values = group.evaluate(masks)
        degree = min(self.degree, group.n_features)
        fit = fit_ridge(masks, values.reshape(len(masks), -1), degree)
        return surrogates_of(fit, masks, values, max_degree=degree, ends=self.ends)

    def _fit_lasso(
        self, group: Group, masks: Masks, terms: Any, share: float = 0.0
    ) -> list[Any]:
        return fit_surrogates(
            masks,
            group.evaluate(masks),
            self.degree,
            self.alpha,
            terms=terms,
            near=share,
            ends=self.ends,
        )

    def _seed(self) -> int:
        return torch.initial_seed() if self.seed is None else self.seed

    def _settings(self) -> dict[str, Any]:
        """Return the settings that a result depends on."""
        unrelated = ("forward_func", "index", "_last", "seed")
        kept = {k: v for k, v in vars(self).items() if k not in unrelated}
        return kept | {"seed": self._seed()}

    def _comparable(self, question: tuple[Any, ...], n_samples: Budget) -> Any:
        """Return a picture of a whole call, None if it can not be compared."""
        try:
            asked = content((question, n_samples, self._settings()))
            return asked, model_state(self.forward_func)
        except NotComparable:
            return None

    def _reusable(
        self, question: tuple[Any, ...], n_samples: Budget
    ) -> _Explained | None:
        last = self._last
        if last is None or last.question is None:
            return None
        if last.forward_func is not self.forward_func:
            return None
        same = last.question == self._comparable(question, n_samples)
        return last if same else None

    def _shaped(
        self, found: _Explained, inputs: Inputs, return_input_shape: bool
    ) -> Inputs:
        """Return the values of all features, at their input positions if asked."""
        per_function = [
            feature_values(own_polynomial(one), self.index)
            .reshape(one.n_features, -1)
            .T
            for one in found.surrogates
        ]
        n_outputs = len(per_function[0])
        rows = np.concatenate(per_function).astype(np.float32)
        values = torch.from_numpy(rows)
        tensors = as_tuple(inputs)
        if not return_input_shape:
            return values.to(tensors[0].device)
        owner = torch.arange(len(found.surrogates)).repeat_interleave(n_outputs)
        spread = found.features.spread(values, owner, tensors, found.joint)
        return spread if isinstance(inputs, tuple) else spread[0]
