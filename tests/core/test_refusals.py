"""What a fit refuses, each with what was needed: one table, and no call is made."""

import numpy as np
import pytest
from core_games import f1, random_prior

from harmonica_core import (
    Calls,
    Settings,
    draw_design,
    fit_functions,
    fit_surrogate,
    fit_surrogates,
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
)
from harmonica_core.design.masks import all_masks

NAN, INF = float("nan"), float("inf")

# arguments of fit_surrogate: (what is changed, part of the message)
ARGUMENTS = [
    ({"n_features": 0}, "at least 1 feature"),
    ({"n_features": -2}, "at least 1 feature"),
    ({"n_features": 2.5}, "whole number"),
    ({"n_features": True}, "whole number"),
    ({"n_features": 10**7}, "at most 1000000"),
    ({"budget": 1}, "budget=1 is too small; needed at least 2"),
    ({"budget": 0}, "too small"),
    ({"budget": -5}, "too small"),
    ({"budget": 2.5}, "whole number of evaluations"),
    ({"budget": "many"}, "whole number of evaluations"),
    ({"budget": None}, "whole number of evaluations"),
    ({"n_features": 60, "budget": 20_001}, 'at most 20000, or engine="lasso"'),
    ({"n_features": 100, "budget": 10**9, "engine": "lasso"}, "more memory than 4 GB"),
    ({"degree": 0}, "degree=0; needed at least 1"),
    ({"degree": -1}, "needed at least 1"),
    ({"degree": "3"}, "degree='3'; needed a whole number"),
    ({"degree": 1.5}, "whole number"),
    ({"engine": "ridge"}, "engine='ridge'; needed one of auto, bayes, lasso"),
    ({"engine": None}, "needed one of auto"),
    ({"engine": "bayes", "alpha": 0.1}, 'leave them out or use engine="lasso"'),
    ({"engine": "bayes", "terms": [(0,)]}, 'leave them out or use engine="lasso"'),
    ({"alpha": -1}, "alpha=-1; needed a finite number >= 0"),
    ({"alpha": NAN}, "finite number >= 0"),
    ({"alpha": INF}, "finite number >= 0"),
    ({"alpha": "big"}, "alpha='big'; needed a number >= 0"),
    ({"alpha": True}, "needed a number >= 0"),
    ({"terms": [(0, 99)]}, "outside 0 to 11"),
    ({"terms": [(0, 0)]}, "names a feature twice"),
    ({"terms": [3]}, "a single feature is"),
    ({"terms": "all"}, "terms='all'; needed None or terms"),
    ({"terms": 5}, "terms=5; needed None or terms"),
    ({"radius": 0}, "radius=0; needed a whole number >= 1"),
    ({"radius": 1.5}, "whole number >= 1"),
    ({"radius": True}, "whole number >= 1"),
    ({"tolerance": 0}, "tolerance=0; needed a finite number > 0"),
    ({"tolerance": -1}, "finite number > 0"),
    ({"tolerance": NAN}, "finite number > 0"),
    ({"tolerance": "a"}, "finite number > 0"),
    ({"tolerance": True}, "finite number > 0"),
    ({"feature_names": ["a"]}, "got 1 feature_names; needed 12"),
    ({"prior": False}, "prior=False; needed that of another fit"),
    ({"prior": random_prior(5)}, "the prior is of 5 features; needed 12"),
    ({"prior": random_prior(12), "degree": 2}, "learnt with degree=2"),
    ({"prior": random_prior(12, 3), "degree": 2}, "terms of up to 3 features"),
    ({"calls": 8}, "calls=8; needed Calls"),
]

RENAMED = [
    ({"batch_size": 8}, r"batch_size= is now calls=Calls\(batch_size=...\)"),
    ({"cache": "file"}, r"calls=Calls\(cache=...\)"),
    ({"cache_key": "model"}, r"calls=Calls\(cache_key=...\)"),
    ({"retries": 2}, r"calls=Calls\(retries=...\)"),
    ({"rate_limit": 2}, r"calls=Calls\(rate_limit=...\)"),
    ({"timeout": 2}, r"calls=Calls\(timeout=...\)"),
    ({"progress": True}, r"calls=Calls\(progress=...\)"),
    ({"near": 0.1}, "near= is gone"),
    ({"solver": "ridge"}, "solver= is gone"),
    ({"memory": 1 << 20}, "memory= is gone"),
    ({"bogus": 1}, "unexpected argument 'bogus'"),
    ({"value_function": 3}, "needed a callable"),
    ({"value_function": np.zeros(3)}, "needed a callable"),
]

CALLS = [
    ({"retries": -1}, "retries"),
    ({"retries": 1.5}, "retries"),
    ({"rate_limit": 0}, "rate_limit"),
    ({"rate_limit": NAN}, "rate_limit"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": "soon"}, "timeout"),
]


class Untouched:
    """A value function that must not be called."""

    def __call__(self, masks):
        raise AssertionError(f"called with {len(masks)} masks")


def show(row):
    return ", ".join(f"{k}={v!r}" for k, v in row.items())[:60] if row else ""


def table(rows):
    return pytest.mark.parametrize(
        "change, message", rows, ids=[show(change) for change, _ in rows]
    )


@table(ARGUMENTS)
def test_impossible_values_cost_no_call(change, message):
    good = {"value_function": Untouched(), "n_features": 12, "budget": 50}
    with pytest.raises(ValueError, match=message):
        fit_surrogate(**(good | change))


@table(RENAMED)
def test_renamed_and_unknown_arguments_cost_no_call(change, message):
    good = {"value_function": Untouched(), "n_features": 12, "budget": 50}
    with pytest.raises(TypeError, match=message):
        fit_surrogate(**(good | change))


@table(CALLS)
def test_impossible_calls_are_refused_when_they_are_made(change, message):
    with pytest.raises(ValueError, match=message):
        Calls(**change)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, True, "8"])
def test_impossible_batch_sizes_cost_no_call(batch_size):
    with pytest.raises(ValueError, match="batch_size"):
        fit_surrogate(Untouched(), 12, 50, calls=Calls(batch_size=batch_size))


def test_a_cache_without_a_key_costs_no_call(tmp_path):
    with pytest.raises(ValueError, match="cache_key"):
        fit_surrogate(Untouched(), 12, 50, calls=Calls(cache=tmp_path / "file"))


FAMILY = [
    harmonica,
    harmonica_local,
    harmonica_anchor,
    harmonica_anchor_constrained,
    low_degree,
]
OF_ALL = [
    ({"budget": 1}, "budget=1 is too small"),
    ({"degree": 0}, "degree=0"),
    ({"n_features": 0}, "n_features=0"),
    ({"feature_names": ["a"]}, "needed 12"),
    ({"tolerance": -1}, "tolerance=-1"),
]


@pytest.mark.parametrize("fit", FAMILY, ids=lambda fit: fit.__name__)
@table(OF_ALL)
def test_the_family_refuses_the_same(fit, change, message):
    good = {"value_function": Untouched(), "n_features": 12, "budget": 50}
    with pytest.raises(ValueError, match=message):
        fit(**(good | change))


OF_ONE = [
    (harmonica_anchor, {"anchors": 0}, "anchors=0; needed at least 1"),
    (harmonica_anchor, {"anchors": 1.5}, "whole number"),
    (harmonica_anchor, {"anchors": True}, "whole number"),
    (harmonica_anchor, {"alpha": -1.0}, "alpha=-1"),
    (harmonica_anchor_constrained, {"anchors": "3"}, "whole number"),
    (harmonica_anchor_constrained, {"consistency": -1.0}, "consistency=-1"),
    (harmonica_anchor_constrained, {"consistency": NAN}, "consistency=nan"),
    (harmonica_anchor_constrained, {"consistency": "much"}, "consistency='much'"),
    (harmonica_anchor_constrained, {"consistency": True}, "consistency=True"),
    (harmonica_local, {"radius": 0}, "radius=0"),
    (harmonica_local, {"radius": -3}, "radius=-3"),
    (low_degree, {"alpha": 0.1}, "needed none of them for Low-degree"),
    (low_degree, {"terms": [(0,)]}, "needed none of them for Low-degree"),
]


@pytest.mark.parametrize("fit, change, message", OF_ONE)
def test_members_of_the_family_refuse_their_own(fit, change, message):
    with pytest.raises(ValueError, match=message):
        fit(Untouched(), 12, budget=50, **change)


@pytest.mark.parametrize("fit", FAMILY, ids=lambda fit: fit.__name__)
def test_the_family_names_unknown_arguments(fit):
    with pytest.raises(TypeError, match="bogus"):
        fit(Untouched(), 12, bogus=1)
    with pytest.raises(TypeError, match="needed a callable"):
        fit(3, 12)


VALUES = [
    (lambda m: np.where(m[:, 0], 1.0, np.nan), ValueError, "NaN or infinity for"),
    (lambda m: np.full(len(m), INF), ValueError, "first for the mask that keeps"),
    (lambda m: np.full(len(m), 1e301), ValueError, "1e300|1e\\+300"),
]


@pytest.mark.parametrize("f, error, message", VALUES)
@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_bad_values_are_refused(f, error, message, engine):
    with pytest.raises(error, match=message):
        fit_surrogate(f, 12, budget=50, engine=engine)


MASKS = draw_design(Settings(), 12, 40).masks
MANY = [
    ((MASKS, np.zeros(40)), {}, "shape"),
    ((MASKS, np.zeros((39, 2))), {}, "needed \\(40, n_functions\\)"),
    ((MASKS, np.zeros((40, 0))), {}, "n_functions"),
    ((MASKS, np.full((40, 1), NAN)), {}, "NaN"),
    ((MASKS * 2 - 1, np.zeros((40, 1))), {}, "signs > 0|dtype"),
    ((MASKS, np.zeros((40, 1))), {"terms": 5}, "terms=5"),
    ((MASKS, np.zeros((40, 1))), {"degree": 0}, "degree=0"),
    ((MASKS, np.zeros((40, 1))), {"prior": random_prior(5)}, "prior is of 5 features"),
    ((MASKS, np.zeros((40, 1))), {"engine": "old"}, "engine='old'"),
    ((MASKS[2:], MASKS[2:, :1]), {"engine": "lasso", "ends": True}, "all kept and all"),
    (
        (np.concatenate([MASKS, MASKS[:1]]), np.zeros((41, 1))),
        {},
        "needed distinct ones",
    ),
]


@pytest.mark.parametrize("given, options, message", MANY)
def test_fits_to_given_masks_refuse(given, options, message):
    with pytest.raises(ValueError, match=message):
        fit_surrogates(*given, **options)


def test_settings_refuse_what_does_not_exist():
    with pytest.raises(ValueError, match="method='lime'; needed one of harmonica"):
        Settings("lime")
    with pytest.raises(ValueError, match="shape"):
        fit_functions(draw_design(Settings(), 3), np.zeros(8), Settings())
    with pytest.raises(TypeError):
        fit_surrogates(all_masks(3), np.zeros((8, 2)), memory=1 << 20)


def test_what_is_right_is_not_refused():
    """The table's good arguments, so that its refusals are those of the change."""
    assert fit_surrogate(f1, 12, 50).n_evaluations == 50
    for fit in FAMILY:
        assert fit(f1, 12, budget=50).n_evaluations <= 50
