"""Sampled metrics: unbiased, with standard errors that mean what they say."""

import math
import tracemalloc

import numpy as np
import pytest
import reference

from harmonica_core import Surrogate, basis, metrics
from harmonica_core.design import masks as draw
from harmonica_core.metrics import kernels, shells

N = 9
REPETITIONS = 700
RNG = np.random.default_rng(20)
MASKS = draw.all_masks(N)
F = RNG.normal(size=1 << N) * 0.3 + (MASKS[:, 0] & MASKS[:, 1]) + 0.4 * MASKS[:, 2]
TABLE = basis.terms_up_to(N, 2)
G = Surrogate(N, TABLE, RNG.normal(size=len(TABLE)) * 0.05)
H = Surrogate(N, basis.terms_up_to(N, 1), RNG.normal(size=N + 1) * 0.1)


def project(degree):
    """Everything true about F up to a degree: its truthful gap is zero."""
    return Surrogate(N, *zip(*_low_terms(degree), strict=True))


def _low_terms(degree):
    spectrum = reference.spectrum(F)
    return [(term, a) for term, a in spectrum.items() if len(term) <= degree]


def check_sampled(sampled, truth, ratio=(0.87, 1.16)):
    """z-test of the mean; stated standard errors against the observed spread."""
    found = [sampled(seed) for seed in range(REPETITIONS)]
    assert not any(estimate.exact for estimate in found)
    values = np.array([estimate.value for estimate in found])
    stated = np.sqrt(np.mean([estimate.standard_error**2 for estimate in found]))
    spread = values.std(ddof=1)
    z = (values.mean() - truth) / (spread / math.sqrt(REPETITIONS))
    assert abs(z) < 3.5, f"biased: mean {values.mean()}, truth {truth}, z = {z}"
    assert ratio[0] < stated / spread < ratio[1], f"{stated=} {spread=}"


INTERPRETATION = [
    (1, None, {}),
    (2, None, {}),
    (2, 4, {}),
    (0.5, 6, {}),
    (3, None, {"root": False}),
    ("L0", 4, {}),
]


@pytest.mark.parametrize(("p", "radius", "options"), INTERPRETATION)
def test_interpretation_error(p, radius, options):
    truth = metrics.interpretation_error(F, G, N, p, radius, **options).value
    check_sampled(
        lambda seed: metrics.interpretation_error(
            F, G, N, p, radius, seed=seed, max_evaluations=120, **options
        ),
        truth,
    )


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (metrics.r_squared, {}),
        (metrics.infidelity, {"radius": 4}),
        (metrics.infidelity, {"normalize": True}),
    ],
)
def test_measures_of_fit(metric, options):
    truth = metric(F, G, N, **options).value
    check_sampled(
        lambda seed: metric(F, G, N, seed=seed, max_evaluations=120, **options), truth
    )


@pytest.mark.parametrize("total", ["I_total", "D_total"])
def test_inconsistency(total):
    def regions(masks):
        return masks[:, 0].astype(int)

    def found(**options):
        # A callable has no spectrum, so that D_total is sampled too.
        models = [lambda masks: G(masks), H]
        return getattr(metrics.inconsistency(F, models, N, regions, **options), total)

    check_sampled(lambda seed: found(seed=seed, max_evaluations=120), found().value)


def stratified(seed):
    return metrics.EvaluationSet.draw(
        F, N, (1, 3, 5, None), max_evaluations=200, seed=seed
    )


@pytest.mark.parametrize("radius", [3, 5, None])
def test_one_set_of_masks_serves_every_radius(radius):
    sizes = [(s.fewest, s.most, s.enumerated) for s in stratified(0).shells]
    assert sizes[:3] == [(0, 0, True), (1, 1, True), (2, 3, False)]
    truth = metrics.interpretation_error(F, G, N, 2, radius).value
    check_sampled(
        lambda seed: metrics.interpretation_error(stratified(seed), G, N, 2, radius),
        truth,
    )


def test_differences_on_common_masks():
    near = Surrogate(N, G.table, G.coef + 0.002)
    truth = (
        metrics.interpretation_error(F, G, N).value
        - metrics.interpretation_error(F, near, N).value
    )
    check_sampled(
        lambda seed: metrics.error_difference(
            F, G, near, N, seed=seed, max_evaluations=120
        ),
        truth,
    )
    known = stratified(0)
    level = metrics.interpretation_error(known, G, N).standard_error
    assert metrics.error_difference(known, G, near, N).standard_error < level / 5


# ---------------------------------------------------------------- truthful gap
def naive_gap(g, degree, seed, n_masks):
    """Sum of squared means: what the unbiased estimate corrects."""
    masks = draw.uniform_draws(N, n_masks, np.random.default_rng(seed))
    residual = F[draw.mask_numbers(masks)] - g(masks)
    chi = basis.design(masks, basis.terms_up_to(N, degree))
    return ((residual @ chi / n_masks) ** 2).sum()


@pytest.mark.parametrize("degree", [1, 3])
def test_truthful_gap_is_unbiased_where_the_naive_estimate_is_not(degree):
    truth = reference.truthful_gap(
        F, G(MASKS), [term for term, _ in _low_terms(degree)]
    )
    assert metrics.truthful_gap(F, G, N, degree).value == pytest.approx(truth)
    naive = [naive_gap(G, degree, seed, 150) for seed in range(400)]
    z = (np.mean(naive) - truth) / (np.std(naive) / math.sqrt(len(naive)))
    assert z > 5
    check_sampled(
        lambda seed: metrics.truthful_gap(
            F, G, N, degree, seed=seed, max_evaluations=150
        ),
        truth,
    )


def test_truthful_gap_of_a_truthful_explanation_is_about_zero():
    g = project(2)
    assert metrics.truthful_gap(F, g, N, 2).value < 1e-25
    check_sampled(
        lambda seed: metrics.truthful_gap(F, g, N, 2, seed=seed, max_evaluations=150),
        0.0,
    )


def test_truthful_gap_from_shells_and_for_given_terms():
    terms = [(), (1,), (0, 1), (2, 3, 4, 5)]
    truth = metrics.truthful_gap(F, G, N, terms=terms).value
    residual = reference.spectrum(F - G(MASKS))
    assert truth == pytest.approx(sum(residual[term] ** 2 for term in terms))
    check_sampled(
        lambda seed: metrics.truthful_gap(stratified(seed), G, N, terms=terms), truth
    )


def test_truthful_gap_by_pairs_and_by_terms_is_the_same_number(monkeypatch):
    by_terms = metrics.truthful_gap(F, G, N, 3, max_evaluations=300)
    monkeypatch.setattr(
        kernels.DegreeKernel, "apply", kernels.DegreeKernel.apply_by_distance
    )
    monkeypatch.setattr(kernels, "_BLOCK_BYTES", 1 << 12)
    by_pairs = metrics.truthful_gap(F, G, N, 3, max_evaluations=300)
    assert by_pairs.value == pytest.approx(by_terms.value, rel=1e-10)
    assert by_pairs.standard_error == pytest.approx(by_terms.standard_error, rel=1e-10)
    table = basis.terms_up_to(N, 3)
    listed = metrics.truthful_gap(F, G, N, terms=table, max_evaluations=300)
    assert listed.value == pytest.approx(by_terms.value, rel=1e-10)
    assert listed.standard_error == pytest.approx(by_terms.standard_error, rel=1e-10)


def test_truthful_gap_of_a_million_terms_in_bounded_memory():
    n = 200
    weights = np.random.default_rng(0).normal(size=n)
    tracemalloc.start()
    gap = metrics.truthful_gap(
        lambda masks: masks @ weights,
        lambda masks: np.full(len(masks), weights.sum() / 2),
        n,
        degree=3,
        max_evaluations=1000,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert basis.n_terms_up_to(n, 3) * 1000 * 8 > 1e10 and peak < 1e8
    truth = (weights**2).sum() / 4
    assert abs(gap.value - truth) < 4 * gap.standard_error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 2, "terms": [(0,)]}, "one of the two"),
        ({"degree": -1}, "degree=-1"),
        ({"degree": 1.5}, "degree=1.5"),
        ({"terms": [(9,)]}, "outside 0 to 8"),
    ],
)
def test_truthful_gap_refuses_bad_terms(options, message):
    with pytest.raises(ValueError, match=message):
        metrics.truthful_gap(F, G, N, **options)


# ---------------------------------------------------------------- the draws
def test_the_largest_error_of_a_sample_is_a_lower_bound_without_standard_error():
    truth = metrics.interpretation_error(F, G, N, "inf").value
    found = metrics.interpretation_error(F, G, N, "inf", max_evaluations=100)
    assert found.value <= truth and math.isnan(found.standard_error)
    assert not found.exact
    gap = metrics.error_difference(F, G, H, N, "inf", max_evaluations=100)
    assert math.isnan(gap.standard_error)


def test_limits_decide_between_exact_and_sampled():
    def count(**options):
        found = metrics.interpretation_error(
            lambda masks: masks[:, 0] * 1.0, lambda masks: masks[:, 1] * 0.5, **options
        )
        return found.exact, found.n_evaluations

    assert count(n_features=14) == (True, 1 << 14)
    assert count(n_features=15) == (False, 1 << 14)
    assert count(n_features=15, max_evaluations=1 << 15) == (True, 1 << 15)
    assert count(n_features=300, radius=1) == (True, 300)
    assert count(n_features=300, radius=2, max_evaluations=500) == (False, 500)
    known = np.zeros(1 << 15)
    assert metrics.interpretation_error(known, known, 15).exact


def test_the_same_seed_gives_the_same_bits_and_generators_are_accepted():
    def value(**options):
        return metrics.interpretation_error(
            F, G, N, max_evaluations=50, **options
        ).value

    assert value(seed=3) == value(seed=3) == value(seed=np.random.default_rng(3))
    assert value(seed=3) == value(seed=3, batch_size=7)
    assert value(seed=3) != value(seed=4)
    with pytest.raises(TypeError, match="rng"):
        value(rng=np.random.default_rng(3))


@pytest.mark.parametrize("budget", [30, 200, 500, 512])
@pytest.mark.parametrize("radii", [(None,), (1, 4), (2, None), (1, 2, 4, 8, 9, None)])
def test_shells_cover_the_neighbourhoods_within_the_budget(radii, budget):
    plan = shells.plan_shells(radii, N, budget)
    assert sum(len(shell) for shell in plan) <= budget
    assert plan[0].rows.start == 0
    for left, right in zip(plan[:-1], plan[1:], strict=True):
        assert left.rows.stop == right.rows.start and left.most + 1 == right.fewest
    known = metrics.EvaluationSet.draw(F, N, radii, max_evaluations=budget)
    removed = N - known.masks.sum(axis=1)
    for shell in plan:
        inside = removed[shell.rows]
        assert inside.min() >= shell.fewest and inside.max() <= shell.most
    for radius in radii:
        parts = known.parts(radius)
        assert sum(part.weight for part in parts) == pytest.approx(1)
    if budget >= 512:
        assert all(shell.enumerated for shell in plan)


def test_shells_of_many_features():
    plan = shells.plan_shells((1, 32, None), 2000, 7000)
    assert [shell.fewest for shell in plan] == [0, 1, 2, 33]
    assert plan[1].enumerated and len(plan[2]) > 1000 and len(plan[3]) > 1000
    masks = plan[3].masks(2000, np.random.default_rng(0))
    assert abs(masks.mean() - 0.5) < 0.01


def test_predictions_take_bounded_memory():
    masks = draw.uniform_draws(20, 100_000, np.random.default_rng(0))
    table = basis.terms_up_to(20, 3)[:500]
    coef = np.ones((500, 1))
    tracemalloc.start()
    basis.predict(masks, table, coef)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e7 < masks.shape[0] * 500 * 8 / 10


def test_two_masks_do_not_state_a_spread_of_the_truthful_gap():
    def f(masks):
        return 5.0 * masks[:, 1]

    with pytest.raises(ValueError, match="needed at least 3"):
        metrics.truthful_gap(f, lambda masks: 0 * f(masks), 30, max_evaluations=2)
