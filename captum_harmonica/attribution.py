"""Harmonica as a Captum attribution: change the class name, keep the pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from captum.attr import KernelShap, LLMAttribution, ShapleyValueSampling
from captum.log import log_usage

from captum_harmonica._captum import PerturbationAttribution
from captum_harmonica.batch import Budget, explain_batch
from captum_harmonica.features import FeatureMap, FeatureMask, Inputs, as_tuple
from captum_harmonica.reuse import picture
from captum_harmonica.value_function import ask_for_target, masked_forward
from harmonica_core import Settings, Surrogate, indices

_SETTINGS = {field.name for field in dataclasses.fields(Settings)}


@dataclasses.dataclass(frozen=True)
class _Explained:
    """What one call found out, and what it was asked."""

    surrogates: tuple[Any, ...]
    features: FeatureMap
    joint: bool
    asked_by: str
    question: bytes | None
    inputs: Any = None
    return_input_shape: bool = True

    def answers(self, asked_by: str, question: Any, forward_func: Any) -> bool:
        """Return whether another method asks the same; the same one asks anew."""
        if self.question is None or self.asked_by == asked_by:
            return False
        return self.question == picture(question, forward_func)


class Harmonica(KernelShap, ShapleyValueSampling):
    """One polynomial for every removal, in place of `KernelShap`.

    One surrogate per example predicts the model's output for every subset of the
    features. `attribute` returns its Shapley values, on the scale and in the shape of
    ``KernelShap(forward_func).attribute``, `attribute_std` their standard deviations,
    and `explain` the surrogates. Examples of a batch that have the same features are
    evaluated on the same masks and share what is learnt about the size of
    interactions.

    It is a KernelShap and a ShapleyValueSampling only by type, so that `LLMAttribution`
    accepts it and offers per-token attributions, which it does not for KernelShap.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the same inputs.
    degree : int or None
        Largest term of the polynomial; None: no limit. Where ``n_samples`` covers all
        ``2**n`` masks, Shapley values without a limit are exact for any model.
    alpha : float or "auto"
        L1 strength of the LASSO in scikit-learn's convention; a number selects that
        engine.
    seed : int, optional
        Which masks are drawn. None follows ``torch.manual_seed`` without using up any
        of torch's random numbers: the same torch seed, the same explanation.
    engine : {"auto", "bayes", "lasso"}
        As in `harmonica_core.fit_surrogate`: "lasso" is the published algorithm.
    terms : iterable of tuples, optional
        Exactly these terms of features, by the LASSO.
    ends : bool
        Make the polynomial pass exactly through F(inputs) and F(baselines), so that
        attributions sum to their difference.
    index : str
        What `attribute` returns: "SV" (Shapley values), "BV" (Banzhaf values), or the
        single-feature part of any index in `harmonica_core.indices`.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 1, bias=False))
    >>> _ = torch.nn.init.ones_(model[0].weight)
    >>> Harmonica(model).attribute(torch.tensor([[1.0, 2.0, 4.0]]))
    tensor([[1., 2., 4.]])
    """

    # What the core calls it, and the settings that it alone has.
    _method = "harmonica"
    _own: dict[str, Any] = {}

    def __init__(
        self,
        forward_func: Callable[..., Any],
        degree: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        seed: int | None = None,
        *,
        engine: Literal["auto", "bayes", "lasso"] = "auto",
        terms: Iterable[tuple[int, ...]] | None = None,
        ends: bool = True,
        index: str = "SV",
        **own: Any,
    ) -> None:
        if "solver" in own:
            raise TypeError('solver= is now engine=: "auto", "bayes" or "lasso"')
        unknown = sorted(own.keys() - self._own.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no argument {unknown[0]!r}")
        PerturbationAttribution.__init__(self, forward_func)
        self.degree = degree
        self.alpha = alpha
        self.seed = seed
        self.engine = engine
        self.terms = tuple(terms) if isinstance(terms, Iterator) else terms
        self.ends = ends
        self.index = index
        for name, value in (self._own | own).items():
            setattr(self, name, value)
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
            Examples along dimension 0; each gets its own explanation.
        baselines : Tensor, number or tuple of these, optional
            What a removed feature is replaced by; 0 if not given.
        target : int, tuple, Tensor or list, optional
            Output to explain. As with KernelShap it is needed where ``forward_func``
            returns several values per example; `explain` explains all of them. Inside
            `LLMAttribution` every target token is explained from the same forwards.
        additional_forward_args : any or tuple, optional
            Further arguments of ``forward_func``; a tensor or list with one entry per
            example follows its example, everything else is passed on as it is.
        feature_mask : Tensor or tuple of Tensors, optional
            Feature ids that group input positions, broadcastable to the inputs. Equal
            ids are one feature, in the same tensor or across tensors.
        n_samples : int or "auto"
            Masks to evaluate per example. When it covers all of them the result is
            exact and no more are evaluated. "auto": ``min(2**n, 1024 + 2 n)``.
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
            Shaped like the inputs. A forward that returns one value for the whole
            batch gives one explanation, with first dimension 1.

        Examples
        --------
        >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
        >>> Harmonica(f).attribute(torch.tensor([[2.0, 3.0, 1.0]]), baselines=0)
        tensor([[3., 3., 1.]])
        """
        found = self._found(
            *("attribute", inputs, baselines, target, additional_forward_args),
            *(feature_mask, n_samples, perturbations_per_eval),
            *(return_input_shape, show_progress),
        )
        values = [indices.feature_values(one, self.index) for one in found.surrogates]
        return _shaped(found, values)

    @torch.no_grad()
    def attribute_std(self, *arguments: Any, **named: Any) -> Inputs:
        """Return the standard deviations of what `attribute` returns, in its shape.

        They say how far the model's Shapley values may be from those that were found;
        0 where all masks were evaluated. Takes what `attribute` takes, and costs no
        model call right after it (see `explain`).

        Examples
        --------
        >>> f, x = (lambda x: (x**2).sum(1).sin()), torch.linspace(0, 1, 14)[None]
        >>> method = Harmonica(f, seed=0)
        >>> values = method.attribute(x, n_samples=200)
        >>> std = method.attribute_std(x, n_samples=200)  # no further model call
        >>> std.shape, bool((std > 0).any())
        (torch.Size([1, 14]), True)
        """
        settings, index = self._settings(), indices.check_index(self.index)
        plain = settings.method in ("harmonica", "local") and settings.solver == "bayes"
        if index != "SV" or not plain:
            raise ValueError(
                f"{type(self).__name__} with engine={settings.solver!r} and "
                f"index={index!r} states no standard deviations; needed Harmonica or "
                'HarmonicaLocal with engine="bayes" and index="SV"'
            )
        found = self._found("attribute_std", *arguments, **named)
        pairs = [one.shapley_values(return_std=True) for one in found.surrogates]
        return _shaped(found, [std for _, std in pairs])

    @torch.no_grad()
    def explain(
        self,
        *arguments: Any,
        feature_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
        **named: Any,
    ) -> list[Surrogate]:
        """Return the surrogates themselves, one per example.

        Takes what `attribute` takes (``return_input_shape`` has no effect). Feature i
        of a surrogate is the i-th feature id counted from the smallest one. Without a
        ``target`` all outputs of ``forward_func`` are explained from the same forwards.

        Of `explain`, `attribute` and `attribute_std` with the same arguments, only the
        first costs model calls. The arguments, the weights, the mode and all else that
        ``forward_func`` holds are compared by content, so what was changed in place is
        evaluated anew, and so is a model whose content cannot be compared. What a
        method found itself it does not reuse: the model may be random.

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
        found = self._found("explain", *arguments, **named)
        names = found.features.names if feature_names is None else tuple(feature_names)
        outputs = None if output_names is None else tuple(output_names)
        return [one.with_names(names, outputs) for one in found.surrogates]

    def attribute_future(self) -> None:
        """Refuse: forwards that return Futures are not supported."""
        raise NotImplementedError(
            f"attribute_future is not implemented for {type(self).__name__}"
        )

    def _found(
        self,
        asked_by: str,
        inputs: Inputs,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: FeatureMask = None,
        n_samples: Budget = "auto",
        perturbations_per_eval: int = 1,
        return_input_shape: bool = True,
        show_progress: bool = False,
    ) -> _Explained:
        """Return surrogates: those of the call before if it asked the same, or new."""
        settings = self._settings()
        indices.check_index(self.index)
        question = (inputs, baselines, target, additional_forward_args, feature_mask)
        seed = torch.initial_seed() if self.seed is None else self.seed
        whole = (question, n_samples, settings, seed)
        several = asked_by == "explain" or _is_llm(self.forward_func)
        last, self._last = self._last, None
        if last is None or not last.answers(asked_by, whole, self.forward_func):
            f = masked_forward(
                self.forward_func, *question, perturbations_per_eval, not several
            )
            title = f"{self.get_name()} attribution" if show_progress else None
            found, joint = explain_batch(
                f, settings, n_samples, seed, title, feature_mask is not None
            )
            asked = picture(whole, self.forward_func)
            last = _Explained(tuple(found), f.features, joint, asked_by, asked)
        self._last = last
        n_outputs = last.surrogates[0].n_outputs
        if n_outputs > 1 and not several:
            ask_for_target((len(as_tuple(inputs)[0]), n_outputs), target)
        return dataclasses.replace(
            last, inputs=inputs, return_input_shape=return_input_shape
        )

    def _settings(self) -> Settings:
        own = {name: value for name, value in vars(self).items() if name in _SETTINGS}
        return Settings(self._method, **own)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_last": None}


def _is_llm(forward_func: Any) -> bool:
    """Return whether LLMAttribution calls: its forwards return one value per token."""
    return isinstance(getattr(forward_func, "__self__", None), LLMAttribution)


def _shaped(found: _Explained, values: list[Any]) -> Inputs:
    """Return values ``(n_features[, n_outputs])`` of surrogates in Captum's shape."""
    columns = [one.reshape(len(one), -1).T for one in values]
    rows = torch.from_numpy(np.concatenate(columns).astype(np.float32))
    if not found.return_input_shape:
        return rows.to(as_tuple(found.inputs)[0].device)
    owner = torch.arange(len(values)).repeat_interleave(len(columns[0]))
    return found.features.spread(rows, owner, found.inputs, found.joint)
