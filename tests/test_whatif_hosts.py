"""What-if pages from SHAP's objects: names, values, tokens, images."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import shap

import shap_harmonica
from shap_harmonica import HarmonicaExplainer


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.html, re.S)[1])


def painted(data):
    """Pixels of each feature's superpixel."""
    runs = re.compile(r"h(\d+)v1")
    return [sum(map(int, runs.findall(path))) for path in data["picture"]["fills"]]


def test_shap_tables_show_names_and_values():
    table = pd.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 4.0], "sex": [0.0, 1.0]})
    explainer = HarmonicaExplainer(lambda X: X.sum(axis=1), table)
    explanation = explainer(table)
    data = data_of(shap_harmonica.what_if(explainer, explanation, 1, title="t"))
    assert data["names"] == ["age", "dose", "sex"]
    assert data["given"] == ["2", "4", "1"]
    assert data_of(explainer.surrogates[0].what_if())["names"] == ["age", "dose", "sex"]
    with pytest.raises(ValueError, match="row 2 of an explanation of 2 rows"):
        shap_harmonica.what_if(explainer, explanation, 2)
    with pytest.raises(ValueError, match="explained 2 rows last"):
        shap_harmonica.what_if(explainer, explanation[:1])


def test_shap_texts_show_their_tokens():
    def score(texts):
        return np.array([float("not" in text) for text in texts])

    masker = shap.maskers.Text(r"\W+")
    explainer = HarmonicaExplainer(score, masker)
    explanation = explainer(["not so bad"])
    data = data_of(shap_harmonica.what_if(explainer, explanation))
    assert [text.strip() for text, _ in data["tokens"]] == ["not", "so", "bad"]
    assert [i for _, i in data["tokens"]] == [0, 1, 2]
    names = explainer.surrogates[0].feature_names
    assert [name.strip() for name in names] == ["not", "so", "bad"]


def test_shap_outputs_are_named():
    def both(X):
        return np.c_[X.sum(axis=1), X[:, 0]]

    explainer = HarmonicaExplainer(both, np.eye(3), output_names=["no", "yes"])
    explainer(np.eye(3))
    data = data_of(explainer.surrogates[0].what_if(output=1))
    assert data["output"] == "yes"


@pytest.mark.parametrize("grouped", [True, False])
def test_shap_images_show_their_superpixels(grouped):
    images = np.random.default_rng(0).random((1, 14, 14, 3))
    labels = np.arange(14)[:, None] // 7 * 2 + np.arange(14)[None, :] // 7
    masker = shap.maskers.Image(np.zeros((14, 14, 3)), (14, 14, 3))
    explainer = HarmonicaExplainer(
        lambda X: X.mean(axis=(1, 2, 3)), masker, groups=labels if grouped else None
    )
    explanation = explainer(images, max_evals=128)
    data = data_of(shap_harmonica.what_if(explainer, explanation))
    assert painted(data) == ([49] * 4 if grouped else [4] * 49)
