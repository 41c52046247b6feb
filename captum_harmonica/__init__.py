"""Harmonica for Captum: `Harmonica(model)` in place of `KernelShap(model)`.

Examples
--------
>>> import torch
>>> from captum_harmonica import Harmonica
>>> Harmonica(lambda x: x[:, 0] * x[:, 1]).attribute(torch.tensor([[2.0, 3.0]]))
tensor([[3., 3.]])
"""

try:
    import captum as _captum_itself
    import torch as _torch
except ImportError as error:
    raise ImportError(
        'captum_harmonica needs torch and captum: pip install "harmonica-xai[captum]"'
    ) from error

del _captum_itself, _torch

from captum_harmonica import metrics  # noqa: E402
from captum_harmonica.attribution import Harmonica  # noqa: E402
from captum_harmonica.dataloader import attribute_dataloader  # noqa: E402
from captum_harmonica.interactions import (  # noqa: E402
    Pair,
    interactions_with,
    pair_matrix,
    top_pairs,
)
from captum_harmonica.variants import (  # noqa: E402
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaLocal,
    LowDegree,
)
from captum_harmonica.whatif import what_if  # noqa: E402

__all__ = [
    "Harmonica",
    "HarmonicaAnchor",
    "HarmonicaAnchorConstrained",
    "HarmonicaLocal",
    "LowDegree",
    "Pair",
    "attribute_dataloader",
    "interactions_with",
    "metrics",
    "pair_matrix",
    "top_pairs",
    "what_if",
]
