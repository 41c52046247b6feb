"""Metrics of any SHAP explainer's output against the definitions."""

import numpy as np
import pytest
import reference
import shap

from harmonica_core.design.masks import all_masks
from shap_harmonica import HarmonicaExplainer, metrics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
BACKGROUND = RNG.normal(size=(2, 4))
MASKS = all_masks(4)


def model(x):
    return x[:, 0] * x[:, 1] * x[:, 2] + np.sin(x[:, 3])


def games():
    return [
        np.array([model(np.where(m, x, BACKGROUND)).mean() for m in MASKS]) for x in X
    ]


def kernel_explanation():
    return shap.KernelExplainer(model, BACKGROUND)(X, l1_reg=False, silent=True)


@pytest.mark.parametrize("radius", [None, 1, 2])
@pytest.mark.parametrize("p", [1, 2])
def test_interpretation_error_of_kernel_explainer(radius, p):
    explanation = kernel_explanation()
    found = metrics.interpretation_error(
        model, BACKGROUND, explanation, X, radius=radius, p=p
    )
    for game, values, error in zip(games(), explanation.values, found, strict=True):
        said = explanation.base_values[0] + MASKS @ values
        expected = reference.interpretation_error(game, said, p, radius)
        assert error == pytest.approx(expected, abs=1e-9)


def test_truthful_gap_of_kernel_explainer():
    explanation = kernel_explanation()
    found = metrics.truthful_gap(model, BACKGROUND, explanation, degree=2)
    terms = list(reference.subsets(range(4), 0, 2))
    for game, values, gap in zip(games(), explanation.values, found, strict=True):
        said = explanation.base_values[0] + MASKS @ values
        expected = reference.truthful_gap(game, said, terms)
        assert gap == pytest.approx(expected, abs=1e-9)


def test_surrogates_and_cubes_and_exact_explanations():
    explainer = HarmonicaExplainer(model, BACKGROUND)
    cube = explainer(X, interactions=True)
    error = metrics.interpretation_error
    assert error(model, BACKGROUND, explainer.surrogates, X).max() < 1e-9
    with_pairs = error(model, BACKGROUND, cube)
    assert (with_pairs < error(model, BACKGROUND, explainer(X))).all()
    game = games()[0]
    kept = MASKS.astype(float)
    said = cube.base_values[0] + np.einsum("mi,mj,ij->m", kept, kept, cube.values[0])
    expected = reference.interpretation_error(game, said)
    assert with_pairs[0] == pytest.approx(expected, abs=1e-9)
    surrogates = explainer.surrogates
    assert metrics.efficiency_gap(model, BACKGROUND, surrogates, X).max() < 1e-9
    np.testing.assert_allclose(metrics.r_squared(model, BACKGROUND, surrogates, X), 1.0)
    assert metrics.infidelity(model, BACKGROUND, surrogates, X).max() < 1e-9


def test_several_outputs_links_and_standard_errors():
    def proba(x):
        p = 1 / (1 + np.exp(-model(x)))
        return np.stack([1 - p, p], axis=1)

    explainer = HarmonicaExplainer(proba, BACKGROUND, "logit")
    explanation = explainer(X)
    values, errors = metrics.interpretation_error(
        proba, BACKGROUND, explanation, link="logit", return_standard_error=True
    )
    assert values.shape == errors.shape == (3, 2)
    np.testing.assert_allclose(values[:, 0], values[:, 1])
    one = metrics.interpretation_error(
        proba, BACKGROUND, explanation[:, :, 1:], link="logit", outputs=[1]
    )
    np.testing.assert_allclose(one[:, 0], values[:, 1])


def test_single_rows_and_single_columns():
    explanation = HarmonicaExplainer(lambda x: model(x)[:, None], BACKGROUND)(X)
    found = metrics.interpretation_error(
        lambda x: model(x)[:, None], BACKGROUND, explanation
    )
    plain = HarmonicaExplainer(model, BACKGROUND)(X)
    expected = metrics.interpretation_error(model, BACKGROUND, plain)
    np.testing.assert_allclose(found[:, 0], expected)
    row = metrics.interpretation_error(model, BACKGROUND, plain[0])
    np.testing.assert_allclose(row, expected[:1])


def test_images_and_texts():
    images = RNG.random((2, 4, 4, 1))
    labels = np.arange(16).reshape(4, 4) // 4
    masker = shap.maskers.Image(np.zeros((4, 4, 1)))

    def bright(x):
        return x.max(axis=(1, 2, 3))

    explainer = HarmonicaExplainer(bright, masker, groups=labels)
    explanation = explainer(images)
    found = metrics.interpretation_error(
        bright, masker, explanation, images, groups=labels
    )
    for surrogate, error in zip(explainer.surrogates, found, strict=True):
        added = MASKS @ surrogate.shapley_values() + surrogate.base_value
        expected = reference.interpretation_error(surrogate(MASKS), added)
        assert error == pytest.approx(expected, abs=1e-9)
        assert error > 0.01
    exact = metrics.interpretation_error(
        bright, masker, explainer.surrogates, images, groups=labels
    )
    assert exact.max() < 1e-9
    texts = ["so good", "not so good"]
    masker = shap.maskers.Text(r"\W+")

    def count(x):
        return np.array([t.count("good") for t in x], dtype=float)

    words = HarmonicaExplainer(count, masker)(texts)
    assert metrics.interpretation_error(count, masker, words, texts).max() < 1e-9


def test_mistakes_are_named():
    explanation = kernel_explanation()
    with pytest.raises(ValueError, match="3 explained rows for 2 rows of X; pass X="):
        metrics.interpretation_error(model, BACKGROUND, explanation, X[:2])
    surrogates = metrics.additive_surrogates(explanation)
    with pytest.raises(ValueError, match="3 surrogates for 2 rows of X; pass X="):
        metrics.interpretation_error(model, BACKGROUND, surrogates, X[:2])
    with pytest.raises(ValueError, match="pass the explained rows"):
        metrics.interpretation_error(model, BACKGROUND, [lambda m: m[:, 0]] * 3)


def test_additive_surrogates_of_values_and_cubes():
    explainer = HarmonicaExplainer(
        lambda x: x[:, 0] * x[:, 1] + x[:, 2], np.zeros((1, 3))
    )
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 1.0]])
    full, none = np.ones((1, 3), dtype=bool), np.zeros((1, 3), dtype=bool)
    for explanation in (explainer(rows), explainer(rows, interactions=True)):
        found = metrics.additive_surrogates(explanation)
        for g, row in zip(found, rows, strict=True):
            assert g(full)[0] == pytest.approx(row[0] * row[1] + row[2])
            assert g(none)[0] == pytest.approx(0, abs=1e-12)
    assert found[0]([[True, True, False]])[0] == pytest.approx(2)  # of the cube
    with pytest.raises(ValueError, match="explanation of rows"):
        metrics.additive_surrogates(explanation[0, 0])


def test_unknown_keywords_are_named():
    surrogates = metrics.additive_surrogates(kernel_explanation())
    with pytest.raises(TypeError, match=r"\['bogus', 'max_evals'\].*batch_size"):
        metrics.games(model, BACKGROUND, X, bogus=1, max_evals=3)
    with pytest.raises(TypeError, match="bogus"):
        metrics.efficiency_gap(model, BACKGROUND, surrogates, X, bogus=1)


LABELS = [0, 0, 1, 2]


@pytest.mark.parametrize("groups", [LABELS, np.array(LABELS)])
@pytest.mark.parametrize("interactions", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_groups_of_columns(groups, interactions, columns):
    def shaped(x):
        return model(x)[:, None] if columns else model(x)

    explainer = HarmonicaExplainer(shaped, BACKGROUND, groups=groups)
    explanation = explainer(X, interactions=interactions)
    values, base = explanation.values, explanation.base_values
    said_by = shap.Explanation(values, base, X)
    if columns and not interactions:  # SHAP's own explainers drop the output's axis
        said_by = shap.Explanation(values[..., 0], base, X)
    found = metrics.interpretation_error(shaped, BACKGROUND, said_by, groups=groups)
    kept = all_masks(3).astype(float)
    for g, error in zip(explainer.surrogates, np.ravel(found), strict=True):
        says = kept @ g.shapley_values().reshape(3)
        if interactions:
            cube = g.interaction_matrix("SII").reshape(3, 3)
            says = np.einsum("mi,mj,ij->m", kept, kept, cube)
        truth = g(all_masks(3)).reshape(8) - np.ravel(g.base_value)
        expected = reference.interpretation_error(truth, says)
        assert error == pytest.approx(expected, abs=1e-9)
        assert found.shape == ((3, 1) if columns else (3,))
