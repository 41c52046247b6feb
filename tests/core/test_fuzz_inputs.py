"""Arguments from anywhere: a correct result, or a ValueError or TypeError of ours.

Ours means: raised by our code with words, not by an index or attribute that happened
to be missing.
"""

import numpy as np
import pytest
from core_games import function_of
from fuzzing import fuzzed, odd, odd_arrays, ours, tables
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core import (
    Calls,
    Settings,
    Surrogate,
    auto_budget,
    draw_design,
    fit_surrogate,
    fit_surrogates,
    from_attributions,
    harmonica_anchor,
    input_key,
    metrics,
)
from harmonica_core.design.masks import all_masks


@fuzzed
@given(table=tables(), degree=st.integers(1, 9), ends=st.booleans())
def test_enumerated_fits_of_any_magnitude(table, degree, ends):
    n_features, values = table
    found = ours(
        lambda: fit_surrogate(function_of(values), n_features, degree=degree, ends=ends)
    )
    exact = values.astype(float)
    if not (np.abs(exact) <= 1e300).all():
        assert found is None
        return
    assert found is not None
    masks = all_masks(n_features)
    size = np.abs(exact).max()
    atol = 1e-12 * size + 1e-320
    error = np.abs(found(masks) - exact).max()
    assert np.isfinite(found.coef).all()
    assert np.isfinite(np.asarray(found.error)).all()
    if degree >= n_features:
        assert error <= atol
    if ends:
        assert np.abs(found(masks[[0, -1]]) - exact[[0, -1]]).max() <= atol
    total = found.shapley_values().sum(axis=0)
    np.testing.assert_allclose(total, found.full_value - found.base_value, atol=atol)


@fuzzed
@given(
    table=tables(),
    budget=st.integers(2, 60),
    degree=st.none() | st.integers(1, 3),
    alpha=st.sampled_from(["auto", 0.0, 1e-3, 1e300]),
    radius=st.sampled_from([None, 1, 2]),
)
def test_sampled_fits_of_any_magnitude(table, budget, degree, alpha, radius):
    n_features, values = table
    found = ours(
        lambda: fit_surrogate(
            function_of(values),
            n_features,
            budget,
            degree,
            alpha=alpha,
            radius=radius,
        )
    )
    if found is not None:
        assert found.n_evaluations <= budget
        assert np.isfinite(found.coef).all()
        predicted = found(all_masks(n_features))
        assert np.isfinite(predicted).all()
        assert np.isfinite(found.shapley_values()).all()


@fuzzed
@given(data=st.data())
def test_odd_settings(data):
    good = {
        "n_features": 4,
        "degree": 2,
        "budget": 12,
        "alpha": "auto",
        "seed": 0,
        "engine": "auto",
        "tolerance": None,
        "prior": None,
        "terms": None,
        "radius": None,
        "ends": False,
        "known": None,
        "calls": None,
        "feature_names": None,
        "output_names": None,
    }
    names = data.draw(st.sets(st.sampled_from(sorted(good)), min_size=1, max_size=2))
    changed = {name: data.draw(odd, label=name) for name in sorted(names)}
    found = ours(
        lambda: fit_surrogate(lambda masks: masks.sum(axis=1), **(good | changed))
    )
    if found is not None:
        assert isinstance(found, Surrogate)
        assert np.isfinite(found(np.ones((1, found.n_features), dtype=bool))).all()


@fuzzed
@given(data=st.data())
def test_odd_calls(data):
    names = ["batch_size", "cache_key", "retries", "timeout", "progress"]
    some = data.draw(st.sets(st.sampled_from(names), max_size=2))
    changed = {name: data.draw(odd, label=name) for name in sorted(some)}
    found = ours(
        lambda: fit_surrogate(lambda m: m.sum(axis=1), 4, 12, calls=Calls(**changed))
    )
    assert found is None or found.n_evaluations <= 12


@fuzzed
@given(returned=odd_arrays | odd)
def test_odd_value_functions(returned):
    found = ours(lambda: fit_surrogate(lambda masks: returned, 2))
    if found is not None:
        values = np.asarray(returned, dtype=float)
        np.testing.assert_allclose(found.coef[0], values.mean(axis=0), rtol=1e-6)


@fuzzed
@given(masks=odd_arrays | odd, values=odd_arrays | odd)
def test_odd_masks_and_values(masks, values):
    ours(lambda: fit_surrogates(masks, values))


@fuzzed
@given(masks=odd_arrays | odd)
def test_odd_masks_for_a_surrogate(masks):
    surrogate = fit_surrogate(lambda masks: masks.sum(axis=1), 3)
    found = ours(lambda: surrogate(masks))
    if found is not None and not isinstance(masks, dict):
        assert found.tolist() == np.atleast_2d(masks).astype(float).sum(1).tolist()


@fuzzed
@given(
    n_features=odd,
    terms=odd | odd_arrays | st.just(((), (0,))),
    coef=odd | odd_arrays | st.just([1.0, 2.0]),
    names=st.none() | odd,
)
def test_odd_surrogates(n_features, terms, coef, names):
    found = ours(lambda: Surrogate(n_features, terms, coef, feature_names=names))
    if found is not None:
        assert found.n_features == n_features
        assert np.isfinite(found.coef).all()
        repr(found)


@fuzzed
@given(order=odd, index=odd | st.sampled_from(["SII", "FSII", "Moebius"]))
def test_odd_indices(order, index):
    surrogate = fit_surrogate(lambda masks: masks.sum(axis=1), 3)
    ours(lambda: surrogate.interactions(order, index))
    ours(lambda: surrogate.interaction_matrix(index))
    ours(lambda: surrogate.output(order))


@fuzzed
@given(values=odd_arrays | odd, base=odd | st.just(0.0), n_features=odd)
def test_odd_attributions(values, base, n_features):
    ours(lambda: from_attributions(values, base, n_features))


@fuzzed
@given(n_features=st.integers(1, 70), budget=st.integers(2, 99), radius=odd)
def test_odd_draws(n_features, budget, radius):
    design = ours(lambda: draw_design(Settings(radius=radius), n_features, budget))
    if design is not None:
        masks = design.masks
        assert masks.shape[1] == n_features
        assert len(masks) <= budget


@fuzzed
@given(array=odd_arrays | odd)
def test_odd_input_keys(array):
    key = ours(lambda: input_key(array))
    assert key is None or len(key) == 64


@fuzzed
@given(names=st.lists(st.text(), min_size=3, max_size=3))
def test_any_unicode_names(tmp_path_factory, names):
    found = fit_surrogate(lambda m: m.sum(axis=1), 3, feature_names=names)
    assert found.feature_names == tuple(names)
    assert repr(found)
    path = tmp_path_factory.getbasetemp() / "names.npz"
    found.save(path)
    assert Surrogate.load(path).feature_names == tuple(names)


TWO = Surrogate(2, ((), (0,)), np.ones((2, 2)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.spectrum_distance(None, TWO, 2),
        lambda: metrics.spectrum_distance(TWO, TWO, 2, 1.5),
        lambda: metrics.spectrum_distance(TWO, TWO, 2, tolerance=-1),
        lambda: metrics.interpretation_error(TWO, TWO, 2, p="L0", threshold="a"),
        lambda: metrics.inconsistency(TWO, None, 2),
        lambda: TWO.output("0"),
        lambda: harmonica_anchor(TWO, 2).output(1.5),
        lambda: harmonica_anchor(TWO, 2).distances_to_mean(-1),
        lambda: from_attributions([1.0, 2.0], 0.0, n_features=5),
        lambda: auto_budget(-3),
        lambda: auto_budget(10**7),
        lambda: fit_surrogate(TWO, 100, budget=10**9),
        lambda: from_attributions([1.0, 2.0], float("nan")),
        lambda: draw_design(Settings(), 30, 1),
    ],
)
def test_odd_arguments_get_a_clear_error(call):
    with pytest.raises(ValueError, match="needed"):
        call()
