import subprocess
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from harmonica_core import Estimate, Surrogate, fit_surrogate, plots
from harmonica_core.plots import style
from harmonica_core.plots.curves import spread_apart
from harmonica_core.plots.spectrum import model_coefficients

NASTY = ["$x^$", "<b>bold</b>", "a" * 80, "é\n漢字", "_", "\\frac{"]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def game(masks):
    both = masks[:, 0] & masks[:, 1]
    return 1.0 * masks[:, 2] + 2.0 * both - 1.5 * (masks[:, 3] & masks[:, 4])


@pytest.fixture(scope="module")
def surrogate():
    return fit_surrogate(game, 6, feature_names=NASTY)


SEGMENTS = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 8, axis=0), 8, axis=1)
IMAGE = np.linspace(0, 1, 16 * 24).reshape(16, 24)

DRAWINGS = {
    "spectrum": lambda g, ax: plots.spectrum(g, ax=ax),
    "heatmap": lambda g, ax: plots.heatmap(g, ax=ax),
    "network": lambda g, ax: plots.network(g, ax=ax),
    "text": lambda g, ax: plots.text(g, ax=ax),
    "superpixels": lambda g, ax: plots.superpixels(g, IMAGE, SEGMENTS, ax=ax),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_any_names_can_be_drawn_into_given_axes(draw, surrogate):
    """Names with mathematics markup, long ones and odd characters are plain text."""
    ascii_only = surrogate.with_names([*NASTY[:3], "name\nof two", *NASTY[4:]])
    _, ax = plt.subplots()
    assert draw(ascii_only, ax) is ax
    ax.figure.canvas.draw()


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
@pytest.mark.parametrize("coef", [(1.0,), (0.0, 0.5)], ids=["constant", "additive"])
def test_surrogates_without_interactions_can_be_drawn(draw, coef):
    terms = ((), (0,))[: len(coef)]
    ax = draw(Surrogate(6, terms, np.array(coef)), None)
    ax.figure.canvas.draw()


def test_bars_are_the_largest_coefficients(surrogate):
    ax = plots.spectrum(surrogate, 3)
    drawn = [bar.get_width() for bar in ax.patches]
    expected = [surrogate.spectrum[term] for term in surrogate.top_terms(3)]
    assert drawn == pytest.approx(expected)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0].startswith("$x^$")


def test_one_output_is_drawn():
    table, coef = ((), (0,), (1,)), np.array([[0, 0], [1, 2], [3, -4.0]])
    ax = plots.spectrum(Surrogate(2, table, coef), output=1)
    assert [bar.get_width() for bar in ax.patches] == [-4.0, 2.0]


def test_model_coefficients_are_exact_when_all_masks_are_known():
    """Also for a g whose own coefficients were shrunk or moved."""
    exact = fit_surrogate(game, 6)
    shrunk = fit_surrogate(game, 6, alpha=0.1, ends=False)
    known, spread = model_coefficients(shrunk, [(2,), (0, 1)])
    assert known == pytest.approx([exact.spectrum[2,], exact.spectrum[0, 1]])
    assert shrunk.spectrum[2,] == pytest.approx(exact.spectrum[2,] - 0.1)
    assert (spread == 0).all()


def test_error_bars_hold_the_truth_as_often_as_they_should():
    """Two standard errors: about 95% of the coefficients of sampled fits."""
    hits = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=4096) * 0.3

        def f(masks, table=table):
            numbers = masks @ (1 << np.arange(12))
            return masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2]) + table[numbers]

        truth = fit_surrogate(f, 12, 4096, degree=2, engine="lasso", ends=False)
        g = fit_surrogate(f, 12, 600, degree=2, engine="lasso", ends=False, seed=seed)
        terms = [(0,), (1,), (2,), (1, 2)]
        found, spread = model_coefficients(g, terms)
        exact = np.array([truth.spectrum[term] for term in terms])
        hits += (np.abs(found - exact) <= 2 * spread).tolist()
    assert 0.85 <= np.mean(hits)


def test_no_error_bars_where_nothing_is_known(surrogate):
    bare = Surrogate(2, ((), (0,)), np.array([0.0, 1.0]))
    assert model_coefficients(bare, [(0,)]) is None
    local = fit_surrogate(game, 6, radius=2)
    assert model_coefficients(local, [(2,)]) is None
    assert plots.spectrum(bare).get_legend() is None
    assert plots.spectrum(surrogate).get_legend() is not None


def test_heatmap_shows_each_pair_once(surrogate):
    ax = plots.heatmap(surrogate, feature_names="abcdef", index="Moebius")
    cells = ax.images[0].get_array()
    rows = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    assert cells[rows.index("b"), columns.index("a")] == pytest.approx(2.0)
    assert cells[rows.index("e"), columns.index("d")] == pytest.approx(-1.5)
    assert np.isnan(np.ma.filled(cells, np.nan)[0, 1:]).all()


def test_network_draws_one_line_per_pair(surrogate):
    ax = plots.network(surrogate, feature_names="abcdef")
    widths = sorted(line.get_linewidth() for line in ax.lines)
    assert len(widths) == 2 and widths[0] < widths[1]


def test_arcs_rise_above_for_pairs_that_raise_and_below_for_others(surrogate):
    ax = plots.text(surrogate, list("abcdef"))
    heights = [line.get_ydata()[30] for line in ax.lines]
    assert len(heights) == 2 and heights[0] > 0 > heights[1]


def test_superpixels_carry_their_shapley_values(surrogate):
    ax = plots.superpixels(surrogate, IMAGE, SEGMENTS + 5)
    shown = np.asarray(ax.images[1].get_array())
    np.testing.assert_allclose(shown, surrogate.shapley_values()[SEGMENTS])
    with pytest.raises(ValueError, match="one label per pixel"):
        plots.superpixels(surrogate, IMAGE[1:], SEGMENTS)


def test_error_by_radius_puts_the_whole_cube_last():
    ax = plots.error_by_radius(
        {
            "ours": {1: Estimate(0.1, 0.01, 50), None: 0.3, 4: 0.2},
            "peer": {1: 0.1, 4: 0.4, float("inf"): 0.5},
        }
    )
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "4", "∞"]
    first = ax.lines[0]
    assert first.get_ydata().tolist() == [0.1, 0.2, 0.3]
    assert {note.get_text() for note in ax.texts} == {"ours", "peer"}


def test_trade_off_draws_every_point_and_note():
    points = [(0.0, Estimate(0.3, 0.02, 10)), (1.1, 0.2)]
    ax = plots.trade_off({"anchors": points}, labels={"anchors": ["k = 1", "k = 3"]})
    ax.figure.canvas.draw()
    assert ax.lines[0].get_ydata().tolist() == [0.3, 0.2]
    assert [note.get_text() for note in ax.texts] == ["k = 1", "k = 3"]


@pytest.mark.parametrize("draw", [plots.error_by_radius, plots.trade_off])
@pytest.mark.parametrize("nothing", [{}, {"method": {}}])
def test_nothing_to_draw_is_explained(draw, nothing):
    with pytest.raises(ValueError, match="needed at least one"):
        draw(nothing)


def test_names_of_the_wrong_number_are_refused(surrogate):
    with pytest.raises(ValueError, match="got 2 feature_names; needed 6"):
        plots.network(surrogate, feature_names=["a", "b"])


def test_labels_are_pushed_apart_as_little_as_possible():
    places = np.array([0.0, 0.1, 0.2, 9.0])
    moved = spread_apart(places, 1.0)
    assert (np.diff(moved) >= 1 - 1e-12).all()
    assert moved[:3].mean() == pytest.approx(places[:3].mean())
    assert moved[3] == 9.0


def test_series_are_told_apart_without_colour():
    assert len({marker for _, marker in style.SERIES}) == len(style.SERIES)


def test_matplotlib_is_imported_only_when_something_is_drawn():
    code = (
        "import sys, harmonica_core.plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "try: harmonica_core.plots.trade_off({'a': [(0, 1.0)]})\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "matplotlib' in done.stdout
