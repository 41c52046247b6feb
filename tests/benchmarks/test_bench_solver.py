"""The LASSO engine beside scikit-learn, and how it grows; one thread, CPU seconds.

Set HARMONICA_SLOW=1 for the dense LassoCV at 50 features (minutes, gigabytes) and the
whole growth table. celer and skglm take part where they are installed.
"""

import importlib.util
import os
import subprocess
import sys
import time
from math import comb
from pathlib import Path

import numpy as np
import pytest
from one_fit import peak, problem
from sklearn.linear_model import Lasso, LassoCV
from threadpoolctl import threadpool_limits

from harmonica_core import basis, fit_surrogates
from harmonica_core.design.masks import uniform_draws
from harmonica_core.engine.lasso.solve import fit_sparse

SLOW = bool(os.environ.get("HARMONICA_SLOW"))
FIT = Path(__file__).with_name("one_fit.py")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


def timed(work, repeats=1):
    """Result, and CPU seconds of the fastest run."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = work()
        seconds.append(time.process_time() - start)
    return found, min(seconds)


def in_its_own_process(n, degree, n_masks, n_targets=1):
    """Return seconds, megabytes, active terms, held-out error, gap."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(FIT), *map(str, (n, degree, n_masks, n_targets))]
    run = subprocess.run(
        words, env=os.environ | one, capture_output=True, text=True, check=True
    )
    return [float(word) for word in run.stdout.split()]


def n_terms(n, degree):
    return sum(comb(n, d) for d in range(degree + 1))


def by_parity(n, degree):
    """Numbers of even and of odd terms: two regressions on half the rows each."""
    sizes = [comb(n, d) for d in range(1, degree + 1)]
    return sum(sizes[1::2]), sum(sizes[0::2])


def beside_lasso_cv(n, repeats=1, seed=0):
    """Return our seconds and error, as a share of LassoCV's, for one network."""
    masks, values, function = problem(n, 2000, seed=seed)
    fresh = uniform_draws(n, 4000, np.random.default_rng(9))
    truth = function(fresh)[:, 0]
    fit, ours = timed(lambda: fit_sparse(masks, values, 3), repeats)
    table = basis.terms_up_to(n, 3)[1:]
    before = peak()
    design = basis.design(masks, table)
    peer, theirs = timed(lambda: LassoCV(cv=5).fit(design, values[:, 0]), repeats)
    memory = peak() - before  # of the first in this process: a peak only rises
    g = basis.predict(fresh, fit.table, fit.coef)[:, 0] + fit.intercept
    mine = np.std(truth - g)
    other = np.std(truth - peer.predict(basis.design(fresh, table)))
    first, megabytes, *_ = in_its_own_process(n, 3, 2000)
    print(
        f"\nn={n} degree 3 T=2000: {ours:.3f} s, LassoCV {theirs:.2f} s "
        f"= {theirs / ours:.0f}x, first call {first:.3f} s = {theirs / first:.0f}x; "
        f"error {mine:.4f}, LassoCV {other:.4f}; "
        + (f"{megabytes:.0f} MB, LassoCV {memory:.0f} MB; " if seed == 0 else "")
        + "one product of all terms with all masks is "
        f"{2e-9 * 2000 * len(table):.3f} Gflop, of all pairs of terms "
        f"{2e-9 * 1000 * sum(p**2 for p in by_parity(n, 3)):.1f}"
    )
    return ours / theirs, mine / other


@pytest.mark.filterwarnings("ignore")
def test_16_features_beside_lasso_cv():
    """On six networks: single errors scatter by half a percent."""
    found = [beside_lasso_cv(16, repeats=5, seed=seed) for seed in range(6)]
    seconds, error = np.exp(np.log(found).mean(axis=0))
    print(f"of six: LassoCV takes {1 / seconds:.1f}x as long, our error {error:.4f}x")
    assert error <= 1.0


@pytest.mark.skipif(not SLOW, reason="HARMONICA_SLOW is not set: LassoCV takes minutes")
@pytest.mark.filterwarnings("ignore")
def test_50_features_beside_lasso_cv():
    _, error = beside_lasso_cv(50)
    assert error <= 1.02


@pytest.mark.parametrize(("n", "degree"), [(200, 3), (1000, 2)])
def test_a_million_terms(n, degree):
    seconds, megabytes, active, _, gap = in_its_own_process(n, degree, 4000)
    size = n_terms(n, degree)
    print(
        f"\nn={n} degree {degree} ({size:,} terms) T=4000: {seconds:.1f} s, "
        f"{megabytes:.0f} MB, {active:.0f} active, gap {gap:.1e}; one pass over all "
        f"terms is {2 * 4000 * size / 1e9:.1f} Gflop"
    )
    assert gap < 1e-4


def test_a_thousand_targets():
    masks, values, _ = problem(30, 2000, 1000)

    def listed_fits(columns):
        return fit_surrogates(masks, columns, 2, engine="lasso")

    fit, ours = timed(lambda: fit_sparse(masks, values, 2), repeats=3)
    _, alone = timed(lambda: fit_sparse(masks, values[:, :1], 2), repeats=9)
    _, listed = timed(lambda: listed_fits(values), repeats=3)
    _, one = timed(lambda: listed_fits(values[:, :1]), repeats=9)
    design = basis.design(masks, basis.terms_up_to(30, 2)[1:])
    gram = design.T @ design
    alpha = float(np.median(fit.alpha))

    def one_by_one():
        for k in range(values.shape[1]):
            model = Lasso(alpha, precompute=gram, fit_intercept=False)
            model.fit(design, values[:, k] - values[:, k].mean())

    _, theirs = timed(one_by_one, repeats=3)
    print(
        f"\n1,000 targets, n=30 degree 2 T=2000: {ours:.2f} s with alpha chosen, "
        f"{ours / alone:.0f}x one target; fit_surrogates {listed:.2f} s, "
        f"{listed / one:.0f}x one function; 1,000 Lasso fits at one alpha on a given "
        f"Gram matrix {theirs:.1f} s = {theirs / ours:.1f}x; a step of all targets is "
        f"{2e-6 * sum(p**2 for p in by_parity(30, 2)):.2f} Gflop"
    )


@pytest.mark.filterwarnings("ignore")
def test_engines():
    """One LASSO at a given strength: the first call, and the next."""
    masks, values, _ = problem(16, 2000)
    design = np.asfortranarray(basis.design(masks, basis.terms_up_to(16, 3)[1:]))
    target = values[:, 0] - values[:, 0].mean()
    alpha = 0.003 * float(values.std())

    def scikit_learn():
        return Lasso(alpha, precompute=True, fit_intercept=False).fit(design, target)

    def celer():
        from celer import Lasso as Celer

        return Celer(alpha, fit_intercept=False).fit(design, target)

    def skglm():
        from skglm import Lasso as Skglm

        return Skglm(alpha, fit_intercept=False).fit(design, target)

    def ours():
        return fit_sparse(masks, values, 3, alpha)

    print("\nn=16 degree 3 T=2000, one strength: first call (imports, compiling), next")
    for work in (ours, scikit_learn, celer, skglm):
        if work in (celer, skglm) and not importlib.util.find_spec(work.__name__):
            print(f"  {work.__name__:14s} not installed")
            continue
        first, second = timed(work)[1], timed(work)[1]
        print(f"  {work.__name__:14s} {first:7.2f} s {second:7.3f} s")


GROWTH = {
    "n, degree 2": [(n, 2, 2000, 1) for n in (10, 20, 50, 100, 200)],
    "n, degree 3": [(n, 3, 2000, 1) for n in (10, 20, 50, 100, 200)],
    "T, n=30 degree 3": [(30, 3, t, 1) for t in (500, 1000, 2000, 4000, 8000, 16_000)],
    "K, n=30 degree 2": [(30, 2, 2000, k) for k in (1, 10, 100, 1000, 10_000)],
}


def test_growth():
    """Print time and memory against n, T and K with the slope; draw out/growth.png."""
    found = {}
    for name, cases in GROWTH.items():
        cases = cases if SLOW else cases[:4]
        varied = [case[{"n": 0, "T": 2, "K": 3}[name[0]]] for case in cases]
        rows = [in_its_own_process(*case)[:2] for case in cases]
        found[name] = varied, rows
        seconds = [row[0] for row in rows]
        slope = np.polyfit(np.log(varied[1:]), np.log(seconds[1:]), 1)[0]
        print(f"\n{name}: time grows as power {slope:.1f}")
        for value, (time_, memory) in zip(varied, rows, strict=True):
            print(f"  {value:6d} {time_:8.2f} s {memory:7.0f} MB")
    draw(found)


def draw(found):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(found), figsize=(12, 5), sharex="col")
    for column, (name, (varied, rows)) in enumerate(found.items()):
        for row, label in enumerate(("CPU seconds", "peak MB")):
            axes[row, column].loglog(varied, [r[row] for r in rows], marker="o")
            axes[row, 0].set_ylabel(label)
        axes[0, column].set_title(name)
    figure.tight_layout()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/growth.png")
