"""Metrics of Captum explanations against the core's oracles."""

import numpy as np
import reference
import torch
from captum.attr import FeatureAblation, IntegratedGradients
from captum_models import Counting, close, game_of, mlp
from pytest import approx, mark, raises

from captum_harmonica import Harmonica, HarmonicaAnchor, metrics

MODEL = mlp(5)
X = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))


def games(model=MODEL, x=X, ids=None, n=5):
    ids = torch.arange(n)[None] if ids is None else ids
    return [game_of(model, one[None], torch.zeros(1), ids, n) for one in x]


def additive(game, scores):
    n = reference.n_features_of(game)
    terms = {(i,): float(scores[i]) for i in range(n)}
    return reference.game_from_interactions(terms, game[0], n)


@mark.parametrize("radius", [None, 1, 2, 5])
@mark.parametrize("p", [1, 2])
def test_interpretation_error_of_any_method(radius, p):
    scores = IntegratedGradients(MODEL).attribute(X, target=0)
    got = metrics.interpretation_error(
        MODEL, X, scores, target=0, radius=radius, p=p, perturbations_per_eval=7
    )
    expected = [
        reference.interpretation_error(game, additive(game, one), p=p, radius=radius)
        for game, one in zip(games(), scores, strict=True)
    ]
    assert got.shape == (3,)
    assert got.numpy() == approx(np.array(expected), abs=1e-5)


def test_truthful_gap_of_any_method():
    scores = FeatureAblation(MODEL).attribute(X, target=0)
    terms = [term for term in reference.subsets(range(5), largest=2)]
    expected = [
        reference.truthful_gap(game, additive(game, one), terms)
        for game, one in zip(games(), scores, strict=True)
    ]
    for choice in ({"degree": 2}, {"terms": terms}):
        got = metrics.truthful_gap(MODEL, X, scores, target=0, **choice)
        assert got.numpy() == approx(np.array(expected), abs=1e-5)


def test_surrogates_are_exact_where_all_masks_were_seen():
    found = Harmonica(MODEL).explain(X, target=0)
    value, error = metrics.interpretation_error(
        MODEL, X, found, target=0, return_standard_error=True
    )
    assert value.max() < 1e-5 and error.tolist() == [0, 0, 0]
    assert metrics.truthful_gap(MODEL, X, found, target=0).max() < 1e-8


def test_grouped_features_hold_whole_values_or_shares():
    mask = torch.tensor([[0, 0, 1, 2, 2]])
    whole = Harmonica(MODEL).attribute(X, target=0, feature_mask=mask)
    shares = IntegratedGradients(MODEL).attribute(X, target=0)
    added = torch.zeros(3, 3).index_add(1, mask[0], shares)
    for given, flat in (
        (
            whole,
            Harmonica(MODEL).attribute(
                X, target=0, feature_mask=mask, return_input_shape=False
            ),
        ),
        (shares, added),
    ):
        a, b = (
            metrics.interpretation_error(MODEL, X, one, feature_mask=mask, target=0)
            for one in (given, flat)
        )
        close(a, b)
    forced = metrics.interpretation_error(
        MODEL, X, whole, feature_mask=mask, target=0, reduction="sum"
    )
    assert not torch.allclose(forced, a, atol=1e-3)


def test_several_outputs_and_tuples():
    model = mlp(5, n_outputs=2)
    split = (X[:, :2], X[:, 2:])

    def forward(a, b):
        return model(torch.cat([a, b], 1))

    scores = FeatureAblation(forward).attribute(split)
    got = metrics.interpretation_error(forward, split, scores)
    assert got.shape == (3, 2)
    for k in range(2):
        alone = metrics.interpretation_error(
            forward, split, tuple(one[k::2] for one in scores), target=k
        )
        close(got[:, k], alone)


def test_examples_with_different_features():
    mask = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 2, 3, 4], [7, 7, 7, 8, 8]])
    method = Harmonica(MODEL, degree=1)
    found = method.explain(X, target=0, feature_mask=mask)
    got = metrics.interpretation_error(
        MODEL, X, found, feature_mask=mask, target=0, radius=1
    )
    gap = metrics.truthful_gap(
        MODEL, X, found, feature_mask=mask, target=0, terms=[(0,), (0, 1), (7, 8)]
    )
    for row in range(3):
        one = slice(row, row + 1)
        arguments = {"feature_mask": mask[one], "target": 0}
        alone = method.explain(X[one], **arguments)
        expected = metrics.interpretation_error(
            MODEL, X[one], alone, radius=1, **arguments
        )
        close(got[one], expected)
    assert gap[1] > 0


def test_one_result_for_the_whole_batch():
    def total(x):
        return MODEL(x).sum()

    scores = Harmonica(total).attribute(X)
    got = metrics.interpretation_error(total, X, scores, perturbations_per_eval=1)
    assert got.shape == (1,)


def test_inconsistency_of_one_and_of_several_models():
    found = Harmonica(MODEL, degree=1).explain(X, target=0)
    one = metrics.inconsistency(MODEL, X, found, target=0)
    error = metrics.interpretation_error(MODEL, X, found, target=0)
    assert one.log_k.tolist() == [0, 0, 0] and one.D_total.tolist() == [0, 0, 0]
    torch.testing.assert_close(one.I_total, error)
    mask = torch.tensor([[0, 1, 2, 3, 5]])  # feature 4 does not exist
    for feature_mask in (None, mask):
        anchored = HarmonicaAnchor(MODEL, degree=1, anchors=3, seed=0).explain(
            X, target=0, feature_mask=feature_mask
        )
        three = metrics.inconsistency(
            MODEL, X, anchored, target=0, feature_mask=feature_mask
        )
        assert three.log_k.numpy() == approx(np.log(3))
        assert (three.D_total > 0).all()


def test_every_mask_is_evaluated_once_for_the_whole_batch():
    model = Counting(MODEL)
    found = Harmonica(MODEL).explain(X, target=0)
    metrics.interpretation_error(model, X, found, target=0, perturbations_per_eval=1000)
    assert sum(model.rows) <= (32 + 1) * 3


def test_sampled_errors_state_their_standard_error():
    model = mlp(12)
    x = torch.randn(1, 12, generator=torch.Generator().manual_seed(1))
    scores = IntegratedGradients(model).attribute(x, target=0)
    exact = metrics.interpretation_error(model, x, scores, target=0)
    value, spread = metrics.interpretation_error(
        model, x, scores, target=0, max_evaluations=300, return_standard_error=True
    )
    assert spread > 0
    assert abs(value - exact) < 5 * spread


def test_wrong_explanations():
    with raises(ValueError, match="attributions have shapes"):
        metrics.interpretation_error(MODEL, X, torch.zeros(3, 4), target=0)
    found = Harmonica(MODEL).explain(X, target=0)
    with raises(ValueError, match="2 surrogates for 3"):
        metrics.interpretation_error(MODEL, X, found[:2], target=0)


def test_additive_surrogates_follow_the_feature_mask():
    def forward(x):
        return x.flatten(1).sum(1)

    x = torch.ones(2, 1, 2, 2)
    ids = torch.tensor([[0, 0], [1, 1]])[None, None]
    scores = FeatureAblation(forward).attribute(x, feature_mask=ids)
    found = metrics.additive_surrogates(forward, x, scores, feature_mask=ids)
    assert [g([[True, False]])[0] for g in found] == [2.0, 2.0]


def test_wrong_keywords():
    model = Counting(MODEL)
    scores = torch.zeros(3, 5)
    for metric in (
        metrics.interpretation_error,
        metrics.truthful_gap,
        metrics.inconsistency,
        metrics.additive_surrogates,
    ):
        with raises(TypeError, match=r"bogus.*max_evaluations.*reduction"):
            metric(model, X, scores, target=0, bogus=1)
        with raises(ValueError, match="reduction='foo'"):
            metric(model, X, scores, target=0, reduction="foo")
    assert model.rows == []
