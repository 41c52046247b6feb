"""Learning a prior: the loss, its slope, and what is learnt."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from harmonica_core import Settings, draw_design, learn_prior
from harmonica_core.basis.kernel import covariances
from harmonica_core.design.masks import uniform_draws
from harmonica_core.engine import prior as learning
from harmonica_core.engine.sample import Sample

N = 6


def sample_of(paired, n_functions=1, n_masks=40, n=N):
    if paired:
        masks = draw_design(Settings(), n, n_masks).masks
    else:
        masks = np.unique(uniform_draws(n, n_masks, np.random.default_rng(0)), axis=0)
        masks = masks[: n_masks - 3]
    hidden = np.tanh(
        (2.0 * masks - 1) @ np.random.default_rng(1).normal(size=(n, 4)) / 2
    )
    weights = np.random.default_rng(2).normal(size=(4, n_functions))
    return Sample.of(masks, hidden @ weights)


def problem(paired, n_functions, degree):
    """Shape, a point away from the start, and data."""
    sample = sample_of(paired, n_functions)
    shape = learning._Shape.of(N, degree)
    data = learning._Data.of(sample, np.arange(n_functions))
    rng = np.random.default_rng(7)
    theta = shape.start() + 0.4 * rng.normal(size=len(shape.start()))
    return shape, theta, data


CASES = pytest.mark.parametrize(
    "paired, n_functions, degree",
    [
        (True, 1, None),
        (True, 3, None),
        (False, 1, None),
        (False, 2, None),
        (True, 2, 1),
        (True, 1, 3),
        (False, 2, 2),
        (False, 1, 4),
    ],
)


@CASES
def test_the_slope_is_that_of_finite_differences(paired, n_functions, degree):
    shape, theta, data = problem(paired, n_functions, degree)
    assert len(data.parts) == (2 if paired else 1)
    _, slope = learning.loss(shape, theta, data)
    numeric = approx_fprime(
        theta, lambda at: learning.loss(shape, at, data)[0], epsilon=1e-6
    )
    np.testing.assert_allclose(slope, numeric, atol=2e-4 * np.abs(slope).max())
    assert (np.abs(slope) > 1e-6).any()


@CASES
def test_the_loss_is_the_negative_log_likelihood(paired, n_functions, degree):
    """Up to the pulls: the scale of each function profiled out, a flat intercept."""
    shape, theta, data = problem(paired, n_functions, degree)
    prior = shape.prior(theta)
    even, odd = covariances(prior, data.signs, data.signs)
    size = len(even)
    if paired:
        gram = np.zeros((2 * size, 2 * size))
        gram[:size, :size], gram[size:, size:] = even, odd
        white = np.repeat(prior.white, size)
        ones = np.repeat([1.0, 0.0], size)
        y = np.concatenate([data.parts[0][1], data.parts[1][1]])
        opposite = np.zeros_like(gram)
    else:
        gram, ones, y = even + odd, np.ones(size), data.parts[0][1]
        white = np.full(size, prior.white.sum())
        both = data.signs @ data.signs.T == -N
        opposite = np.where(both, prior.white[0] - prior.white[1], 0.0)
        assert both.any()
    gram = gram + np.diag(white + learning.JITTER * np.diagonal(gram)) + opposite
    inverse = np.linalg.inv(gram)
    total = ones @ inverse @ ones
    p = inverse - np.outer(inverse @ ones, inverse @ ones) / total
    quadratic = np.einsum("tc,ts,sc->c", y, p, y)
    expected = (len(y) - 1) / 2 * np.log(quadratic / (len(y) - 1)).sum()
    expected += n_functions / 2 * (np.linalg.slogdet(gram)[1] + np.log(total))
    pulls, _ = learning._add_pulls(shape, theta, 0.0, np.zeros_like(theta))
    expected += pulls
    assert learning.loss(shape, theta, data)[0] == pytest.approx(expected, rel=1e-9)


def test_nothing_pulls_where_learning_starts():
    for degree in (None, 2):
        shape = learning._Shape.of(N, degree)
        start = shape.start()
        value, slope = learning._add_pulls(shape, start, 0.0, np.zeros_like(start))
        assert value == pytest.approx(0) and not slope.any()
        away = start + 0.3 * np.random.default_rng(0).normal(size=len(start))
        assert learning._add_pulls(shape, away, 0.0, np.zeros_like(start))[0] > 0.01


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("degree", [None, 2])
def test_learning_makes_the_sample_likelier(paired, degree):
    sample = sample_of(paired, 2)
    shape = learning._Shape.of(N, degree)
    data = learning._Data.of(sample, np.arange(2))
    found = learning._minimise(shape, shape.start(), data, 20)
    before, after = (learning.loss(shape, at, data)[0] for at in (shape.start(), found))
    assert after < before - 1


def test_a_degree_has_orders_and_no_products():
    sample = sample_of(True)
    for degree in (1, 2, 5):
        prior = learning.learn_prior(sample, degree)
        assert prior.degree == degree and len(prior.orders) == degree
        assert not len(prior.rates)
    assert learning.learn_prior(sample).degree is None
    assert learning.learn_prior(sample, N).degree is None  # no limit at all


def test_features_that_do_nothing_get_no_relevance():
    design = draw_design(Settings(), 12, 300)
    values = np.tanh((2.0 * design.masks[:, :4] - 1) @ [0.5, -0.7, 0.4, 0.9])
    prior = learn_prior(design, values[:, None], Settings())
    used, idle = prior.relevance[:4], prior.relevance[4:]
    assert idle.max() < 0.1 * used.min()


def test_noise_is_learnt_as_white():
    design = draw_design(Settings(), 12, 300)
    smooth = design.masks @ np.arange(12.0)
    noise = np.random.default_rng(0).normal(size=300) * smooth.std()
    white = [
        learn_prior(design, values[:, None], Settings()).white.sum()
        for values in (smooth**2, smooth**2 / smooth.std() + noise)
    ]
    assert white[1] > 100 * white[0]


def test_functions_share_one_prior_whatever_their_scale():
    sample = sample_of(True, 3)
    scaled = Sample.of(sample.masks, sample.standard * [1.0, 1e9, 1e-9] + [0, 5, 0.0])
    one, other = (learning.learn_prior(s) for s in (sample, scaled))
    np.testing.assert_allclose(one.relevance, other.relevance, rtol=1e-6)
    np.testing.assert_allclose(one.white, other.white, rtol=1e-6)


def test_constants_teach_nothing():
    sample = sample_of(True, 2)
    with_constant = Sample.of(
        sample.masks, np.c_[np.ones(len(sample.masks)), sample.standard]
    )
    one, other = (learning.learn_prior(s) for s in (sample, with_constant))
    np.testing.assert_allclose(one.rates, other.rates, rtol=1e-9)
    nothing = Sample.of(sample.masks, np.ones((len(sample.masks), 2)))
    assert np.isfinite(learning.learn_prior(nothing).orders).all()


def test_many_rows_are_learnt_from_some_of_them():
    data = learning._Data.of(sample_of(False, 2), np.arange(2))
    some = data.some(10)
    assert len(some.signs) == 10
    for row, opposite in enumerate(some.opposite):
        if opposite >= 0:
            np.testing.assert_array_equal(some.signs[row], -some.signs[opposite])


def test_what_needs_no_prior():
    masks = draw_design(Settings(), 4)
    values = np.ones((16, 1))
    assert learn_prior(masks, values, Settings()) is None
    for settings in (Settings(engine="lasso"), Settings("low_degree")):
        design = draw_design(settings, 12, 100)
        assert learn_prior(design, np.ones((100, 1)), settings) is None


def test_mirror_completes_a_symmetric_matrix():
    rng = np.random.default_rng(0)
    for size in (1, 5, 128, 130):
        full = rng.normal(size=(size, size))
        full += full.T
        half = np.tril(full) + np.triu(np.full((size, size), 9.0), 1)
        learning.mirror(half)
        np.testing.assert_array_equal(half, full)
