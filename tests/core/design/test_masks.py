"""Every way of drawing masks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core.design import masks as draw


def test_all_masks_follow_the_bits_of_their_number():
    masks = draw.all_masks(4)
    assert masks.shape == (16, 4)
    for number, mask in enumerate(masks):
        assert [bool(number >> i & 1) for i in range(4)] == mask.tolist()
    np.testing.assert_array_equal(draw.mask_numbers(masks), np.arange(16))


@given(n=st.integers(1, 40), m=st.integers(2, 60), seed=st.integers(0, 2**32))
def test_pairs_are_complementary_distinct_and_start_at_the_ends(n, m, seed):
    masks = draw.paired_masks(n, m, np.random.default_rng(seed))
    assert draw.are_paired(masks)
    assert len(masks) == min(m // 2 * 2, 2**n)
    assert masks[0].all() and not masks[1].any()
    assert len(np.unique(masks, axis=0)) == len(masks)


@given(n=st.integers(1, 40), m=st.integers(2, 40), more=st.integers(0, 40))
def test_a_larger_budget_extends_the_same_masks(n, m, more):
    few = draw.paired_masks(n, m, np.random.default_rng(3))
    many = draw.paired_masks(n, m + more, np.random.default_rng(3))
    np.testing.assert_array_equal(few, many[: len(few)])


@pytest.mark.parametrize("n", [8, 30])
def test_pairs_are_uniform(n):
    masks = draw.paired_masks(n, 2**8 if n == 8 else 4000, np.random.default_rng(0))
    kept = masks[2:].sum(axis=1)  # the first pair is fixed
    bound = 4 / np.sqrt(len(kept))
    assert abs(masks.mean() - 0.5) < 1e-12
    assert abs(np.var(kept) / (n / 4) - 1) < 2 * bound + 2 / n


def test_the_number_of_removed_features_in_a_ball_is_unbiased():
    n, radius = 40, 5
    masks = draw.ball_draws(n, radius, 40_000, np.random.default_rng(0))
    removed = (~masks).sum(axis=1)
    exact = np.array([math.comb(n, i) for i in range(1, radius + 1)], dtype=float)
    exact /= exact.sum()
    seen = np.bincount(removed, minlength=radius + 1)[1:] / len(masks)
    assert np.abs(seen - exact).max() < 4 * np.sqrt(0.25 / len(masks))
    # Within one size every feature is removed equally often.
    one_size = ~masks[removed == 5]
    share = one_size.mean(axis=0)
    assert np.abs(share - 5 / n).max() < 5 * np.sqrt(5 / n / len(one_size))


@given(n=st.integers(1, 9), data=st.data())
def test_a_small_ball_is_drawn_without_repetition(n, data):
    radius = data.draw(st.integers(1, n))
    size = draw.ball_size(n, radius)
    masks = draw.ball_masks(n, radius, size + 5, np.random.default_rng(0))
    assert len(masks) == size == len(np.unique(masks, axis=0))
    removed = (~masks).sum(axis=1)
    assert removed.min() >= 1 and removed.max() <= radius


def test_removal_probabilities_do_not_overflow():
    p = draw.removal_probabilities(5000, 5000)
    assert np.isfinite(p).all() and p.sum() == pytest.approx(1)


@pytest.mark.parametrize("radius", [0, -1, 6, 2.5, True])
def test_bad_radius_is_refused(radius):
    with pytest.raises(ValueError, match="needed 1"):
        draw.check_radius(radius, 5)


@pytest.mark.parametrize(
    "masks, message",
    [
        (np.ones((2, 4), bool), r"needed \(n_masks, 3\)"),
        (np.ones((2, 3, 1), bool), r"needed \(n_masks, 3\)"),
        (np.array([[1, -1, 1]]), "signs > 0"),
        (np.array([["a", "b", "c"]]), "needed bool"),
        (np.array([[0.5, 1, 1]]), "needed bool"),
    ],
)
def test_bad_masks_are_refused(masks, message):
    with pytest.raises(ValueError, match=message):
        draw.check_masks(masks, 3)


def test_zero_one_masks_are_taken():
    np.testing.assert_array_equal(
        draw.check_masks([[1, 0, 1.0]], 3), [[True, False, True]]
    )


@given(
    n=st.integers(1, 30),
    m=st.integers(2, 60),
    more=st.integers(0, 40),
    near=st.sampled_from([0.05, 0.1, 0.5, 0.9]),
)
def test_mixed_masks_are_distinct_pairs_that_a_larger_budget_extends(n, m, more, near):
    few = draw.mixed_masks(n, m, np.random.default_rng(3), near)
    many = draw.mixed_masks(n, m + more, np.random.default_rng(3), near)
    assert draw.are_paired(few)
    assert len(few) == min(m // 2 * 2, 2**n)
    assert len(np.unique(few, axis=0)) == len(few)
    assert few[0].all()
    np.testing.assert_array_equal(few, many[: len(few)])


def test_a_share_of_mixed_masks_is_near_the_input():
    masks = draw.mixed_masks(40, 2000, np.random.default_rng(0), 0.2)
    removed = (~masks).sum(axis=1)
    near = np.minimum(removed, 40 - removed) <= draw.NEAR_RADIUS
    assert near.mean() == pytest.approx(0.2, abs=0.01)
    assert (removed == 1).sum() == 40  # every single feature
    plain = draw.mixed_masks(40, 100, np.random.default_rng(0), 0)
    uniform = draw.paired_masks(40, 1600, np.random.default_rng(0))
    np.testing.assert_array_equal(plain, uniform[:100])
    np.testing.assert_array_equal(masks[~near], uniform[2:])  # the same but for those


def test_near_weights_give_unbiased_means_over_all_masks():
    n, near = 10, 0.3
    value = np.random.default_rng(1).normal(size=2**n) + draw.all_masks(n).sum(axis=1)

    def estimate(seed, weighted):
        masks = draw.mixed_masks(n, 120, np.random.default_rng(seed), near)
        weights = draw.near_weights(masks) if weighted else None
        return np.average(value[draw.mask_numbers(masks)] ** 2, weights=weights)

    for weighted, unbiased in ((True, True), (False, False)):
        found = np.array([estimate(seed, weighted) for seed in range(400)])
        z = (found.mean() - (value**2).mean()) / (found.std() / 20)
        assert (abs(z) < 4) == unbiased


@pytest.mark.parametrize("near", [-0.1, 1, "much", True, np.nan])
def test_bad_near_is_refused(near):
    with pytest.raises(ValueError, match="0 <= near < 1"):
        draw.check_near(near)


def test_sizes_of_balls_and_shells():
    for n in range(1, 10):
        for fewest in range(n + 1):
            for radius in range(fewest, n + 1):
                expected = sum(math.comb(n, i) for i in range(fewest, radius + 1))
                assert draw.ball_size(n, radius, fewest) == expected
    assert draw.ball_size(100_000, 100_000, 0) == 2**100_000
