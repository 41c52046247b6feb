import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from harmonica_core import basis
from harmonica_core.design.draw import draw_anchors
from harmonica_core.engine import constrained
from harmonica_core.engine.constrained import Cells, fit_cells, minimise, objective
from harmonica_core.result.anchored import nearest_anchor

L1 = 0.03


def sample(n=5, degree=2, k=3, m=150, seed=0):
    """Masks and values of k cells, and the table of all terms."""
    rng = np.random.default_rng(seed)
    masks = rng.random((m, n)) < 0.5
    z = 2.0 * masks - 1
    values = z[:, 0] * (1 + z[:, 1] * z[:, 2]) / 2 + 0.3 * z[:, 3] + 2
    values += 0.2 * np.tanh(z.sum(axis=1)) + 0.1 * rng.normal(size=m)
    cell = nearest_anchor(masks, draw_anchors(n, k, rng))
    rows = [np.flatnonzero(cell == i) for i in range(k)]
    table = basis.terms_up_to(n, degree)[1:]
    return [masks[r] for r in rows], [values[r] for r in rows], table


def cells_of(masks, values, table):
    designs = [np.c_[np.ones(len(m)), basis.design(m, table)] for m in masks]
    return Cells.of(designs, values)


def solved(masks, values, table, l1, l2, tolerance=1e-7):
    intercept, coef = fit_cells(masks, values, table, l1, l2, tolerance)
    return np.c_[intercept, coef]


def plain_descent(cells, l1, l2, steps=16_500):
    """The paper's way: many small (sub)gradient steps; the best point seen."""
    k, p = cells.right.shape
    coef = np.zeros((k, p))
    best = np.inf
    step = 1 / np.linalg.eigvalsh(cells.gram).max()
    for t in range(steps):
        slope = np.einsum("ipq,iq->ip", cells.gram, coef) - cells.right
        slope[:, 1:] += l1 / k * np.sign(coef[:, 1:])
        apart = coef - coef.mean(axis=0)
        size = np.linalg.norm(apart, axis=1, keepdims=True)
        pull = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)
        slope += l2 / k * (pull - pull.mean(axis=0))
        coef -= step * 0.5 ** (t // 1500) * slope
        if t % 20 == 0:
            best = min(best, objective(cells, coef, l1, l2))
    return best


def test_the_objective_is_the_papers():
    masks, values, table = sample()
    cells = cells_of(masks, values, table)
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(3, 1 + len(table)))
    total = sum(len(y) for y in values)
    loss = sum(
        ((basis.design(m, table) @ a[1:] + a[0] - y) ** 2).sum()
        for m, y, a in zip(masks, values, coef, strict=True)
    )
    size = sum(abs(a[1:]).sum() for a in coef) / 3
    spread = sum(np.sqrt(((a - coef.mean(axis=0)) ** 2).sum()) for a in coef) / 3
    expected = loss / total + 0.3 * size + 0.7 * spread
    assert objective(cells, coef, 0.3, 0.7) == pytest.approx(expected)


@pytest.mark.parametrize("l2", [0.02, 0.15, 0.4, 3.0])
def test_no_worse_than_a_long_plain_descent_and_close_to_it(l2):
    masks, values, table = sample()
    cells = cells_of(masks, values, table)
    ours = objective(cells, solved(masks, values, table, L1, l2), L1, l2)
    plain = plain_descent(cells, L1, l2)
    assert ours <= plain + 1e-7
    assert ours == pytest.approx(plain, rel=5e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.2, 1.0]))
def test_no_small_change_improves_it(seed, l2):
    masks, values, table = sample(seed=seed, m=80)
    cells = cells_of(masks, values, table)
    best = solved(masks, values, table, L1, l2)
    value = objective(cells, best, L1, l2)
    rng = np.random.default_rng(seed)
    for size in (1e-1, 1e-2, 1e-3):
        together = size * rng.normal(size=best.shape[1])
        for change in (size * rng.normal(size=best.shape), together[None]):
            assert objective(cells, best + change, L1, l2) > value - 1e-8


def test_without_a_pull_they_are_independent_lassos():
    masks, values, table = sample(n=9, m=600)
    total = sum(len(y) for y in values)
    found = solved(masks, values, table, L1, 0.0)
    for m, y, row in zip(masks, values, found, strict=True):
        alpha = L1 * total / (2 * 3 * len(y))
        lasso = Lasso(alpha=alpha, tol=1e-10, max_iter=100_000)
        lasso.fit(basis.design(m, table), y)
        np.testing.assert_allclose(row[1:], lasso.coef_, atol=2e-5)
        assert row[0] == pytest.approx(lasso.intercept_, abs=2e-5)


def test_with_a_strong_pull_they_are_one_lasso_and_exactly_equal():
    masks, values, table = sample(n=9, m=600)
    found = solved(masks, values, table, L1, 50.0)
    assert (found == found[0]).all()
    lasso = Lasso(alpha=L1 / 2, tol=1e-10, max_iter=100_000)
    lasso.fit(basis.design(np.concatenate(masks), table), np.concatenate(values))
    np.testing.assert_allclose(found[0, 1:], lasso.coef_, atol=2e-5)
    assert found[0, 0] == pytest.approx(lasso.intercept_, abs=2e-5)


def test_a_stronger_pull_raises_the_loss_and_lowers_the_spread():
    masks, values, table = sample()
    cells = cells_of(masks, values, table)
    losses, spreads = [], []
    for l2 in (0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 5.0):
        coef = solved(masks, values, table, L1, l2)
        losses.append(objective(cells, coef, L1, 0.0))
        spreads.append(np.linalg.norm(coef - coef.mean(axis=0), axis=1).mean())
    assert (np.diff(losses) > -1e-7).all() and losses[-1] > losses[0] + 1e-3
    assert (np.diff(spreads) < 1e-5).all() and spreads[-1] < 1e-15


def test_coefficients_are_exactly_sparse():
    masks, values, table = sample()
    found = solved(masks, values, table, 0.3, 0.1)
    assert 0 < np.count_nonzero(found[:, 1:]) < found[:, 1:].size / 2


@pytest.mark.parametrize("l2", [0.0, 0.1, 5.0])
def test_a_growing_working_set_finds_the_same(monkeypatch, l2):
    masks, values, table = sample(n=7, degree=3, m=200)
    cells = cells_of(masks, values, table)
    whole = objective(cells, solved(masks, values, table, L1, l2), L1, l2)
    monkeypatch.setattr(constrained, "_WORKING_SET", 6)
    grown = solved(masks, values, table, L1, l2)
    assert objective(cells, grown, L1, l2) == pytest.approx(whole, rel=1e-5)


def test_a_shift_moves_the_intercepts_and_a_factor_scales_everything():
    masks, values, table = sample()
    plain = solved(masks, values, table, L1, 0.1)
    moved = solved(masks, [10 * y + 5 for y in values], table, 10 * L1, 1.0)
    np.testing.assert_allclose(moved[:, 1:], 10 * plain[:, 1:], atol=1e-4)
    np.testing.assert_allclose(moved[:, 0], 10 * plain[:, 0] + 5, atol=1e-4)


def test_empty_cells_and_constant_values():
    masks, values, table = sample()
    masks, values = [*masks, masks[0][:0]], [*values, values[0][:0]]
    found = solved(masks, values, table, L1, 0.1)
    away = np.linalg.norm(found - found.mean(axis=0), axis=1)
    assert away[3] < away[:3].min()  # nothing but L1 holds it away from the mean
    constant = [np.full(len(y), 7.0) for y in values]
    found = solved(masks, constant, table, L1, 0.1)
    np.testing.assert_allclose(found[:, 0], 7.0)
    assert not found[:, 1:].any()


def test_an_unfinished_run_says_so(monkeypatch):
    masks, values, table = sample()
    monkeypatch.setattr(constrained, "_MOST_STEPS", 10)
    with pytest.warns(UserWarning, match="stopped after 10 steps"):
        minimise(cells_of(masks, values, table), L1, 0.1, tolerance=1e-12)
