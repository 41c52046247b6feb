import sys

import numpy as np
import pytest
import reference
from core_games import function_of, surrogate_of

from harmonica_core import Surrogate, harmonica_anchor, indices

shapiq = pytest.importorskip("shapiq")


def explained(n=5, seed=0):
    game = np.random.default_rng(seed).normal(size=1 << n)
    return game, surrogate_of(game)


@pytest.mark.parametrize("index", indices.INDICES)
def test_shapiq_computes_the_same_values(index):
    game, g = explained()
    exact = shapiq.ExactComputer(n_players=5, game=function_of(game))
    ours, theirs = g.to_shapiq(2, index), exact(index, 2)
    order = 1 if index in ("SV", "BV") else 2
    assert ours.index == theirs.index and ours.max_order == order
    for term in reference.subsets(range(5), 1, order):
        assert ours[term] == pytest.approx(theirs[term], abs=1e-6), term
    if index == "FBII":
        assert ours.baseline_value == pytest.approx(theirs[()], abs=1e-6)
    else:
        assert ours.baseline_value == pytest.approx(game[0])


def test_what_it_cost_and_whether_it_is_exact():
    _, g = explained()
    assert not g.to_shapiq().estimated
    assert g.to_shapiq().estimation_budget == 32
    assert Surrogate(2, [(), (0, 1)], [0.0, 1.0]).to_shapiq().estimated


def test_its_plots_draw():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    _, g = explained()
    values = g.to_shapiq()
    values.plot_network(show=False)
    values.plot_upset(show=False)
    values.plot_force(show=False)
    pyplot.close("all")


def test_several_outputs_are_refused_and_one_column_is_not():
    two = Surrogate(3, [(), (0, 1)], np.ones((2, 2)))
    with pytest.raises(ValueError, match="2 outputs.*output\\(k\\)"):
        two.to_shapiq()
    assert two.output(0).to_shapiq()[(0, 1)] == pytest.approx(4.0)
    assert Surrogate(3, [(), (0, 1)], np.ones((2, 1))).to_shapiq()[(0, 1)] == 4.0


def test_anchored_gives_its_own_polynomial():
    g = harmonica_anchor(lambda m: 1.0 * m[:, 0], 4, anchors=2)
    assert g.to_shapiq(1)[(0,)] == pytest.approx(g.own.to_shapiq(1)[(0,)])


def test_without_shapiq_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(ImportError, match=r'pip install "harmonica-xai\[compare\]"'):
        explained()[1].to_shapiq()
