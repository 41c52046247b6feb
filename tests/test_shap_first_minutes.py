"""What a person meets in the first ten minutes with SHAP: names, shapes, refusals."""

import time
import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonica_core import Surrogate
from shap_harmonica import HarmonicaAnchor, HarmonicaExplainer, what_if

RNG = np.random.default_rng(0)
NAMES = ["age", "home", "income", "debt"]
X = pd.DataFrame(RNG.normal(size=(12, 4)), columns=NAMES)


def model(x):
    x = np.asarray(x)
    return x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + x[:, 3]


@pytest.fixture
def explainer():
    return HarmonicaExplainer(model, X[:3])


def test_explain_returns_surrogates(explainer):
    found = explainer.explain(X[3:6])
    assert [type(one) for one in found] == [Surrogate] * 3
    assert found == explainer.surrogates
    assert explainer.explain(X.iloc[3])[0].n_features == 4


def test_surrogates_by_number_and_features_by_name(explainer):
    explanation = explainer(X[3:])
    surrogate = explainer.surrogate(2)
    assert surrogate is explainer.surrogates[2]
    removed = surrogate([[True, False, True, True]])[0]
    assert surrogate({"home": 0}) == surrogate.without("home") == removed
    assert surrogate({}) == pytest.approx(
        explanation.base_values[2] + explanation.values[2].sum()
    )
    assert surrogate.without(*NAMES) == pytest.approx(explainer.expected_value)
    assert surrogate({"home": False, "age": True, 3: 0}) == surrogate.without(1, "debt")
    with pytest.raises(ValueError, match="'hom' is unknown; .* age, home, income"):
        surrogate.without("hom")
    with pytest.raises(ValueError, match="'home': 2.5; needed 1"):
        surrogate({"home": 2.5})
    with pytest.raises(IndexError, match="row 9 of 9 rows"):
        explainer.surrogate(9)
    page = what_if(explainer, explanation, 2)
    assert "home" in page.html


def test_anchored_surrogates_take_names_too():
    (found,) = HarmonicaAnchor(model, X[:3]).explain(X[3:4])
    mask = np.array([[True, False, True, True]])
    assert found.without("home") == found({"home": 0}) == found(mask)[0]


def test_renamed_columns_are_refused(explainer):
    renamed = X.rename(columns={"home": "house"})
    with pytest.raises(ValueError, match=r"\['house'\] .* lacks \['home'\]"):
        explainer(renamed)
    np.testing.assert_array_equal(
        explainer(renamed.to_numpy()).values, explainer(X).values
    )


def test_a_text_masker_on_a_table_is_named():
    explainer = HarmonicaExplainer(model, shap.maskers.Text(r"\W+"))
    for table in (X, X.to_numpy()):
        with pytest.raises(TypeError, match="needed strings: for rows of a table"):
            explainer(table)


def iris():
    data = load_iris(as_frame=True)
    names = data.target_names[data.target]
    return data.data, make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=500)
    ).fit(data.data, names)


def test_outputs_are_named_by_the_classes():
    table, pipeline = iris()
    explainer = HarmonicaExplainer(pipeline.predict_proba, table[::30])
    explanation = explainer(table[:4])
    assert explanation.output_names == ["setosa", "versicolor", "virginica"]
    chosen = explainer(table[:4], outputs="virginica")
    np.testing.assert_array_equal(chosen.values[..., 0], explanation.values[..., 2])
    assert explainer.explain(table[:1])[0].output_names == tuple(pipeline.classes_)
    given = HarmonicaExplainer(
        pipeline.predict_proba, table[::30], output_names=list("abc")
    )
    assert given(table[:1]).output_names == list("abc")
    score = HarmonicaExplainer(lambda x: pipeline.predict_proba(x)[:, 0], table[::30])
    assert score(table[:1]).output_names is None


def test_kernel_explainers_constructor_is_accepted():
    with pytest.warns(UserWarning, match="l1_reg is ignored.* not needed") as found:
        explainer = HarmonicaExplainer(model, X[:3], l1_reg="rank(3)", random_state=7)
    assert found[0].filename == __file__
    assert explainer.seed == 7
    assert explainer(X).shape == (12, 4)


def test_one_row_has_kernel_explainers_shapes():
    table, pipeline = iris()
    background = table[::30]

    def proba(x):
        return pipeline.predict_proba(pd.DataFrame(x, columns=table.columns))

    for function, tail in ((proba, (3,)), (lambda x: proba(x)[:, 0], ())):
        kernel = shap.KernelExplainer(function, background)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = kernel.shap_values(table.iloc[3], silent=True)
        explainer = HarmonicaExplainer(function, background)
        found = explainer(table.iloc[3])
        assert found.values.shape == expected.shape == (4, *tail)
        assert np.shape(found.base_values) == tail
        assert found.data.shape == (4,)
        assert explainer(table[3:4]).values.shape == (1, 4, *tail)
        np.testing.assert_allclose(found.values, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*tight.layout.*:UserWarning")
def test_a_single_row_can_be_drawn():
    table, pipeline = iris()
    explainer = HarmonicaExplainer(pipeline.predict_proba, table[::30])
    one = HarmonicaExplainer(lambda x: pipeline.predict_proba(x)[:, 1], table[::30])
    for row in (explainer(table.iloc[3])[:, 1], one(table.iloc[3])):
        shap.plots.waterfall(row, show=False)
        plt.close("all")
        shap.plots.force(row, matplotlib=True, show=False)
        plt.close("all")
    assert "petal" in what_if(explainer, explainer(table.iloc[3])).html


def test_a_model_without_a_masker_is_told_what_to_pass():
    trees = HistGradientBoostingClassifier(max_iter=5).fit(X, model(X) > 0)
    for given in (trees.predict_proba, trees):
        with pytest.raises(TypeError, match=r"masker=None; needed a background .*\n?"):
            HarmonicaExplainer(given)


@pytest.mark.parametrize("n", [4, 8, 10, 11, 12, 16, 30])
def test_the_default_asks_for_no_more_model_rows_than_kernel_explainer(n):
    asked = []

    def counted(x):
        asked.append(len(x))
        return x.sum(axis=1) + x[:, 0] * x[:, 1]

    background = RNG.normal(size=(5, n))
    HarmonicaExplainer(counted, background)(RNG.normal(size=(2, n)))
    most = min(2**n, 2 * n + 2048) * 5
    assert sum(asked) <= 5 + 2 * most


def test_a_sparse_row_costs_seconds():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=1024)
    row = np.zeros((1, 1024))
    row[0, rng.permutation(1024)[:160]] = 1.0

    def score(x):
        return 1 / (1 + np.exp(-(x @ weights) / 4))

    nothing = scipy.sparse.csr_matrix((1, 1024))

    def cost(explain):
        start = time.process_time()
        explain()
        return time.process_time() - start

    sparse = scipy.sparse.csr_matrix(row)
    explainer = HarmonicaExplainer(score, nothing)
    ours = cost(lambda: explainer.shap_values(sparse, silent=True))
    kernel = shap.KernelExplainer(score, nothing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cost(lambda: kernel.shap_values(sparse, silent=True))
    # Measured at about twice; machines that others use at the same time vary.
    assert ours < 5 * theirs + 1
    assert explainer.surrogates[0].n_evaluations <= 2 * 160 + 2048
