"""From a function of masks to a surrogate: what must hold whatever the function."""

import numpy as np
import pytest
from core_games import f1, f2, f3

from harmonica_core import (
    Calls,
    Settings,
    Surrogate,
    basis,
    draw_design,
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
    g = fit_surrogate(f, n, budget, degree, engine="lasso")
    masks = draw.uniform_draws(n, 200, np.random.default_rng(1))
    np.testing.assert_allclose(g(masks), f(masks), atol=1e-9)
    assert g.error.value == pytest.approx(0, abs=1e-8)
    assert {len(term) for term in g.terms} <= set(range(degree + 1))
    assert g.degree == degree


def test_the_papers_table_for_f3_with_the_sign_put_right():
    g = fit_surrogate(f3, 3)
    assert g([[False, True, False]])[0] == pytest.approx(-0.449, abs=5e-4)


@pytest.mark.parametrize("seed", range(8))
def test_the_lasso_recovers_sparse_polynomials_from_1000_masks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 41))
    truth = sparse_polynomial(n, 30, rng)
    g = fit_surrogate(truth, n, 1000, engine="lasso", seed=seed, ends=False)
    assert set(g.terms) == set(truth.terms)
    for term, coef in truth.spectrum.items():
        assert g.spectrum[term] == pytest.approx(coef, abs=1e-6)


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
@pytest.mark.parametrize("degree", [None, 2])
@pytest.mark.parametrize("n", [5, 11])
def test_permuting_the_features_permutes_the_result(n, degree, engine):
    rng = np.random.default_rng(n)
    masks = draw_design(Settings(engine=engine), n, 31 if n == 5 else 200).masks
    order = rng.permutation(n)
    values = smooth(masks)[:, None]
    (g,) = fit_surrogates(masks, values, degree, engine)
    (h,) = fit_surrogates(masks[:, order], values, degree, engine)
    tests = draw.uniform_draws(n, 50, rng)
    np.testing.assert_allclose(h(tests[:, order]), g(tests), atol=1e-5)
    np.testing.assert_allclose(h.shapley_values(), g.shapley_values()[order], atol=1e-5)


def test_the_order_of_the_masks_changes_nothing():
    masks = draw_design(Settings(), 11, 200).masks
    mixed = masks[np.random.default_rng(0).permutation(len(masks))]
    tests = draw.uniform_draws(11, 50, np.random.default_rng(1))
    (g,), (h,) = (fit_surrogates(m, smooth(m)[:, None]) for m in (masks, mixed))
    np.testing.assert_allclose(h(tests), g(tests), atol=1e-5)


def test_user_given_terms_are_the_readable_set():
    terms = [*basis.terms_of(basis.terms_up_to(12, 2)), (1, 4, 7, 9)]

    def f(masks):
        x = signs(masks)
        return x[:, 0] - x[:, 1] * x[:, 2] + x[:, [1, 4, 7, 9]].prod(axis=1) / 2

    g = fit_surrogate(f, 12, budget=400, terms=terms, ends=False)
    assert set(g.terms) - {()} == {(0,), (1, 2), (1, 4, 7, 9)}
    assert g.spectrum[(1, 4, 7, 9)] == pytest.approx(0.5)


def test_a_given_alpha_is_scikit_learns():
    from sklearn.linear_model import Lasso

    masks = draw.paired_masks(11, 400, np.random.default_rng(0))
    (g,) = fit_surrogates(masks, smooth(masks)[:, None], alpha=0.01)
    design = basis.design(masks, basis.terms_up_to(11, 3)[1:])
    peer = Lasso(alpha=0.01, tol=1e-10, max_iter=100_000).fit(design, smooth(masks))
    np.testing.assert_allclose(g(masks), peer.predict(design), atol=1e-5)


def test_all_masks_with_a_given_alpha_are_soft_thresholded():
    g = fit_surrogate(f3, 3, alpha=0.2, ends=False)
    assert g.spectrum[(0,)] == pytest.approx(0.3)
    assert (0, 1) not in g.spectrum
    true = np.sqrt(np.mean((g(draw.all_masks(3)) - f3(draw.all_masks(3))) ** 2))
    assert g.error.value == pytest.approx(true)


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_a_local_fit_is_better_near_the_input(engine):
    n = 14
    near = draw.ball_draws(n, 2, 500, np.random.default_rng(9))
    settings = {"degree": 1, "budget": 90, "engine": engine, "ends": False}
    wide = fit_surrogate(smooth, n, **settings)
    local = fit_surrogate(smooth, n, radius=2, **settings)
    assert local.radius == 2

    def rmse(g):
        return np.sqrt(np.mean((g(near) - smooth(near)) ** 2))

    assert rmse(local) < 0.5 * rmse(wide)


def test_a_model_exception_passes_with_a_note_and_loses_nothing():
    seen = []

    def flaky(masks):
        if len(seen) == 3:
            raise RuntimeError("the endpoint is down")
        seen.append(masks)
        return smooth(masks)

    with pytest.raises(RuntimeError, match="endpoint is down") as caught:
        fit_surrogate(flaky, 12, budget=100, calls=Calls(batch_size=10))
    assert "raised for masks 30 to 39 of 100" in caught.value.__notes__[0]
    assert len(caught.value.evaluated) == 30

    calls = []

    def counted(masks):
        calls.append(len(masks))
        return smooth(masks)

    resumed = fit_surrogate(counted, 12, budget=100, known=caught.value.evaluated)
    assert sum(calls) == 70
    whole = fit_surrogate(smooth, 12, budget=100)
    assert resumed.coef.tobytes() == whole.coef.tobytes()


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_an_odd_function_is_explained_alike_at_any_scale(engine):
    rng = np.random.default_rng(0)
    inner, outer = rng.normal(size=(12, 6)) / 12**0.5, rng.normal(size=6)

    def odd(masks):
        return np.tanh(signs(masks) @ inner) @ outer

    one = fit_surrogate(odd, 12, 300, engine=engine)
    other = fit_surrogate(lambda masks: 1e-3 * odd(masks) + 1, 12, 300, engine=engine)
    masks = draw.all_masks(12)
    np.testing.assert_allclose((other(masks) - 1) * 1e3, one(masks), atol=1e-6)


def test_terms_from_a_generator_are_read_once():
    found = fit_surrogate(f1, 8, budget=100, terms=((i,) for i in range(8)), ends=False)
    assert set(found.terms) == {(), (0,), (1,), (2,)}


@pytest.mark.parametrize(("n", "radius"), [(1, 1), (3, 3), (11, 1)])
def test_a_whole_ball_is_fitted_however_small(n, radius):
    weights = np.arange(1.0, n + 1)

    def linear(masks):
        return masks @ weights

    found = fit_surrogate(linear, n, radius=radius, engine="lasso", ends=False)
    ball = draw.ball(n, radius)
    np.testing.assert_allclose(found(ball), linear(ball), atol=1e-9)
    assert found.error.exact
    assert float(found.error.value) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("n", "radius"), [(8, 1), (12, 1), (14, 3), (1, 1)])
def test_the_error_in_a_ball_is_true_with_ends(n, radius):
    weights = np.arange(1.0, n + 1)

    def curved(masks):
        return np.sqrt(1 + masks @ weights)

    found = fit_surrogate(curved, n, degree=2, radius=radius, engine="lasso")
    ball = draw.ball(n, radius)
    true = np.sqrt(np.mean((found(ball) - curved(ball)) ** 2))
    slack = 2 * float(found.error.standard_error) + 1e-9
    assert abs(float(found.error.value) - true) <= slack


def test_more_features_than_a_float_has_powers_of_two():
    weights = np.zeros(1100)
    weights[[3, 500]] = 2.0, -1.0
    found = fit_surrogate(
        lambda masks: masks @ weights, 1100, 300, 1, "lasso", ends=False
    )
    assert set(found.terms) - {()} == {(3,), (500,)}
    assert np.isfinite(found.error.value)


@pytest.mark.parametrize("options", [{"alpha": 0.2}, {"terms": [(0, 1)]}])
def test_an_exact_error_through_both_ends_is_the_error(options):
    found = fit_surrogate(smooth, 4, **options)
    masks = draw.all_masks(4)
    true = np.sqrt(np.mean((found(masks) - smooth(masks)) ** 2))
    assert found.error.exact
    assert found.error.value == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("radius", [1, 2, 4])
def test_a_local_fit_of_the_default_engine_answers_in_its_neighbourhood(radius):
    ball = draw.ball(12, radius)
    g = fit_surrogate(smooth, 12, budget=150, radius=radius)
    true = np.sqrt(np.mean((g(ball) - smooth(ball)) ** 2))
    assert g.radius == radius and true < 0.35 * smooth(ball).std()
    np.testing.assert_array_equal(g(g.evaluated.masks), g.evaluated.values)


def test_names_go_through():
    names = [f"f{i}" for i in range(12)]
    g = fit_surrogate(f3, 12, 60, feature_names=names, output_names=["y"])
    assert g.feature_names == tuple(names) and g.output_names == ("y",)


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_many_functions_are_fitted_in_one_go(engine):
    masks = draw_design(Settings(engine=engine), 12, 200).masks
    hidden = np.random.default_rng(0).normal(size=(12, 20)) / 4
    values = np.tanh(signs(masks) @ hidden)
    flat = fit_surrogates(masks, values, engine=engine)
    wide = fit_surrogates(masks, values.reshape(200, 10, 2), engine=engine)
    assert len(flat) == 20 and len(wide) == 10
    assert flat[3].one_output and wide[3].n_outputs == 2
    tests = draw.uniform_draws(12, 50, np.random.default_rng(1))
    np.testing.assert_allclose(wide[3](tests)[:, 1], flat[7](tests), atol=1e-9)
    np.testing.assert_array_equal(wide[3].evaluated.values, values[:, 6:8])


def test_a_prior_of_another_fit_saves_learning(monkeypatch):
    first = fit_surrogate(smooth, 12, 150)
    monkeypatch.delattr("harmonica_core.engine.bayes.learn_prior")
    again = fit_surrogate(smooth, 12, 150, prior=first.prior)
    cube = draw.all_masks(12)
    assert again(cube).tobytes() == first(cube).tobytes()
