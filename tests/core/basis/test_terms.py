"""Terms, their columns and predictions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core import basis
from harmonica_core.design import masks as draw


def slow_chi(term, mask):
    return math.prod(1.0 if mask[i] else -1.0 for i in term)


@given(n=st.integers(1, 7), degree=st.integers(1, 8))
def test_terms_up_to_a_degree(n, degree):
    table = basis.terms_up_to(n, degree)
    expected = [
        term
        for size in range(min(n, degree) + 1)
        for term in itertools.combinations(range(n), size)
    ]
    assert list(basis.terms_of(table)) == expected
    assert len(table) == basis.n_terms_up_to(n, degree)


def test_design_is_the_definition_also_for_a_large_extra_term():
    terms = [(), (3,), (0, 2), (1, 4, 7, 9)]
    masks = draw.uniform_draws(10, 50, np.random.default_rng(0))
    expected = [[slow_chi(term, mask) for term in terms] for mask in masks]
    np.testing.assert_array_equal(basis.design(masks, basis.table_of(terms)), expected)


def test_parities_are_orthonormal_on_the_cube():
    design = basis.design(draw.all_masks(5), basis.terms_up_to(5, 5))
    np.testing.assert_allclose(design.T @ design / 32, np.eye(32), atol=1e-15)


def test_prediction_does_not_depend_on_the_block_size(monkeypatch):
    rng = np.random.default_rng(0)
    table = basis.terms_up_to(9, 3)
    coef = rng.normal(size=(len(table), 2))
    masks = draw.uniform_draws(9, 333, rng)
    whole = basis.predict(masks, table, coef)
    np.testing.assert_allclose(whole, basis.design(masks, table) @ coef, atol=1e-12)
    monkeypatch.setattr(basis.terms, "_BLOCK_BYTES", 1)
    np.testing.assert_allclose(basis.predict(masks, table, coef), whole, atol=1e-12)


def test_terms_are_sorted_and_distinct():
    assert basis.terms.check_terms([(3, 1), (1, 3), ()], 4) == [(1, 3), ()]


@pytest.mark.parametrize(
    "terms, message",
    [
        ([(0, 5)], "outside 0 to 4"),
        ([(-1,)], "outside 0 to 4"),
        ([(1, 1)], "twice"),
        ([3], "a single feature is"),
    ],
)
def test_impossible_terms_are_refused(terms, message):
    with pytest.raises(ValueError, match=message):
        basis.terms.check_terms(terms, 5)


@pytest.mark.parametrize(
    "table",
    [
        [[0, 1], [0, 1]],
        [[1, 0]],
        [[-1, 0]],
        [[0, 9]],
        [[-2, -2]],
    ],
)
def test_impossible_tables_are_refused(table):
    with pytest.raises(ValueError, match="needed distinct rows"):
        basis.check_table(np.array(table), 5)


@pytest.mark.parametrize(("n", "width"), [(5, 3), (100, 9), (100, 20), (10**6, 5)])
def test_equal_rows_are_found_however_long_they_are(n, width):
    rng = np.random.default_rng(0)
    rows = {tuple(np.sort(rng.choice(n, width, replace=False))) for _ in range(50)}
    table = basis.table_of([(), (0,), (n - 1,), *sorted(rows), (0, n - 1)])
    np.testing.assert_array_equal(basis.check_table(table, n), table)
    for row in (0, 1, len(table) // 2):
        with pytest.raises(ValueError, match="needed distinct rows"):
            basis.check_table(np.concatenate([table, table[[row]]]), n)


def test_correlate_is_the_adjoint_of_predict(monkeypatch):
    rng = np.random.default_rng(1)
    table = basis.terms_up_to(8, 3)
    masks = draw.uniform_draws(8, 101, rng)
    weighted = rng.normal(size=(101, 2))
    expected = basis.design(masks, table).T @ weighted
    np.testing.assert_allclose(basis.correlate(masks, table, weighted), expected)
    monkeypatch.setattr(basis.terms, "_BLOCK_BYTES", 1)
    np.testing.assert_allclose(basis.correlate(masks, table, weighted), expected)
