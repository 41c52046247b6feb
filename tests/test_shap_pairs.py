"""Pair columns: names, sums, and what is folded together."""

import numpy as np
import pytest

from shap_harmonica import HarmonicaExplainer, pairs

X = np.random.default_rng(0).normal(size=(8, 4))


def model(x):
    return x[:, 0] * x[:, 1] + x[:, 2] - 0.1 * x[:, 1] * x[:, 3]


@pytest.fixture(scope="module")
def cube():
    explainer = HarmonicaExplainer(model, np.zeros((1, 4)), feature_names=list("abcd"))
    return explainer(X, interactions=True)


def test_columns_are_effects_and_whole_interactions(cube):
    found = pairs(cube)
    assert found.feature_names[:5] == ["a", "b", "c", "d", "a x b"]
    assert found.values.shape == (8, 10)
    product = found.values[:, found.feature_names.index("a x b")]
    np.testing.assert_allclose(product, X[:, 0] * X[:, 1], atol=1e-9)
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model(X), atol=1e-9)


def test_small_pairs_fold_into_one_column(cube):
    found = pairs(cube, top=1)
    assert found.feature_names[4:] == ["a x b", "5 other pairs"]
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model(X), atol=1e-9)


def test_one_row_stays_one_row(cube):
    found = pairs(cube[2])
    np.testing.assert_allclose(found.values, pairs(cube).values[2])
    assert found.display_data[4] == f"{X[2, 0]:.4g}, {X[2, 1]:.4g}"


def test_text_data_and_wrong_shapes(cube):
    cube_of_text = HarmonicaExplainer(
        lambda x: (x[:, 0] == "u") * (x[:, 1] == "v") * 1.0, np.array([["x", "y"]])
    )(np.array([["u", "v"]]), interactions=True)
    assert pairs(cube_of_text).display_data[0, 2] == "u, v"
    with pytest.raises(ValueError, match="interactions=True"):
        pairs(HarmonicaExplainer(model, X[:1])(X))
    with pytest.raises(ValueError, match="number of pairs"):
        pairs(cube, top=-1)
