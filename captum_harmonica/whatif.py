"""The what-if page of one surrogate, with values and images from Captum's inputs."""

from __future__ import annotations

import os
from typing import Any

from torch import Tensor

from captum_harmonica.features import (
    FeatureMap,
    FeatureMask,
    Inputs,
    as_tuple,
    check_example,
    explained_features,
)
from harmonica_core import AnchoredSurrogate, Surrogate


def what_if(
    surrogate: Surrogate | AnchoredSurrogate,
    inputs: Inputs,
    feature_mask: FeatureMask = None,
    path: str | os.PathLike[str] | None = None,
    *,
    example: int = 0,
    **options: Any,
) -> Any:
    """Return the what-if page of one surrogate that `Harmonica.explain` returned.

    With a ``feature_mask`` over an image the page shows the image and its superpixels,
    numbered by their ids; without one, the inputs' values beside the features' names.

    Parameters
    ----------
    surrogate : Surrogate or AnchoredSurrogate
    inputs : Tensor or tuple of Tensors
        As they were explained.
    feature_mask : Tensor or tuple of Tensors, optional
        As it was given to `Harmonica.explain`.
    path : path-like, optional
        Where to write the page.
    example : int
        Which example of the batch the surrogate explains.
    **options
        Passed on to `Surrogate.what_if`: tokens, title, threshold, output, ...

    Returns
    -------
    WhatIfPage

    Examples
    --------
    >>> import torch
    >>> from captum_harmonica import Harmonica
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> (g,) = Harmonica(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).explain(x)
    >>> page = what_if(g, x, title="And without the second?", threshold=4.0)
    >>> "And without the second?" in page.html
    True
    """
    features = explained_features(surrogate.n_features, inputs, feature_mask)
    example = check_example(example, inputs)
    tensors = _of_example(as_tuple(inputs), example)
    if feature_mask is None:
        flat = [value for one in tensors for value in one.reshape(-1).tolist()]
        fits = len(flat) == surrogate.n_features
        given: dict[str, Any] = {"feature_values": flat if fits else None}
    else:
        given = _image(tensors, features, example)
    return surrogate.what_if(path, **{**given, **options})


def _of_example(inputs: tuple[Tensor, ...], example: int) -> list[Tensor]:
    """Return what belongs to an example: its rows, and tensors that all share."""
    own = [one[example] if len(one) == len(inputs[0]) else one for one in inputs]
    return [one.detach().cpu() for one in own]


def _image(tensors: list[Tensor], features: FeatureMap, example: int) -> dict[str, Any]:
    """Return image and feature numbers if these label the pixels of one image."""
    image, ids = tensors[0], features.ids[0]
    is_image = image.ndim == 2 or (image.ndim == 3 and image.shape[0] in (1, 3, 4))
    if len(tensors) > 1 or not is_image:
        return {}
    labels = ids[example if len(ids) > 1 else 0].expand(image.shape).cpu()
    if image.ndim == 3:
        if not bool((labels == labels[:1]).all()):
            return {}  # channels are features of their own: no single label per pixel
        labels = labels[0]
    return {"image": image.numpy(), "segments": labels.numpy()}
