"""Peers on functions whose answer is known: none of them is wired up wrongly."""

import time
from itertools import combinations

import numpy as np
import pytest

from harmonica_compare.case import Case, Counted, NotApplicableError
from harmonica_compare.explained import explained
from harmonica_compare.journal import watched
from harmonica_compare.meter import Remembered, first_call, measured
from harmonica_compare.method import Method
from harmonica_compare.methods import METHODS, ON_REQUEST
from harmonica_compare.peers import _parities, _polynomial
from harmonica_compare.peers_shapiq import _intercept
from harmonica_compare.results import Cell
from harmonica_core import from_attributions

N = 7
SLOPES = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.5, -1.0])
ALL = np.array([[bool(k >> i & 1) for i in range(N)] for k in range(2**N)])


def additive(masks):
    return 2.0 + np.asarray(masks, dtype=float) @ SLOPES


def with_pairs(masks):
    x = np.asarray(masks, dtype=float)
    return additive(x) + 2 * x[:, 0] * x[:, 1] - 3 * x[:, 2] * x[:, 5]


def run(name, f, budget=120):
    case = Case("known", N, f, relaxed=None)
    counted = Counted(f, budget)
    said = explained(METHODS[name].run(case, counted, 0), N)
    assert counted.n_calls <= budget
    return said


VALUES = [
    *("harmonica", "kernelshap", "sampling", "shap-kernel", "shap-permutation"),
    *("shapiq-kernelshap", "kernelshapiq", "kaddshap", "faith-shap", "fbii-2"),
]


@pytest.mark.parametrize("name", VALUES)
def test_values_of_a_sum_are_its_slopes(name):
    said = run(name, additive)
    np.testing.assert_allclose(said.shapley, SLOPES, atol=1e-4)
    np.testing.assert_allclose(said.answer(ALL), additive(ALL), atol=1e-3)


@pytest.mark.parametrize("name", ["harmonica", "kaddshap", "faith-shap", "fbii-2"])
def test_pairs_are_found(name):
    said = run(name, with_pairs)
    expected = {(0, 1): 2.0, (2, 5): -3.0}
    pairs = [expected.get(pair, 0.0) for pair in combinations(range(N), 2)]
    np.testing.assert_allclose(said.pairs, pairs, atol=1e-3)
    np.testing.assert_allclose(said.answer(ALL), with_pairs(ALL), atol=1e-3)


def test_lasso_polynomials_are_those_that_were_fitted():
    rng = np.random.default_rng(0)
    terms = [t for k in (1, 2, 3) for t in combinations(range(N), k)]
    coef = rng.normal(size=len(terms)) * (rng.random(len(terms)) < 0.3)
    found = _polynomial(N, terms, coef, 0.7)
    np.testing.assert_allclose(found(ALL), 0.7 + _parities(ALL, terms) @ coef)
    said = run("lassocv-2", with_pairs)
    np.testing.assert_allclose(said.answer(ALL), with_pairs(ALL), atol=0.1)


def test_a_missing_intercept_is_that_of_the_whole_cube():
    f = Counted(with_pairs, 200)
    f(ALL[np.random.default_rng(0).permutation(2**N)])
    slopes = from_attributions(SLOPES, 0.0)
    expected = np.mean(with_pairs(ALL) - slopes(ALL))
    assert _intercept(f, slopes, N) == pytest.approx(expected)


def test_a_logit_is_needed_for_contextcite():
    with pytest.raises(NotApplicableError, match="no probability"):
        run("contextcite", additive)

    def probability(masks):
        return 1 / (1 + np.exp(-additive(masks)))

    case = Case("known", N, probability, probability=True)
    found = METHODS["contextcite"].run(case, Counted(probability, 120), 0)
    assert np.abs(found(ALL) - probability(ALL)).max() < 0.05


def test_spread_over_permutations_is_stated():
    said = run("shap-permutation", with_pairs)
    assert said.shapley_std.shape == (N,) and said.shapley_std[0] > 0
    assert run("shap-permutation", with_pairs, 2 * N + 4).shapley_std is None


def test_what_the_default_leaves_out_is_known():
    assert set(METHODS) > ON_REQUEST and "harmonica" not in ON_REQUEST


def test_own_time_leaves_the_model_out():
    def slow(masks):
        time.sleep(0.2)
        return np.zeros(len(masks))

    model = Remembered(slow)

    def method():
        model(ALL[:5])
        return np.ones(4_000_000).sum()

    found, cost = measured(method, model)
    assert found == 4_000_000 and cost.seconds < model.seconds >= 0.2
    assert cost.peak_mb is None or cost.peak_mb > 20
    model(ALL[:5])
    assert len(model.known) == 5


def test_the_first_call_happens_once_and_may_fail():
    calls = []

    def run_once(case, f, seed):
        calls.append(f.budget)
        raise RuntimeError("no")

    method = Method("only here", "", run_once)
    assert first_call(method) == first_call(method) >= 0
    assert len(calls) == 1


def test_cells_are_known_before_their_case_is_finished():
    found = []
    cell = Cell("case", "lime", 10, 0, "ok", numbers={"shapley": [0.5, 0.0]})
    with watched(found.append, lambda: None) as journal:
        journal.write(cell)
        until = time.monotonic() + 20
        while not found and time.monotonic() < until:
            time.sleep(0.05)
        assert found == [cell]
        journal.write(cell)
    assert found == [cell, cell]  # the last look is at the end
