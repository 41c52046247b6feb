import itertools

import numpy as np
import pytest
from core_games import misleading
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import Surrogate, fit_surrogate
from harmonica_core.result.smallest_change import smallest_change


def random_surrogate(n_features, rng, n_terms=12):
    every = [
        term
        for size in range(4)
        for term in itertools.combinations(range(n_features), size)
    ]
    chosen = {(), *(every[i] for i in rng.integers(len(every), size=n_terms))}
    return Surrogate(n_features, tuple(sorted(chosen)), rng.normal(size=len(chosen)))


def brute_force(g, start, threshold):
    """Fewest flips over all masks, and the farthest value among those; or None."""
    above = g(start)[0] >= threshold
    best = {}
    for bits in itertools.product([False, True], repeat=g.n_features):
        value = g(np.array(bits))[0]
        crossed = value < threshold if above else value > threshold
        size = int((np.array(bits) != start).sum())
        if crossed:
            best.setdefault(size, []).append(abs(value - threshold))
    return (min(best), max(best[min(best)])) if best else None


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(1, 8),
    quantile=st.floats(0.02, 0.98),
)
def test_exact_search_equals_brute_force(seed, n_features, quantile):
    rng = np.random.default_rng(seed)
    g = random_surrogate(n_features, rng)
    start = rng.random(n_features) < 0.5
    values = g(rng.random((64, n_features)) < 0.5)
    threshold = float(np.quantile(values, quantile)) + 1e-4
    change = g.smallest_change(threshold, start=start)
    expected = brute_force(g, start, threshold)
    assert change.exact
    assert change.found == (expected is not None)
    if expected is None:
        assert change.features == () and change.searched == n_features
    else:
        assert len(change.features) == expected[0] == change.searched
        assert abs(change.after - threshold) == pytest.approx(expected[1])
        assert ((change.mask != start).nonzero()[0] == change.features).all()
        assert change.after == g(change.mask)[0]


def test_change_may_restore_features():
    g = Surrogate(3, ((), (0,), (1,)), np.array([0.0, 1.0, 1.0]))
    change = g.smallest_change(0.5, start=[True, False, True])
    assert change.features == (1,)
    assert change.mask.tolist() == [True, True, True]
    assert (change.before, change.after) == (0.0, 2.0)


def test_landing_on_the_threshold_does_not_cross():
    g = Surrogate(2, ((0,), (1,)), np.array([0.1, 0.2]))
    change = g.smallest_change(0.1)  # 0.3, flips lead to 0.1 (x0), -0.1 (x1)
    assert change.features == (1,)
    rounded = Surrogate(1, ((), (0,)), np.array([0.7, 0.6]))
    assert rounded(np.array([False]))[0] < 0.1  # by rounding only
    assert not rounded.smallest_change(0.1).found


@pytest.mark.parametrize("seed", range(5))
def test_greedy_crosses_and_needs_every_flip(seed):
    rng = np.random.default_rng(seed)
    g = random_surrogate(12, rng, n_terms=30)
    threshold = float(np.quantile(g(rng.random((500, 12)) < 0.5), 0.15))
    change = g.smallest_change(threshold, max_tries=12)
    exact = g.smallest_change(threshold)
    assert exact.exact and exact.found
    if len(exact.features) > 1:
        assert not change.exact and change.searched == 1 and change.found
        assert len(change.features) >= len(exact.features)
        assert (change.after < threshold) != (change.before < threshold)
        for i in change.features:
            fewer = change.mask.copy()
            fewer[i] ^= True
            assert (g(fewer)[0] < threshold) == (change.before < threshold)


def test_greedy_goes_through_flips_that_do_not_help_alone():
    """Four features that only matter when all four are gone."""
    n = 40

    def predict(masks):
        return masks[:, :4].any(axis=1) + 1e-3 * masks[:, :4].sum(axis=1)

    change = smallest_change(predict, np.ones(n, dtype=bool), 0.5, max_tries=100)
    assert change.found and not change.exact
    assert change.features == (0, 1, 2, 3)


def test_greedy_undoes_what_is_not_needed():
    change = fit_surrogate(misleading, 3).smallest_change(5.5, max_tries=3)
    assert not change.exact and change.features == (1, 2)


def test_greedy_says_when_it_finds_nothing():
    g = Surrogate(40, ((), (0,)), np.array([1.0, 0.1]))
    change = g.smallest_change(0.5, max_tries=40)
    assert (change.found, change.exact, change.searched) == (False, False, 1)


def test_one_output_is_searched():
    g = Surrogate(2, ((), (0,), (1,)), np.array([[1, 0], [1, 0], [0, 1.0]]))
    assert g.smallest_change(0.5, output=0).features == (0,)
    assert g.smallest_change(0.5, output=1).features == (1,)


def test_impossible_requests_are_refused():
    g = Surrogate(2, ((), (0,)), np.array([1.0, 0.1]))
    with pytest.raises(ValueError, match="finite"):
        g.smallest_change(float("nan"))
    with pytest.raises(ValueError, match="2 masks; needed one"):
        g.smallest_change(0.5, start=np.ones((2, 2), dtype=bool))
    with pytest.raises(ValueError, match="one output"):
        g.smallest_change(0.5, output=1)
