"""What holds for every engine behind every door.

A door is one function ``(value_function, n, budget, seed, **settings) -> surrogate``;
those of Captum and SHAP are added to `DOORS` where these hosts are installed.
"""

import numpy as np
import pytest
from core_games import random_network

from harmonica_core import Calls, Settings, fit_surrogate, fit_with
from harmonica_core.design.masks import all_masks, uniform_draws


def core(value_function, n, budget, seed, batch_size=1024, **settings):
    calls = Calls(batch_size=batch_size)
    return fit_surrogate(value_function, n, budget, seed=seed, calls=calls, **settings)


def core_with_settings(value_function, n, budget, seed, batch_size=1024, **settings):
    calls = Calls(batch_size=batch_size)
    chosen = Settings(**settings)
    return fit_with(chosen, value_function, n, budget, seed, calls=calls)


DOORS = [core]

# engine: (settings, budget); a budget of all 512 masks of 9 features is exact.
ENGINES = {
    "bayes": ({"engine": "bayes"}, 150),
    "bayes, degree 2": ({"engine": "bayes", "degree": 2}, 150),
    "lasso": ({"engine": "lasso"}, 150),
    "lasso, alpha": ({"alpha": 0.01}, 150),
    "exact": ({}, 512),
    "exact, degree 2": ({"degree": 2}, 512),
}
# A strength is in the units of the output.
FREE_OF_SCALE = [name for name in ENGINES if name != "lasso, alpha"]
N = 9
CUBE = all_masks(N)
ENDS = np.array([[True] * N, [False] * N])

doors = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
engines = pytest.mark.parametrize("engine", list(ENGINES))
scale_free = pytest.mark.parametrize("engine", FREE_OF_SCALE)


def smooth(masks):
    """Terms of every size, the small ones largest."""
    # A sum, not a matrix product: those bits may depend on the batch.
    x = (np.where(masks, 1.0, -1.0) / np.arange(1, masks.shape[1] + 1)).sum(axis=1)
    return np.tanh(x) + 0.1 * np.sin(3 * x)


def two(masks):
    return np.stack([smooth(masks), 5 - 3 * smooth(masks[:, ::-1])], axis=1)


def fitted(door, engine, f=smooth, seed=0, **options):
    settings, budget = ENGINES[engine]
    return door(f, N, budget, seed, **settings, **options)


def answers(g):
    """Every kind of answer, as bytes."""
    parts = [g(CUBE), g.shapley_values(), g.coef, g.table, g.error.value]
    return [np.asarray(part).tobytes() for part in parts]


@doors
@engines
def test_the_budget_is_spent_and_stated(door, engine):
    calls = []

    def counted(masks):
        assert masks.dtype == bool and masks.shape[1] == N
        calls.extend(mask.tobytes() for mask in masks)
        return smooth(masks)

    g = fitted(door, engine, counted)
    assert len(calls) == len(set(calls)) == g.n_evaluations == ENGINES[engine][1]


@doors
@engines
def test_both_ends_are_met_and_shapley_values_add_up_to_them(door, engine):
    g = fitted(door, engine, two, ends=True)
    np.testing.assert_allclose(g(ENDS), two(ENDS), atol=1e-9)
    total = two(ENDS)[0] - two(ENDS)[1]
    np.testing.assert_allclose(g.shapley_values().sum(axis=0), total, atol=1e-9)


@doors
@engines
def test_shapley_values_are_those_of_the_answers(door, engine):
    g = fitted(door, engine)
    spectrum = fit_surrogate(g, N, budget=1 << N)
    if engine == "bayes":  # of f as far as it was seen, which the terms hold, too
        assert g.error.value > 0
    np.testing.assert_allclose(g.shapley_values(), spectrum.shapley_values(), atol=1e-9)
    for term, coef in spectrum.spectrum.items():
        assert g.spectrum.get(term, 0.0) == pytest.approx(coef, abs=1e-9)


@doors
@engines
def test_the_same_seed_gives_the_same_bits(door, engine):
    first, again, other = (fitted(door, engine, seed=seed) for seed in (1, 1, 2))
    assert answers(first) == answers(again)
    if not engine.startswith("exact"):
        assert answers(first) != answers(other)


@doors
@engines
@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_batches_change_nothing(door, engine, batch_size):
    whole = fitted(door, engine)
    assert answers(whole) == answers(fitted(door, engine, batch_size=batch_size))


@engines
def test_every_door_leads_to_the_same_surrogate(engine):
    first, *others = [
        answers(fitted(door, engine, two)) for door in (*DOORS, core_with_settings)
    ]
    assert others and all(other == first for other in others)


@doors
@scale_free
@pytest.mark.parametrize("scale, shift", [(-3.0, 0.0), (1e-6, -2.0), (1e6, 1e3)])
def test_scale_and_shift_go_through(door, engine, scale, shift):
    shift *= abs(scale)
    plain = fitted(door, engine)
    moved = fitted(door, engine, lambda masks: scale * smooth(masks) + shift)
    spread = abs(scale) * plain(CUBE).std()
    np.testing.assert_allclose(
        moved(CUBE), scale * plain(CUBE) + shift, atol=1e-5 * spread, rtol=0
    )
    np.testing.assert_allclose(
        moved.shapley_values(), scale * plain.shapley_values(), atol=1e-5 * spread
    )
    stated = moved.error.value, moved.error.standard_error
    expected = plain.error.value, plain.error.standard_error
    np.testing.assert_allclose(stated, np.abs(scale) * np.array(expected), rtol=1e-3)


@doors
@engines
def test_a_power_of_two_changes_no_digit(door, engine):
    scale = 2.0**-30
    options = {}
    if engine == "lasso, alpha":
        options["alpha"] = 0.01 * scale
    settings, budget = ENGINES[engine]
    plain = door(smooth, N, budget, 0, **settings)
    moved = door(lambda m: scale * smooth(m), N, budget, 0, **(settings | options))
    np.testing.assert_allclose(moved(CUBE) / scale, plain(CUBE), atol=1e-12, rtol=0)


@doors
@scale_free
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 9e299])
def test_outputs_of_any_spread(door, engine, scale):
    g = fitted(door, engine, lambda masks: scale * smooth(masks))
    plain = fitted(door, engine)
    np.testing.assert_allclose(g(CUBE) / scale, plain(CUBE), atol=1e-6)
    np.testing.assert_allclose(
        g.shapley_values() / scale, plain.shapley_values(), atol=1e-6
    )
    assert g.error.value / scale == pytest.approx(plain.error.value, rel=1e-4)


@doors
@engines
def test_several_outputs_have_the_answers_of_each(door, engine):
    both = fitted(door, engine, two)
    assert both(CUBE).shape == (512, 2) and both.shapley_values().shape == (N, 2)
    first = fitted(door, engine)
    part = both.output(0)
    np.testing.assert_allclose(part(CUBE), both(CUBE)[:, 0], atol=1e-12)
    # The Bayesian engine learns one prior of both, so answers differ by less than
    # the error; all others do not see the other output.
    bound = 2 * first.error.value if engine.startswith("bayes") else 1e-7
    assert np.sqrt(((part(CUBE) - first(CUBE)) ** 2).mean()) <= bound
    one_column = fitted(door, engine, lambda masks: smooth(masks)[:, None])
    np.testing.assert_allclose(one_column(CUBE)[:, 0], first(CUBE), atol=1e-12)


@doors
@engines
@pytest.mark.parametrize("constant", [0.0, 3.25, -1e9])
def test_constants_have_one_term_and_no_error(door, engine, constant):
    g = fitted(door, engine, lambda masks: np.full(len(masks), constant))
    assert g.terms == ((),)
    assert g.base_value == g.full_value == constant
    assert g.error.value == 0 and not g.shapley_values().any()


@doors
@pytest.mark.parametrize("engine", ["exact", "exact, degree 2"])
def test_features_in_another_order_are_that_order(door, engine):
    order = np.random.default_rng(0).permutation(N)
    plain = fitted(door, engine)
    moved = fitted(door, engine, lambda masks: smooth(masks[:, order]))
    np.testing.assert_allclose(moved(CUBE), plain(CUBE[:, order]), atol=1e-9)
    np.testing.assert_allclose(
        moved.shapley_values()[order], plain.shapley_values(), atol=1e-9
    )


@doors
@engines
def test_the_stated_error_is_about_the_error(door, engine):
    ratios = []
    for seed in range(3):
        network = random_network(N, np.random.default_rng(seed))
        g = fitted(door, engine, lambda masks, f=network: f(masks)[:, 0], seed=seed)
        true = np.sqrt(((g(CUBE) - network(CUBE)[:, 0]) ** 2).mean())
        if engine.startswith("exact"):
            assert g.error.exact
            assert g.error.value == pytest.approx(true, abs=1e-9)
        else:
            ratios.append(g.error.value / true)
    assert not ratios or 0.6 < np.exp(np.mean(np.log(ratios))) < 1.7


@doors
@pytest.mark.parametrize("engine", ["bayes", "lasso"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_features_are_exact(door, engine, n):
    values = np.random.default_rng(0).normal(size=1 << n)

    def f(masks):
        return values[masks @ (1 << np.arange(n))]

    g = door(f, n, 1 << n, 0, engine=engine)
    np.testing.assert_allclose(g(all_masks(n)), values, atol=1e-14)
    assert g.error.exact and g.error.value == 0


@doors
@pytest.mark.parametrize("engine", ["bayes", "lasso"])
@pytest.mark.parametrize("n", [1, 2, 3, 12, 30])
def test_every_small_budget_gives_a_finite_answer(door, engine, n):
    masks = uniform_draws(n, 50, np.random.default_rng(0))
    ends = np.array([[True] * n, [False] * n])
    for budget in range(2, 21):
        g = door(smooth, n, budget, 0, engine=engine)
        assert g.n_evaluations <= budget
        assert np.isfinite(g(masks)).all() and np.isfinite(g.shapley_values()).all()
        assert np.isfinite(g.error.value) and np.isfinite(g.error.standard_error)
        np.testing.assert_allclose(g(ends), smooth(ends), atol=1e-9)
        answer, std = g.predict(masks, return_std=True)
        assert np.isfinite(std).all() and (std >= 0).all()


@doors
@pytest.mark.parametrize("engine", ["bayes", "lasso"])
@pytest.mark.parametrize("n", [2, 12])
def test_two_calls_are_the_ends(door, engine, n):
    g = door(smooth, n, 2, 0, engine=engine)
    ends = np.array([[True] * n, [False] * n])
    np.testing.assert_array_equal(g.evaluated.masks, ends)
    np.testing.assert_allclose(g(ends), smooth(ends), atol=1e-12)
    share = (smooth(ends)[0] - smooth(ends)[1]) / n
    np.testing.assert_allclose(g.shapley_values(), share)
    assert np.isfinite(g.error.value)
