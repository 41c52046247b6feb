import numpy as np
import pytest
from scipy.optimize import check_grad

from harmonica_core import basis, interpolant, kernel, likelihood
from harmonica_core.interpolant import fit_interpolant, mean_coefficients
from harmonica_core.kernel import ALL, EVEN, ODD, Prior
from harmonica_core.design.masks import all_masks, paired_masks

N = 6
CUBE = basis.signs(all_masks(N))[:, :-1]
PAIRED = (EVEN, ODD)


def smooth_function(signs):
    return np.tanh(signs[:, 0] + signs[:, 1] * signs[:, 2]) + 0.3 * signs[:, 3]


def paired_problem(n_masks=40, seed=0):
    masks = paired_masks(N, n_masks, np.random.default_rng(seed))
    signs = basis.signs(masks)[:, :-1]
    values = smooth_function(signs)
    first, second = values[0::2], values[1::2]
    return signs[0::2], np.stack([first + second, first - second]) / 2


def problem(parities):
    if parities == PAIRED:
        return paired_problem()
    signs, _ = paired_problem(60)
    return signs, smooth_function(signs)[None, :]


def random_prior(rng, n_parts, n_components=2):
    rates = np.exp(rng.normal(-1.5, 0.5, size=(n_components, N)))
    shares = np.exp(rng.normal(size=(n_parts, n_components - 1)))
    mix = np.concatenate([np.ones((n_parts, 1)), shares], axis=1)
    return Prior(rates, mix, np.exp(rng.normal(-4, 1, size=n_parts)))


def test_prior_variances_are_the_spectrum_of_the_covariance():
    rates = np.array([0.1, 0.5, 0.0, 2.0, 1.0, 0.3])
    differ = CUBE[:, None, :] != CUBE[None, :, :]
    covariance = np.exp(-(differ * rates).sum(axis=2))
    table = basis.terms_up_to(N, N)
    members = (table[:, :, None] == np.arange(N)).any(axis=1)
    parities = basis.design(all_masks(N), table)
    variances = kernel.prior_variances(rates, members)
    np.testing.assert_allclose(
        (parities * variances) @ parities.T, covariance, atol=1e-12
    )
    assert variances.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("parities", [PAIRED, (ALL,)])
def test_the_posterior_mean_is_the_stated_polynomial(parities):
    fit = fit_interpolant(*problem(parities), parities)
    table = basis.terms_up_to(N, N)
    polynomial = basis.predict(
        all_masks(N), table, mean_coefficients([fit], table)[:, None]
    )
    np.testing.assert_allclose(
        polynomial[:, 0], fit.predict(CUBE).sum(axis=0), atol=1e-9
    )


@pytest.mark.parametrize("parities", [PAIRED, (ALL,)])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_prediction_up_to_a_degree_drops_the_larger_terms(parities, degree):
    fit = fit_interpolant(*problem(parities), parities)
    table = basis.terms_up_to(N, degree)
    polynomial = basis.predict(
        all_masks(N), table, mean_coefficients([fit], table)[:, None]
    )
    np.testing.assert_allclose(
        polynomial[:, 0], fit.predict(CUBE, degree).sum(axis=0), atol=1e-9
    )


def test_even_and_odd_parts_hold_only_their_terms():
    fit = fit_interpolant(*paired_problem(), PAIRED)
    even, odd = fit.predict(CUBE)
    np.testing.assert_allclose(even, even[::-1], atol=1e-12)
    np.testing.assert_allclose(odd, -odd[::-1], atol=1e-12)


def test_it_passes_through_the_values():
    signs, targets = paired_problem()
    fit = fit_interpolant(signs, targets, PAIRED)
    np.testing.assert_allclose(fit.predict(signs), targets, atol=1e-4)


@pytest.mark.parametrize("parities", [PAIRED, (ALL,)])
def test_left_out_predictions_are_those_of_fits_without_the_row(parities):
    signs, targets = problem(parities)
    prior = random_prior(np.random.default_rng(1), len(parities))
    _, left_out = interpolant._interpolate(signs, targets, parities, prior)
    for row in (0, 7, len(signs) - 1):
        others = np.arange(len(signs)) != row
        dual, _ = interpolant._interpolate(
            signs[others], targets[:, others], parities, prior
        )
        fit = interpolant.Interpolant(prior, parities, signs[others], dual, dual)
        np.testing.assert_allclose(
            fit.predict(signs[[row]])[:, 0], left_out[:, row], atol=1e-6
        )


@pytest.mark.parametrize("parities", [PAIRED, (ALL,)])
def test_slopes_of_the_loss(parities):
    signs, targets = problem(parities)
    work = kernel.Workspace(signs, 2, ALL not in parities)
    start = random_prior(np.random.default_rng(2), len(parities))

    def unpack(theta):
        rates, shares, noise = np.split(np.exp(theta), [2 * N, 2 * N + len(parities)])
        mix = np.stack([np.ones(len(parities)), shares], axis=1)
        return Prior(rates.reshape(2, N), mix, noise)

    def loss(theta):
        return likelihood.loss(work, targets, parities, unpack(theta))[0]

    def slope(theta):
        _, *slopes = likelihood.loss(work, targets, parities, unpack(theta))
        return np.concatenate([one.ravel() for one in slopes])

    logs = np.log(start.rates).ravel(), np.log(start.mix[:, 1]), np.log(start.noise)
    theta = np.concatenate(logs)
    assert check_grad(loss, slope, theta) < 1e-4 * np.linalg.norm(slope(theta))


def test_the_loss_is_the_negative_log_likelihood():
    signs, targets = problem((ALL,))
    prior = random_prior(np.random.default_rng(3), 1, n_components=1)
    value, *_ = likelihood.loss(
        kernel.Workspace(signs, 1, False), targets, (ALL,), prior
    )
    differ = signs[:, None, :] != signs[None, :, :]
    matrix = np.exp(-(differ * prior.rates[0]).sum(axis=2))
    matrix += (kernel.NUGGET + prior.noise[0]) * np.eye(len(signs))
    scale = targets[0] @ np.linalg.solve(matrix, targets[0]) / len(signs)
    determinant = np.linalg.slogdet(matrix)[1]
    assert value == pytest.approx(len(signs) / 2 * np.log(scale) + determinant / 2)


def test_features_that_do_nothing_are_found():
    fit = fit_interpolant(*paired_problem(60), PAIRED)
    table = basis.terms_up_to(N, N)
    coef = mean_coefficients([fit], table)
    idle = np.isin(table, (4, 5)).any(axis=1)
    assert np.linalg.norm(coef[idle]) < 1e-3 * np.linalg.norm(coef[~idle])


def test_many_rows_are_learnt_on_a_part_and_interpolated_on_all():
    n = 10
    masks = paired_masks(n, 640, np.random.default_rng(0))
    signs = basis.signs(masks)[:, :-1]
    values = smooth_function(signs)
    halves = np.stack([values[0::2] + values[1::2], values[0::2] - values[1::2]]) / 2
    fit = fit_interpolant(signs[0::2], halves, PAIRED)
    assert len(fit.signs) == 320
    cube = basis.signs(all_masks(n))[:, :-1]
    error = fit.predict(cube).sum(axis=0) - smooth_function(cube)
    assert np.sqrt((error**2).mean()) < 1e-3


def test_a_part_that_is_zero_stays_zero():
    signs, targets = paired_problem()
    targets[0] = 0
    fit = fit_interpolant(signs, targets, PAIRED)
    even, odd = fit.predict(CUBE)
    assert not even.any() and odd.any()
    nothing = fit_interpolant(signs, np.zeros_like(targets), PAIRED)
    assert not nothing.predict(CUBE).any()


def test_a_row_given_twice_does_no_harm():
    signs, targets = paired_problem()
    twice = fit_interpolant(
        np.concatenate([signs, signs]), np.concatenate([targets, targets], 1), PAIRED
    )
    np.testing.assert_allclose(twice.predict(signs), targets, atol=1e-3)


def test_mirror_completes_a_symmetric_matrix():
    rng = np.random.default_rng(0)
    for size in (1, 5, 64, 130):
        full = rng.normal(size=(size, size))
        full += full.T
        half = np.triu(full) + np.tril(np.full((size, size), 9.0), -1)
        kernel._mirror(half)
        np.testing.assert_array_equal(half, full)


@pytest.mark.parametrize("degree", [3, 4])  # some terms, all terms
def test_moments_are_sums_over_rows(degree):
    rng = np.random.default_rng(0)
    signs, dual = rng.choice([-1.0, 1.0], (9, 4)), rng.normal(size=(2, 9))
    table = basis.terms_up_to(4, degree)
    found = interpolant._moments(signs, dual, table)
    for column, term in enumerate(basis.terms_of(table)):
        chi = np.prod(signs[:, list(term)], axis=1)
        np.testing.assert_allclose(found[:, column], dual @ chi, atol=1e-12)


def test_noise_is_learnt_where_it_is_asked_for():
    signs, targets = paired_problem(56)
    spread = targets.std(axis=1, keepdims=True)
    rough = targets + 0.5 * spread * np.random.default_rng(5).normal(size=targets.shape)
    errors = []
    for noisy in (False, True):
        fit = fit_interpolant(signs, rough, PAIRED, noisy=noisy)
        assert (fit.prior.noise > 0).all() == noisy
        off = fit.predict(CUBE).sum(axis=0) - smooth_function(CUBE)
        errors.append(np.sqrt((off**2).mean()))
    assert errors[1] < 0.9 * errors[0]
    clean = fit_interpolant(signs, targets, PAIRED, noisy=True)
    assert (clean.prior.noise < 1e-3 * fit.prior.noise).all()
