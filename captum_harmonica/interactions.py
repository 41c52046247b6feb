"""Pairs of features, back at the input positions that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from captum_harmonica.features import (
    FeatureMap,
    FeatureMask,
    Inputs,
    as_tuple,
    check_example,
    explained_features,
)
from harmonica_core import Surrogate


@dataclass(frozen=True)
class Pair:
    """Two features that act together.

    Attributes
    ----------
    features : (int, int)
    names : (str, str)
    value : float or (n_outputs,)
        What keeping both adds beyond keeping each of them.
    first, second : bool Tensor or tuple of Tensors
        The positions of each feature, shaped like one example of the inputs.

    Examples
    --------
    >>> from captum_harmonica import Harmonica
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> (g,) = Harmonica(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).explain(x)
    >>> (pair,) = top_pairs(g, x)
    >>> pair.features, pair.value, x[0][pair.first | pair.second]
    ((0, 1), 6.0, tensor([2., 3.]))
    """

    features: tuple[int, int]
    names: tuple[str, str]
    value: Any
    first: Inputs
    second: Inputs


def pair_matrix(surrogates: Any, index: str = "SII") -> Tensor:
    """Return all pairs of each example: ``(n_examples, n_features, n_features)``.

    Symmetric, each entry the whole value of the pair, zeros on the diagonal. Several
    outputs add a last dimension. (`Surrogate.interaction_matrix` is SHAP's layout,
    with halves and main effects.)

    Parameters
    ----------
    surrogates : Surrogate or sequence of them
        From `Harmonica.explain`.
    index : str
        "SII" (Shapley interaction), "BII", "STII", "FSII", "k-SII", "Moebius", "FBII".

    Examples
    --------
    >>> from captum_harmonica import Harmonica
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> found = Harmonica(f).explain(torch.tensor([[2.0, 3.0, 1.0]]))
    >>> pair_matrix(found)[0, 0]
    tensor([0., 6., 0.])
    """
    every = surrogates if isinstance(surrogates, Sequence) else [surrogates]
    whole = np.stack([2 * one.interaction_matrix(index) for one in every])
    own = np.arange(whole.shape[1])
    whole[:, own, own] = 0
    return torch.from_numpy(whole).float()


def interactions_with(
    surrogates: Any,
    feature: int,
    inputs: Inputs,
    feature_mask: FeatureMask = None,
    index: str = "SII",
) -> Inputs:
    """Return how every input position acts together with one feature.

    Parameters
    ----------
    surrogates : list of Surrogate
        From `Harmonica.explain` with these inputs, one per example, one output each
        (for several outputs use ``[g.output(k) for g in surrogates]``).
    feature : int
        Number of the feature (its id minus the smallest id).
    inputs, feature_mask
        As they were given to `explain`.
    index : str
        As in `pair_matrix`.

    Returns
    -------
    Tensor or tuple of Tensors, float32
        Shaped like the inputs; zero at the feature's own positions.

    Examples
    --------
    >>> from captum_harmonica import Harmonica
    >>> x, mask = torch.tensor([[2.0, 3.0, 1.0, 1.0]]), torch.tensor([[0, 1, 2, 2]])
    >>> found = Harmonica(lambda x: x[:, 0] * x[:, 2]).explain(x, feature_mask=mask)
    >>> interactions_with(found, 0, x, mask)
    tensor([[0., 0., 2., 2.]])
    """
    rows = pair_matrix(surrogates, index)
    if rows.dim() != 3:
        raise ValueError(
            f"the surrogates have {rows.shape[-1]} outputs; needed one output each: "
            "pass [g.output(k) for g in surrogates]"
        )
    features = explained_features(rows.shape[1], inputs, feature_mask)
    if not 0 <= feature < features.n_features:
        raise ValueError(
            f"feature={feature}; needed 0 to {features.n_features - 1}, the id minus "
            "the smallest id"
        )
    joint = len(rows) < as_tuple(inputs)[0].shape[0]
    return features.spread(rows[:, feature], torch.arange(len(rows)), inputs, joint)


def top_pairs(
    surrogate: Surrogate,
    inputs: Inputs,
    feature_mask: FeatureMask = None,
    n: int = 10,
    index: str = "SII",
    example: int = 0,
) -> list[Pair]:
    """Return the n strongest pairs of one example, each with its input positions.

    Parameters
    ----------
    surrogate : Surrogate
        Of that example, from `Harmonica.explain`.
    inputs, feature_mask
        As they were given to `explain`.
    n : int
    index : str
        As in `pair_matrix`.
    example : int
        Which example of the batch the surrogate explains.

    Examples
    --------
    >>> from captum_harmonica import Harmonica
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> (g,) = Harmonica(lambda x: x[:, 0] * x[:, 2]).explain(x)
    >>> strongest = top_pairs(g, x, n=1)[0]
    >>> strongest.names, strongest.value, strongest.first
    (('input[0]', 'input[2]'), 2.0, tensor([ True, False, False]))
    """
    features = explained_features(surrogate.n_features, inputs, feature_mask)
    example = check_example(example, inputs)
    found = surrogate.interactions(min(2, surrogate.max_degree), index)
    pairs = [(term, value) for term, value in found.items() if len(term) == 2]
    pairs.sort(key=lambda pair: -float(np.abs(pair[1]).max()))
    names = surrogate.feature_names or tuple(
        f"x{i}" for i in range(features.n_features)
    )
    return [
        Pair(
            (i, j),
            (names[i], names[j]),
            value,
            _positions(features, i, inputs, example),
            _positions(features, j, inputs, example),
        )
        for (i, j), value in pairs[:n]
    ]


def _positions(
    features: FeatureMap, feature: int, inputs: Inputs, example: int
) -> Inputs:
    found = tuple(
        (ids[min(example, len(ids) - 1)] == feature).expand(tensor.shape[1:])
        for ids, tensor in zip(features.ids, as_tuple(inputs), strict=True)
    )
    return found if isinstance(inputs, tuple) else found[0]
