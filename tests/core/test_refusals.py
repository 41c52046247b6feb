"""What a fit refuses: arguments, settings and values, each with what was needed."""

import numpy as np
import pytest
from core_games import f1

from harmonica_core import draw_masks, fit_surrogate


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(value_function=3), TypeError, "needed a callable"),
        (dict(n_features=0), ValueError, "at least 1 feature"),
        (dict(n_features=-2), ValueError, "at least 1 feature"),
        (dict(n_features=2.5), ValueError, "whole number"),
        (dict(budget=1), ValueError, "too small"),
        (dict(budget="many"), ValueError, "whole number"),
        (dict(degree=0), ValueError, "at least 1"),
        (dict(degree="3"), ValueError, "whole number"),
        (dict(alpha=-1), ValueError, "finite number >= 0"),
        (dict(alpha="big"), ValueError, "number >= 0"),
        (dict(terms=[(0, 99)]), ValueError, "outside 0 to 11"),
        (dict(terms="all"), ValueError, 'needed "auto"'),
        (dict(radius=0), ValueError, "needed 1 <= radius"),
        (dict(batch_size=0), ValueError, "at least 1"),
        (dict(feature_names=["a"]), ValueError, "needed 12"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    good = dict(value_function=f1, n_features=12, budget=50)
    with pytest.raises(error, match=message):
        fit_surrogate(**{**good, **change})


@pytest.mark.parametrize(
    "f, error, message",
    [
        (lambda m: np.where(m[:, 0], 1.0, np.nan), ValueError, "infinity for 25 of 50"),
        (
            lambda m: np.full(len(m), np.inf),
            ValueError,
            "first for the mask that keeps",
        ),
        (lambda m: np.zeros(len(m) + 1), ValueError, "one row per mask"),
        (lambda m: np.zeros((len(m), 0)), ValueError, "at least one column"),
        (lambda m: np.zeros((len(m), 2, 2)), ValueError, "one row per mask"),
        (lambda m: np.zeros(len(m), complex), TypeError, "real numbers"),
        (lambda m: np.array(["a"] * len(m)), TypeError, "real numbers"),
        (lambda m: np.full(len(m), None), TypeError, "real numbers"),
    ],
)
def test_bad_values_are_refused(f, error, message):
    with pytest.raises(error, match=message):
        fit_surrogate(f, 12, budget=50)


@pytest.mark.parametrize(
    "wrong",
    [
        {"degree": 0},
        {"alpha": -1},
        {"terms": [(0, 99)]},
        {"terms": "foo"},
        {"terms": 5},
        {"feature_names": ["a"]},
    ],
)
def test_wrong_settings_cost_no_evaluation(wrong):
    calls = []

    def function(masks):
        calls.append(len(masks))
        return f1(masks)

    with pytest.raises(ValueError, match="needed|outside"):
        fit_surrogate(function, 40, **wrong)
    assert not calls


@pytest.mark.parametrize("budget", [1, -5, 2.5, "many"])
def test_impossible_budgets_of_draws(budget):
    with pytest.raises(ValueError, match="budget="):
        draw_masks(20, budget, np.random.default_rng(0))
