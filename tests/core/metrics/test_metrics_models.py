"""Local models, insertion and deletion, and the registry."""

import math

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core import Estimate, Surrogate, basis, metrics, registry
from harmonica_core.design.masks import all_masks
from harmonica_core.metrics import paths
from harmonica_core.result.anchored import AnchoredSurrogate


def random_models(n, k, seed, n_outputs=None):
    rng = np.random.default_rng(seed)
    table = basis.terms_up_to(n, 2)
    shape = (len(table),) if n_outputs is None else (len(table), n_outputs)
    models = [Surrogate(n, table, rng.normal(size=shape)) for _ in range(k)]
    values = rng.normal(size=(1 << n, *shape[1:]))
    return values, models, rng.random((k, n)) < 0.5


@given(n=st.integers(1, 5), k=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_inconsistency_agrees_with_brute_force_and_obeys_the_trade_off(n, k, seed):
    f, models, anchors = random_models(n, k, seed)
    g = AnchoredSurrogate(anchors, models)
    log_k, error, distance = metrics.inconsistency(f, g, n)
    games = [model(all_masks(n)) for model in models]
    owners = g.nearest(all_masks(n))
    expected = reference.inconsistency(f, games, owners)
    assert log_k.value == pytest.approx(math.log(k))
    assert error.value == pytest.approx(expected[0])
    assert distance.value == pytest.approx(expected[1], abs=1e-12)
    assert error.value + distance.value >= expected[2] - 1e-9
    listed = metrics.inconsistency(f, games, n, regions=g.nearest)
    assert listed.I_total.value == pytest.approx(error.value)
    assert listed.D_total.value == pytest.approx(distance.value, abs=1e-7)


def test_one_model_is_consistent():
    f, (g,), _ = random_models(4, 1, 0)
    found = metrics.inconsistency(f, g, 4)
    assert found.log_k.value == 0 and found.D_total.value == 0
    whole = metrics.interpretation_error(f, g, 4).value
    assert found.I_total.value == pytest.approx(whole)


def test_inconsistency_per_output():
    f, models, anchors = random_models(4, 3, 1, n_outputs=2)
    whole = metrics.inconsistency(f, AnchoredSurrogate(anchors, models), 4)
    for output in range(2):
        alone = AnchoredSurrogate(anchors, [model.output(output) for model in models])
        found = metrics.inconsistency(f[:, output], alone, 4)
        assert found.I_total.value == pytest.approx(whole.I_total.value[output])
        assert found.D_total.value == pytest.approx(whole.D_total.value[output])


def test_inconsistency_refuses_models_without_regions():
    f, models, anchors = random_models(3, 2, 0)
    with pytest.raises(ValueError, match="2 models without regions"):
        metrics.inconsistency(f, models, 3)
    with pytest.raises(ValueError, match="has its own"):
        metrics.inconsistency(f, AnchoredSurrogate(anchors, models), 3, regions=len)
    with pytest.raises(ValueError, match="no models"):
        metrics.inconsistency(f, [], 3)
    with pytest.raises(ValueError, match="0 to 1, one a mask"):
        metrics.inconsistency(f, models, 3, regions=lambda m: np.full(len(m), 2))
    with pytest.raises(ValueError, match="0 to 1, one a mask"):
        metrics.inconsistency(f, models, 3, regions=lambda m: np.zeros(2, int))


# ---------------------------------------------------------------- curves
def test_curves_by_attribution_follow_the_definition():
    f, _, _ = random_models(5, 1, 3)
    scores = [0.1, -3.0, 2.0, 2.0, 0.5]
    order = [2, 3, 4, 0, 1]  # ties keep the features' order
    curves = metrics.insertion_deletion(f, None, 5, attributions=scores)
    kept = [reference.value(f, order[:k]) for k in range(6)]
    left = [reference.value(f, order[k:]) for k in range(6)]
    np.testing.assert_array_equal(curves.insertion, kept)
    np.testing.assert_array_equal(curves.deletion, left)
    assert curves.insertion_auc.value == pytest.approx(np.trapezoid(kept) / 5)
    assert curves.deletion_auc.value == pytest.approx(np.trapezoid(left) / 5)
    assert curves.insertion_auc.exact


def test_scores_of_a_surrogate_are_its_shapley_values():
    f, (g,), _ = random_models(5, 1, 4)
    own = metrics.insertion_deletion(f, g, 5)
    given_scores = metrics.insertion_deletion(
        f, None, 5, attributions=g.shapley_values()
    )
    np.testing.assert_array_equal(own.insertion, given_scores.insertion)


def test_best_subsets_of_an_exact_explanation_are_the_best_there_are():
    f, _, _ = random_models(5, 1, 5)
    curves = metrics.insertion_deletion(f, f, 5, order="subset")
    best = [reference.best_of_size(f, k) for k in range(6)]
    worst = [reference.best_of_size(f, 5 - k, largest=False) for k in range(6)]
    np.testing.assert_array_equal(curves.insertion, best)
    np.testing.assert_array_equal(curves.deletion, worst)


def test_beam_search_finds_what_enumeration_finds(monkeypatch):
    _, (g,), _ = random_models(7, 1, 6, n_outputs=2)
    exact = [paths.best_masks(g, 7, largest) for largest in (True, False)]
    monkeypatch.setattr(paths, "_MAX_ENUMERATED", 3)
    found = [paths.best_masks(g, 7, largest) for largest in (True, False)]
    for one, other in zip(exact, found, strict=True):
        assert other.shape == (2, 8, 7)
        np.testing.assert_array_equal(other.sum(axis=2), np.tile(np.arange(8), (2, 1)))
        np.testing.assert_array_equal(one, other)


def test_every_output_follows_its_own_scores():
    f, (g,), _ = random_models(4, 1, 7, n_outputs=3)
    for order in ("attribution", "subset"):
        curves = metrics.insertion_deletion(f, g, 4, order)
        for output in range(3):
            alone = metrics.insertion_deletion(f[:, output], g.output(output), 4, order)
            np.testing.assert_array_equal(curves.insertion[:, output], alone.insertion)
            np.testing.assert_array_equal(curves.deletion[:, output], alone.deletion)
            area = curves.deletion_auc.value[output]
            assert area == pytest.approx(alone.deletion_auc.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"g": None}, "has no shapley_values"),
        ({"g": None, "order": "subset"}, "got g=None"),
        ({"order": "random"}, "order='random'"),
        ({"attributions": [1.0, 2.0]}, r"needed \(3,\)"),
        ({"attributions": [1.0, 2.0, math.nan]}, "NaN"),
        ({"attributions": np.ones((3, 2))}, "2 outputs, but f returns 1"),
    ],
)
def test_curves_refuse_bad_input(options, message):
    f, (g,), _ = random_models(3, 1, 0)
    with pytest.raises(ValueError, match=message):
        metrics.insertion_deletion(**{"f": f, "g": g, "n_features": 3, **options})


# ---------------------------------------------------------------- registry
def test_another_method_and_metric_in_a_few_lines():
    @registry.methods.register("test-mean")
    def mean(value_function, n_features, *, budget, seed):
        level = value_function(all_masks(n_features)).mean()
        return lambda masks: np.full(len(masks), level)

    @registry.metrics.register("test-worst")
    def worst(f, g, n_features):
        return metrics.interpretation_error(f, g, n_features, p="inf")

    try:
        g = registry.methods["test-mean"](lambda m: m[:, 0] * 1.0, 2, budget=4, seed=0)
        found = registry.metrics["test-worst"](lambda m: m[:, 0] * 1.0, g, 2)
        assert found.value == 0.5 and isinstance(found, Estimate)
        assert "test-mean" in registry.methods and "test-worst" in registry.metrics
    finally:
        registry.methods.remove("test-mean")
        registry.metrics.remove("test-worst")
    assert "test-mean" not in registry.methods


def test_registered_metrics_take_f_g_and_the_number_of_features():
    f, (g,), _ = random_models(4, 1, 8)
    assert {"interpretation_error", "truthful_gap"} <= set(registry.metrics)
    for name in registry.metrics:
        assert registry.metrics[name](f, g, 4).exact


def test_registry_refuses_what_would_surprise():
    names = registry.Registry("method")
    names.register("one")(len)
    with pytest.raises(ValueError, match="already"):
        names.register("one")
    assert names.register("one", replace=True)(max) is max
    assert dict(names) == {"one": max} and len(names) == 1
    with pytest.raises(KeyError, match="registered: one"):
        names["two"]
    with pytest.raises(KeyError, match="no method"):
        names.remove("two")
    with pytest.raises(ValueError, match="non-empty"):
        names.register("")
    with pytest.raises(TypeError, match="is int; needed a callable"):
        names.register("three")(3)


def test_spectrum_distance_of_every_output():
    def two(masks):
        return np.stack([1.0 * masks[:, 0], 5.0 * masks[:, 1]], axis=1)

    distance = metrics.spectrum_distance(two, lambda masks: 0 * two(masks), 2, 3)
    np.testing.assert_allclose(distance.value, [0.5**0.5, 5 * 0.5**0.5])
