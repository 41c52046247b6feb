"""The four other algorithms behind the same explainer."""

import numpy as np
import pytest

from harmonica_core import AnchoredSurrogate
from shap_harmonica import (
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaExplainer,
    HarmonicaLocal,
    LowDegree,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 12))
VARIANTS = [HarmonicaLocal, HarmonicaAnchor, HarmonicaAnchorConstrained, LowDegree]


def model(x):
    return x[:, 0] * x[:, 1] + x[:, 2] ** 2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_features", [4, 12])
def test_values_and_cubes_add_up(variant, n_features):
    rows = X[:1, :n_features]
    explainer = variant(model, np.zeros((1, n_features)), degree=2, max_evals=120)
    explanation = explainer(rows)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, model(rows), atol=1e-6)
    cube = explainer.shap_interaction_values(rows)
    np.testing.assert_allclose(cube.sum(axis=2), explanation.values, atol=1e-9)


@pytest.mark.parametrize("variant", [HarmonicaAnchor, HarmonicaAnchorConstrained])
def test_anchored_surrogates_are_lifted_to_all_features(variant):
    rows = np.zeros((1, 12))
    rows[0, [2, 5, 7]] = [1.0, 2.0, 3.0]
    explainer = variant(lambda x: x[:, 2] * x[:, 5] + x[:, 7], np.zeros((1, 12)))
    explainer(rows)
    (surrogate,) = explainer.surrogates
    assert isinstance(surrogate, AnchoredSurrogate)
    assert surrogate.n_features == 12
    assert len(np.unique(surrogate.anchors, axis=0)) == surrogate.n_anchors == 3
    assert surrogate.anchors[:, [0, 1, 3]].all()  # what does not vary is kept
    removed = np.ones((1, 12), dtype=bool)
    removed[0, [0, 5]] = False
    assert surrogate(removed)[0] == pytest.approx(3.0, abs=0.5)


def test_local_is_fitted_near_the_input():
    explainer = HarmonicaLocal(model, np.zeros((1, 12)), radius=2, max_evals=60)
    explainer(X)
    masks = explainer.surrogates[0].evaluated.masks
    inner = masks[masks.any(axis=1)]
    assert (~inner).sum(axis=1).max() <= 2


@pytest.mark.parametrize(
    ("variant", "wrong", "words"),
    [
        (HarmonicaLocal, {"radius": "a"}, "radius='a'"),
        (HarmonicaLocal, {"radius": 0}, "radius=0"),
        (HarmonicaAnchor, {"anchors": 0}, "anchors=0"),
        (HarmonicaAnchorConstrained, {"anchors": 1.5}, "anchors=1.5"),
        (HarmonicaAnchorConstrained, {"consistency": -1}, "consistency=-1"),
        (HarmonicaAnchorConstrained, {"consistency": "a"}, "consistency='a'"),
        (LowDegree, {"alpha": 0.1}, "alpha=0.1, .* needed none"),
        (LowDegree, {"alpha": "foo"}, "alpha='foo'"),
        (LowDegree, {"terms": [(99,)]}, "needed none"),
        *((variant, {"engine": "ridge"}, "engine='ridge'") for variant in VARIANTS),
        *((variant, {"degree": 0}, "degree=0") for variant in VARIANTS),
    ],
)
def test_wrong_settings_are_refused_before_any_model_call(variant, wrong, words):
    calls = []

    def counted(x):
        calls.append(len(x))
        return model(x)

    with pytest.raises(ValueError, match=words):
        variant(counted, np.zeros((1, 12)), **wrong)(X)
    assert not calls


def test_a_radius_larger_than_the_number_of_features_means_all():
    explainer = HarmonicaLocal(model, np.zeros((1, 4)), radius=9)
    explainer(X[:, :4])
    assert explainer.surrogates[0].radius == 4


@pytest.mark.parametrize(
    ("explainer", "options"),
    [
        *((variant, {}) for variant in VARIANTS),
        (HarmonicaExplainer, {"degree": 1}),
        (HarmonicaExplainer, {"degree": 2}),
        (HarmonicaExplainer, {"degree": 2, "engine": "lasso"}),
    ],
)
def test_values_add_up_and_their_deviations_are_stated(explainer, options):
    def steep(x):
        return np.tanh(x.sum(axis=1)) + x[:, 0] * x[:, 1] * x[:, 2]

    rows = RNG.normal(size=(2, 13))
    explanation = explainer(steep, np.zeros((1, 13)), **options)(rows, max_evals=120)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, steep(rows), atol=1e-9)
    assert (explanation.error_std > 0).mean() > 0.9
