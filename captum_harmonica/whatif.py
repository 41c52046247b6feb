"""The what-if page of one surrogate, with values and images from Captum's inputs."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from captum_harmonica.features import (
    FeatureMask,
    as_tuple,
    check_example,
    explained_features,
)
from harmonica_core import Surrogate
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.whatif import WhatIfPage


def what_if(
    surrogate: Surrogate | AnchoredSurrogate,
    inputs: Tensor | tuple[Tensor, ...],
    feature_mask: FeatureMask = None,
    path: str | os.PathLike[str] | None = None,
    *,
    example: int = 0,
    **options: Any,
) -> WhatIfPage:
    """Build the what-if page of one surrogate that `Harmonica.explain` returned.

    With a ``feature_mask`` over an image the page shows the image and its superpixels;
    without one, the inputs' values beside the features' names.

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
    >>> from captum_harmonica import Harmonica
    >>> x = torch.tensor([[2.0, 3.0, 1.0]])
    >>> (g,) = Harmonica(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).explain(x)
    >>> page = what_if(g, x, title="And without the second?", threshold=4.0)
    >>> "And without the second?" in page.html
    True
    """
    explained_features(surrogate.n_features, inputs, feature_mask)
    example = check_example(example, inputs)
    tensors = _of_example(as_tuple(inputs), example)
    if feature_mask is None:
        given: dict[str, Any] = {"feature_values": _values(surrogate, tensors)}
    else:
        given = _image(tensors, as_tuple(feature_mask), example)
    return surrogate.what_if(path, **{**given, **options})


def _of_example(inputs: tuple[Tensor, ...], example: int) -> list[Tensor]:
    """Return what belongs to an example: its rows, and tensors that all share."""
    own = [one[example] if len(one) == len(inputs[0]) else one for one in inputs]
    return [one.detach().cpu() for one in own]


def _values(surrogate: Any, tensors: list[Tensor]) -> list[Any] | None:
    """Return one value per feature, where each feature is one input position."""
    flat = [value for one in tensors for value in one.reshape(-1).tolist()]
    return flat if len(flat) == surrogate.n_features else None


def _image(
    tensors: list[Tensor], masks: tuple[Tensor, ...], example: int
) -> dict[str, Any]:
    """Return image and segments if the mask labels the pixels of one image."""
    image, mask = tensors[0], masks[0].cpu()
    is_image = image.ndim == 2 or (image.ndim == 3 and image.shape[0] in (1, 3, 4))
    if len(tensors) > 1 or not is_image:
        return {}
    if mask.ndim > image.ndim:
        mask = mask[example if len(mask) > 1 else 0]
    mask = torch.broadcast_to(mask, image.shape)
    if image.ndim == 3 and not bool((mask == mask[:1]).all()):
        return {}  # channels are features of their own: no single label per pixel
    segments = mask if image.ndim == 2 else mask[0]
    return {"image": image.numpy(), "segments": segments.numpy()}
