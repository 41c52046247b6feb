"""KernelExplainer's calls with the class name changed; equal where both are exact."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from shap.utils._legacy import DenseData
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from shap_harmonica import HarmonicaExplainer, HarmonicaLocal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 4))


def model(x):
    return x[:, 0] * x[:, 1] + np.sin(x[:, 2])


def kernel_values(function, background, rows, **settings):
    explainer = shap.KernelExplainer(function, background, **settings)
    return explainer.shap_values(rows, l1_reg=False, silent=True), explainer


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_equal_to_kernel_explainer_where_both_enumerate(link):
    iris = load_iris()
    svm = SVC().fit(iris.data, iris.target)

    def proba(x):
        scores = np.exp(svm.decision_function(x))
        return scores / scores.sum(axis=1, keepdims=True)

    background, rows = iris.data[::15], iris.data[3::40]
    expected, kernel = kernel_values(proba, background, rows, link=link)
    explainer = HarmonicaExplainer(proba, background, link=link)
    np.testing.assert_allclose(explainer.shap_values(rows), expected, atol=1e-6)
    np.testing.assert_allclose(explainer.expected_value, kernel.expected_value)
    assert isinstance(HarmonicaExplainer(model, X[:2]).expected_value, float)


def test_shapes_of_one_row():
    explainer = HarmonicaExplainer(model, X[:3], nsamples=100)
    assert explainer.max_evals == 100
    assert explainer.shap_values(X[0]).shape == (4,)
    assert explainer.shap_values(X[:1]).shape == (1, 4)
    assert explainer(X[0]).shape == (4,)
    assert explainer.shap_interaction_values(X[0]).shape == (4, 4)
    assert explainer.shap_interaction_values(X).shape == (7, 4, 4)


def test_l1_reg_is_ignored_with_a_warning():
    explainer = HarmonicaExplainer(model, data=X[:3])
    with pytest.warns(UserWarning, match="l1_reg is ignored") as of_values:
        found = explainer.shap_values(X, l1_reg="num_features(2)", gc_collect=True)
    np.testing.assert_array_equal(found, explainer.shap_values(X, nsamples="auto"))
    with pytest.warns(UserWarning, match="default fit has no L1 penalty") as of_call:
        explainer(X, l1_reg=False)
    assert of_values[0].filename == of_call[0].filename == __file__
    for call in ("explain", "shap_interaction_values"):
        with pytest.warns(UserWarning, match="l1_reg is ignored") as found:
            getattr(explainer, call)(X[0], l1_reg=10)
        assert found[0].filename == __file__


def test_a_linear_model_is_exact_and_unused_features_get_zero():
    rows = RNG.normal(size=(60, 3))
    explainer = HarmonicaExplainer(lambda x: x[:, 0] + 2 * x[:, 1], rows)
    values = explainer.shap_values(rows)
    expected = (rows - rows.mean(axis=0)) * [1, 2, 0]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    assert not values[:, 2].any()


def test_logit_at_zero_and_one_is_finite():
    def hard(x):
        return (x[:, 0] > 0).astype(float)

    explainer = HarmonicaExplainer(hard, X[:1], link="logit")
    expected, _ = kernel_values(hard, X[:1], X, link="logit")
    np.testing.assert_allclose(explainer.shap_values(X), expected, atol=1e-9)
    jitted = HarmonicaExplainer(hard, X[:1], shap.links.logit)
    np.testing.assert_allclose(jitted.shap_values(X), expected, atol=1e-9)


def test_the_link_is_applied_to_the_average():
    def proba(x):
        return 1 / (1 + np.exp(-model(x)))

    explainer = HarmonicaExplainer(proba, X[:5], shap.links.logit)
    explanation = explainer(X)
    mean = proba(X[:5]).mean()
    np.testing.assert_allclose(explanation.base_values, np.log(mean / (1 - mean)))
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, model(X), atol=1e-9)


def test_any_callable_link_and_nothing_else():
    explainer = HarmonicaExplainer(lambda x: np.exp(model(x)), X[:2], np.log)
    total = explainer.expected_value + explainer.shap_values(X).sum(axis=1)
    np.testing.assert_allclose(total, model(X), atol=1e-9)
    with pytest.raises(TypeError, match="needed"):
        HarmonicaExplainer(model, X[:2], link="probit")


def test_dataframes_with_an_index_reach_a_model_fitted_on_them():
    frame = pd.DataFrame(RNG.random((10, 3)), columns=list("abc"))
    frame.index = pd.date_range("2018-01-01", periods=10, freq="D", tz="UTC")
    target = frame.eval("a - 2 * b + 3 * c")
    linear = LinearRegression().fit(frame, target)
    explainer = HarmonicaExplainer(linear.predict, frame, keep_index=True)
    expected = (frame - frame.mean()) * [1, -2, 3]
    np.testing.assert_allclose(explainer.shap_values(frame), expected, atol=1e-9)
    assert explainer(frame).feature_names == list("abc")
    np.testing.assert_allclose(
        explainer.shap_values(frame.iloc[2]), expected.iloc[2], atol=1e-9
    )


def test_dataframes_reach_models_of_arrays_as_arrays():
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted_on_arrays = LinearRegression().fit(X, model(X))
    for function in (model, fitted_on_arrays.predict):
        with warnings.catch_warnings(record=True) as complaints:
            warnings.simplefilter("always")
            explainer = HarmonicaExplainer(function, frame[:3])
            total = explainer.expected_value + explainer.shap_values(frame).sum(axis=1)
        np.testing.assert_allclose(total, function(X), atol=1e-9)
        assert not complaints


def test_arrays_for_a_model_fitted_on_names_take_the_names_of_the_rows():
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = LinearRegression().fit(frame, model(X))
    explainer = HarmonicaExplainer(named.predict, X[:3])
    values = explainer(frame).values
    np.testing.assert_allclose(values, (X - X[:3].mean(axis=0)) * named.coef_)


def test_series_background():
    row = pd.Series([1.0, 2.0, 3.0], index=list("abc"))
    explainer = HarmonicaExplainer(lambda x: np.asarray(x).sum(axis=1), row)
    assert explainer.shap_values(row + 1).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.lil_matrix])
def test_sparse_background_and_rows(kind):
    dense = np.where(X > 0, X, 0)
    labels = (dense[:, 0] > 0.1).astype(int)
    logistic = LogisticRegression().fit(kind(dense), labels)
    seen = []

    def proba(x):
        seen.append(scipy.sparse.issparse(x))
        return logistic.predict_proba(x)

    explainer = HarmonicaExplainer(proba, kind(dense[:3]), link="logit")
    values = explainer.shap_values(kind(dense))
    assert all(seen)
    plain = HarmonicaExplainer(logistic.predict_proba, dense[:3], link="logit")
    np.testing.assert_allclose(values, plain.shap_values(dense), atol=1e-9)
    zeros = HarmonicaExplainer(proba, kind((1, 4)))
    assert zeros.shap_values(kind(dense)).shape == (7, 4, 2)


def test_matrix_from_todense():
    rows = scipy.sparse.csr_matrix(X).todense()
    explainer = HarmonicaExplainer(model, X[:2])
    np.testing.assert_array_equal(explainer.shap_values(rows), explainer.shap_values(X))


def test_kmeans_weights_count():
    data = RNG.normal(size=(60, 4))
    expected, kernel = kernel_values(model, shap.kmeans(data, 4), X)
    explainer = HarmonicaExplainer(model, shap.kmeans(data, 4))
    np.testing.assert_allclose(explainer.shap_values(X), expected, atol=1e-9)
    assert explainer.expected_value == pytest.approx(kernel.expected_value)


def test_dense_data_groups_are_features():
    def grouped():
        return DenseData(X[:2], ["left", "right"], [np.arange(2), np.arange(2, 4)])

    expected, _ = kernel_values(model, grouped(), X)
    explanation = HarmonicaExplainer(model, grouped())(X)
    np.testing.assert_allclose(explanation.values, expected, atol=1e-9)
    assert explanation.feature_names == ["left", "right"]


def test_text_valued_tables():
    table = np.array(
        [["A", "0", "0"], ["A", "1", "0"], ["B", "0", "0"], ["B", "1", "0"]]
    )
    pipeline = make_pipeline(OneHotEncoder(), DecisionTreeRegressor(random_state=0))
    pipeline.fit(table, [0.0, 1.0, 2.0, 3.0])
    for data in (table, table.astype(object)):
        explainer = HarmonicaExplainer(pipeline.predict, data[:2])
        values = explainer.shap_values(data[3])
        np.testing.assert_allclose(values, [2.0, 0.5, 0.0], atol=1e-9)


def test_booleans_beside_numbers():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0})
    explainer = HarmonicaExplainer(lambda x: np.ones(len(x)), frame)
    assert not explainer.shap_values(frame).any()


def test_missing_values():
    rows = X.copy()
    rows[[0, 2], 1] = np.nan

    calls = []

    def gaps(x):
        calls.append(len(x))
        return np.nan_to_num(x).sum(axis=1) + np.isnan(x).any(axis=1)

    explanation = HarmonicaExplainer(gaps, rows[:1])(rows)
    # The expected value; row 0 is the background; row 2 lacks the same value.
    assert sum(calls) == 1 + 0 + (2**3 - 1) + 5 * (2**4 - 1)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, gaps(rows), atol=1e-9)
    assert explanation.values[2, 1] == 0  # missing in both: nothing changes
    assert explanation.values[1, 1] != 0


def test_integer_backgrounds_do_not_truncate():
    explainer = HarmonicaExplainer(lambda x: x.sum(axis=1), np.zeros((2, 4), dtype=int))
    np.testing.assert_allclose(explainer.shap_values(X), X, atol=1e-9)
    frame = pd.DataFrame(np.zeros((2, 4), dtype=int), columns=list("abcd"))
    explainer = HarmonicaExplainer(lambda x: x.sum(axis=1), frame)
    np.testing.assert_allclose(explainer.shap_values(X), X, atol=1e-9)


def test_backgrounds_of_any_size_are_used_whole():
    data = RNG.normal(size=(150, 4))
    explainer = HarmonicaExplainer(model, data)
    assert explainer.expected_value == pytest.approx(model(data).mean())
    by_parts = explainer(X[:2], batch_size=40).values
    np.testing.assert_allclose(by_parts, explainer(X[:2]).values, atol=1e-12)


def test_models_may_answer_with_pandas():
    frame = pd.DataFrame(X, columns=list("abcd"))
    for answer in (pd.Series, lambda y: pd.DataFrame({"y": y})):
        explainer = HarmonicaExplainer(
            lambda x, answer=answer: answer(np.asarray(x)[:, 0]), frame[:2]
        )
        assert explainer.shap_values(frame).shape[:2] == (7, 4)


def _round_trip(explainer, load):
    stream = io.BytesIO()
    explainer.save(stream)
    stream.seek(0)
    return load(stream)


@pytest.mark.parametrize("load", [HarmonicaExplainer.load, shap.Explainer.load])
@pytest.mark.parametrize(
    "background", [X[:3], shap.maskers.Independent(X[:3]), shap.kmeans(X, 2)]
)
def test_save_and_load_keep_values_and_settings(background, load):
    explainer = HarmonicaExplainer(
        model, background, degree=2, seed=5, feature_names=list("abcd"), terms=[(0, 1)]
    )
    expected = explainer(X)
    again = _round_trip(explainer, load)
    found = again(X)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.base_values, expected.base_values)
    assert type(again) is HarmonicaExplainer
    assert type(again.masker) is type(explainer.masker)
    assert (again.degree, again.seed, again.terms) == (2, 5, [(0, 1)])
    assert found.feature_names == list("abcd")


def test_save_and_load_a_variant_with_a_link():
    explainer = HarmonicaLocal(
        lambda x: 1 / (1 + np.exp(-model(x))), X[:1], "logit", radius=2
    )
    again = _round_trip(explainer, HarmonicaExplainer.load)
    assert (type(again), again.radius) == (HarmonicaLocal, 2)
    np.testing.assert_allclose(again(X).values, explainer(X).values)
