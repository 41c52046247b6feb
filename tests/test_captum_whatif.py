"""What-if pages from Captum's inputs: names, values, images and their regions."""

import json
import re

import pytest
import torch

from captum_harmonica import Harmonica, HarmonicaAnchor, what_if


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.html, re.S)[1])


def painted(data):
    """Pixels of each feature's superpixel."""
    runs = re.compile(r"h(\d+)v1")
    return [sum(map(int, runs.findall(path))) for path in data["picture"]["fills"]]


def model(inputs):
    return inputs.flatten(1).sum(1)


def test_values_stand_beside_the_names():
    inputs = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]], requires_grad=True)
    surrogates = Harmonica(model).explain(inputs)
    data = data_of(what_if(surrogates[1], inputs, example=1))
    assert data["given"] == ["4", "5", "6.5"]
    assert data["names"] == ["input[0]", "input[1]", "input[2]"]


@pytest.mark.parametrize("shape", [(1, 3, 4, 6), (1, 1, 4, 6), (4, 6)])
def test_images_show_their_superpixels(shape, tmp_path):
    images = torch.rand(2, 3, 4, 6)
    mask = (torch.arange(24).reshape(4, 6) // 8).expand(shape)
    surrogates = Harmonica(model).explain(images, feature_mask=mask)
    page = what_if(surrogates[1], images, mask, tmp_path / "page.html", example=1)
    assert page.path == tmp_path / "page.html"
    data = data_of(page)
    assert (data["picture"]["width"], data["picture"]["height"]) == (6, 4)
    assert painted(data) == [8, 8, 8]


def test_masks_of_tables_and_channels_show_no_picture():
    inputs = torch.rand(1, 3, 2, 2)
    mask = torch.arange(3).reshape(1, 3, 1, 1).expand(1, 3, 2, 2)
    (surrogate,) = Harmonica(model).explain(inputs, feature_mask=mask)
    assert data_of(what_if(surrogate, inputs, mask))["picture"] is None


def test_anchors_have_pages_too():
    inputs = torch.rand(1, 4)
    explainer = HarmonicaAnchor(model, anchors=3)
    (surrogate,) = explainer.explain(inputs)
    assert len(data_of(what_if(surrogate, inputs))["pieces"]) == 3


@pytest.mark.parametrize("first", [0, 1, 7])
def test_regions_carry_the_number_that_their_feature_is_named_by(first):
    image = torch.rand(1, 3, 4, 6)
    mask = torch.arange(24).reshape(4, 6) // 8 + first
    (surrogate,) = Harmonica(model).explain(image, feature_mask=mask)
    data = data_of(what_if(surrogate, image, mask))
    assert data["marks"] == [str(first + i) for i in range(3)]
    assert data["names"] == [f"feature {first + i}" for i in range(3)]


def test_examples_with_other_segments():
    images = torch.rand(2, 3, 4, 6)
    rows = torch.arange(24).reshape(1, 1, 4, 6) // 8
    mask = torch.cat([rows, rows + 2])  # ids 0, 1, 2 and 2, 3, 4
    surrogates = Harmonica(model).explain(images, feature_mask=mask)
    for example, first in enumerate((0, 2)):
        page = what_if(surrogates[example], images, mask, example=example)
        expected = [8 if first <= i < first + 3 else 0 for i in range(5)]
        assert painted(data_of(page)) == expected
