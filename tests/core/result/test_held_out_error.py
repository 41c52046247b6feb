import numpy as np
import pytest

from harmonica_core.design.masks import all_masks, paired_masks
from harmonica_core.result import held_out_error as error
from harmonica_core.result.held_out_error import stated_error


def test_the_error_of_all_masks_is_exact():
    masks = all_masks(5)
    rng = np.random.default_rng(0)
    values, fitted = rng.normal(size=(2, 32, 3))
    value, se = stated_error(masks, values, fitted, held_out=np.zeros((32, 3)))
    np.testing.assert_allclose(value, np.sqrt(((values - fitted) ** 2).mean(axis=0)))
    np.testing.assert_array_equal(se, 0)


def test_seen_masks_count_with_what_is_known_of_them():
    masks = paired_masks(6, 32, np.random.default_rng(0))  # half of the cube
    values = np.ones((32, 1))
    value, _ = stated_error(masks, values, fitted=values, held_out=values - 2)
    assert value[0] == pytest.approx(np.sqrt(0.5 * 0 + 0.5 * 4))
    value, _ = stated_error(masks, values, values, values - 2, seen=0.25)
    assert value[0] == pytest.approx(np.sqrt(0.75 * 4))


def test_the_standard_error_is_that_of_repeated_draws(monkeypatch):
    monkeypatch.setattr(error, "_LEAST_DOUBT", 0.0)
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(300):
        masks = rng.random((400, 40)) < 0.5
        residual = rng.normal(size=(400, 1))
        value, se = stated_error(masks, residual, residual, np.zeros((400, 1)))
        values.append(value[0])
        errors.append(se[0])
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.15)
    assert np.mean(values) == pytest.approx(1.0, abs=0.01)


def test_a_pair_is_one_draw():
    masks = paired_masks(40, 200, np.random.default_rng(0))
    residual = np.repeat(np.random.default_rng(1).normal(size=(100, 1)), 2, axis=0)
    zero = np.zeros_like(residual)
    _, paired = stated_error(masks, residual, residual, zero)
    _, single = stated_error(masks[::2], residual[::2], residual[::2], zero[::2])
    assert paired[0] == pytest.approx(single[0])


def test_weights_lead_back_to_the_uniform_measure():
    rng = np.random.default_rng(0)
    masks = rng.random((20000, 30)) < 0.5
    masks[:, 0] = rng.random(20000) < 0.9  # one feature is kept too often
    residual = np.where(masks[:, :1], 1.0, 3.0)
    weights = np.where(masks[:, 0], 0.5 / 0.9, 0.5 / 0.1)
    value, se = stated_error(masks, residual, residual, residual * 0, weights)
    assert abs(value[0] - np.sqrt(5)) < 0.05 < se[0]


def test_doubt_adds_to_the_standard_error(monkeypatch):
    rng = np.random.default_rng(0)
    masks = rng.random((100, 40)) < 0.5
    residual = rng.normal(size=(100, 2))
    zero = np.zeros_like(residual)
    doubt = np.array([0.0, 0.3])
    value, both = stated_error(masks, residual, residual, zero, doubt=doubt)
    same, least = stated_error(masks, residual, residual, zero)
    monkeypatch.setattr(error, "_LEAST_DOUBT", 0.0)
    _, sampling = stated_error(masks, residual, residual, zero)
    np.testing.assert_array_equal(value, same)
    np.testing.assert_allclose(both[1], np.hypot(sampling[1], 0.3))
    np.testing.assert_allclose(both[0], least[0])
    np.testing.assert_allclose(least, np.hypot(sampling, (1 - 0.8**0.5) / 2 * value))


def test_a_perfect_fit_has_no_error():
    masks = paired_masks(8, 40, np.random.default_rng(0))
    values = np.full((40, 1), 7.0)
    value, se = stated_error(masks, values, values, values)
    assert value[0] == se[0] == 0


def test_rounding_is_covered_by_the_standard_error():
    masks = paired_masks(30, 40, np.random.default_rng(0))
    values = np.full((40, 1), 1e6)
    value, se = stated_error(masks, values, values, values + 1e-9)
    assert 0 < value[0] <= 1e-8 and se[0] == value[0]
