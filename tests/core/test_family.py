from functools import partial

import numpy as np
import pytest
import reference
from sklearn.linear_model import Lasso

from harmonica_core import (
    AnchoredSurrogate,
    Surrogate,
    draw_masks,
    fit_surrogates,
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
    metrics,
)
from harmonica_core.design.masks import all_masks, mask_numbers, uniform_draws
from harmonica_core.engine.anchored_fit import fit_anchored
from harmonica_core.engine.constrained_fit import fit_constrained
from harmonica_core.engine.low_degree import fit_low_degree
from harmonica_core.family import anchor_masks
from harmonica_core.result.anchored import draw_anchors, nearest_anchor
from harmonica_core.result.held_out_error import stated_error

FAMILY = {
    "harmonica": (harmonica, {}),
    "local": (harmonica_local, {}),
    "anchor": (harmonica_anchor, {"anchors": 3}),
    "constrained": (
        harmonica_anchor_constrained,
        {"anchors": 3, "consistency": 0.1, "alpha": 0.01},
    ),
    "low_degree": (low_degree, {}),
}
N = 9


def smooth(masks):
    """Not a polynomial of low degree, a little different everywhere."""
    z = 2.0 * masks - 1
    weights = np.linspace(0.2, 1, z.shape[1])
    return np.tanh(z @ weights) + 0.5 * z[:, 0] * z[:, 1] + 0.2 * z[:, 2]


def two_outputs(masks):
    return np.stack([smooth(masks), 3 - 2 * smooth(masks[:, ::-1])], axis=1)


class Counted:
    def __init__(self, function):
        self.function, self.n = function, 0

    def __call__(self, masks):
        self.n += len(masks)
        return self.function(masks)


@pytest.mark.parametrize("name", list(FAMILY))
@pytest.mark.parametrize("budget", [40, 201, 600])
def test_every_method_states_and_respects_its_budget(name, budget):
    method, options = FAMILY[name]
    f = Counted(smooth)
    g = method(f, N, degree=2, budget=budget, **options)
    assert f.n == g.n_evaluations == len(g.evaluated) <= budget
    # Local has no more than the 255 masks with 1 to 4 of 9 features removed.
    assert f.n >= 0.7 * min(budget, 255)
    np.testing.assert_allclose(g.evaluated.values, smooth(g.evaluated.masks))


@pytest.mark.parametrize("name", list(FAMILY))
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(name):
    method, options = FAMILY[name]
    masks = all_masks(N)
    first, again, other = (
        method(smooth, N, degree=2, budget=200, seed=seed, **options)(masks)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("name", list(FAMILY))
def test_several_outputs_names_and_options_pass_through(name):
    method, options = FAMILY[name]
    g = method(
        two_outputs,
        N,
        degree=2,
        budget=200,
        feature_names=[f"f{i}" for i in range(N)],
        output_names=["a", "b"],
        batch_size=7,
        **options,
    )
    one = method(smooth, N, degree=2, budget=200, **options)
    masks = all_masks(N)
    np.testing.assert_allclose(g(masks)[:, 0], one(masks), atol=1e-3)
    assert g.feature_names[3] == "f3" and g.output_names == ("a", "b")
    assert g.output(1)(masks) == pytest.approx(g(masks)[:, 1])
    assert np.shape(g.error.value) == (2,) and np.shape(one.error.value) == ()


@pytest.mark.parametrize("name", ["harmonica", "anchor", "constrained", "low_degree"])
def test_the_stated_error_is_honest(name):
    method, options = FAMILY[name]
    n, masks = 11, all_masks(11)
    for seed in range(3):
        g = method(smooth, n, degree=2, budget=500, seed=seed, **options)
        true = np.sqrt(((smooth(masks) - g(masks)) ** 2).mean())
        assert abs(g.error.value - true) < 4 * g.error.standard_error + 0.05 * true


@pytest.mark.parametrize("name", ["anchor", "constrained", "low_degree"])
def test_all_masks_within_the_budget_give_an_exact_error(name):
    method, options = FAMILY[name]
    if name == "anchor":
        options = {**options, "terms": None}  # otherwise it is exact
    g = method(smooth, 6, degree=2, budget=64, **options)
    masks = all_masks(6)
    true = np.sqrt(((smooth(masks) - g(masks)) ** 2).mean())
    assert true > 1e-3
    assert g.error.exact and g.n_evaluations == 64
    assert g.error.value == pytest.approx(true)


@pytest.mark.parametrize("alpha", ["auto", 0.01])
@pytest.mark.parametrize("budget", [200, 512])
def test_one_anchor_is_harmonica_bit_for_bit(alpha, budget):
    plain = harmonica(smooth, N, degree=2, budget=budget, alpha=alpha, seed=3)
    g = harmonica_anchor(
        smooth, N, degree=2, budget=budget, alpha=alpha, seed=3, anchors=1, terms=None
    )
    assert isinstance(g, AnchoredSurrogate) and g.log_k == 0
    np.testing.assert_array_equal(g.evaluated.masks, plain.evaluated.masks)
    np.testing.assert_array_equal(g.own.table, plain.table)
    np.testing.assert_array_equal(g.own.coef, plain.coef)
    assert g.error.value == pytest.approx(plain.error.value, rel=1e-12)
    assert g.error.standard_error == pytest.approx(plain.error.standard_error)


def test_one_anchor_on_given_masks_is_the_fit_to_them_bit_for_bit():
    masks = uniform_draws(12, 300, np.random.default_rng(0))
    values = two_outputs(masks)
    (plain,) = fit_surrogates(masks, values[:, None, :], degree=2)
    g = fit_anchored(masks, values, np.ones((1, 12), dtype=bool), degree=2)
    np.testing.assert_array_equal(g.own.table, plain.table)
    np.testing.assert_array_equal(g.own.coef, plain.coef)


def test_each_anchor_is_the_lasso_of_its_own_masks():
    rng = np.random.default_rng(0)
    masks, anchors = uniform_draws(12, 400, rng), draw_anchors(12, 3, rng)
    g = fit_anchored(masks, smooth(masks), anchors, degree=1, alpha=0.02)
    cell = nearest_anchor(masks, anchors)
    for i, part in enumerate(g.surrogates):
        rows = masks[cell == i]
        lasso = Lasso(alpha=0.02, tol=1e-10).fit(2.0 * rows - 1, smooth(rows))
        found = np.array([part.spectrum.get((j,), 0.0) for j in range(12)])
        np.testing.assert_allclose(found, lasso.coef_, atol=1e-6)
        assert part.spectrum[()] == pytest.approx(lasso.intercept_, abs=1e-6)
        assert part.n_evaluations == len(rows)


def test_an_anchor_without_samples_takes_the_fit_to_all_masks():
    masks = uniform_draws(12, 200, np.random.default_rng(0))
    input_twice = np.ones((2, 12), dtype=bool)  # ties go to the first: none left
    for fit in (fit_anchored, fit_constrained):
        g = fit(masks, smooth(masks), input_twice, degree=1, alpha=0.01)
        assert g.surrogates[1].n_evaluations == 0
        assert np.isfinite(g(all_masks(12))).all()
    (plain,) = fit_surrogates(masks, smooth(masks)[:, None], degree=1, alpha=0.01)
    g = fit_anchored(masks, smooth(masks), input_twice, degree=1, alpha=0.01)
    assert g.surrogates[1].spectrum == plain.spectrum


@pytest.mark.parametrize("method", [harmonica_anchor, harmonica_anchor_constrained])
def test_more_anchors_than_samples_and_than_masks(method):
    g = method(smooth, 12, degree=1, budget=30, anchors=40, alpha=0.01)
    assert g.n_anchors == 40 and g.n_evaluations <= 30
    assert np.isfinite(g(all_masks(12))).all()
    small = method(smooth, 3, degree=1, anchors=50, alpha=0.01)
    assert small.n_anchors == 8 and small.log_k == pytest.approx(np.log(8))


def test_a_third_of_the_masks_with_three_anchors_is_near_the_input():
    masks, n_uniform = anchor_masks(20, 1200, 3, np.random.default_rng(0))
    assert len(masks) <= 1200 and n_uniform == 900
    removed = (~masks).sum(axis=1)
    assert removed[n_uniform:].max() <= 4 and removed[n_uniform:].min() >= 1
    assert len(np.unique(masks, axis=0)) == len(masks)
    same, n_same = anchor_masks(20, 1200, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(same, draw_masks(20, 1200, np.random.default_rng(0)))
    assert n_same == 1200


def test_anchors_fit_better_and_the_pull_gives_some_of_it_back():
    masks = all_masks(10)

    def errors(method, **options):
        g = method(smooth, 10, degree=1, budget=900, alpha=1e-3, **options)
        return np.sqrt(((smooth(masks) - g(masks)) ** 2).mean())

    one, five = errors(harmonica), errors(harmonica_anchor, anchors=5)
    pulled = [
        errors(harmonica_anchor_constrained, anchors=5, consistency=pull)
        for pull in (0.0, 0.1, 10.0)
    ]
    assert five < 0.95 * one
    assert pulled[0] == pytest.approx(five, rel=0.05)
    assert pulled[0] < pulled[1] < pulled[2]
    assert pulled[2] == pytest.approx(one, rel=0.05)


def test_a_strong_pull_makes_all_parts_equal():
    g = harmonica_anchor_constrained(
        smooth, N, degree=2, budget=300, anchors=4, consistency=100.0
    )
    assert all(part.spectrum == g.own.spectrum for part in g.surrogates)
    assert g.distances_to_mean().max() < 1e-12


@pytest.mark.parametrize("name", list(FAMILY))
def test_an_affine_change_of_the_output_changes_the_explanation_alike(name):
    method, options = FAMILY[name]
    options = {key: v for key, v in options.items() if key == "anchors"}  # all "auto"
    masks = all_masks(N)
    plain = method(smooth, N, degree=2, budget=200, **options)
    moved = method(lambda m: 50 * smooth(m) - 7, N, degree=2, budget=200, **options)
    np.testing.assert_allclose(moved(masks), 50 * plain(masks) - 7, atol=0.01)


@pytest.mark.parametrize("name", ["anchor", "constrained", "low_degree"])
def test_both_ends_are_met_when_asked_for(name):
    method, options = FAMILY[name]
    g = method(two_outputs, N, degree=2, budget=200, ends=True, **options)
    ends = np.array([[True] * N, [False] * N])
    np.testing.assert_allclose(g(ends), two_outputs(ends), atol=1e-9)
    total = two_outputs(ends)[0] - two_outputs(ends)[1]
    np.testing.assert_allclose(g.shapley_values().sum(axis=0), total, atol=1e-9)


def test_local_is_better_inside_and_worse_outside():
    masks = all_masks(12)
    near = (~masks).sum(axis=1) <= 3
    inside, outside = [], []
    for g in (
        harmonica(smooth, 12, degree=1, budget=290),
        harmonica_local(smooth, 12, degree=1, budget=290, radius=3),
    ):
        gap = (smooth(masks) - g(masks)) ** 2
        inside.append(gap[near].mean())
        outside.append(gap.mean())
    assert inside[1] < inside[0] and outside[1] > outside[0]


def test_a_radius_beyond_all_features_means_all_features():
    assert harmonica_local(smooth, 3, degree=1).radius == 3
    assert harmonica_local(smooth, 3, degree=1, radius=50).radius == 3
    assert harmonica_local(smooth, N, degree=1, budget=100).radius == 4


@pytest.mark.parametrize("centred", [True, False])
def test_low_degree_is_the_sample_mean(centred):
    for masks in (
        uniform_draws(6, 41, np.random.default_rng(0)),
        draw_masks(6, 40, np.random.default_rng(0)),
    ):
        values = two_outputs(masks)
        g = fit_low_degree(masks, values, degree=3, centred=centred)
        numbers = mask_numbers(masks)
        for term, coef in g.spectrum.items():
            chi = np.array([reference.parity(int(x), term) for x in numbers])
            middle = values.mean(axis=0) if centred and term else 0
            expected = chi @ (values - middle) / len(values)
            np.testing.assert_allclose(coef, expected, atol=1e-6)
        assert len(g.terms) == 1 + 6 + 15 + 20


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("paired", [False, True])
def test_low_degree_held_out_predictions_leave_the_mask_out(paired, centred):
    rng = np.random.default_rng(0)
    masks = draw_masks(7, 30, rng) if paired else uniform_draws(7, 31, rng)
    values = smooth(masks) + 1
    found = partial(fit_low_degree, degree=2, centred=centred)
    stated = found(masks, values)
    held_out = np.zeros(len(masks))
    for row in range(len(masks)):
        left = {row, row ^ 1} if paired else {row}
        rest = [i for i in range(len(masks)) if i not in left]
        held_out[row] = found(masks[rest], values[rest])(masks[row])[0]
    expected, spread = stated_error(
        masks, values[:, None], stated(masks)[:, None], held_out[:, None]
    )
    assert stated.error.value == pytest.approx(expected[0], rel=1e-5)
    assert stated.error.standard_error == pytest.approx(spread[0], rel=1e-4)


def test_results_have_the_promised_types():
    for name, (method, options) in FAMILY.items():
        g = method(smooth, 4, degree=2, **options)
        wanted = AnchoredSurrogate if "anchors" in options else Surrogate
        assert type(g) is wanted, name


def test_bad_input():
    for anchors in (0, -1):
        with pytest.raises(ValueError, match=f"anchors={anchors}; needed at least 1"):
            harmonica_anchor(smooth, N, anchors=anchors)
    for anchors in (1.5, True, "3"):
        with pytest.raises(ValueError, match="whole number"):
            harmonica_anchor_constrained(smooth, N, anchors=anchors)
    for radius in (0, -3, 1.5, True):
        with pytest.raises(ValueError, match="radius="):
            harmonica_local(smooth, N, radius=radius)
    for pull in (-1.0, np.nan, np.inf, "much", True):
        with pytest.raises(ValueError, match="consistency="):
            harmonica_anchor_constrained(smooth, N, consistency=pull, budget=50)
    for method in (harmonica_anchor, harmonica_anchor_constrained):
        with pytest.raises(ValueError, match="alpha=-1"):
            method(smooth, N, alpha=-1.0, budget=50)
    for method, options in FAMILY.values():
        with pytest.raises(ValueError, match="budget=1 is too small"):
            method(smooth, N, budget=1, **options)
        with pytest.raises(ValueError, match="degree=0"):
            method(smooth, N, degree=0, budget=50, **options)
        with pytest.raises(ValueError, match="n_features=0"):
            method(smooth, 0, **options)
        with pytest.raises(TypeError, match="needed a callable"):
            method(3, N, **options)
    with pytest.raises(ValueError, match="0 anchors"):
        masks = all_masks(4)
        fit_anchored(masks, smooth(masks), np.ones((0, 4), dtype=bool))
    with pytest.raises(ValueError, match="all kept and all removed"):
        masks = all_masks(4)[1:]
        fit_anchored(masks, smooth(masks), masks[-1:], ends=True)
    with pytest.raises(ValueError, match="share a pull; needed"):
        masks = all_masks(4)
        fit_constrained(masks, smooth(masks), masks[-1:], terms="auto")


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("n_features", [1, 2, 30])
@pytest.mark.parametrize("budget", [2, 3, 5])
def test_the_smallest_budgets(name, n_features, budget):
    method, options = FAMILY[name]
    found = method(
        lambda masks: masks.sum(axis=1) + 1.0, n_features, 1, budget, **options
    )
    assert found.n_evaluations <= budget
    assert np.isfinite(float(found.error.standard_error))


@pytest.mark.parametrize("name", FAMILY)
def test_wrong_settings_cost_no_evaluation(name):
    method, options = FAMILY[name]
    calls = []

    def function(masks):
        calls.append(len(masks))
        return masks.sum(axis=1)

    for wrong in ({"degree": 0}, {"feature_names": ["a"]}):
        with pytest.raises(ValueError, match="needed"):
            method(function, 20, **(options | wrong))
    assert not calls


@pytest.mark.parametrize("name", ["anchor", "constrained", "low_degree"])
def test_flaky_models_are_tried_again(name):
    method, options = FAMILY[name]
    calls = []

    def flaky(masks):
        calls.append(len(masks))
        if len(calls) == 1:
            raise ConnectionError
        return masks.sum(axis=1)

    assert method(flaky, 6, retries=1, **options).n_evaluations == 64


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_low_degree_at_any_scale(scale):
    one = low_degree(smooth, N, 2, 100)
    other = low_degree(lambda masks: scale * smooth(masks), N, 2, 100)
    masks = all_masks(N)
    np.testing.assert_allclose(other(masks) / scale, one(masks), rtol=1e-9, atol=1e-14)


def test_anchors_cost_little_where_one_polynomial_would_do():
    def f(masks):
        x = np.where(masks, 1.0, -1.0)
        pairs = sum(x[:, i] * x[:, i + 1] for i in range(0, 12, 2))
        return pairs + x[:, :6].sum(axis=1) + 0.5 * x.prod(axis=1)

    one = harmonica(f, 14, 2, 400)
    five = harmonica_anchor(f, 14, 2, 400, anchors=5)
    errors = [metrics.interpretation_error(f, g, 14).value for g in (one, five)]
    assert errors[1] < 1.15 * errors[0]


@pytest.mark.parametrize("fit", [harmonica_anchor, low_degree])
def test_unknown_arguments_are_named(fit):
    with pytest.raises(TypeError, match="unknown arguments .'bogus'"):
        fit(smooth, 4, bogus=1)


def corner(masks):
    """A product of five features, beside a straight line."""
    return 3.0 * masks[:, :5].all(axis=1) + masks @ np.linspace(1, 2, masks.shape[1])


def test_anchors_start_from_the_larger_terms_that_the_samples_support():
    fits = {
        terms: harmonica_anchor(corner, 10, 2, 300, seed=1, anchors=3, terms=terms)
        for terms in ("auto", None)
    }
    cube = all_masks(10)
    errors = {
        t: np.sqrt(((g(cube) - corner(cube)) ** 2).mean()) for t, g in fits.items()
    }
    assert errors["auto"] < 0.3 * errors[None]
    assert max(len(t) for g in fits["auto"].surrogates for t in g.terms) > 2
    assert max(len(t) for g in fits[None].surrogates for t in g.terms) == 2
    default = harmonica_anchor(corner, 10, 2, 300, seed=1, anchors=3)
    np.testing.assert_array_equal(default(cube), fits["auto"](cube))


@pytest.mark.parametrize("anchors", [1, 3])
@pytest.mark.parametrize("budget", [200, 1 << N])
def test_a_given_strength_is_the_published_algorithm_whatever_the_terms(
    budget, anchors
):
    one, other = (
        harmonica_anchor(smooth, N, 2, budget, 0.01, anchors=anchors, terms=terms)
        for terms in ("auto", None)
    )
    np.testing.assert_array_equal(one(all_masks(N)), other(all_masks(N)))


@pytest.mark.parametrize("anchors", [1, 3])
def test_anchors_doubt_their_error_as_much_as_the_polynomial_they_start_from(anchors):
    g = harmonica_anchor(corner, 10, 2, 300, seed=1, anchors=anchors)
    uniform, n_uniform = anchor_masks(10, 300, anchors, np.random.default_rng(1))
    uniform = uniform[:n_uniform]
    shared = fit_surrogates(uniform, corner(uniform)[:, None], 2, terms="auto")[0]
    ratios = [one.error.standard_error / one.error.value for one in (g, shared)]
    assert ratios[0] >= ratios[1] * (1 - 1e-9) > 0
