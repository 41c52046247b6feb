import math

import numpy as np
import pytest
import reference
from core_games import function_of, surrogate_of
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import Surrogate, fit_surrogate, indices
from harmonica_core.design.masks import all_masks, mask_numbers
from harmonica_core.result.index_weights import bernoulli, size_weights

BRUTE = {
    "BII": reference.bii,
    "SII": reference.sii,
    "k-SII": reference.k_sii,
    "STII": reference.stii,
    "FSII": reference.fsii,
    "FBII": reference.fbii,
}


def random_game(n, seed=0):
    return np.random.default_rng(seed).normal(size=1 << n)


def assert_same(found, expected, n, order):
    for term in reference.subsets(range(n), 1, order):
        np.testing.assert_allclose(found[term], expected[term], atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("index", list(BRUTE))
def test_every_index_and_order_against_its_definition(n, index):
    game = random_game(n, seed=n)
    g = surrogate_of(game)
    for order in range(1, n + 1):
        found = g.interactions(order, index)
        assert_same(found, BRUTE[index](game, order), n, order)
        assert found.index == index and found.order == order


def test_eight_features_order_three():
    game = random_game(8, seed=8)
    g = surrogate_of(game)
    for index in ("SII", "STII", "FBII"):
        assert_same(g.interactions(3, index), BRUTE[index](game, 3), 8, 3)


def test_moebius_and_values_against_their_definitions():
    game = random_game(5)
    g = surrogate_of(game)
    assert_same(g.interactions(5, "Moebius"), reference.moebius(game), 5, 5)
    phi = reference.shapley_by_permutations(game)
    np.testing.assert_allclose(indices.feature_values(g, "SV"), phi, atol=1e-12)
    np.testing.assert_allclose(g.shapley_values(), phi, atol=1e-12)
    banzhaf = [reference.bii(game, 1)[(i,)] for i in range(5)]
    np.testing.assert_allclose(indices.feature_values(g, "BV"), banzhaf, atol=1e-12)
    assert g.interactions(index="banzhaf").order == 1


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_shapiq_agrees(order):
    shapiq = pytest.importorskip("shapiq")
    game = random_game(5, seed=3)
    g = surrogate_of(game)
    exact = shapiq.ExactComputer(n_players=5, game=function_of(game))
    for index in ("SII", "k-SII", "STII", "FSII", "FBII", "BII", "Moebius"):
        theirs = exact(index, order)
        # Their Faith-Shap holds both ends by large weights, to about 1e-8.
        tolerance = 1e-6 if index == "FSII" else 1e-9
        ours = g.interactions(order, index)
        for term in reference.subsets(range(5), 1, order):
            expected = pytest.approx(theirs[term], abs=tolerance)
            assert ours[term] == expected, (index, term)


def test_shapiq_moebius_converter_agrees_on_a_sparse_game_of_many_features():
    shapiq = pytest.importorskip("shapiq")
    rng = np.random.default_rng(0)
    terms = {
        tuple(sorted(rng.choice(40, size=size, replace=False).tolist()))
        for size in rng.integers(1, 5, size=60)
    }
    g = Surrogate(40, [(), *sorted(terms)], rng.normal(size=len(terms) + 1))
    moebius = g.interactions(4, "Moebius")
    lookup = {(): 0, **{term: i + 1 for i, term in enumerate(moebius)}}
    converter = shapiq.game_theory.moebius_converter.MoebiusConverter(
        shapiq.InteractionValues(
            values=np.array([g.base_value, *moebius.values()]),
            interaction_lookup=lookup,
            index="Moebius",
            max_order=4,
            min_order=0,
            n_players=40,
            baseline_value=g.base_value,
        )
    )
    for index in ("SII", "STII", "FSII", "FBII"):
        theirs = converter(index, 2).dict_values
        ours = g.interactions(2, index)
        for term in (set(theirs) | set(ours)) - {()}:
            expected = theirs.get(term, 0.0)
            assert ours[term] == pytest.approx(expected, abs=1e-9), (index, term)


def test_a_thousand_features_and_a_few_hundred_terms():
    rng = np.random.default_rng(0)
    terms = {
        tuple(sorted(rng.choice(1000, size=size, replace=False).tolist()))
        for size in rng.integers(1, 6, size=400)
    }
    g = Surrogate(1000, [(), *sorted(terms)], rng.normal(size=(len(terms) + 1, 2)))
    for index in indices.INDICES:
        found = g.interactions(3, index)
        assert len(found) <= len(terms) * 25
        assert all(value.shape == (2,) for value in found.values())
    phi = g.shapley_values()
    matrix = g.interaction_matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), phi, atol=1e-12)
    singles = g.interactions(1, "SII")
    np.testing.assert_allclose([singles[(i,)] for i in range(1000)], phi, atol=1e-12)


def test_large_terms_lose_no_digits():
    """A term of size 60: alternating sums in floats would lose everything."""
    g = Surrogate(60, [(), tuple(range(60))], [0.0, 1.0])
    # x_0 ... x_59 is even, so each pair has SII 4/59 and Shapley values are zero.
    assert g.interactions(2, "SII")[(0, 1)] == pytest.approx(4 / 59, rel=1e-14)
    # 4 * 2 * integral of (2x-1)^58 (1-x) dx = 4 * integral of (2x-1)^58 dx = 4 / 59
    assert g.interactions(2, "STII")[(0, 1)] == pytest.approx(4 / 59, rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 5), seed=st.integers(0, 10**6), data=st.data())
def test_efficient_indices_sum_to_full_minus_base(n, seed, data):
    g = surrogate_of(random_game(n, seed))
    order = data.draw(st.integers(1, n))
    for index in ("k-SII", "STII", "FSII"):
        total = sum(g.interactions(order, index).values())
        assert total == pytest.approx(g.full_value - g.base_value, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_an_index_is_linear_and_follows_a_permutation_of_features(seed):
    rng = np.random.default_rng(seed)
    game, order = rng.normal(size=32), rng.permutation(5)
    masks = all_masks(5)
    shuffled = surrogate_of(3 * game[mask_numbers(masks[:, order])] + 7)
    plain = surrogate_of(game)
    for index in ("SII", "STII", "FSII", "FBII", "Moebius"):
        found, base = shuffled.interactions(2, index), plain.interactions(2, index)
        for term in reference.subsets(range(5), 1, 2):
            # feature p of the shuffled game plays the part of feature j, order[j] = p
            images = [int(np.flatnonzero(order == i)[0]) for i in term]
            expected = 3 * base[tuple(sorted(images))]
            assert found[term] == pytest.approx(expected, abs=1e-9)


def test_shap_layout_of_pairs():
    game = random_game(4, seed=1)
    g = surrogate_of(game)
    for index in ("SII", "STII"):
        matrix, pairs = g.interaction_matrix(index), g.interactions(2, index)
        np.testing.assert_allclose(matrix, matrix.T)
        assert matrix[1, 3] == pytest.approx(pairs[(1, 3)] / 2)
        np.testing.assert_allclose(matrix.sum(axis=1), g.shapley_values(), atol=1e-12)
    two = Surrogate(4, g.table, np.stack([g.coef, 2 * g.coef], axis=1))
    np.testing.assert_allclose(
        two.interaction_matrix(),
        np.stack([g.interaction_matrix(), 2 * g.interaction_matrix()], axis=-1),
    )


def test_closed_forms_of_pairs_at_degree_three():
    g = Surrogate(3, [(), (0,), (0, 1), (0, 1, 2)], [0.3, 0.5, 0.25, 0.75])
    assert g.interaction_matrix("SII")[0, 1] == pytest.approx(2 * 0.25)
    expected = 2 * 0.25 - 2 / 3 * 0.75
    assert g.interaction_matrix("STII")[0, 1] == pytest.approx(expected)


def test_an_additive_surrogate_answers_order_one_and_its_matrix():
    g = Surrogate(3, [(), (0,), (2,)], [1.0, 0.5, -0.25])
    assert g.interactions(1) == {(0,): 1.0, (2,): -0.5}
    with pytest.raises(ValueError, match="order=2 of a surrogate of degree 1"):
        g.interactions(2)
    np.testing.assert_allclose(g.interaction_matrix(), np.diag([1.0, 0, -0.5]))
    constant = Surrogate(3, [()], [1.0])
    assert constant.interactions(1) == {}
    np.testing.assert_allclose(constant.interaction_matrix(), np.zeros((3, 3)))
    np.testing.assert_allclose(indices.feature_values(constant), np.zeros(3))


def test_a_fit_that_found_no_pairs_says_so_with_zeros():
    g = fit_surrogate(lambda m: 1.0 * m[:, 0], 4, degree=3)
    assert g.degree == 1 and g.max_degree == 3
    assert g.interactions(2) == {(0,): 1.0}
    with pytest.raises(ValueError, match="order=4.*degree 3.*higher degree"):
        g.interactions(4)


def test_absent_interactions_read_as_zero_and_impossible_ones_raise():
    g = Surrogate(3, [(), (0, 1)], [1.0, 0.5])
    found = g.interactions(2, "BII")
    assert found == {(0, 1): 2.0}
    assert found[(1, 2)] == 0.0 and (1, 2) not in found
    for wrong in [(1, 0), (0, 3), (0, 1, 2), (), (1, 1), 0]:
        with pytest.raises(KeyError, match="sorted tuple"):
            found[wrong]


def test_bad_input():
    g = Surrogate(3, [(), (0, 1)], [1.0, 0.5])
    for wrong in ("shap", "", None, 2):
        with pytest.raises(ValueError, match="unknown; needed one of"):
            g.interactions(2, wrong)
    for order in (0, -1, 3):
        with pytest.raises(ValueError, match=f"order={order}.*degree 2"):
            g.interactions(order)
    for order in (1.5, True, "2"):
        with pytest.raises(ValueError, match="whole number"):
            g.interactions(order)
    with pytest.raises(ValueError, match="no pairs"):
        g.interaction_matrix("SV")


def test_case_and_full_names_pass():
    g = Surrogate(3, [(), (0, 1)], [1.0, 0.5])
    assert g.interactions(2, "sii") == g.interactions(2, "SII")
    assert g.interactions(2, "Shapley-Taylor").index == "STII"
    assert g.interactions(2, "möbius").index == "Moebius"


def test_bernoulli_numbers():
    assert [float(bernoulli(m)) for m in range(7)] == pytest.approx(
        [1, -1 / 2, 1 / 6, 0, -1 / 30, 0, 1 / 42]
    )


def test_the_base_of_an_index():
    game = random_game(4, seed=5)
    g = surrogate_of(game)
    for order in range(1, 5):
        expected = reference.fbii(game, order)[()]
        base = indices.index_base(g, "FBII", order)
        assert base[0] == pytest.approx(expected, abs=1e-12)
        assert indices.index_base(g, "FSII", order)[0] == pytest.approx(game[0])


def test_weights_of_sii_are_the_integral():
    weights = size_weights("SII", 2, 6)
    for s in (1, 2):
        for t in range(s, 7):
            u = t - s
            exact = ((1 - (-1) ** (u + 1)) / 2) / (u + 1)
            assert weights[s, t] == pytest.approx(2**s * exact)
    assert math.isclose(weights[1, 3], 2 / 3)
