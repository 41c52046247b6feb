"""Fits that end early: by a timeout, or in rounds at a tolerance."""

import time

import numpy as np
import pytest

from harmonica_core import Calls, fit_surrogate
from harmonica_core.design.masks import all_masks, are_paired
from harmonica_core.evaluate import EvaluationTimeout


class SlowModel:
    """A function whose every mask takes a second of a clock that we move."""

    def __init__(self, monkeypatch, n_features, function=None):
        self.now = 0.0
        self.masks = []
        rng = np.random.default_rng(5)
        self.weights = rng.integers(-9, 10, n_features).astype(float)
        self.function = function or (lambda masks: masks @ self.weights)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def __call__(self, masks):
        self.now += len(masks)
        self.masks.append(masks)
        return self.function(masks)


@pytest.mark.parametrize("n_features", [5, 12])
@pytest.mark.parametrize("batch_size", [1, 3, 1024])
def test_timed_out_fit_is_the_fit_of_a_smaller_sample(
    monkeypatch, n_features, batch_size
):
    f = SlowModel(monkeypatch, n_features)
    with pytest.warns(UserWarning, match="stopped by the timeout after"):
        calls = Calls(timeout=25, batch_size=batch_size)
        g = fit_surrogate(f, n_features, calls=calls)
    assert g.stopped == "timeout"
    assert "(stopped: timeout)" in repr(g)
    assert 20 <= g.n_evaluations <= 26
    assert g.evaluated.masks[0].all() and not g.evaluated.masks[1].any()
    assert (n_features == 12) or are_paired(
        g.evaluated.masks[: g.n_evaluations // 2 * 2]
    )
    assert np.array_equal(g.evaluated.values, g.evaluated.masks @ f.weights)
    assert not g.error.exact


def test_a_partial_enumeration_is_a_fair_sample(monkeypatch):
    # The first 64 of 256 masks in natural order never keep features 6 and 7.
    f = SlowModel(monkeypatch, 8)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 8, calls=Calls(timeout=64))
    kept = g.evaluated.masks.mean(axis=0)
    assert np.allclose(kept, 0.5)  # pairs: exactly half
    pairs = np.cov(2.0 * g.evaluated.masks.T - 1)
    assert np.abs(pairs - np.diag(np.diag(pairs))).max() < 0.7


def test_enough_time_changes_nothing(monkeypatch):
    f = SlowModel(monkeypatch, 6)
    free, timed = fit_surrogate(f, 6), fit_surrogate(f, 6, calls=Calls(timeout=1e6))
    assert timed.stopped is None
    assert "stopped" not in repr(timed)
    assert np.array_equal(timed.coef, free.coef)
    assert len(np.unique(timed.evaluated.masks, axis=0)) == 64
    assert np.array_equal(timed.evaluated.values, free.evaluated.values)
    f.masks.clear()
    seed = np.random.default_rng(3)
    assert fit_surrogate(f, 6, calls=Calls(timeout=1e6), seed=seed).error.exact


def test_too_little_time_for_any_fit(monkeypatch):
    f = SlowModel(monkeypatch, 8)
    with pytest.raises(EvaluationTimeout, match="passed after") as caught:
        fit_surrogate(f, 8, calls=Calls(timeout=3))
    assert isinstance(caught.value, TimeoutError)
    evaluated = caught.value.evaluated
    assert len(evaluated) >= 2
    f.masks.clear()
    assert fit_surrogate(f, 8, known=evaluated).error.exact
    assert sum(map(len, f.masks)) == 256 - len(evaluated)


def test_timeout_in_a_neighbourhood(monkeypatch):
    f = SlowModel(monkeypatch, 10)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 10, 56, radius=2, calls=Calls(timeout=30))
    assert g.evaluated.masks[0].all() and not g.evaluated.masks[1].any()
    assert 25 <= g.n_evaluations <= 31
    assert g.base_value == pytest.approx(0)


def test_stopped_is_saved(monkeypatch, tmp_path):
    f = SlowModel(monkeypatch, 8)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 8, calls=Calls(timeout=64))
    g.save(tmp_path / "g.npz")
    assert type(g).load(tmp_path / "g.npz").stopped == "timeout"


def network(masks):
    signs = np.where(masks, 1.0, -1.0)
    return np.tanh(signs @ np.linspace(-1, 1, masks.shape[1]) / 2)


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_rounds_end_at_the_tolerance_or_the_budget(engine):
    calls = []

    def counted(masks):
        calls.extend(mask.tobytes() for mask in masks)
        return network(masks)

    loose = fit_surrogate(counted, 14, budget=2000, engine=engine, tolerance=0.3)
    assert loose.stopped == "tolerance"
    assert loose.error.value <= 0.3
    assert loose.n_evaluations == len(calls) == len(set(calls)) < 2000
    tight = fit_surrogate(network, 14, budget=300, engine=engine, tolerance=1e-9)
    assert tight.stopped == "budget"
    assert tight.n_evaluations == 300
    whole = fit_surrogate(network, 14, budget=300, engine=engine)
    np.testing.assert_array_equal(tight.coef, whole.coef)


def test_rounds_over_all_masks_end_exactly():
    found = fit_surrogate(network, 9, budget=512, tolerance=1e-12)
    assert found.error.exact
    masks = all_masks(9)
    np.testing.assert_allclose(found(masks), network(masks), atol=1e-12)


# 60 s end within the first round of 128 masks, 300 s within the second, 384 s between
# the second and the third.
@pytest.mark.parametrize("timeout", [60, 300, 384])
def test_rounds_obey_the_timeout(monkeypatch, timeout):
    f = SlowModel(monkeypatch, 14, network)
    calls = Calls(batch_size=16, timeout=timeout)
    with pytest.warns(UserWarning, match="timeout"):
        found = fit_surrogate(f, 14, 2000, tolerance=1e-9, calls=calls)
    assert found.stopped == "timeout"
    assert timeout - 32 <= found.n_evaluations <= timeout + 16


@pytest.mark.parametrize("batch_size", [1, 16])
def test_a_round_cut_short_keeps_its_own_masks(monkeypatch, batch_size):
    # All 128 masks are in the first round, which evaluates them in another order.
    f = SlowModel(monkeypatch, 7)
    with pytest.warns(UserWarning, match="timeout"):
        calls = Calls(timeout=50, batch_size=batch_size)
        g = fit_surrogate(f, 7, tolerance=1e-9, calls=calls)
    assert g.stopped == "timeout"
    assert 32 <= g.n_evaluations <= 66
    assert np.array_equal(g.evaluated.values, g.evaluated.masks @ f.weights)
