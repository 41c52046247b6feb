"""Whatever was fitted, at any magnitude: every reading of it is finite or an error.

The family of fits, their indices and files, and the metrics, on functions from 1e-310
to 1e300; scale-free results must also be the same at every scale.
"""

import numpy as np
from core_games import function_of
from fuzzing import fuzzed, odd, ours, tables
from hypothesis import assume, given
from hypothesis import strategies as st

from harmonica_core import (
    AnchoredSurrogate,
    Estimate,
    Surrogate,
    fit_surrogate,
    fit_surrogates,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
    metrics,
)
from harmonica_core.design.masks import all_masks
from harmonica_core.result.indices import INDICES

FITS = [harmonica_local, harmonica_anchor, harmonica_anchor_constrained, low_degree]


def finite(*results):
    for result in results:
        for part in result if isinstance(result, tuple) else [result]:
            if isinstance(part, Estimate):
                finite(part.value, part.standard_error)
            else:
                assert np.isfinite(np.asarray(part, dtype=float)).all()


def read_everything(found, n_features, tmp_path):
    finite(found(all_masks(n_features)), found.shapley_values(), found.error)
    if isinstance(found, Surrogate):
        finite(found.predict(all_masks(n_features), return_std=True))
        finite(found.shapley_values(return_std=True))
    finite(found.base_value, found.full_value)
    for index in INDICES:
        for order in (1, 2):
            numbers = ours(lambda i=index, o=order: found.interactions(o, i))
            if numbers is not None:
                finite(*numbers.values())
    assert repr(found)
    path = tmp_path / "found.npz"
    found.save(path)
    again = type(found).load(path)
    masks = all_masks(n_features)
    np.testing.assert_allclose(again(masks), found(masks), rtol=1e-12, atol=1e-320)


@fuzzed
@given(
    table=tables(),
    fit=st.sampled_from(FITS),
    degree=st.integers(1, 4),
    budget=st.integers(4, 90),
    ends=st.booleans(),
)
def test_the_family_at_any_magnitude(tmp_path, table, fit, degree, budget, ends):
    n_features, values = table
    assume(n_features > 1)  # a neighbourhood of one mask
    found = ours(
        lambda: fit(
            function_of(values), n_features, degree=degree, budget=budget, ends=ends
        )
    )
    if found is not None:
        assert isinstance(found, (Surrogate, AnchoredSurrogate))
        read_everything(found, n_features, tmp_path)


@fuzzed
@given(
    table=tables(),
    degree=st.sampled_from([None, 1, 2, 9]),
    engine=st.sampled_from(["bayes", "lasso"]),
)
def test_a_fit_at_any_magnitude(tmp_path, table, degree, engine):
    n_features, values = table
    found = ours(
        lambda: fit_surrogate(function_of(values), n_features, 60, degree, engine)
    )
    if found is not None:
        read_everything(found, n_features, tmp_path)


@fuzzed
@given(
    fit=st.sampled_from(FITS),
    exponent=st.integers(-900, 900),
    seed=st.integers(0, 20),
    budget=st.integers(30, 90),
)
def test_the_family_says_the_same_at_every_scale(fit, exponent, seed, budget):
    values = np.random.default_rng(seed).normal(size=64) + all_masks(6).sum(axis=1)
    scale = np.ldexp(1.0, exponent)
    found = [
        fit(function_of(s * values), 6, degree=2, budget=budget) for s in (1.0, scale)
    ]
    masks = all_masks(6)
    np.testing.assert_allclose(found[1](masks) / scale, found[0](masks), rtol=1e-6)
    np.testing.assert_allclose(
        found[1].error.value / scale, found[0].error.value, rtol=1e-6
    )


names = st.text(max_size=4) | st.sampled_from(["term", "name", "size", "coef"])


@fuzzed
@given(outputs=st.lists(names, min_size=2, max_size=2))
def test_a_frame_of_any_output_names(outputs):
    coef = np.array([[1.0, 2.0], [3.0, 4.0]])
    made = ours(lambda: Surrogate(2, ((0,), (0, 1)), coef, output_names=outputs))
    if made is not None:
        frame = made.to_frame()
        assert frame.columns.tolist() == ["term", "name", "size", *outputs]
        assert frame.iloc[:, 3:].to_numpy().tolist() == coef.tolist()
        assert frame.iloc[:, 0].tolist() == [(0,), (0, 1)]


@fuzzed
@given(first=tables(), scales=st.lists(st.sampled_from([1e-200, 1.0, 1e200])))
def test_many_functions_of_different_magnitudes(first, scales):
    n_features, values = first
    column = np.asarray(values, dtype=float).reshape(len(values), -1)[:, :1]
    with np.errstate(over="ignore"):
        columns = np.concatenate([column, *(column * scale for scale in scales)], 1)
    found = ours(lambda: fit_surrogates(all_masks(n_features), columns, 2))
    for surrogate in found or []:
        finite(surrogate.coef, surrogate.error, surrogate.shapley_values())


@fuzzed
@given(
    table=tables(),
    noise=st.sampled_from([0.0, 1e-9, 0.3, 1e9]),
    radius=st.sampled_from([None, 1, 2, np.inf]),
    exact=st.booleans(),
)
def test_metrics_at_any_magnitude(table, noise, radius, exact):
    n_features, values = table
    values = np.asarray(values, dtype=float).reshape(len(values), -1)[:, 0]
    with np.errstate(all="ignore"):
        other = values * (1 + noise * np.cos(np.arange(len(values))))
    f, g = function_of(values), function_of(other)
    sampling = {} if exact else {"max_evaluations": 12}
    for metric in (
        lambda p: metrics.interpretation_error(f, g, n_features, p, radius, **sampling),
        lambda p: metrics.error_difference(
            f, g, lambda m: f(m) * 0, n_features, p, radius, **sampling
        ),
    ):
        for p in (1, 2, "L0"):
            result = ours(lambda m=metric, p=p: m(p))
            finite(() if result is None else result)
    explained = ours(lambda: metrics.r_squared(f, g, n_features, radius, **sampling))
    if explained is not None and exact and radius is None and noise <= 1:
        assert np.isfinite(explained.value) == (np.ptp(values) > 0)
    for call in (
        lambda: metrics.efficiency_gap(f, g, n_features),
        lambda: metrics.infidelity(f, g, n_features, radius, **sampling),
        lambda: metrics.infidelity(
            f, g, n_features, radius, normalize=True, **sampling
        ),
        lambda: metrics.truthful_gap(f, g, n_features, 2, **sampling),
        lambda: tuple(metrics.inconsistency(f, [f, g], n_features, **sampling)),
    ):
        result = ours(call)
        finite(() if result is None else result)
    curves = ours(
        lambda: metrics.insertion_deletion(
            f, None, n_features, attributions=np.arange(n_features) * 1.0
        )
    )
    if curves is not None:
        finite(curves.insertion, curves.insertion_auc, curves.deletion_auc)


@fuzzed
@given(arguments=st.lists(odd, min_size=3, max_size=3), which=st.integers(0, 7))
def test_odd_arguments_of_metrics(arguments, which):
    f = fit_surrogate(lambda masks: masks.sum(axis=1), 3)
    g = fit_surrogate(lambda masks: masks[:, 0] * 1.0, 3)
    a, b, c = arguments
    calls = {
        0: lambda: metrics.interpretation_error(f, g, 3, a, b),
        1: lambda: metrics.interpretation_error(f, g, a),
        2: lambda: metrics.interpretation_error(a, b, 3),
        3: lambda: metrics.truthful_gap(f, g, 3, a),
        4: lambda: metrics.truthful_gap(f, g, 3, terms=a),
        5: lambda: metrics.inconsistency(f, a, 3, b),
        6: lambda: metrics.profile(f, {"g": g}, 3, a, b, c),
        7: lambda: metrics.insertion_deletion(f, None, 3, attributions=a),
    }
    ours(calls[which])
