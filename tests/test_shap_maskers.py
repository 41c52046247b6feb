"""Maskers, model kinds and data kinds that SHAP's users bring."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shap
import torch
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from shap_harmonica import HarmonicaExplainer, what_if

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4))


def model(x):
    x = np.asarray(x)
    return x[:, 0] * x[:, 1] + np.sin(x[:, 2])


def loss(x, y):
    return (model(x) - np.asarray(y, dtype=float)) ** 2


class Doubling(shap.maskers.Independent):
    """Puts twice the background where features are removed."""

    def __call__(self, mask, x):
        return (np.where(mask, x, 2 * self.data),)


@pytest.mark.parametrize("masker", [shap.maskers.Independent, shap.maskers.Partition])
def test_tabular_maskers(masker):
    explanation = HarmonicaExplainer(model, masker(X))(X)
    expected = HarmonicaExplainer(model, X)(X)
    np.testing.assert_allclose(explanation.values, expected.values, atol=1e-12)


def test_a_subclass_with_its_own_masking_is_asked():
    explanation = HarmonicaExplainer(model, Doubling(X[:3]))(X)
    expected = HarmonicaExplainer(model, 2 * X[:3])(X)
    np.testing.assert_allclose(explanation.values, expected.values, atol=1e-9)


def test_custom_function_as_masker():
    explainer = HarmonicaExplainer(model, lambda mask, x: (x * mask).reshape(1, -1))
    explanation = explainer(X)
    expected = HarmonicaExplainer(model, np.zeros((1, 4)))(X)
    np.testing.assert_allclose(explanation.values, expected.values, atol=1e-9)
    with pytest.raises(AttributeError, match="no fixed expected value"):
        _ = explainer.expected_value


def test_composite_explains_what_can_be_masked():
    masker = shap.maskers.Composite(
        shap.maskers.Independent(X[:2]), shap.maskers.Fixed()
    )
    labels = np.arange(6.0)

    explanation = HarmonicaExplainer(loss, masker)(X, labels)
    assert explanation.values.shape == (6, 4)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, loss(X, labels), atol=1e-9)


TEXTS = [
    "a good film",
    "not a good film at all",
    "a dull and slow film",
    "good acting and a good story",
]


def text_classifier():
    pipeline = make_pipeline(
        CountVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10.0)
    )
    return pipeline.fit(TEXTS, [1, 0, 0, 1])


def test_text_classifier_through_the_text_masker():
    classifier = text_classifier()
    masker = shap.maskers.Text(r"\W+")
    explainer = HarmonicaExplainer(
        classifier.predict_proba, masker, output_names=["bad", "good"]
    )
    explanation = explainer(TEXTS)
    for k, text in enumerate(TEXTS):
        row = explanation[k]
        assert row.values.shape == (len(row.data), 2)
        total = row.base_values + row.values.sum(axis=0)
        expected = classifier.predict_proba([text])[0]
        np.testing.assert_allclose(total, expected, atol=1e-9)
        assert "".join(row.data) == text
    assert explainer.surrogates[1].n_features == len(explanation[1].data)


def test_text_interactions_find_the_negation():
    classifier = text_classifier()
    masker = shap.maskers.Text(r"\W+")
    explainer = HarmonicaExplainer(
        lambda texts: classifier.decision_function(list(texts)), masker
    )
    cube = explainer(TEXTS[1:2], interactions=True)
    total = cube.base_values[0] + cube.values[0].sum()
    expected = classifier.decision_function(TEXTS[1:2])[0]
    np.testing.assert_allclose(total, expected, atol=1e-9)
    assert cube.values[0].shape == (6, 6)
    assert cube.values[0][0, 2] < -1e-3  # "not good" is a pair of words in the bad text


def quadrants(side=6):
    half = np.arange(side) // (side // 2)
    return 2 * half[:, None] + half[None, :]


def image_model(images):
    bright = images[:, :3, :3].sum(axis=(1, 2, 3))
    return np.stack([bright, bright * images[:, 3:].max(axis=(1, 2, 3))], axis=1)


@pytest.mark.parametrize("per_channel", [False, True])
def test_image_groups_share_their_value(per_channel):
    images = RNG.random((2, 6, 6, 3))
    labels = quadrants()
    if per_channel:
        labels = np.repeat(labels[:, :, None], 3, axis=2)
    masker = shap.maskers.Image(np.zeros((6, 6, 3)))
    explainer = HarmonicaExplainer(image_model, masker, groups=labels)
    explanation = explainer(images)
    assert explanation.values.shape == (2, 6, 6, 3, 2)
    assert explainer.surrogates[0].n_features == 4
    total = explanation.base_values + explanation.values.sum(axis=(1, 2, 3))
    np.testing.assert_allclose(total, image_model(images), atol=1e-9)
    quadrant = explanation.values[0, :3, :3]
    np.testing.assert_allclose(
        quadrant, np.broadcast_to(quadrant[0, 0, 0], (3, 3, 3, 2))
    )


def test_image_groups_may_depend_on_the_image_and_have_a_default():
    images = RNG.random((2, 6, 6, 3))
    masker = shap.maskers.Image(np.zeros((6, 6, 3)))
    by_image = HarmonicaExplainer(image_model, masker, groups=lambda x: quadrants())
    fixed = HarmonicaExplainer(image_model, masker, groups=quadrants())
    np.testing.assert_array_equal(by_image(images).values, fixed(images).values)
    plain = HarmonicaExplainer(image_model, masker)(images, max_evals=64)
    assert plain.values.shape == (2, 6, 6, 3, 2)
    with pytest.raises(ValueError, match="one label per mask column"):
        HarmonicaExplainer(image_model, masker, groups=np.zeros((5, 5)))(images)


def test_black_image_regions_are_not_sampled():
    calls = []

    def counted(images):
        calls.append(len(images))
        return image_model(images)

    image = np.zeros((1, 6, 6, 3))
    image[0, :3, :3] = 1.0
    masker = shap.maskers.Image(np.zeros((6, 6, 3)))
    HarmonicaExplainer(counted, masker, groups=quadrants())(image)
    assert sum(calls) == 2  # one varying region: with it, and without


def test_groups_of_table_columns_share_their_value():
    explanation = HarmonicaExplainer(model, X[:2], groups=[0, 0, 1, 2])(X)
    assert explanation.values.shape == (6, 4)
    np.testing.assert_allclose(explanation.values[:, 0], explanation.values[:, 1])
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, model(X), atol=1e-9)


def mixed_table():
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical(RNG.choice(list("xyz"), 40), categories=list("xyz")),
            "word": RNG.choice(["p", "q"], 40),
            "size": RNG.normal(size=40),
            "count": RNG.integers(0, 5, 40),
        }
    )
    target = (frame["size"] + (frame["kind"] == "x") > 0).astype(int)
    encode = make_column_transformer(
        (OneHotEncoder(), ["kind", "word"]), remainder="passthrough"
    )
    return frame, make_pipeline(encode, LogisticRegression()).fit(frame, target)


@pytest.mark.parametrize("wrap", [lambda d: d, shap.maskers.Independent])
def test_a_pipeline_on_a_table_with_categories(wrap):
    frame, pipeline = mixed_table()
    seen = []

    def proba(table):
        seen.append(dict(table.dtypes.astype(str)))
        return pipeline.predict_proba(table)

    explainer = HarmonicaExplainer(proba, wrap(frame[:8]))
    explanation = explainer(frame)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, pipeline.predict_proba(frame), atol=1e-9)
    assert explanation.feature_names == list(frame.columns)
    if not isinstance(explainer.masker, shap.maskers.Independent) or seen:
        assert seen[-1]["count"] == "int64"
    plain = HarmonicaExplainer(pipeline.predict_proba, wrap(frame[:8]))
    np.testing.assert_array_equal(plain(frame).values, explanation.values)


def test_categories_keep_their_dtype():
    frame, pipeline = mixed_table()
    seen = set()

    def proba(table):
        seen.add(str(table["kind"].dtype))
        return pipeline.predict_proba(table)

    HarmonicaExplainer(proba, frame[:8])(frame)
    assert seen == {"category"}


def test_categories_that_the_background_does_not_know():
    background = pd.DataFrame({"c": pd.Categorical(["a", "b"]), "n": [0.0, 1.0]})
    rows = pd.DataFrame({"c": pd.Categorical(["z"]), "n": [2.0]})
    explainer = HarmonicaExplainer(
        lambda t: (t["c"] == "z").to_numpy() * 3.0 + t["n"].to_numpy(), background
    )
    np.testing.assert_allclose(explainer.shap_values(rows), [[3.0, 1.5]])


def test_a_torch_module_with_tensors_and_arrays():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    ).eval()
    rows = torch.tensor(X, dtype=torch.float32)
    expected = net(rows).detach().numpy()
    for background, data in ((rows[:2], rows), (X[:2], X)):
        explanation = HarmonicaExplainer(net, background)(data)
        total = explanation.base_values + explanation.values.sum(axis=1)
        np.testing.assert_allclose(total, expected, atol=1e-6)
        assert explanation.values.shape == (6, 4, 2)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_boosted_trees(package):
    library = pytest.importorskip(package, reason=f"{package} is not installed")
    regressor = getattr(
        library, {"xgboost": "XGBRegressor"}.get(package, "LGBMRegressor")
    )
    trees = regressor(n_estimators=5).fit(X, model(X))
    explanation = HarmonicaExplainer(trees.predict, X[:2])(X)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, trees.predict(X), atol=1e-6)


class SmallMemory:
    """A model that raises above so many rows, and remembers how it was called."""

    def __init__(self, function, most, error=MemoryError):
        self.function, self.most, self.error = function, most, error
        self.fitted, self.failed = [], []

    def __call__(self, *inputs):
        n_rows = len(inputs[0])
        (self.fitted if n_rows <= self.most else self.failed).append(n_rows)
        if n_rows > self.most:
            raise self.error("CUDA out of memory")
        return self.function(*inputs)


@pytest.mark.parametrize("most", [64, 7, 1])  # below 20: the background is cut too
@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_calls_that_do_not_fit_into_memory_are_halved(most, error):
    table = np.random.default_rng(1).normal(size=(20, 6))
    options = {"nsamples": 50, "silent": True}
    expected = HarmonicaExplainer(model, table).shap_values(table[:2], **options)
    small = SmallMemory(model, most, error)
    explainer = HarmonicaExplainer(small, table)
    found = explainer.shap_values(table[:2], **options)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    small.failed.clear()
    explainer.shap_values(table[:3], **options)
    assert small.failed == []  # what fits is known by now


def test_frames_that_do_not_fit_into_memory_are_halved():
    frame, pipeline = mixed_table()
    expected = HarmonicaExplainer(pipeline.predict_proba, frame[:8])(frame)
    small = SmallMemory(pipeline.predict_proba, 5)
    found = HarmonicaExplainer(small, frame[:8])(frame)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-13)


@pytest.mark.parametrize("most", [5, 2])  # of three rows a mask
def test_masked_inputs_that_do_not_fit_into_memory_are_halved(most):
    expected = HarmonicaExplainer(model, Doubling(X[:3]))(X)
    small = SmallMemory(model, most)
    explainer = HarmonicaExplainer(small, Doubling(X[:3]))
    np.testing.assert_allclose(explainer(X).values, expected.values, atol=1e-13)
    assert len(small.failed) <= 6  # learnt by the first row, known to the others
    small.failed.clear()
    explainer(X)
    assert small.failed == []


def test_texts_and_several_arguments_that_do_not_fit_are_halved():
    classifier, masker = text_classifier(), shap.maskers.Text(r"\W+")
    expected = HarmonicaExplainer(classifier.predict_proba, masker)(TEXTS[:2])
    small = SmallMemory(classifier.predict_proba, 3)
    found = HarmonicaExplainer(small, masker)(TEXTS[:2])
    for k in range(2):
        np.testing.assert_allclose(found[k].values, expected[k].values, atol=1e-13)

    both = shap.maskers.Composite(shap.maskers.Independent(X[:4]), shap.maskers.Fixed())
    expected = HarmonicaExplainer(loss, both)(X, np.arange(6.0))
    found = HarmonicaExplainer(SmallMemory(loss, 3), both)(X, np.arange(6.0))
    np.testing.assert_allclose(found.values, expected.values, atol=1e-13)


@pytest.mark.parametrize("masker", [X[:3], lambda mask, x: (x * mask).reshape(1, -1)])
def test_one_row_that_does_not_fit_is_the_models_error(masker):
    with pytest.raises(MemoryError, match="CUDA"):
        HarmonicaExplainer(SmallMemory(model, 0), masker)(X)


def test_maskers_that_can_not_be_hashed():
    class Plain:
        __hash__ = None

        def __call__(self, mask, x):
            return (x * mask).reshape(1, -1)

    expected = HarmonicaExplainer(model, np.zeros((1, 4)))(X)
    found = HarmonicaExplainer(SmallMemory(model, 3), Plain())(X)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-9)


def test_pages_hold_the_input_and_saved_surrogates_do_not(tmp_path):
    rows = X.copy()
    rows[0, 2] = 0.7625
    explainer = HarmonicaExplainer(model, np.zeros((1, 4)))
    what_if(explainer, explainer(rows), path=tmp_path / "page.html")
    assert "0.7625" in (tmp_path / "page.html").read_text()
    explainer.surrogates[0].save(tmp_path / "saved")
    with np.load(tmp_path / "saved") as saved:
        assert not any(0.7625 in saved[name] for name in saved)
        assert any(np.sin(0.7625) in saved[name] for name in saved)  # an output

    image = RNG.random((1, 6, 6, 3))
    masker = shap.maskers.Image(np.zeros((6, 6, 3)))
    explainer = HarmonicaExplainer(image_model, masker, groups=quadrants())
    what_if(explainer, explainer(image), path=tmp_path / "image.html", output=0)
    assert "data:image/png;base64," in (tmp_path / "image.html").read_text()

    policy = (Path(__file__).parents[1] / "SECURITY.md").read_text()
    secrecy = re.sub(r"\s+", " ", policy.split("**Secrecy.**")[1])
    assert "What-if pages also embed the input they show" in secrecy


@pytest.mark.parametrize("interactions", [False, True])
def test_main_effects_behind_a_masker_are_those_of_the_table(interactions):
    def times_mask(mask, x):
        return (x * mask).reshape(1, -1)

    options = {"main_effects": True, "interactions": interactions}
    found = HarmonicaExplainer(model, times_mask)(X, **options)
    expected = HarmonicaExplainer(model, np.zeros((1, 4)))(X, **options)
    np.testing.assert_allclose(found.main_effects, expected.main_effects, atol=1e-9)
    assert HarmonicaExplainer(model, times_mask)(X).main_effects is None


def test_main_effects_of_images_and_texts_are_shaped_like_their_values():
    images = RNG.random((2, 6, 6, 3))
    masker = shap.maskers.Image(np.zeros((6, 6, 3)))
    explainer = HarmonicaExplainer(image_model, masker, groups=quadrants())
    explanation = explainer(images, main_effects=True)
    assert explanation.main_effects.shape == explanation.values.shape
    total = explanation.main_effects[0].sum(axis=(0, 1, 2))
    alone = explainer.surrogates[0](np.eye(4, dtype=bool))
    expected = (alone - explainer.surrogates[0].base_value).sum(axis=0)
    np.testing.assert_allclose(total, expected, atol=1e-9)
    words = HarmonicaExplainer(
        lambda texts: np.array([float(len(text)) for text in texts]),
        shap.maskers.Text(r"\W+"),
    )(["so good", "not so good"], main_effects=True)
    shapes = [part.shape for part in words.main_effects]
    assert shapes == [part.shape for part in words.values]


def test_arguments_of_unequal_length_are_named():
    masker = shap.maskers.Composite(
        shap.maskers.Independent(X[:2]), shap.maskers.Fixed()
    )
    explainer = HarmonicaExplainer(lambda x, y: model(x), masker)
    with pytest.raises(ValueError, match=r"hold \[6, 2\] inputs; needed as many"):
        explainer(X, np.arange(2.0))
