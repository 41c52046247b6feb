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


@pytest.mark.parametrize("n", [3, 70])
def test_masks_are_found_among_known_ones(n):
    rng = np.random.default_rng(0)
    known = np.unique(rng.random((30, n)) < 0.5, axis=0)
    masks = np.concatenate([rng.random((20, n)) < 0.5, known[[2, 0, 1]]])
    rows, places = draw.match_masks(masks, known)
    np.testing.assert_array_equal(masks[rows], known[places])
    missing = np.delete(masks, rows, axis=0)
    assert not any((known == mask).all(axis=1).any() for mask in missing)
    assert len(draw.match_masks(masks, known[:0])[0]) == 0


def test_all_masks_are_recognised_in_any_order():
    masks = draw.all_masks(4)[np.random.default_rng(0).permutation(16)]
    np.testing.assert_array_equal(masks[draw.rows_of_all(masks)], draw.all_masks(4))
    assert draw.rows_of_all(masks[1:]) is None
    assert draw.rows_of_all(np.concatenate([masks[1:], masks[1:2]])) is None


def test_sizes_of_balls_and_shells():
    for n in range(1, 10):
        for fewest in range(n + 1):
            for radius in range(fewest, n + 1):
                expected = sum(math.comb(n, i) for i in range(fewest, radius + 1))
                assert draw.ball_size(n, radius, fewest) == expected
    assert draw.ball_size(100_000, 100_000, 0) == 2**100_000


def test_masks_of_a_large_ball_are_distinct_too():
    masks = draw.ball_masks(100, 4, 12_000, np.random.default_rng(0))
    assert masks.shape == (12_000, 100)
    assert len(np.unique(np.packbits(masks, axis=1), axis=0)) == len(masks)
    removed = (~masks).sum(axis=1)
    assert removed.min() >= 1 and removed.max() == 4
