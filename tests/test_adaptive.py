import numpy as np
import pytest
from core_games import predict

from harmonica_core import adaptive, basis, smooth
from harmonica_core.adaptive import fit_adaptive
from harmonica_core.result.held_out_error import stated_error
from harmonica_core.engine.lasso.solve import fit_sparse
from harmonica_core.design.masks import (
    all_masks,
    mask_numbers,
    mixed_masks,
    near_weights,
    paired_masks,
)
from harmonica_core.shares import PartRows, shares

N = 9


def draw(n_features=N, n_masks=160, seed=0):
    return paired_masks(n_features, n_masks, np.random.default_rng(seed))


def network(masks, seed=0):
    """A small smooth model: terms of every size, none of them sparse."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(masks.shape[1], 6)) * np.geomspace(1, 0.05, N)[:, None]
    return np.tanh((2.0 * masks - 1) @ weights + 0.5) @ np.arange(1.0, 7.0)


def corner(masks):
    """A tree leaf: terms of all sizes up to five."""
    return 1.0 * masks[:, :5].all(axis=1) + 0.1 * masks[:, 6]


def error(fit, function, n_features=N):
    cube = all_masks(n_features)
    return np.sqrt(((predict(fit, cube)[:, 0] - function(cube)) ** 2).mean())


@pytest.mark.parametrize("function", [network, corner])
def test_it_is_far_below_the_sparse_fit_where_large_terms_matter(function):
    masks = draw()
    values = function(masks)[:, None]
    sparse = fit_sparse(masks, values, 3)
    assert error(fit_adaptive(masks, values), function) < 0.7 * error(sparse, function)


def test_sparse_polynomials_are_recovered_exactly():
    masks = draw(12, 240)
    signs = 2.0 * masks - 1
    values = 1 + signs[:, 0] - 2 * signs[:, 1] * signs[:, 5] * signs[:, 7]
    fit = fit_adaptive(masks, values[:, None])
    assert basis.terms_of(fit.table) == ((0,), (1, 5, 7))
    np.testing.assert_allclose(fit.coef[:, 0], [1, -2], atol=1e-10)
    np.testing.assert_allclose(fit.intercept, 1, atol=1e-10)
    np.testing.assert_array_equal(fit.smooth, 0)


def test_a_constant_has_no_terms_and_no_error():
    masks = draw()
    values = np.full((len(masks), 1), 0.3)
    fit = fit_adaptive(masks, values)
    assert len(fit.table) == 0
    np.testing.assert_allclose(fit.intercept, 0.3)
    np.testing.assert_allclose(fit.held_out, values)
    assert fit.doubt[0] < 1e-12


def test_the_table_is_valid_and_without_the_empty_term():
    masks = draw()
    fit = fit_adaptive(masks, network(masks)[:, None])
    basis.check_table(fit.table, N)
    assert basis.term_sizes(fit.table).min() == 1
    assert fit.coef.shape == (len(fit.table), 1)


def test_scale_and_shift_of_the_output_go_through():
    masks = draw()
    values = network(masks)[:, None]
    one, other = fit_adaptive(masks, values), fit_adaptive(masks, 1e-4 * values + 7)
    cube = all_masks(N)
    np.testing.assert_allclose(
        predict(other, cube), 1e-4 * predict(one, cube) + 7, atol=1e-7
    )
    np.testing.assert_allclose(other.held_out, 1e-4 * one.held_out + 7, atol=1e-7)


def test_permuted_features_permute_the_result():
    masks = draw()
    order = np.random.default_rng(1).permutation(N)
    values = network(masks)[:, None]
    one, other = fit_adaptive(masks, values), fit_adaptive(masks[:, order], values)
    cube = all_masks(N)
    np.testing.assert_allclose(
        predict(other, cube[:, order]), predict(one, cube), atol=2e-2 * values.std()
    )


def test_outputs_are_fitted_as_if_alone():
    masks = draw()
    values = np.stack([network(masks), corner(masks)], axis=1)
    both = fit_adaptive(masks, values)
    cube = all_masks(N)
    for k in range(2):
        alone = fit_adaptive(masks, values[:, [k]])
        np.testing.assert_allclose(
            predict(both, cube)[:, k], predict(alone, cube)[:, 0], atol=1e-6
        )
        np.testing.assert_allclose(both.held_out[:, [k]], alone.held_out, atol=1e-6)


def test_the_same_samples_give_the_same_bits():
    masks = draw()
    values = network(masks)[:, None]
    one, other = fit_adaptive(masks, values), fit_adaptive(masks, values)
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.held_out, other.held_out)


def test_masks_without_pairs_are_fitted_too():
    masks = np.unique(np.random.default_rng(0).random((200, N)) < 0.5, axis=0)
    values = network(masks)[:, None]
    fit = fit_adaptive(masks, values)
    assert fit.smooth.shape == (1, 1)
    assert error(fit, network) < 0.8 * error(fit_sparse(masks, values, 3), network)


def test_the_stated_error_is_honest():
    inside = []
    cube = all_masks(N)
    for seed in range(10):

        def function(masks, seed=seed):
            return network(masks, seed)

        masks = draw(seed=seed)
        values = function(masks)[:, None]
        fit = fit_adaptive(masks, values)
        value, se = stated_error(
            masks, values, predict(fit, masks), fit.held_out, doubt=fit.doubt
        )
        truth = np.sqrt(((predict(fit, cube)[:, 0] - function(cube)) ** 2).mean())
        assert 0.5 < value[0] / truth < 2
        inside.append(abs(value[0] - truth) <= 2 * se[0])
    assert sum(inside) >= 9


def test_noise_is_not_explained():
    masks = draw()
    values = np.random.default_rng(5).normal(size=(len(masks), 1))
    fit = fit_adaptive(masks, values)
    residual = np.sqrt(((values - fit.held_out) ** 2).mean())
    assert 0.9 < residual / values.std() < 1.1


def test_rough_functions_get_a_prior_with_noise(monkeypatch):
    masks = draw()
    rough = 16 * np.random.default_rng(100).normal(size=1 << N)
    values = (network(masks) + rough[mask_numbers(masks)])[:, None]
    with_noise = error(fit_adaptive(masks, values), network)
    monkeypatch.setattr(smooth, "_ROUGH", np.inf)
    without = error(fit_adaptive(masks, values), network)
    assert with_noise < 0.97 * without


def test_heavy_weights_choose_where_the_error_is_small():
    masks = draw()
    values = network(masks)[:, None]
    near = np.repeat(masks[0::2].sum(axis=1) >= 6, 2)
    fit = fit_adaptive(masks, values, weights=np.where(near, 10.0, 1.0))
    assert np.isfinite(fit.coef).all() and fit.smooth.shape == (1, 2)


def test_larger_problems_keep_the_sparse_fit(monkeypatch):
    masks = draw()
    values = network(masks)[:, None]
    monkeypatch.setattr(adaptive, "_MAX_MASKS", 20)
    fit = fit_adaptive(masks, values)
    sparse = fit_sparse(masks, values, 3)
    np.testing.assert_array_equal(fit.coef, sparse.coef)
    np.testing.assert_array_equal(fit.smooth, 0)


def test_with_many_features_larger_terms_are_cut_honestly(monkeypatch):
    monkeypatch.setattr(adaptive, "_MAX_TERMS", 200)
    masks = draw()
    values = network(masks)[:, None]
    fit = fit_adaptive(masks, values, degree=2)
    assert basis.term_sizes(fit.table).max() == 3
    stated = np.sqrt(((values - fit.held_out) ** 2).mean())
    assert stated == pytest.approx(error(fit, network), rel=0.5)


def test_dropped_terms_are_negligible_together():
    coef = np.array([0.0, 3.0, 0.1, -0.2, 1.0])
    kept = adaptive._without_negligible(coef, bound=0.23)
    np.testing.assert_array_equal(kept, [0, 3, 0, 0, 1])
    kept = adaptive._without_negligible(coef, bound=0.15)
    np.testing.assert_array_equal(kept, [0, 3, 0, -0.2, 1])


def test_the_shares_are_the_best_ones():
    rng = np.random.default_rng(0)
    rows = PartRows.of(draw(), None)
    residuals = rng.normal(size=(3, 2, len(rows.signs))) * [[[1.0]], [[1.5]], [[4.0]]]
    residuals[2, 1] -= residuals[0, 1]
    share, crossed = shares(rows, residuals, 1.0)
    first, second = np.meshgrid(*[np.linspace(0, 1, 201)] * 2)
    inside = first + second <= 1
    grid = np.stack([first, second, 1 - first - second])[:, inside]
    for part in range(2):
        lost = np.square(grid.T @ residuals[:, part]).sum(axis=1)
        np.testing.assert_allclose(share[:, part], grid[:, lost.argmin()], atol=6e-3)
    changed = residuals.copy()
    changed[..., rows.fold == 2] *= 100
    _, again = shares(rows, changed, 1.0)
    here = rows.fold == 2
    np.testing.assert_array_equal(again[..., here], crossed[..., here])
    residuals[0] = 0
    exact, _ = shares(rows, residuals, 1.0)
    np.testing.assert_array_equal(exact, [[1, 1], [0, 0], [0, 0]])


def test_shares_heed_the_error_near_the_input(monkeypatch):
    n, rng = 12, np.random.default_rng(0)
    masks = mixed_masks(n, 400, rng, 0.2)
    rows = PartRows.of(masks, near_weights(masks))
    toward = rows.near()
    near = toward != 0
    removed = (~masks).sum(axis=1)
    close = (removed >= 1) & (removed <= 3)
    assert ((toward == 1) == close[0::2]).all()
    assert ((toward == -1) == close[1::2]).all()
    # Right near the input, where even and odd parts cancel, and no better elsewhere.
    fine, rough = rng.normal(size=(2, 2, len(toward)))
    fine[1, near] = -toward[near] * fine[0, near]
    both = np.stack([rough, fine])
    share, _ = shares(rows, both, 1.0)
    monkeypatch.setattr("harmonica_core.shares._NEAR_WEIGHTS", ())
    plain, _ = shares(rows, both, 1.0)
    assert (share[1] > plain[1]).all()

    def lost(found):
        return rows.mean_square((found[:, :, None] * both).sum(axis=0)).sum()

    assert lost(plain) < lost(share) <= 1.02**2 * lost(plain)
    uniform = PartRows(rows.signs, rows.parities, np.ones(len(toward)), rows.fold)
    assert not uniform.near().any()


def test_few_samples_may_prefer_a_lower_degree(monkeypatch):
    masks = draw(12, 170)
    weights = np.triu(np.random.default_rng(3).normal(size=(12, 12)), 1)

    def pairs(rows):
        signs = 2.0 * rows - 1
        return np.einsum("ti,ij,tj->t", signs, weights, signs) + np.exp(-rows.sum(1))

    off = [error(fit_adaptive(masks, pairs(masks)[:, None]), pairs, 12)]
    monkeypatch.setattr(adaptive, "_fewer_samples_than_terms", lambda *_: False)
    off.append(error(fit_adaptive(masks, pairs(masks)[:, None]), pairs, 12))
    assert off[0] < 0.8 * off[1]
