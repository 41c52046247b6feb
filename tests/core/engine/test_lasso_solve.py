"""Sparse fits against scikit-learn, known polynomials, and their invariants."""

import numpy as np
import pytest
from core_games import draw_pairs, predict, random_network
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from harmonica_core import basis
from harmonica_core.engine.lasso import solve as lasso
from harmonica_core.engine.lasso.solve import fit_sparse


def objective(masks, values, coef, table, intercept, alpha, weights):
    residual = values - basis.design(masks, table) @ coef - intercept
    return np.average(residual**2, weights=weights) / 2 + alpha * np.abs(coef).sum()


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.003])
def test_objective_is_that_of_scikit_learn(monkeypatch, dense, weighted, paired, alpha):
    if not dense:
        monkeypatch.setattr(lasso, "_is_dense", lambda *_: False)
    rng = np.random.default_rng(0)
    masks = draw_pairs(12, 240, rng)
    if not paired:
        masks = rng.random(masks.shape) < 0.6
    values = random_network(12, rng)(masks)
    weights = np.repeat(rng.uniform(0.1, 2, 120), 2) if weighted else None
    table = basis.terms_up_to(12, 3)[1:]
    fit = fit_sparse(masks, values, 3, alpha, weights=weights)
    peer = Lasso(alpha=alpha, tol=1e-8, max_iter=100_000)
    peer.fit(basis.design(masks, table), values[:, 0], sample_weight=weights)
    ours = objective(
        masks, values[:, 0], fit.coef[:, 0], fit.table, fit.intercept, alpha, weights
    )
    theirs = objective(
        masks, values[:, 0], peer.coef_, table, peer.intercept_, alpha, weights
    )
    assert abs(ours / theirs - 1) < 1e-4
    assert 0 <= fit.gap[0] < 1e-4
    assert fit.alpha[0] == pytest.approx(alpha)
    assert not fit.relaxed[0]


def test_gap_of_something_else_is_not_small():
    rng = np.random.default_rng(0)
    masks = draw_pairs(8, 100, rng)
    rows = lasso.Split.of(masks, basis.terms_up_to(8, 2)[1:], None).rows(
        random_network(8, rng)(masks)
    )
    parts = [lasso.Part(one, dense=True) for one in rows]
    every, alpha = np.array([0]), np.array([0.01])
    for part in parts:
        part.full.solve(alpha, 0.0, every)
    exact = lasso._relative_gap([part.full for part in parts], alpha)
    parts[1].full.coef *= 0.9
    parts[1].full.slope = parts[1].full.corr - parts[1].full.coef @ parts[1].full.gram
    wrong = lasso._relative_gap([part.full for part in parts], alpha)
    assert exact[0] < 1e-10
    assert wrong[0] > 1e-3


@pytest.mark.parametrize("seed", range(12))
def test_sparse_polynomials_are_recovered_exactly(seed):
    rng = np.random.default_rng(seed)
    n_features = (10, 25, 40)[seed % 3]
    table = basis.terms_up_to(n_features, 3)[1:]
    picked = np.sort(rng.choice(len(table), 30, replace=False))
    coef = rng.normal(size=30)
    masks = draw_pairs(n_features, 1000, rng)
    values = basis.predict(masks, table[picked], coef[:, None]) + 0.3
    fit = fit_sparse(masks, values, 3)
    np.testing.assert_array_equal(fit.table, table[picked])
    np.testing.assert_allclose(fit.coef[:, 0], coef, atol=1e-6)
    np.testing.assert_allclose(fit.intercept, 0.3, atol=1e-6)
    np.testing.assert_allclose(fit.held_out, values, atol=1e-6)


def test_a_dense_function_keeps_the_shrunken_fit():
    rng = np.random.default_rng(0)
    masks = draw_pairs(12, 400, rng)
    table = basis.terms_up_to(12, 5)[1:]
    coef = rng.laplace(size=(len(table), 1))
    values = basis.predict(masks, table, coef)
    fit = fit_sparse(masks, values, 3)
    assert not fit.relaxed[0]
    assert len(fit.table) < 200


def test_given_tables_may_hold_any_terms():
    rng = np.random.default_rng(0)
    masks = draw_pairs(10, 600, rng)
    terms = [(), (1,), (2, 3), (0, 8), (1, 4, 7, 9)]
    table = basis.table_of(terms)
    values = basis.predict(masks, table, np.array([[5.0], [1], [0], [2], [-1]]))
    fit = fit_sparse(masks, values, table)
    found = dict(zip(basis.terms_of(fit.table), fit.coef[:, 0], strict=True))
    assert found == pytest.approx({(1,): 1, (0, 8): 2, (1, 4, 7, 9): -1})
    assert fit.intercept[0] == pytest.approx(5)


@pytest.mark.parametrize("dense", [True, False])
def test_targets_do_not_see_each_other(monkeypatch, dense):
    if not dense:
        monkeypatch.setattr(lasso, "_is_dense", lambda *_: False)
    rng = np.random.default_rng(1)
    masks = draw_pairs(10, 800, rng)
    values = random_network(10, rng, 4)(masks)
    values[:, 3] = basis.predict(masks, basis.table_of([(1, 2)]), np.ones((1, 1)))[:, 0]
    together = fit_sparse(masks, values, 3)
    for k in range(4):
        alone = fit_sparse(masks, values[:, [k]], 3)
        active = together.coef[:, k] != 0
        np.testing.assert_allclose(together.alpha[k], alone.alpha[0], rtol=1e-10)
        np.testing.assert_array_equal(together.table[active], alone.table)
        np.testing.assert_allclose(
            together.coef[active, k], alone.coef[:, 0], atol=1e-10
        )
        # Folds are solved to a hundredth of the strength, within which rounding shows.
        np.testing.assert_allclose(
            together.held_out[:, k], alone.held_out[:, 0], atol=1e-5
        )


def test_memory_bounds_the_targets_at_once(monkeypatch):
    rng = np.random.default_rng(1)
    masks = draw_pairs(6, 60, rng)
    values = random_network(6, rng, 7)(masks)
    sizes = []
    plain = lasso._fit

    def spy(parts, *args):
        sizes.append(parts[0].rows.targets.shape[1])
        return plain(parts, *args)

    monkeypatch.setattr(lasso, "_fit", spy)
    unbounded = fit_sparse(masks, values, 2)
    bounded = fit_sparse(masks, values, 2, memory=60_000)
    assert sizes[0] == 7
    assert max(sizes[1:]) < 7
    np.testing.assert_allclose(bounded.coef, unbounded.coef, atol=1e-10)


@settings(max_examples=8, deadline=None)
@given(
    factor=st.sampled_from([-3.0, 1e-6, 1e6, 0.37]),
    shift=st.sampled_from([0.0, -2.0, 1e3]),
    seed=st.integers(0, 20),
)
def test_scaled_and_shifted_values_scale_the_fit(factor, shift, seed):
    rng = np.random.default_rng(seed)
    masks = draw_pairs(6, 120, rng)
    values = random_network(6, rng)(masks)
    plain = fit_sparse(masks, values, 2)
    moved = fit_sparse(masks, factor * values + shift * abs(factor), 2)
    np.testing.assert_array_equal(moved.table, plain.table)
    np.testing.assert_allclose(
        moved.coef, factor * plain.coef, rtol=1e-6, atol=1e-9 * abs(factor)
    )
    np.testing.assert_allclose(moved.alpha, abs(factor) * plain.alpha, rtol=1e-6)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 100))
def test_renamed_features_rename_the_terms(seed):
    rng = np.random.default_rng(seed)
    masks = draw_pairs(8, 160, rng)
    values = random_network(8, rng)(masks)
    names = rng.permutation(8)
    plain = fit_sparse(masks, values, 2)
    renamed = fit_sparse(masks[:, names], values, 2)
    want = dict(zip(basis.terms_of(plain.table), plain.coef[:, 0], strict=True))
    found = {
        tuple(sorted(int(names[i]) for i in term)): coef
        for term, coef in zip(
            basis.terms_of(renamed.table), renamed.coef[:, 0], strict=True
        )
    }
    # Two strengths that predict equally well may be told apart by rounding alone; then
    # the coefficients differ by less than the error that both of them make.
    terms = found.keys() | want.keys()
    apart = [found.get(term, 0.0) - want.get(term, 0.0) for term in terms]
    error = np.sqrt(np.mean((values - plain.held_out) ** 2))
    assert np.linalg.norm(apart) < 0.25 * error + 1e-8


@pytest.mark.parametrize("alpha", ["auto", 0.01])
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9])
def test_a_constant_has_no_terms(constant, alpha):
    masks = draw_pairs(5, 40, np.random.default_rng(0))
    fit = fit_sparse(masks, np.full((40, 1), constant), 2, alpha)
    assert fit.table.shape[0] == 0
    np.testing.assert_allclose(fit.intercept, constant, rtol=1e-14)
    np.testing.assert_allclose(fit.held_out, constant, rtol=1e-14)
    assert fit.gap[0] == 0


@pytest.mark.parametrize(
    ("n_features", "n_masks", "degree"), [(1, 2, 1), (1, 4, 3), (2, 6, 2), (7, 12, 3)]
)
def test_few_masks(n_features, n_masks, degree):
    rng = np.random.default_rng(0)
    masks = draw_pairs(n_features, n_masks, rng)
    fit = fit_sparse(masks, random_network(n_features, rng, 2)(masks), degree)
    assert np.isfinite(fit.coef).all()
    assert np.isfinite(fit.held_out).all()


def test_many_terms_are_dense_where_one_path_decides(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(lasso, "_DENSE_TERMS", 50)
    masks = draw_pairs(9, 400, rng)
    split = lasso.Split.of(masks, basis.terms_up_to(9, 3)[1:], None)
    assert lasso._is_dense(split, 1 << 30)
    assert not lasso._is_dense(split, 1 << 15), "beyond the memory"
    few = lasso.Split.of(masks[:160], split.table, None)
    assert not lasso._is_dense(few, 1 << 30)
    weighted = lasso.Split.of(masks, split.table, np.repeat(rng.random(200), 2))
    assert not lasso._is_dense(weighted, 1 << 30)
    values = random_network(9, rng, 1)(masks)
    dense = fit_sparse(masks, values, 3, 0.05)
    growing = fit_sparse(masks, values, 3, 0.05, memory=1 << 15)
    np.testing.assert_allclose(
        predict(growing, masks), predict(dense, masks), atol=1e-8
    )
