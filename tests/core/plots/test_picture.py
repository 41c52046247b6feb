import io
import re

import numpy as np
import pytest
from PIL import Image

from harmonica_core import picture


def test_png_is_read_back_bit_for_bit():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 11, 3), dtype=np.uint8)
    read = np.asarray(Image.open(io.BytesIO(picture.png(pixels))))
    np.testing.assert_array_equal(read, pixels)


@pytest.mark.parametrize(
    "image",
    [
        np.full((5, 6), 0.5),
        np.full((5, 6, 1), 0.5),
        np.full((5, 6, 3), 0.5),
        np.full((5, 6, 4), 0.5),
        np.full((3, 5, 6), 0.5),
        np.full((1, 3, 5, 6), 0.5),
        np.full((5, 6, 3), 128, dtype=np.uint8),
    ],
)
def test_usual_layouts_become_the_same_pixels(image):
    pixels = picture.as_pixels(image)
    assert pixels.shape == (5, 6, 3) and pixels.dtype == np.uint8
    assert (pixels == 128).all()


def test_normalised_tensors_are_stretched():
    pixels = picture.as_pixels(np.array([[-2.0, 0.0, 2.0]]))
    assert pixels[0, :, 0].tolist() == [0, 128, 255]


def painted(path, shape):
    """Paint the rectangles of a fill path."""
    out = np.zeros(shape, dtype=int)
    for x, y, w in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path):
        out[int(y), int(x) : int(x) + int(w)] += 1
    return out


def test_fills_cover_each_segment_once_in_label_order():
    labels = np.random.default_rng(1).choice([3, 7, 40], (9, 13))
    drawn = picture.encode(np.zeros((9, 13)), labels, 3)
    for path, label in zip(drawn["fills"], [3, 7, 40], strict=True):
        np.testing.assert_array_equal(painted(path, (9, 13)), labels == label)
    for (x, y), label in zip(drawn["centres"], [3, 7, 40], strict=True):
        assert labels[int(y), int(x)] == label


def test_outline_runs_between_segments():
    drawn = picture.encode(np.zeros((2, 3)), [[0, 0, 1], [0, 2, 2]], 3)
    assert drawn["outline"] == "M1 1h2M1 1v1M2 0v1"


def test_segments_of_captum_are_taken():
    labels = np.arange(6).reshape(1, 2, 3)
    assert picture.segment_labels(np.repeat(labels, 3, axis=0), 6).shape == (2, 3)


def test_numbers_that_occur_nowhere_are_empty_segments():
    drawn = picture.encode(np.zeros((1, 2)), [[4, 6]], 3)
    assert drawn["fills"] == ["M0 0h1v1h-1z", "", "M1 0h1v1h-1z"]


def test_large_images_are_thinned_unless_a_segment_would_vanish():
    labels = np.repeat([0, 1], 700)[None, :].repeat(4, axis=0)
    assert picture.encode(np.zeros((4, 1400)), labels, 2)["width"] == 467
    labels[0, 1] = 2
    assert picture.encode(np.zeros((4, 1400)), labels, 3)["width"] == 1400


def test_misfits_are_explained():
    with pytest.raises(ValueError, match="image is 2 x 3 but segments are 3 x 2"):
        picture.encode(np.zeros((2, 3)), np.arange(6).reshape(3, 2), 6)
    with pytest.raises(ValueError, match="2 distinct labels; needed 4"):
        picture.encode(np.zeros((1, 2)), [[0, 9]], 4)
    with pytest.raises(ValueError, match=r"image has shape \(2,\)"):
        picture.as_pixels(np.zeros(2))
    with pytest.raises(ValueError, match=r"segments have shape \(2, 1, 2\)"):
        picture.segment_labels([[[0, 1]], [[1, 0]]], 2)
