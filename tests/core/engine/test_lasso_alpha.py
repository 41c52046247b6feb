"""The chosen strength against scikit-learn's, and the honesty of held-out values."""

import numpy as np
import pytest
from core_games import draw_pairs, predict, random_network
from sklearn.linear_model import LassoCV

from harmonica_core import basis
from harmonica_core.engine.lasso import alpha
from harmonica_core.engine.lasso import strengths as path
from harmonica_core.engine.lasso.held_out import Part
from harmonica_core.engine.lasso.solve import Split, fit_sparse


def game(seed, n_features=10, decay=0.45):
    """A dense function whose spectrum decays with the size of the terms."""
    rng = np.random.default_rng(seed)
    table = basis.terms_up_to(n_features, 6)
    sizes = basis.term_sizes(table)
    coef = rng.laplace(size=len(table)) * decay**sizes
    return lambda masks: basis.predict(masks, table, coef[:, None])


@pytest.mark.parametrize("n_masks", [200, 600])
def test_error_is_that_of_a_fine_cross_validated_path(n_masks):
    table = basis.terms_up_to(10, 3)[1:]
    ratios = []
    for seed in range(6):
        function, rng = game(seed), np.random.default_rng(seed)
        masks, fresh = draw_pairs(10, n_masks, rng), draw_pairs(10, 2000, rng)
        fit = fit_sparse(masks, function(masks), 3)
        peer = LassoCV(cv=5, eps=1e-4, alphas=60, max_iter=20_000)
        peer.fit(basis.design(masks, table), function(masks)[:, 0])
        truth = function(fresh)[:, 0]
        theirs = np.std(truth - peer.predict(basis.design(fresh, table)))
        ratios.append(np.std(truth - predict(fit, fresh)[:, 0]) / theirs)
    # Single ratios scatter by 3% at 200 masks, so the mean of six by more than 1%.
    assert np.exp(np.mean(np.log(ratios))) < 1.04


@pytest.mark.parametrize("seed", range(3))
def test_held_out_error_is_the_error_on_fresh_masks(seed):
    function = game(seed)
    rng = np.random.default_rng(seed)
    masks, fresh = draw_pairs(10, 600, rng), draw_pairs(10, 4000, rng)
    fit = fit_sparse(masks, function(masks), 3)
    claimed = np.sqrt(np.mean((function(masks) - fit.held_out) ** 2))
    true = np.sqrt(np.mean((function(fresh) - predict(fit, fresh)) ** 2))
    assert 0.9 < claimed / true < 1.25


def test_held_out_predictions_have_not_seen_their_own_pair():
    rng = np.random.default_rng(0)
    masks = draw_pairs(8, 100, rng)
    values = random_network(8, rng)(masks)
    changed = values.copy()
    changed[20:22] += [[0.3], [-0.4]]
    before = fit_sparse(masks, values, 2, 0.01).held_out
    after = fit_sparse(masks, changed, 2, 0.01).held_out
    np.testing.assert_allclose(after[20:22], before[20:22], atol=1e-3)
    others = np.delete(np.abs(after - before), [20, 21])
    assert np.median(others) > 1e-3


def test_closed_form_agrees_with_folds(monkeypatch):
    rng = np.random.default_rng(0)
    masks, fresh = draw_pairs(18, 700, rng), draw_pairs(18, 4000, rng)
    function = random_network(18, rng, 5)
    closed = fit_sparse(masks, function(masks), 2)
    monkeypatch.setattr(alpha, "closed_form_holds", lambda parts: False)
    folds = fit_sparse(masks, function(masks), 2)
    errors = [
        np.sqrt(np.mean((function(fresh) - predict(fit, fresh)) ** 2, axis=0))
        for fit in (closed, folds)
    ]
    claims = [
        np.sqrt(np.mean((function(masks) - fit.held_out) ** 2, axis=0))
        for fit in (closed, folds)
    ]
    assert not np.array_equal(closed.held_out, folds.held_out)
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.03)
    np.testing.assert_allclose(claims[0], claims[1], rtol=0.06)


@pytest.mark.parametrize("kept", [0.5, 0.8])
def test_few_masks_near_or_far_are_not_overfitted(kept):
    table, claims, ratios = basis.terms_up_to(10, 3)[1:], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        masks, fresh = rng.random((300, 10)) < kept, rng.random((2000, 10)) < kept
        function = random_network(10, rng)
        fit = fit_sparse(masks, function(masks), 3)
        peer = LassoCV(cv=5, eps=1e-4, alphas=60, max_iter=50_000)
        peer.fit(basis.design(masks, table), function(masks)[:, 0])
        truth = function(fresh)[:, 0]
        true = np.std(truth - predict(fit, fresh)[:, 0])
        ratios.append(true / np.std(truth - peer.predict(basis.design(fresh, table))))
        claims.append(np.std(function(masks) - fit.held_out) / true)
    assert np.exp(np.mean(np.log(ratios))) < 1.05
    assert np.exp(np.mean(np.log(claims))) > 0.85


@pytest.mark.parametrize(
    ("n_masks", "kept", "weighted", "holds"),
    [
        (400, 0.5, False, True),
        (98, 0.5, False, False),
        (400, 0.8, False, False),
        (400, 0.5, True, False),
    ],
)
def test_closed_form_asks_for_uniform_masks_and_many_rows(
    n_masks, kept, weighted, holds
):
    rng = np.random.default_rng(0)
    masks = rng.random((n_masks, 10)) < kept
    weights = rng.uniform(0.5, 2, n_masks) if weighted else None
    split = Split.of(masks, basis.terms_up_to(10, 2)[1:], weights)
    parts = [Part(rows, dense=True) for rows in split.rows(np.zeros((n_masks, 1)))]
    assert alpha.closed_form_holds(parts) == holds
    assert not alpha.closed_form_holds(
        [Part(rows, dense=False) for rows in split.rows(np.zeros((n_masks, 1)))]
    )


def test_complementary_masks_share_a_fold():
    masks = draw_pairs(6, 60, np.random.default_rng(0))
    rows = Split.of(masks, basis.terms_up_to(6, 2)[1:], None).rows(np.zeros((60, 1)))
    assert len(rows) == 2
    part = Part(rows[0], dense=True)
    assert sorted(np.concatenate(part.folds)) == list(range(30))
    assert {len(fold) for fold in part.folds} == {6}


def test_downhill_stops_between_two_worse_neighbours():
    errors = np.full((8, 3), np.inf)
    deepest = np.array([7, 7, 4])
    errors[4] = 1.0
    assert alpha._next_position(errors, deepest).tolist() == [3, 3, 3]
    errors[3] = [2.0, 0.5, 2.0]
    assert alpha._next_position(errors, deepest).tolist() == [5, 2, 0]
    errors[5] = 3.0
    assert alpha._next_position(errors, deepest).tolist() == [0, 2, 0]


def test_score_charges_for_active_terms():
    shares = np.array([0.0, 0.4, 0.79, 0.8, 1.2])
    slack = path.slack(shares)
    np.testing.assert_allclose(slack[:2], [1.0, 0.6 * 0.5])
    assert (np.diff(slack) <= 0).all()
    assert slack[-1] > 0


def walked(*scores, rise=2.0):
    """A path of one target for each column, and the steps after which it ended."""
    columns = np.array(scores, dtype=float)
    found = path.Path.start(columns[0])
    live, ended = np.arange(columns.shape[1]), np.full(columns.shape[1], -1)
    for visit, score in enumerate(columns[1:], start=1):
        found.record(2 * visit, score[live], live, rise)
        going = found.going(live)
        ended[np.setdiff1d(live, going)] = 2 * visit
        live = going
    return found, ended.tolist()


def test_the_best_strength_lies_between_the_visited_ones():
    at = np.arange(0, 14, 2)[:, None]
    best = np.array([6.0, 6.5, 5.0, 4.3, 20.0])
    found, _ = walked(*(3 + (at - best) ** 2))
    position, score = found.between()
    # To half a step; beyond the end of the path there is nothing to go by.
    assert position.tolist() == [6.0, 6.5, 5.0, 4.5, 12.0]
    np.testing.assert_allclose(score[:4], 3.0)
    assert score[4] == found.score[4]


def test_a_path_ends_after_two_scores_without_improvement_or_a_clear_rise():
    scores = [9, 9, 9], [5, 5, 5], [5.1, 5.1, 4], [5.2, 3, 4.1], [1, 1, 1]
    found, ended = walked(*scores)
    assert ended == [6, -1, -1]
    assert found.position.tolist() == [2, 8, 8]
    assert walked(*scores, rise=1.005)[1] == [4, 4, 6]
