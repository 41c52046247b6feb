import time

import numpy as np
import pytest

from harmonica_core import fit_surrogate
from harmonica_core.evaluate import EvaluationTimeout
from harmonica_core.masks import all_masks, are_paired


class SlowModel:
    """A function whose every mask takes a second of a clock that we move."""

    def __init__(self, monkeypatch, n_features):
        self.now = 0.0
        self.masks = []
        rng = np.random.default_rng(5)
        self.weights = rng.integers(-9, 10, n_features).astype(float)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def __call__(self, masks):
        self.now += len(masks)
        self.masks.append(masks)
        return masks @ self.weights


@pytest.mark.parametrize("n_features", [5, 12])
@pytest.mark.parametrize("batch_size", [1, 3, 1024])
def test_timed_out_fit_is_the_fit_of_a_smaller_sample(
    monkeypatch, n_features, batch_size
):
    f = SlowModel(monkeypatch, n_features)
    with pytest.warns(UserWarning, match="stopped by the timeout after"):
        g = fit_surrogate(f, n_features, timeout=25, batch_size=batch_size)
    assert g.stopped == "timeout"
    assert "(stopped: timeout)" in repr(g)
    assert 20 <= g.n_evaluations <= 26
    assert are_paired(g.evaluated.masks)
    assert g.evaluated.masks[0].all()
    assert np.array_equal(g.evaluated.values, g.evaluated.masks @ f.weights)
    assert not g.error.exact


def test_a_partial_enumeration_is_a_fair_sample(monkeypatch):
    # The first 64 of 256 masks in natural order never keep features 6 and 7.
    f = SlowModel(monkeypatch, 8)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 8, timeout=64)
    kept = g.evaluated.masks.mean(axis=0)
    assert np.allclose(kept, 0.5)  # pairs: exactly half
    pairs = np.cov(2.0 * g.evaluated.masks.T - 1)
    assert np.abs(pairs - np.diag(np.diag(pairs))).max() < 0.7


def test_enough_time_changes_nothing(monkeypatch):
    f = SlowModel(monkeypatch, 6)
    free, timed = fit_surrogate(f, 6), fit_surrogate(f, 6, timeout=1e6)
    assert timed.stopped is None
    assert "stopped" not in repr(timed)
    assert np.array_equal(timed.coef, free.coef)
    assert np.array_equal(timed.evaluated.masks, all_masks(6))
    assert np.array_equal(timed.evaluated.values, free.evaluated.values)
    f.masks.clear()
    seed = np.random.default_rng(3)
    assert fit_surrogate(f, 6, timeout=1e6, seed=seed).error.exact


def test_too_little_time_for_any_fit(monkeypatch):
    f = SlowModel(monkeypatch, 8)
    with pytest.raises(EvaluationTimeout, match="passed after") as caught:
        fit_surrogate(f, 8, timeout=3)
    assert isinstance(caught.value, TimeoutError)
    evaluated = caught.value.evaluated
    assert len(evaluated) >= 2
    f.masks.clear()
    assert fit_surrogate(f, 8, known=evaluated).error.exact
    assert sum(map(len, f.masks)) == 256 - len(evaluated)


def test_timeout_in_a_neighbourhood(monkeypatch):
    f = SlowModel(monkeypatch, 10)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 10, radius=2, ends=True, timeout=30, budget=56)
    assert g.evaluated.masks[0].all() and not g.evaluated.masks[1].any()
    assert 25 <= g.n_evaluations <= 31
    assert g.base_value == pytest.approx(0)


def test_stopped_is_saved(monkeypatch, tmp_path):
    f = SlowModel(monkeypatch, 8)
    with pytest.warns(UserWarning):
        g = fit_surrogate(f, 8, timeout=64)
    g.save(tmp_path / "g.npz")
    assert type(g).load(tmp_path / "g.npz").stopped == "timeout"
