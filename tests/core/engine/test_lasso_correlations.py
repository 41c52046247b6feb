"""Correlations by matrix products against the explicit design."""

import numpy as np
import pytest

from harmonica_core import basis
from harmonica_core.engine.lasso import correlations
from harmonica_core.engine.lasso.correlations import ParityDesign

N_FEATURES, ROWS = 9, 40


@pytest.fixture
def masks():
    return np.random.default_rng(0).random((ROWS, N_FEATURES)) < 0.5


@pytest.fixture
def residual():
    return np.random.default_rng(1).normal(size=ROWS)


def explicit(masks, table, residual):
    columns = [
        np.prod(np.where(masks[:, [i for i in term if i >= 0]], 1.0, -1.0), axis=1)
        for term in table
    ]
    return np.array(columns) @ residual


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_all_terms_up_to_a_degree(masks, residual, degree):
    table = basis.terms_up_to(N_FEATURES, degree)
    found = ParityDesign.of(masks, table).correlations(residual)
    np.testing.assert_allclose(found, explicit(masks, table, residual), atol=1e-4)


def test_terms_in_any_order_with_one_of_size_four(masks, residual):
    pairs = basis.terms_up_to(N_FEATURES, 2)[1:]
    table = np.full((len(pairs) + 1, 4), -1, dtype=np.int32)
    table[:-1, :2] = pairs
    table[-1] = [1, 4, 6, 8]
    table = np.random.default_rng(2).permutation(table)
    found = ParityDesign.of(masks, table).correlations(residual)
    np.testing.assert_allclose(found, explicit(masks, table, residual), atol=1e-4)


def test_blocks_of_columns_give_the_same(masks, residual, monkeypatch):
    table = basis.terms_up_to(N_FEATURES, 4)
    whole = ParityDesign.of(masks, table).correlations(residual)
    monkeypatch.setattr(correlations, "_BLOCK_BYTES", 4 * ROWS * 7)
    blocked = ParityDesign.of(masks, table).correlations(residual)
    np.testing.assert_allclose(blocked, whole, atol=1e-5)


def test_rows_can_be_taken(masks, residual):
    table = basis.terms_up_to(N_FEATURES, 3)
    some = np.arange(0, ROWS, 3)
    found = ParityDesign.of(masks, table).take_rows(some)
    assert found.shape == (len(some), len(table))
    np.testing.assert_allclose(
        found.correlations(residual[some]),
        explicit(masks[some], table, residual[some]),
        atol=1e-4,
    )


def test_columns_are_the_parities(masks):
    table = basis.terms_up_to(N_FEATURES, 3)
    index = np.array([1, 30, 100])
    found = ParityDesign.of(masks, table).columns(index)
    np.testing.assert_array_equal(found.T, basis.design(masks, table[index]))
