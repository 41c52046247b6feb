"""Images and superpixels for the what-if page, without an imaging library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.checks import check_unmasked

# Longest side that a page carries; larger images are thinned out.
_MAX_SIDE = 512


def encode(image: Any, segments: Any, n_features: int) -> dict[str, Any]:
    """Return what the page needs to draw an image and its superpixels.

    Parameters
    ----------
    image : (h, w), (h, w, 1 or 3 or 4), or channels first as PyTorch has them
        0 to 255 for integers, 0 to 1 for floats.
    segments : int (h, w), or (1, h, w) and the like
        The n_features distinct labels in ascending order are features 0, 1, ...; or
        feature numbers below n_features, of which some may be absent; or numbers that
        span n_features.
    n_features : int
    """
    pixels, labels = pixels_and_labels(image, segments, n_features)
    step = -(-max(labels.shape) // _MAX_SIDE)
    thin = labels[::step, ::step]
    # Else a tiny segment would vanish.
    if len(np.unique(thin)) == len(np.unique(labels)):
        pixels, labels = pixels[::step, ::step], thin
    height, width = labels.shape
    return {
        "width": width,
        "height": height,
        "source": "data:image/png;base64," + base64.b64encode(png(pixels)).decode(),
        "fills": [_fill_path(labels == i) for i in range(n_features)],
        "outline": _outline_path(labels),
        "centres": [centre(labels == i) for i in range(n_features)],
    }


def pixels_and_labels(
    image: Any, segments: Any, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels ``(h, w, 3)`` and the feature of each of them, ``(h, w)``."""
    check_unmasked(image, "image")
    check_unmasked(segments, "segments")
    labels = segment_labels(segments, n_features)
    pixels = as_pixels(image)
    if pixels.shape[:2] != labels.shape:
        raise ValueError(
            f"image is {pixels.shape[0]} x {pixels.shape[1]} but segments are "
            f"{labels.shape[0]} x {labels.shape[1]}; needed one label per pixel"
        )
    return pixels, labels


def segment_labels(segments: Any, n_features: int) -> np.ndarray:
    """Return labels ``(h, w)`` as feature numbers 0 to n_features - 1."""
    array = np.asarray(segments)
    while array.ndim > 2 and (array == array[:1]).all():
        array = array[0]  # the same for every example and channel, as in Captum
    if array.ndim != 2:
        raise ValueError(
            f"segments have shape {np.shape(segments)}; needed (height, width), one "
            "label per pixel"
        )
    found, labels = np.unique(array, return_inverse=True)
    if len(found) == n_features:
        return np.asarray(labels.reshape(array.shape))
    if found[0] >= 0 and found[-1] < n_features:  # feature numbers, some not here
        return np.asarray(array)
    if found[-1] - found[0] == n_features - 1:  # some numbers occur nowhere
        return np.asarray(array - found[0])
    raise ValueError(
        f"segments hold {len(found)} distinct labels; needed {n_features}, one per "
        "feature of the surrogate"
    )


def as_pixels(image: Any) -> np.ndarray:
    """Return uint8 ``(h, w, 3)`` from the usual array and tensor layouts."""
    array = np.asarray(image)
    while array.ndim > 3 and len(array) == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4) and len(array) in (1, 3, 4):
        array = np.moveaxis(array, 0, 2)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise ValueError(
            f"image has shape {np.shape(image)}; needed (height, width) or (height, "
            "width, 3), or channels first"
        )
    array = array[:, :, :3] if array.shape[2] > 1 else array.repeat(3, axis=2)
    if array.dtype.kind == "f":
        array = 255 * _unit_range(array)
    return np.asarray(array.clip(0, 255).round().astype(np.uint8))


def _unit_range(array: Floats) -> Floats:
    """Floats in 0 to 1 as they are; anything else (normalised tensors) stretched."""
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return array
    return (array - low) / ((high - low) or 1.0)


def png(pixels: np.ndarray) -> bytes:
    """Encode uint8 ``(h, w, 3)`` as PNG: each row as differences from the row above."""
    height, width = pixels.shape[:2]
    above = np.concatenate([np.zeros_like(pixels[:1]), pixels[:-1]])
    rows = (pixels - above).reshape(height, -1)  # uint8 wraps around, as PNG wants
    filtered = np.insert(rows, 0, 2, axis=1)  # filter type 2 = "up"
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(filtered.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def runs(member: np.ndarray) -> np.ndarray:
    """Horizontal runs of a bool image: rows of (y, first x, length)."""
    padded = np.pad(member.astype(np.int8), ((0, 0), (1, 1)))
    change = np.diff(padded, axis=1)
    y, begin = np.nonzero(change == 1)
    end = np.nonzero(change == -1)[1]
    return np.stack([y, begin, end - begin], axis=1)


def _fill_path(member: np.ndarray) -> str:
    """SVG path of one rectangle per run."""
    return "".join(f"M{x} {y}h{w}v1h-{w}z" for y, x, w in runs(member).tolist())


def _outline_path(labels: np.ndarray) -> str:
    """SVG path of all borders between neighbouring segments."""
    level = runs(labels[1:] != labels[:-1]).tolist()
    upright = runs((labels[:, 1:] != labels[:, :-1]).T).tolist()
    across = "".join(f"M{x} {y + 1}h{w}" for y, x, w in level)
    return across + "".join(f"M{x + 1} {y}v{h}" for x, y, h in upright)


def centre(member: np.ndarray) -> tuple[float, float]:
    """Return a point well inside: the member pixel nearest to the mean of all.

    (0, 0) when there are no member pixels.
    """
    y, x = np.nonzero(member)
    if not len(y):
        return 0.0, 0.0
    nearest = int(np.argmin((y - y.mean()) ** 2 + (x - x.mean()) ** 2))
    return float(x[nearest]) + 0.5, float(y[nearest]) + 0.5
