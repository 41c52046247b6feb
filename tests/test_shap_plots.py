"""Every plot of SHAP that takes values, drawn from our explanations."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

from shap_harmonica import HarmonicaExplainer, pairs

RNG = np.random.default_rng(0)
NAMES = ["age", "income", "debt", "tenure"]
X = RNG.normal(size=(30, 4))

# SHAP 0.51 with the newest numpy and matplotlib: theirs to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*tight.layout.*:UserWarning"),
]


def model(x):
    return x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3]


def two_outputs(x):
    return np.stack([model(x), -model(x)], axis=1)


@pytest.fixture(scope="module")
def explainer():
    return HarmonicaExplainer(model, X[:5], feature_names=NAMES)


@pytest.fixture(scope="module")
def explanation(explainer):
    return explainer(X)


@pytest.fixture(scope="module")
def cube(explainer):
    return explainer(X, interactions=True)


@pytest.fixture(autouse=True)
def closed_figures():
    plt.close("all")
    yield
    plt.close("all")


def drawn():
    """Texts in the current figure after a full draw."""
    figure = plt.gcf()
    figure.canvas.draw()
    texts = [text.get_text() for text in figure.findobj(mpl.text.Text)]
    assert figure.axes, "nothing was drawn"
    return " ".join(texts)


COLUMN_PLOTS = {
    "waterfall": lambda e: shap.plots.waterfall(e[0], show=False),
    "bar": lambda e: shap.plots.bar(e, show=False),
    "bar of a row": lambda e: shap.plots.bar(e[0], show=False),
    "beeswarm": lambda e: shap.plots.beeswarm(e, show=False),
    "heatmap": lambda e: shap.plots.heatmap(e, show=False),
    "force": lambda e: shap.plots.force(e[0], matplotlib=True, show=False),
}


@pytest.mark.parametrize("name", COLUMN_PLOTS)
def test_column_plots(explanation, name):
    COLUMN_PLOTS[name](explanation)
    assert "income" in drawn()


@pytest.mark.parametrize("name", COLUMN_PLOTS)
def test_column_plots_of_pairs(cube, name):
    COLUMN_PLOTS[name](pairs(cube))
    assert "age x income" in drawn()


@pytest.mark.parametrize("name", COLUMN_PLOTS)
def test_column_plots_of_one_of_several_outputs(name):
    explainer = HarmonicaExplainer(
        two_outputs, X[:5], feature_names=NAMES, output_names=["yes", "no"]
    )
    COLUMN_PLOTS[name](explainer(X)[:, :, 1])
    assert "income" in drawn()


def test_violin(explanation):
    shap.plots.violin(explanation, show=False)
    assert "income" in drawn()


def test_scatter(explanation):
    shap.plots.scatter(explanation[:, "age"], color=explanation, show=False)
    assert "age" in drawn()


def test_decision(explanation, explainer, cube):
    shap.plots.decision(
        explainer.expected_value, explanation.values, X, NAMES, show=False
    )
    assert "income" in drawn()
    plt.close("all")
    shap.plots.decision(explainer.expected_value, cube.values, X, NAMES, show=False)
    assert "age" in drawn()


def test_summary_and_dependence_plots_of_the_cube(cube):
    shap.summary_plot(cube.values, X, feature_names=NAMES, show=False)
    assert "age" in drawn()
    plt.close("all")
    shap.dependence_plot(
        ("age", "income"), cube.values, X, feature_names=NAMES, show=False
    )
    assert "income" in drawn()


def test_summary_plot_of_several_outputs():
    values = HarmonicaExplainer(two_outputs, X[:5])(X).values
    shap.summary_plot(
        [values[..., k] for k in range(2)], X, feature_names=NAMES, show=False
    )
    assert "income" in drawn()


def test_force_in_javascript(explanation):
    page = shap.plots.force(explanation[:3])
    assert "income" in page.html()


def test_text():
    masker = shap.maskers.Text(r"\W+")
    explainer = HarmonicaExplainer(
        lambda texts: np.array([text.count("good") for text in texts], dtype=float),
        masker,
    )
    page = shap.plots.text(explainer(["a good film", "so good good"]), display=False)
    assert "good" in page


def test_image():
    images = RNG.random((2, 14, 14, 3))
    masker = shap.maskers.Image(np.zeros((14, 14, 3)))
    explainer = HarmonicaExplainer(
        lambda x: np.stack([x.sum((1, 2, 3)), x.max((1, 2, 3))], axis=1),
        masker,
        groups=np.arange(196).reshape(14, 14) // 49,
    )
    shap.plots.image(explainer(images), show=False)
    drawn()
    assert len(plt.gcf().axes) >= 6
