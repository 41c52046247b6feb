"""Plots with error bars, and what they refuse."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from shap_harmonica import HarmonicaExplainer
from shap_harmonica.plots import bar, waterfall

RNG = np.random.default_rng(0)
NAMES = [f"column {i}" for i in range(14)]
X = RNG.normal(size=(6, 14))


def model(x):
    return np.tanh(x[:, :10].sum(axis=1)) + 2 * x[:, 0] + 1e-4 * x[:, 12]


@pytest.fixture(scope="module")
def explanation():
    return HarmonicaExplainer(model, X[:1], feature_names=NAMES)(X, max_evals=60)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def texts(ax):
    ax.figure.canvas.draw()
    return [text.get_text() for text in ax.figure.findobj(mpl.text.Text)]


@pytest.mark.parametrize("draw", [waterfall, bar])
def test_one_row_shows_values_errors_and_what_is_not_told_from_zero(draw, explanation):
    row = explanation[3]
    unclear = np.abs(row.values) < 2 * row.error_std
    assert 0 < unclear.sum() < 14
    ax = draw(row, max_display=14, show=False)
    said = texts(ax)
    assert len({text for text in said if "column" in text}) == 14
    shown = [c for p in ax.patches for c in [mpl.colors.to_hex(p.get_facecolor())]]
    assert shown.count("#b3b3b3") == unclear.sum()
    assert f"{row.data[0]:.4g} = column 0" in said
    assert sum("±" in text for text in said) >= (14 if draw is waterfall else 1)


def test_small_values_are_summed_up(explanation):
    said = texts(waterfall(explanation[3], max_display=5, show=False))
    assert "10 other features" in said
    assert any("E[f(X)]" in text for text in said)


def test_mean_sizes_of_a_table(explanation):
    ax = bar(explanation, show=False)
    lengths = [patch.get_width() for patch in ax.patches]
    sizes = np.sort(np.abs(explanation.values).mean(axis=0))[::-1]
    np.testing.assert_allclose(lengths[:9], sizes[:9])


def test_what_can_not_be_drawn_is_named(explanation):
    with pytest.raises(ValueError, match="needed one row of one output"):
        waterfall(explanation, show=False)
    cube = HarmonicaExplainer(model, X[:1])(X[:1], max_evals=60, interactions=True)
    with pytest.raises(ValueError, match="no error_std"):
        bar(cube, show=False)
