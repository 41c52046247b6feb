"""Which masks a fit evaluates, whatever the budget."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import Settings, auto_budget, basis, draw_design
from harmonica_core.design.borders import BORDERS, border_masks
from harmonica_core.design.draw import draw_anchors
from harmonica_core.design.masks import all_masks, ball_size, paired_masks
from harmonica_core.engine.sample import find_pairs

ENGINES = ["bayes", "lasso"]


def distinct(masks):
    return len(np.unique(np.packbits(masks, axis=1), axis=0)) == len(masks)


def check(masks, n, budget):
    assert masks.dtype == bool and masks.shape == (budget, n)
    assert distinct(masks)
    assert masks[0].all() and not masks[1].any()


@pytest.mark.parametrize("n", range(1, 11))
def test_every_budget_is_used_to_the_last_mask(n):
    for budget in range(2, 1 << n, 1 if n < 10 else 5):
        check(draw_design(Settings(), n, budget, seed=budget).masks, n, budget)


@pytest.mark.parametrize("n", [11, 12, 13, 14, 65, 1000])
def test_budgets_of_more_features(n):
    most = min((1 << n) - 1, 3000)
    some = np.unique(np.geomspace(2, most, 25).astype(int))
    for budget in sorted({*some, 3, n, n + 1, 2 * n + 1, 2 * n + 2, 2 * n + 3, most}):
        check(draw_design(Settings(), n, int(budget)).masks, n, int(budget))


@pytest.mark.parametrize("n", [12, 14])
def test_all_but_one_mask(n):
    budget = (1 << n) - 1
    check(draw_design(Settings(), n, budget).masks, n, budget)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [1, 4, 10])
def test_a_budget_of_all_masks_or_more_is_all_masks(engine, n):
    for budget in (1 << n, (1 << n) + 1, 10**6):
        masks = draw_design(Settings(engine=engine), n, budget).masks
        np.testing.assert_array_equal(masks, all_masks(n))


@pytest.mark.parametrize("method", ["harmonica", "local", "anchor", "constrained"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_gives_the_same_masks(method, engine):
    chosen = Settings(method, engine=engine)
    first, again, other = (
        draw_design(chosen, 15, 200, seed).masks for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_a_generator_is_read_and_not_moved():
    rng = np.random.default_rng(3)
    first, again = (draw_design(Settings(), 20, 100, rng).masks for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, draw_design(Settings(), 20, 100, 3).masks)


@pytest.mark.parametrize("n", [12, 30, 100])
def test_single_features_come_first(n):
    masks = draw_design(Settings(), n, 2 * n + 2 + 20).masks
    removed = (~masks).sum(axis=1)
    assert removed[:2].tolist() == [0, n]
    assert (removed[2 : n + 2] == 1).all() and (
        removed[n + 2 : 2 * n + 2] == n - 1
    ).all()


@pytest.mark.parametrize("n", [3, 20])
def test_small_budgets_are_prefixes_of_larger_ones(n):
    larger = draw_design(Settings(), n, min(2 * n + 2, (1 << n) - 1)).masks
    for budget in range(2, len(larger)):
        smaller = draw_design(Settings(), n, budget).masks
        np.testing.assert_array_equal(smaller, larger[:budget])


@settings(max_examples=25)
@given(n=st.integers(9, 40), half=st.integers(40, 300), seed=st.integers(0, 99))
def test_even_budgets_are_pairs_where_pairs_will_do(n, half, seed):
    budget = min(2 * half, 2**n - 2)
    terms = 1 + n + math.comb(n, 2)
    masks = border_masks(n, budget, np.random.default_rng(seed))
    pairs, singles = find_pairs(masks)
    needs_more = 1.09 * terms <= budget < 2 * (2 + math.comb(n, 2) + 4)
    if budget >= 2 * n + 2 and not needs_more:
        assert not len(singles)
    odd = border_masks(n, budget + 1, np.random.default_rng(seed))
    assert distinct(odd)


@pytest.mark.parametrize("n, budget", [(14, 2000), (14, 500), (40, 4000)])
def test_borders_are_enumerated_and_the_rest_is_uniform(n, budget):
    removed = (~draw_design(Settings(), n, budget).masks).sum(axis=1)
    distance = np.minimum(removed, n - removed)
    pairs = np.bincount(distance, minlength=n // 2 + 1) / 2
    near = BORDERS * budget / 2
    for size in range(1, n // 2):
        if near <= math.comb(n, size):
            break
        assert pairs[size] == math.comb(n, size)
        near -= pairs[size]
    # Of the next size those that still fit; hardly any of n = 40 are uniform ones.
    assert pairs[size] >= near - 1
    if n == 40:
        assert pairs[: size + 1].sum() == pytest.approx(BORDERS * budget / 2, rel=0.02)
        assert distance[distance > size].mean() == pytest.approx(17.5, abs=0.5)


@pytest.mark.parametrize("n", [6, 9, 12])
def test_a_tenth_more_masks_than_terms_determine_degree_2(n):
    table = basis.terms_up_to(n, 2)
    budget = math.ceil(1.1 * len(table))
    for seed in range(3):
        masks = draw_design(Settings(), n, budget, seed).masks
        if len(masks) < 1 << n:
            assert np.linalg.matrix_rank(basis.design(masks, table)) == len(table)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("radius", [1, 2, 4, 50])
def test_masks_in_a_neighbourhood(radius, ends):
    n, budget = 9, 100
    chosen = Settings("local", radius=radius, ends=ends)
    masks = draw_design(chosen, n, budget).masks
    assert distinct(masks) and len(masks) <= budget
    inside = masks[2:] if ends else masks
    if ends:
        assert masks[0].all() and not masks[1].any()
    removed = (~inside).sum(axis=1)
    assert removed.min() >= 1 and removed.max() <= min(radius, n)
    assert len(inside) == min(budget - 2 * ends, ball_size(n, min(radius, n)))


def test_the_lasso_draws_uniform_pairs():
    found = draw_design(Settings(engine="lasso"), 20, 201, seed=4).masks
    expected = paired_masks(20, 201, np.random.default_rng(4))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_third_of_the_masks_with_three_anchors_is_near_the_input(engine):
    chosen = Settings("anchor", engine=engine, anchors=3)
    design = draw_design(chosen, 20, 1200)
    assert len(design.masks) <= 1200 and design.n_uniform == 900
    assert distinct(design.masks) and design.anchors.shape == (3, 20)
    removed = (~design.masks[design.n_uniform :]).sum(axis=1)
    assert removed.max() <= 4 and removed.min() >= 1


@pytest.mark.parametrize("engine", ENGINES)
def test_one_anchor_has_the_masks_of_a_plain_fit(engine):
    one = draw_design(Settings("anchor", engine=engine, anchors=1), 20, 300)
    plain = draw_design(Settings(engine=engine), 20, 300)
    np.testing.assert_array_equal(one.masks, plain.masks)
    assert one.n_uniform == 300


def test_anchors_are_distinct_and_start_with_the_input():
    for n, k in [(1, 2), (3, 8), (3, 50), (20, 9), (40, 30)]:
        anchors = draw_anchors(n, k, np.random.default_rng(0))
        assert anchors.shape == (min(k, 2**n), n)
        assert anchors[0].all() and distinct(anchors)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 16, 50, 200, 1000])
def test_the_default_budget_is_sensible(n):
    assert 2 <= auto_budget(n) <= min(2**n, 25_000)
    assert auto_budget(n) >= min(2**n, 1000)
    assert len(draw_design(Settings(), n).masks) == auto_budget(n)
