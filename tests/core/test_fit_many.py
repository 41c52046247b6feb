"""Many functions on the same masks: `fit_surrogates`."""

import tracemalloc

import numpy as np
import pytest

from harmonica_core import draw_masks, fit_surrogates
from harmonica_core.design.masks import all_masks


@pytest.fixture(scope="module")
def known():
    """Masks of 12 features and the values of 300 functions of them."""
    rng = np.random.default_rng(0)
    masks = draw_masks(12, 600, rng)
    hidden = np.tanh(np.where(masks, 1.0, -1.0) @ rng.normal(size=(12, 20)))
    return masks, hidden @ rng.normal(size=(20, 300))


def peak_of(work):
    """Result, and bytes allocated at the peak beyond what it holds."""
    tracemalloc.start()
    try:
        found = work()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return found, peak - now


@pytest.mark.parametrize("share", [3, 5, 10])
def test_memory_is_bounded(known, share):
    masks, values = known
    _, free = peak_of(lambda: fit_surrogates(masks, values, 2))
    memory = free // share
    _, bound = peak_of(lambda: fit_surrogates(masks, values, 2, memory=memory))
    assert bound < 1.3 * memory


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("shape", [(300,), (60, 5)])
def test_a_memory_bound_changes_no_result(known, shape, ends):
    masks, values = known
    values = values.reshape(len(masks), *shape)
    free = fit_surrogates(masks, values, 2, ends=ends)
    bound = fit_surrogates(masks, values, 2, ends=ends, memory=1 << 20)
    assert len(bound) == shape[0]
    for one, other in zip(free, bound, strict=True):
        np.testing.assert_array_equal(one.table, other.table)
        np.testing.assert_allclose(one.coef, other.coef, atol=1e-10)
        np.testing.assert_array_equal(one.evaluated.values, other.evaluated.values)


@pytest.mark.parametrize("memory", [0, -1, 1.5, "1 GB", None])
def test_impossible_memory(memory):
    with pytest.raises(ValueError, match="memory="):
        fit_surrogates(all_masks(3), np.zeros((8, 2)), memory=memory)


def test_terms_that_are_no_terms():
    with pytest.raises(ValueError, match="terms=5"):
        fit_surrogates(all_masks(3), np.zeros((8, 2)), terms=5)
