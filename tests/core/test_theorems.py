"""The paper's theorems on random functions, and its three polynomial tables."""

import math

import numpy as np
import pytest
import reference
from core_games import function_of, surrogate_of
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import (
    AnchoredSurrogate,
    Surrogate,
    fit_surrogate,
    from_attributions,
    harmonica,
    harmonica_anchor,
    low_degree,
    metrics,
)
from harmonica_core.basis import table_of_numbers
from harmonica_core.basis.transform import spectrum_of_values
from harmonica_core.design.draw import draw_anchors
from harmonica_core.design.masks import all_masks

seeds = st.integers(0, 10**6)
sizes = st.integers(1, 6)


def random_game(n, rng):
    """Dense, sparse or integer values: theorems hold for all of them."""
    game = rng.normal(size=1 << n)
    kind = rng.integers(3)
    if kind == 1:
        game *= rng.random(1 << n) < 0.3
    return np.round(2 * game) if kind == 2 else game


# ---------------------------------------------------------------- Parseval
@settings(max_examples=60, deadline=None)
@given(seeds, sizes)
def test_parseval(seed, n):
    rng = np.random.default_rng(seed)
    f, g = random_game(n, rng), random_game(n, rng)
    energy = (spectrum_of_values(f) ** 2).sum()
    assert energy == pytest.approx((f**2).mean(), abs=1e-12)
    # so the spectrum distance D_2 is I_2 over uniform masks
    distance = metrics.spectrum_distance(surrogate_of(f), surrogate_of(g)).value
    assert distance == pytest.approx(reference.interpretation_error(f, g), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(seeds, sizes, st.data())
def test_what_a_truncated_spectrum_misses_is_the_energy_outside(seed, n, data):
    f = random_game(n, np.random.default_rng(seed))
    degree = data.draw(st.integers(1, n))
    g = harmonica(function_of(f), n, degree=degree, budget=1 << n)
    outside = [a for t, a in reference.spectrum(f).items() if len(t) > degree]
    missed = math.sqrt(sum(a**2 for a in outside))
    assert g.error.value == pytest.approx(missed, abs=1e-9)
    inside = list(reference.subsets(range(n), 0, degree))
    assert reference.truthful_gap(f, g(all_masks(n)), inside) < 1e-18


# ---------------------------------------------------------------- uncertainty principle
@settings(max_examples=100, deadline=None)
@given(seeds, sizes, st.booleans())
def test_uncertainty_principle(seed, n, structured):
    """I_0 * D_0 >= 1: I_0 = share of masks where f != g, D_0 = terms that differ.

    A function and its spectrum can not both be sparse; equality on subcubes.
    """
    rng = np.random.default_rng(seed)
    if structured:  # the indicator of a subcube, where it is an equality
        fixed = rng.integers(-1, 2, size=n)
        z = 2 * all_masks(n) - 1
        gap = ((z == fixed) | (fixed == 0)).all(axis=1).astype(float)
    else:
        gap = random_game(n, rng)
    if not gap.any():
        return
    share = np.count_nonzero(gap) / len(gap)
    terms = np.count_nonzero(np.abs(spectrum_of_values(gap)) > 1e-12)
    assert share * terms >= 1 - 1e-12
    if structured:
        assert share * terms == pytest.approx(1)


# ---------------------------------------------------------------- trade-off
def sides_of_the_trade_off(f, g):
    """I_total + D_total, and the sum of ||(f - gbar)|X_i||_2 over the cells X_i.

    Norms are those of the cube, E over all masks, with zero outside the cell.
    """
    masks = all_masks(g.n_features)
    cell, mean = g.nearest(masks), g.mean(masks)
    total, floor = 0.0, 0.0
    for i, part in enumerate(g.surrogates):
        inside = cell == i
        total += math.sqrt(((f - part(masks)) ** 2 * inside).mean())
        floor += math.sqrt(((f - mean) ** 2 * inside).mean())
    return total + g.distances_to_mean().sum(), floor


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_trade_off_of_any_local_models(seed, n, k):
    rng = np.random.default_rng(seed)
    f, anchors = random_game(n, rng), draw_anchors(n, k, rng)
    parts = []
    for _ in anchors:
        numbers = np.flatnonzero(rng.random(1 << n) < 0.5)
        table = table_of_numbers(np.union1d([0], numbers), n)
        parts.append(Surrogate(n, table, rng.normal(size=len(table))))
    g = AnchoredSurrogate(anchors, tuple(parts))
    spent, floor = sides_of_the_trade_off(f, g)
    assert spent >= floor - 1e-9


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(1, 4))
def test_trade_off_of_fitted_anchors(seed, k):
    f = random_game(6, np.random.default_rng(seed))
    g = harmonica_anchor(function_of(f), 6, degree=2, alpha=0.01, anchors=k, seed=seed)
    spent, floor = sides_of_the_trade_off(f, g)
    assert spent >= floor - 1e-9


def test_the_trade_off_is_an_equality_for_one_model():
    f = random_game(5, np.random.default_rng(0))
    g = harmonica_anchor(function_of(f), 5, degree=2, anchors=1, engine="lasso")
    spent, floor = sides_of_the_trade_off(f, g)
    assert spent == pytest.approx(floor)


# ---------------------------------------------------------------- polynomial tables
ONE = {(0,): 1 / 2, (1,): -1 / 3, (2,): 1 / 4}
TWO = {**ONE, (0, 1): -1 / 5, (0, 2): 1 / 6, (1, 2): -1 / 7}
THREE = {**TWO, (0, 1, 2): 1 / 8}
POLYNOMIALS = {"f1": ONE, "f2": TWO, "f3": THREE}
SIGNS = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])


def on_signs(name, x):
    """The polynomial on its own variables, which may also be 0."""
    terms = POLYNOMIALS[name].items()
    return sum(a * np.prod(x[:, list(term)], axis=1) for term, a in terms)


def value_function(name):
    return lambda masks: on_signs(name, 2.0 * masks - 1)


def is_exact(name, g):
    return np.allclose(g(SIGNS > 0), on_signs(name, SIGNS), atol=1e-9)


def test_ground_truth_with_the_sign_corrected():
    """The published table for f3 lacks the minus sign at (-1, +1, -1)."""
    values = on_signs("f3", SIGNS)
    found = {tuple(x): y for x, y in zip(SIGNS.tolist(), values, strict=True)}
    assert found[(-1, 1, -1)] == pytest.approx(-0.449, abs=5e-4)
    assert found[(1, 1, 1)] == pytest.approx(0.365, abs=1e-3)


@pytest.mark.parametrize("method", [harmonica, low_degree])
def test_harmonica_and_low_degree_of_matching_degree_are_exact(method):
    for name, f in POLYNOMIALS.items():
        for degree in (1, 2, 3):
            g = method(value_function(name), 3, degree=degree)
            assert is_exact(name, g) == (degree >= g_degree(f)), (name, degree)


def g_degree(f):
    return max(map(len, f))


def test_harmonica_is_exact_from_samples_too():
    """Ten more features that do nothing, far fewer masks than 2^13."""
    for name, f in POLYNOMIALS.items():
        first = value_function(name)
        g = harmonica(lambda m, first=first: first(m[:, :3]), 13, budget=400)
        padded = np.c_[SIGNS > 0, np.ones((8, 10), dtype=bool)]
        np.testing.assert_allclose(g(padded), on_signs(name, SIGNS), atol=1e-6)
        assert set(g.spectrum) == {(), *f}


def explained_by(name, index, order):
    """g(mask) = f(all removed) + sum of the index inside what is kept."""
    whole = fit_surrogate(value_function(name), 3, degree=3)
    scores = whole.interactions(order, index)
    return from_attributions(scores, whole.base_value, 3)


# method: (index, order, the polynomials it is exact on)
TABLE = {
    "SHAP": ("SV", 1, {"f1"}),
    "Banzhaf": ("BV", 1, {"f1"}),
    "Shapley-Taylor 2": ("STII", 2, {"f1", "f2"}),
    "Faith-Shap 2": ("FSII", 2, {"f1", "f2"}),
    "Shapley-Taylor 3": ("STII", 3, {"f1", "f2", "f3"}),  # erratum: exact for f3
    "Faith-Shap 3": ("FSII", 3, {"f1", "f2", "f3"}),
    "Moebius 3": ("Moebius", 3, {"f1", "f2", "f3"}),
    "SII 2": ("SII", 2, {"f1"}),  # pairs are counted in the singles again
    "k-SII 2": ("k-SII", 2, {"f1", "f2"}),
    "k-SII 3": ("k-SII", 3, {"f1", "f2", "f3"}),
}


@pytest.mark.parametrize("method", list(TABLE))
def test_who_is_exact_on_which_polynomial(method):
    index, order, exact = TABLE[method]
    found = {
        name for name in POLYNOMIALS if is_exact(name, explained_by(name, index, order))
    }
    assert found == exact


def test_the_published_shap_column_removes_to_zero_not_to_minus_one():
    """In the tables SHAP's removed = 0: f2's mixed terms vanish with either factor."""
    for name in POLYNOMIALS:
        game = np.array([on_signs(name, x[None])[0] for x in 1.0 * all_masks(3)])
        phi = reference.shapley_by_permutations(game)
        shared = {
            i: sum(a / len(t) for t, a in POLYNOMIALS[name].items() if i in t)
            for i in range(3)
        }
        np.testing.assert_allclose(phi, list(shared.values()))
        # with removed = -1 only odd terms count, twice: 2 * (a_i + a_ijk / 3)
        ours = fit_surrogate(value_function(name), 3).shapley_values()
        odd = [
            sum(
                2 * a / len(t)
                for t, a in POLYNOMIALS[name].items()
                if i in t and len(t) % 2
            )
            for i in range(3)
        ]
        np.testing.assert_allclose(ours, odd)
