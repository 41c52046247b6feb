"""Interpretation errors, spectrum distances and measures of fit: exact values."""

import math

import numpy as np
import pytest
import reference
from core_games import function_of
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core import Surrogate, basis, from_attributions, metrics
from harmonica_core.design.masks import all_masks, mask_numbers

NORMS = (0.5, 1, 2, 3.5, math.inf, "L0")


def random_pair(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=1 << n) * 0.2, rng.normal(size=1 << n) * 0.2


@pytest.mark.parametrize("n", range(1, 11))
@pytest.mark.parametrize("p", NORMS)
def test_every_norm_and_radius_agrees_with_brute_force(n, p):
    f, g = random_pair(n, seed=n)
    for radius in (None, *range(1, n + 1)):
        found = metrics.interpretation_error(function_of(f), g, n, p, radius)
        expected = reference.error_norm(f, g, p, radius)
        assert found.value == pytest.approx(expected, rel=1e-12)
        assert found.exact and found.standard_error == 0
        assert found.n_evaluations == len(reference.ball_positions(n, radius))


def test_other_spellings_of_infinity():
    f, g = random_pair(4)
    whole = metrics.interpretation_error(f, g, 4, p=math.inf)
    assert metrics.interpretation_error(f, g, 4, p="inf", radius=math.inf) == whole
    assert metrics.interpretation_error(f, g, 4, p=np.inf, radius=np.inf) == whole


def test_radius_n_is_the_cube_without_the_full_mask():
    f, g = random_pair(6)
    f[-1] += 100
    ball = metrics.interpretation_error(f, g, 6, p=1, radius=6).value
    cube = metrics.interpretation_error(f, g, 6, p=1).value
    assert ball == pytest.approx(np.abs(f - g)[:-1].mean())
    assert cube == pytest.approx(np.abs(f - g).mean())


def test_leaving_out_the_root():
    f, g = random_pair(5)
    found = metrics.interpretation_error(f, g, 5, p=3, root=False).value
    assert found == pytest.approx((np.abs(f - g) ** 3).mean())


def test_a_large_power_does_not_overflow():
    f = 1e6 * np.arange(8.0)
    found = metrics.interpretation_error(f, 0 * f, 3, p=200).value
    assert found == pytest.approx(7e6 / 8 ** (1 / 200), rel=1e-9)


def test_threshold_counts_errors_that_reach_it():
    f = np.array([0.0, 0.25, 0.5, 0.75])
    error = metrics.interpretation_error(f, 0 * f, 2, "L0", threshold=0.5)
    assert error.value == 0.5


@given(n=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_parseval(n, seed):
    f, g = random_pair(n, seed)
    error = metrics.interpretation_error(f, g, n, p=2).value
    distance = metrics.spectrum_distance(f, g, p=2).value
    assert error == pytest.approx(distance, rel=1e-12)


@pytest.mark.parametrize("p", NORMS)
def test_spectrum_distance_of_every_kind_of_input(p):
    n, rng = 5, np.random.default_rng(3)
    tables = [basis.terms_up_to(n, 2), basis.terms_up_to(n, 3)[4:]]
    g, h = (Surrogate(n, t, rng.normal(size=len(t))) for t in tables)
    games = [s(all_masks(n)) for s in (g, h)]
    left, right = map(reference.spectrum, games)
    gaps = np.array([abs(left[term] - right[term]) for term in left])
    if p == "L0":
        expected = (gaps > 1e-9).sum()
    else:
        expected = gaps.max() if p == math.inf else (gaps**p).sum() ** (1 / p)
    pairs = [(g, h), (g.spectrum, h), (games[0], h), (games[0], games[1])]
    pairs.append((function_of(games[0]), h))
    for a, b in pairs:
        found = metrics.spectrum_distance(a, b, p, tolerance=1e-9)
        # Roots of rounding errors add up where p < 1.
        assert found.value == pytest.approx(expected, rel=1e-7)
        assert found.exact


def test_spectrum_distance_of_many_features_and_of_constants():
    g = Surrogate(300, ((), (7, 200, 299)), np.array([1.0, 2.0]))
    h = Surrogate(300, ((), (7,)), np.array([1.0, 3.0]))
    assert metrics.spectrum_distance(g, h, 1).value == 5.0
    assert metrics.spectrum_distance({(): 1.0}, {(): 4.0}, n_features=3).value == 3.0
    assert metrics.spectrum_distance({}, {(): 4.0}, n_features=3).value == 4.0


def test_uncertainty_principle():
    """I_0 * D_0 >= 1; the indicator of one mask meets it with equality."""
    f = np.zeros(16)
    f[5] = 1.0
    wrong = metrics.interpretation_error(f, 0 * f, 4, "L0", threshold=1e-9).value
    terms = metrics.spectrum_distance(f, 0 * f, "L0").value
    assert wrong * terms == 1.0


@pytest.mark.parametrize("radius", [None, 1, 3, 6])
def test_measures_of_fit_agree_with_brute_force(radius):
    f, g = random_pair(6, seed=2)
    fit = metrics.r_squared(f, g, 6, radius)
    assert fit.value == pytest.approx(reference.r_squared(f, g, radius))
    plain = metrics.infidelity(function_of(f), g, 6, radius)
    assert plain.value == pytest.approx(reference.infidelity(f, g, radius))
    assert plain.n_evaluations == 1 + len(reference.ball_positions(6, radius))
    scales = np.linspace(-2, 2, 4001)
    best = min(reference.infidelity(f, g, radius, scale) for scale in scales[::40])
    normalized = metrics.infidelity(f, g, 6, radius, normalize=True).value
    assert normalized == pytest.approx(best, abs=2e-3) and normalized <= best + 1e-12


def test_infidelity_of_additive_scores_is_captums():
    torch = pytest.importorskip("torch")
    captum_metrics = pytest.importorskip("captum.metrics")
    n, rng = 5, np.random.default_rng(0)
    phi, weights = rng.normal(size=n), rng.normal(size=(n, n))

    def model(x):
        return torch.einsum("bi,ij,bj->b", x, torch.tensor(weights), x)

    masks = torch.tensor(all_masks(n), dtype=torch.float64)
    ones = torch.ones(1, n, dtype=torch.float64)
    theirs = captum_metrics.infidelity(
        model,
        lambda inputs: (1 - masks, masks),
        ones,
        torch.tensor(phi)[None],
        n_perturb_samples=len(masks),
    )
    f = model(masks).numpy()
    ours = metrics.infidelity(f, from_attributions(phi, 0.3), n).value
    assert ours == pytest.approx(theirs.item())


def test_r_squared_of_a_constant_is_unknown():
    assert math.isnan(metrics.r_squared(np.full(8, 0.1), np.zeros(8), 3).value)


def test_efficiency_gap():
    f, g = random_pair(4)
    gap = metrics.efficiency_gap(function_of(f), g, 4)
    assert gap.value == abs(f[-1] - g[-1])
    assert gap.exact and gap.n_evaluations == 1
    with pytest.raises(ValueError, match="2 outputs and f has 1"):
        metrics.efficiency_gap(f, np.stack([g, g], axis=1), 4)
    stored = metrics.EvaluationSet.draw(f, 4)
    assert metrics.efficiency_gap(stored, g, 4).value == gap.value


def test_several_outputs_give_arrays():
    pairs = [random_pair(4, seed) for seed in range(3)]
    f, g = (np.stack(games, axis=1) for games in zip(*pairs, strict=True))
    for metric in (
        metrics.interpretation_error,
        metrics.truthful_gap,
        metrics.r_squared,
        metrics.infidelity,
        metrics.efficiency_gap,
        lambda f, g, n: metrics.spectrum_distance(f, g),
    ):
        together = metric(f, g, 4)
        alone = [metric(*pair, 4).value for pair in pairs]
        np.testing.assert_allclose(together.value, alone)
        assert np.shape(together.standard_error) == (3,)


def test_scores_and_pairs_of_other_methods_are_judged_through_their_extension():
    f, _ = random_pair(4)
    phi, pairs = [0.1, -0.2, 0.3, 0.0], {(0,): 0.2, (1, 3): -0.4}
    first = reference.game_from_interactions(
        {(i,): v for i, v in enumerate(phi)}, f[0], 4
    )
    second = reference.game_from_interactions(pairs, f[0], 4)
    found = metrics.interpretation_error(f, from_attributions(phi, f[0]), 4, 1, 2)
    assert found.value == pytest.approx(reference.error_norm(f, first, 1, 2))
    g = from_attributions(pairs, f[0], n_features=4)
    found = metrics.interpretation_error(f, g, 4, 1, 2)
    assert found.value == pytest.approx(reference.error_norm(f, second, 1, 2))


# ---------------------------------------------------------------- shared evaluations
def test_profile_evaluates_f_once_per_mask_for_all_methods_radii_and_norms():
    f, g = random_pair(6)
    seen = []

    def counted(masks):
        seen.extend(mask_numbers(masks).tolist())
        return f[mask_numbers(masks)]

    found = metrics.profile(counted, {"g": g, "zero": 0 * g}, 6, ps=(*NORMS,))
    rows = list(found.rows())
    assert sorted(seen) == list(range(64))
    assert len(rows) == 2 * 4 * len(NORMS)  # radii 1, 2, 4 and None
    for name, radius, p, error in rows:
        expected = reference.error_norm(f, g if name == "g" else 0 * g, p, radius)
        assert error.value == pytest.approx(expected, rel=1e-12)
    gap = found.difference("g", "zero", 2, 1).value
    assert gap == pytest.approx(
        found.error("g", 2, 1).value - found.error("zero", 2, 1).value
    )


def test_an_evaluation_set_stands_in_for_f_in_every_metric():
    f, g = random_pair(5)
    known = metrics.EvaluationSet.draw(f, 5, (1, 3, None))
    for metric in (
        metrics.interpretation_error,
        metrics.truthful_gap,
        metrics.r_squared,
        metrics.efficiency_gap,
    ):
        assert metric(known, g, 5).value == metric(f, g, 5).value
    assert (
        metrics.infidelity(known, g, 5, 3).value == metrics.infidelity(f, g, 5, 3).value
    )


# ---------------------------------------------------------------- bad input
F4 = np.arange(16.0)
BAD = {
    "radius 0": (dict(radius=0), "radius=0"),
    "radius > n": (dict(radius=5), "radius=5 with 4 features"),
    "radius 1.5": (dict(radius=1.5), "not a whole number"),
    "p = 0": (dict(p=0), "p=0"),
    "p < 0": (dict(p=-1), "p=-1"),
    "p nan": (dict(p=math.nan), "p=nan"),
    "p word": (dict(p="L3"), "p='L3'"),
    "p bool": (dict(p=True), "p=True"),
    "threshold": (dict(threshold=math.nan), "threshold=nan"),
    "limit": (dict(max_evaluations=0), "max_evaluations=0"),
    "limit type": (dict(max_evaluations=1.5), "max_evaluations=1.5"),
    "array too short": (dict(g=np.zeros(8)), r"2\*\*4 values"),
    "array of f too short": (dict(f=np.zeros(15)), r"f has shape \(15,\)"),
    "nan in f": (dict(f=np.where(F4 == 3, np.nan, F4)), "NaN"),
    "nan in g": (dict(g=np.where(F4 == 3, np.nan, F4)), "NaN"),
    "nan from g": (dict(g=lambda m: np.full(len(m), np.nan)), "NaN"),
    "inf from f": (dict(f=lambda m: np.full(len(m), np.inf)), "infinity"),
    "width of g": (dict(g=Surrogate(3, ((),), np.ones(1))), "explains 3 features"),
    "outputs": (dict(g=np.zeros((16, 2))), "2 outputs and f has 1"),
    "n_features": (dict(n_features=0), "n_features=0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    arguments, message = BAD[case]
    arguments = {"f": F4, "g": F4, "n_features": 4, **arguments}
    with pytest.raises(ValueError, match=message):
        metrics.interpretation_error(**arguments)


def test_what_is_neither_callable_nor_numbers_is_refused():
    with pytest.raises(TypeError, match="g is str"):
        metrics.interpretation_error(F4, "surrogate", 4)
    with pytest.raises(TypeError, match="unexpected keyword"):
        metrics.interpretation_error(F4, F4, 4, n_samples=3)


def test_an_error_inside_g_says_that_it_is_g():
    with pytest.raises(ValueError, match="shape") as caught:
        metrics.interpretation_error(F4, lambda masks: np.zeros(3), 4)
    assert "argument g" in "".join(caught.value.__notes__)


def test_evaluations_that_do_not_fit_are_refused():
    f = np.zeros(1 << 8)
    known = metrics.EvaluationSet.draw(f, 8, (2, None), max_evaluations=100)
    with pytest.raises(ValueError, match=r"serve the radii \(2, 8, None\), not 3"):
        metrics.interpretation_error(known, f, 8, radius=3)
    with pytest.raises(ValueError, match="n_features=9"):
        metrics.interpretation_error(known, f, 9)
    with pytest.raises(TypeError, match="got seed although"):
        metrics.interpretation_error(known, f, 8, seed=1)
    ball = metrics.EvaluationSet.draw(f, 8, (2,), max_evaluations=10)
    with pytest.raises(ValueError, match="full mask"):
        metrics.efficiency_gap(ball, f, 8)
    with pytest.raises(ValueError, match="at least 2 masks each"):
        metrics.EvaluationSet.draw(f, 8, (1, 2, 4, None), max_evaluations=5)
    with pytest.raises(ValueError, match="radii is empty"):
        metrics.EvaluationSet.draw(f, 8, ())


def test_spectrum_distance_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\[3, 4\] features"):
        metrics.spectrum_distance(np.zeros(8), np.zeros(16))
    with pytest.raises(ValueError, match="1 outputs and h 2"):
        metrics.spectrum_distance(np.zeros(8), np.zeros((8, 2)))
    with pytest.raises(ValueError, match="pass n_features"):
        metrics.spectrum_distance(np.sum, np.sum)
    with pytest.raises(ValueError, match="no spectrum to read off"):
        metrics.spectrum_distance(np.sum, np.sum, n_features=30)
    with pytest.raises(ValueError, match="p=0"):
        metrics.spectrum_distance(np.zeros(8), np.zeros(8), p=0)


def test_profile_names_the_method_that_it_does_not_know():
    found = metrics.profile(F4, {"mine": F4}, 4)
    with pytest.raises(ValueError, match=r"no method 'yours'.*\['mine'\]"):
        found.error("yours")
