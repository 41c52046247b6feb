"""Interpolants under several priors: which are averaged, and learnt from what."""

import numpy as np
import pytest

from harmonica_core import basis, smooth
from harmonica_core.interpolant import (
    fit_interpolant,
    learn_prior,
    mean_coefficients,
)
from harmonica_core.kernel import Workspace
from harmonica_core.likelihood import flat_prior, loss
from harmonica_core.design.masks import (
    all_masks,
    mixed_masks,
    near_weights,
    paired_masks,
)
from harmonica_core.shares import PartRows

N = 8
TABLE = basis.terms_up_to(N, N)


def network(masks, seed=0):
    rng = np.random.default_rng(seed)
    return np.tanh(masks @ rng.normal(size=(N, 5))).sum(axis=1)


def problem(masks, values, weights=None):
    rows = PartRows.of(masks, weights)
    return rows, rows.split(values - np.average(values, weights=weights))


def error(rows, target, values, seed):
    found = smooth.fit_smooth(rows, target, TABLE).coef
    everywhere = all_masks(N)
    predicted = basis.predict(everywhere, TABLE, found[:, None])[:, 0] + values.mean()
    return np.sqrt(((predicted - network(everywhere, seed)) ** 2).mean())


def test_the_mean_of_interpolants_is_the_mean_of_their_polynomials():
    masks = paired_masks(N, 60, np.random.default_rng(0))
    rows, target = problem(masks, network(masks))
    priors = [flat_prior(N, 2), learn_prior(rows.signs, target, rows.parities)]
    fits = [fit_interpolant(rows.signs, target, rows.parities, p) for p in priors]
    apart = [mean_coefficients([fit], TABLE) for fit in fits]
    assert np.abs(apart[0] - apart[1]).max() > 1e-3
    np.testing.assert_allclose(
        mean_coefficients(fits, TABLE), np.mean(apart, axis=0), atol=1e-12
    )


def test_further_steps_make_the_rows_likelier():
    masks = paired_masks(N, 60, np.random.default_rng(0))
    rows, target = problem(masks, network(masks))
    start = flat_prior(N, 2)
    further = learn_prior(rows.signs, target, rows.parities, start=start)
    spread = np.sqrt((target**2).mean(axis=1, keepdims=True))
    work = Workspace(rows.signs, 1, True)
    before, after = (
        loss(work, target / spread, rows.parities, prior)[0]
        for prior in (start, further)
    )
    assert after < before - 1


def test_the_best_few_are_those_that_leave_least_together():
    masks = paired_masks(N, 80, np.random.default_rng(0))
    rows, target = problem(masks, network(masks))
    good = learn_prior(rows.signs, target, rows.parities)
    fits = [
        fit_interpolant(rows.signs, target, rows.parities, prior)
        for prior in (flat_prior(N, 2), good)
    ]
    few, left = smooth._best_few(rows, target, fits)
    assert few == fits[1:]  # the flat prior would only disturb
    expected = rows.mean_square(target - fits[1].left_out)
    np.testing.assert_allclose(left, expected)


def test_rows_drawn_near_the_input_tell_nothing_of_the_prior():
    masks = mixed_masks(N, 120, np.random.default_rng(1), 0.3)
    weights = near_weights(masks)
    values = network(masks)
    rows, target = problem(masks, values, weights)
    assert 0 < (~rows.usual()).sum() < len(rows.signs) / 2
    # A jump there, like that of a model which has seen whole inputs only.
    jump = np.where((~masks).sum(axis=1) <= 1, 30.0, 0.0)
    assert not jump.reshape(-1, 2)[rows.usual()].any()
    plain, disturbed = (
        smooth._learnt(rows, one, False) for one in (target, target + rows.split(jump))
    )
    np.testing.assert_allclose(plain.prior.rates, disturbed.prior.rates, rtol=1e-6)
    assert not np.allclose(plain.dual, disturbed.dual)  # which goes through all rows


def test_every_row_is_usual_where_none_would_be():
    masks = paired_masks(N, 40, np.random.default_rng(0))
    rows = PartRows.of(masks, np.full(len(masks), 0.1))
    assert rows.usual().all()


def test_the_residual_of_folds_tells_the_error():
    stated, true = [], []
    for seed in range(6):
        masks = paired_masks(N, 120, np.random.default_rng(seed))
        values = network(masks, seed)
        rows, target = problem(masks, values)
        fit = smooth.fit_smooth(rows, target, TABLE)
        scaled = fit.gain[:, None] * fit.residual
        stated.append(np.sqrt(rows.mean_square(scaled).sum()) / values.std())
        true.append(error(rows, target, values, seed) / values.std())
    unseen = np.sqrt(1 - 120 / 2**N)  # what is interpolated has no error
    assert unseen * np.mean(stated) == pytest.approx(np.mean(true), rel=0.2)
    assert max(true) < 0.35
