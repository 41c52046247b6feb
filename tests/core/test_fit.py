"""From a function of masks to a surrogate: what must hold whatever the function."""

import os
from pathlib import Path

import numpy as np
import pytest
from core_games import f1, f2, f3
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import (
    Surrogate,
    auto_budget,
    basis,
    draw_masks,
    fit_surrogate,
    fit_surrogates,
)
from harmonica_core.design import masks as draw


def signs(masks):
    return np.where(masks, 1.0, -1.0)


def smooth(masks):
    """A function with all degrees, the small ones largest."""
    # A sum, not a matrix product: those bits may depend on the batch.
    x = (signs(masks) / np.arange(1, masks.shape[1] + 1)).sum(axis=1)
    return np.tanh(x) + 0.1 * np.sin(3 * x)


def sparse_polynomial(n, n_terms, rng):
    terms = set()
    while len(terms) < n_terms:
        size = int(rng.integers(1, 4))
        terms.add(tuple(sorted(rng.choice(n, size, replace=False).tolist())))
    coef = rng.choice([-1, 1], n_terms) * rng.uniform(0.2, 1.0, n_terms)
    return Surrogate(n, [(), *sorted(terms)], np.append(0.7, coef))


@pytest.mark.parametrize("f, degree", [(f1, 1), (f2, 2), (f3, 3)])
@pytest.mark.parametrize("n, budget", [(3, "auto"), (12, 300)])
def test_the_papers_polynomials_are_recovered_exactly(f, degree, n, budget):
    g = fit_surrogate(f, n, degree=degree, budget=budget, terms=None)
    masks = draw.uniform_draws(n, 200, np.random.default_rng(1))
    np.testing.assert_allclose(g(masks), f(masks), atol=1e-9)
    assert g.error.value == pytest.approx(0, abs=1e-8)
    assert {len(term) for term in g.terms} <= set(range(degree + 1))
    assert g.degree == degree


def test_the_papers_table_for_f3_with_the_sign_put_right():
    g = fit_surrogate(f3, 3)
    assert g([[False, True, False]])[0] == pytest.approx(-0.449, abs=5e-4)


@pytest.mark.parametrize("seed", range(50))
def test_sparse_polynomials_are_recovered_from_1000_masks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 41))
    truth = sparse_polynomial(n, 30, rng)
    g = fit_surrogate(truth, n, budget=1000, seed=seed, terms=None)
    assert set(g.terms) == set(truth.terms)
    for term, coef in truth.spectrum.items():
        assert g.spectrum[term] == pytest.approx(coef, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(
    scale=st.sampled_from([1e-6, 0.1, -3.0, 1e6]),
    shift=st.sampled_from([0.0, -2.0, 1e3]),
    n=st.sampled_from([4, 11]),
)
def test_scaling_and_shifting_the_function(scale, shift, n):
    shift *= abs(scale)
    g = fit_surrogate(smooth, n, budget=200)
    h = fit_surrogate(lambda m: scale * smooth(m) + shift, n, budget=200)
    masks = draw.uniform_draws(n, 100, np.random.default_rng(0))
    spread = abs(scale) * np.std(g(masks))
    np.testing.assert_allclose(
        h(masks), scale * g(masks) + shift, atol=1e-5 * spread, rtol=0
    )
    assert h.error.value == pytest.approx(abs(scale) * g.error.value, rel=1e-3)
    assert len(h.terms) > 1  # no all-zero answer


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), n=st.sampled_from([5, 11]))
def test_permuting_the_features_permutes_the_result(seed, n):
    rng = np.random.default_rng(seed)
    masks = draw_masks(n, 200, rng)
    order = rng.permutation(n)
    (g,) = fit_surrogates(masks, smooth(masks)[:, None])
    (h,) = fit_surrogates(masks[:, order], smooth(masks)[:, None])
    tests = draw.uniform_draws(n, 50, rng)
    np.testing.assert_allclose(h(tests[:, order]), g(tests), atol=1e-6)


@pytest.mark.parametrize("n", [6, 12])
@pytest.mark.parametrize("terms", [None, "auto"])
def test_batch_size_and_seed(n, terms):
    settings = dict(budget=300, terms=terms)
    whole = fit_surrogate(smooth, n, batch_size=1000, **settings)
    for batch_size in (1, 7, 300):
        again = fit_surrogate(smooth, n, batch_size=batch_size, **settings)
        assert again.terms == whole.terms
        assert again.coef.tobytes() == whole.coef.tobytes()
        assert again.error.value == whole.error.value
    if n == 12:
        other = fit_surrogate(smooth, n, seed=1, **settings)
        assert other.coef.tobytes() != whole.coef.tobytes()


@pytest.mark.parametrize("n", [1, 2, 5, 14])
@pytest.mark.parametrize("terms", [None, "auto"])
def test_a_constant_gives_a_constant_without_error(n, terms):
    g = fit_surrogate(lambda m: np.full(len(m), 3.25), n, budget=100, terms=terms)
    assert g.terms == ((),)
    assert g.base_value == g.full_value == 3.25
    assert g.error.value == 0
    assert (g.shapley_values() == 0).all()


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_features_are_exact(n):
    values = np.random.default_rng(0).normal(size=2**n)
    g = fit_surrogate(lambda m: values[draw.mask_numbers(m)], n)
    np.testing.assert_allclose(g(draw.all_masks(n)), values, atol=1e-15)
    assert g.n_evaluations == 2**n and g.error.exact


@pytest.mark.parametrize("budget", [2, 3, 4, 10, 50])
@pytest.mark.parametrize("terms", [None, "auto"])
@pytest.mark.parametrize("ends", [False, True])
def test_a_budget_below_the_number_of_terms(budget, terms, ends):
    calls = []

    def f(masks):
        calls.append(len(masks))
        return smooth(masks)

    g = fit_surrogate(f, 20, budget=budget, terms=terms, ends=ends)
    assert sum(calls) == g.n_evaluations <= budget
    assert np.isfinite(g.coef).all()
    if ends:
        full = np.ones((1, 20), bool)
        assert g.full_value == pytest.approx(smooth(full)[0])
        assert g.base_value == pytest.approx(smooth(~full)[0])


@pytest.mark.parametrize("n", [5, 11])
@pytest.mark.parametrize("terms", [None, "auto"])
def test_several_outputs_equal_separate_fits(n, terms):
    def both(masks):
        wide = np.stack([smooth(masks), 1e3 * f3(masks), np.ones(len(masks))])
        return wide.T

    together = fit_surrogate(both, n, budget=200, terms=terms)
    assert together.n_evaluations <= 200
    for k in range(3):
        alone = fit_surrogate(lambda m, k=k: both(m)[:, k], n, budget=200, terms=terms)
        part = together.output(k)
        assert set(part.terms) == set(alone.terms)
        for term, coef in alone.spectrum.items():
            assert part.spectrum[term] == pytest.approx(coef, abs=1e-7)
        assert part.error.value == pytest.approx(alone.error.value, abs=1e-7)


def test_user_given_terms_are_the_readable_set():
    terms = [*basis.terms_of(basis.terms_up_to(12, 2)), (1, 4, 7, 9)]

    def f(masks):
        x = signs(masks)
        return x[:, 0] - x[:, 1] * x[:, 2] + x[:, [1, 4, 7, 9]].prod(axis=1) / 2

    g = fit_surrogate(f, 12, budget=400, terms=terms)
    assert set(g.terms) - {()} == {(0,), (1, 2), (1, 4, 7, 9)}
    assert g.spectrum[(1, 4, 7, 9)] == pytest.approx(0.5)


def test_a_given_alpha_is_scikit_learns():
    from sklearn.linear_model import Lasso

    masks = draw_masks(11, 400, np.random.default_rng(0))
    (g,) = fit_surrogates(masks, smooth(masks)[:, None], alpha=0.01, terms=None)
    design = basis.design(masks, basis.terms_up_to(11, 3)[1:])
    peer = Lasso(alpha=0.01, tol=1e-10, max_iter=100_000).fit(design, smooth(masks))
    np.testing.assert_allclose(g(masks), peer.predict(design), atol=1e-5)


def test_all_masks_with_a_given_alpha_are_soft_thresholded():
    g = fit_surrogate(f3, 3, alpha=0.2)
    assert g.spectrum[(0,)] == pytest.approx(0.3)
    assert (0, 1) not in g.spectrum
    true = np.sqrt(np.mean((g(draw.all_masks(3)) - f3(draw.all_masks(3))) ** 2))
    assert g.error.value == pytest.approx(true)


@pytest.mark.parametrize("terms", [None, "auto"])
def test_masks_near_the_input_lower_the_error_there(terms):
    n, ball = 14, draw.ball(14, 2)
    cube = draw.uniform_draws(n, 4000, np.random.default_rng(9))

    def kinked(masks):  # steep where little is removed
        return smooth(masks) + 0.2 * np.maximum(6 - (~masks).sum(axis=1), 0)

    def errors(near):
        out = []
        for seed in range(3):
            g = fit_surrogate(kinked, n, 2, 600, seed=seed, terms=terms, near=near)
            true = np.sqrt(((g(cube) - kinked(cube)) ** 2).mean())
            assert abs(g.error.value - true) < 4 * g.error.standard_error
            out.append((np.sqrt(((g(ball) - kinked(ball)) ** 2).mean()), true))
        return np.mean(out, axis=0)

    uniform, mixed = errors(0.0), errors(0.1)
    assert mixed[0] < 0.95 * uniform[0]
    assert mixed[1] < 1.2 * uniform[1]


def test_a_local_fit_is_better_near_the_input():
    n = 14
    near = draw.ball_draws(n, 2, 500, np.random.default_rng(9))
    wide = fit_surrogate(smooth, n, degree=1, budget=300, terms=None)
    local = fit_surrogate(smooth, n, degree=1, budget=300, radius=2, terms=None)
    assert local.radius == 2

    def rmse(g):
        return np.sqrt(np.mean((g(near) - smooth(near)) ** 2))

    assert rmse(local) < 0.5 * rmse(wide)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 16, 50, 200, 1000])
def test_auto_budget_is_sensible(n):
    assert 2 <= auto_budget(n) <= min(2**n, 25_000)
    assert auto_budget(n) >= min(2**n, 1000)


def test_a_model_exception_passes_with_a_note_and_loses_nothing():
    seen = []

    def flaky(masks):
        if len(seen) == 3:
            raise RuntimeError("the endpoint is down")
        seen.append(masks)
        return smooth(masks)

    with pytest.raises(RuntimeError, match="endpoint is down") as caught:
        fit_surrogate(flaky, 12, budget=100, batch_size=10)
    assert "raised for masks 30 to 39 of 100" in caught.value.__notes__[0]
    assert len(caught.value.evaluated) == 30

    calls = []

    def counted(masks):
        calls.append(len(masks))
        return smooth(masks)

    resumed = fit_surrogate(
        counted, 12, budget=100, batch_size=10, known=caught.value.evaluated
    )
    assert sum(calls) == 70
    whole = fit_surrogate(smooth, 12, budget=100)
    assert resumed.coef.tobytes() == whole.coef.tobytes()


games = os.environ.get("HARMONICA_GAMES")


@pytest.mark.skipif(not games, reason="HARMONICA_GAMES names no folder of games")
def test_auto_alpha_on_real_games():
    """Never 2% worse than the published alpha = 0.01, 15% better on average."""
    ratios = []
    for path in sorted(Path(games).glob("*.npz")):
        for values in np.load(path)["values"][:4]:
            n = len(values).bit_length() - 1

            def f(masks, values=values):
                return values[draw.mask_numbers(masks)]

            masks = draw.all_masks(n)
            error = [
                np.sqrt(np.mean((g(masks) - values) ** 2))
                for g in (
                    fit_surrogate(f, n, budget=1000, terms=None),
                    fit_surrogate(f, n, budget=1000, terms=None, alpha=0.01),
                )
            ]
            ratios.append(error[0] / error[1])
    assert max(ratios) <= 1.02
    assert np.exp(np.mean(np.log(ratios))) <= 0.85


def test_an_odd_function_is_explained_alike_at_any_scale():
    rng = np.random.default_rng(0)
    inner, outer = rng.normal(size=(12, 6)) / 12**0.5, rng.normal(size=6)

    def odd(masks):
        return np.tanh(signs(masks) @ inner) @ outer

    one = fit_surrogate(odd, 12, 3, 300)
    other = fit_surrogate(lambda masks: 1e-3 * odd(masks) + 1, 12, 3, 300)
    masks = draw.all_masks(12)
    assert one.terms == other.terms
    np.testing.assert_allclose((other(masks) - 1) * 1e3, one(masks), atol=1e-6)


def test_terms_from_a_generator_are_read_once():
    found = fit_surrogate(f1, 8, budget=100, terms=((i,) for i in range(8)))
    assert set(found.terms) == {(), (0,), (1,), (2,)}


@pytest.mark.parametrize(("n", "radius"), [(1, 1), (3, 3), (11, 1)])
def test_a_whole_ball_is_fitted_however_small(n, radius):
    weights = np.arange(1.0, n + 1)

    def linear(masks):
        return masks @ weights

    found = fit_surrogate(linear, n, radius=radius, terms=None)
    ball = draw.ball(n, radius)
    np.testing.assert_allclose(found(ball), linear(ball), atol=1e-9)
    assert found.error.exact
    assert float(found.error.value) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("n", "radius"), [(8, 1), (12, 1), (14, 3), (1, 1)])
def test_the_error_in_a_ball_is_true_with_ends(n, radius):
    weights = np.arange(1.0, n + 1)

    def curved(masks):
        return np.sqrt(1 + masks @ weights)

    found = fit_surrogate(curved, n, 2, radius=radius, ends=True, terms=None)
    ball = draw.ball(n, radius)
    true = np.sqrt(np.mean((found(ball) - curved(ball)) ** 2))
    slack = 2 * float(found.error.standard_error) + 1e-9
    assert abs(float(found.error.value) - true) <= slack


@pytest.mark.parametrize("n", [3, 12, 30])
def test_two_evaluations_are_the_two_ends(n):
    found = fit_surrogate(f1, n, 2, 2, radius=2, ends=True, terms=None)
    assert found.n_evaluations == 2


def test_more_features_than_a_float_has_powers_of_two():
    weights = np.zeros(1100)
    weights[[3, 500]] = 2.0, -1.0
    found = fit_surrogate(lambda masks: masks @ weights, 1100, 1, 300, terms=None)
    assert set(found.terms) - {()} == {(3,), (500,)}
    assert np.isfinite(found.error.value)


@pytest.mark.parametrize("options", [{"alpha": 0.2}, {"terms": [(0, 1)]}])
def test_an_exact_error_through_both_ends_is_the_error(options):
    found = fit_surrogate(smooth, 4, ends=True, **options)
    masks = draw.all_masks(4)
    true = np.sqrt(np.mean((found(masks) - smooth(masks)) ** 2))
    assert found.error.exact
    assert found.error.value == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize(
    ("n_features", "budget", "options", "adapts"),
    [
        (12, 200, {}, True),
        (12, 200, {"alpha": 0.01}, False),
        (12, 200, {"terms": None}, False),
        (65, 200, {"degree": 1}, False),
    ],
)
def test_masks_near_the_input_are_drawn_for_fits_that_adapt(
    n_features, budget, options, adapts
):
    g = fit_surrogate(smooth, n_features, budget=budget, **options)
    plain = draw_masks(n_features, budget, np.random.default_rng(0))
    assert np.array_equal(g.evaluated.masks, plain) != adapts
