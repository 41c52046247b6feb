"""Shapley errors of other estimators on the tuning tasks, at equal model calls.

``python tests/benchmarks/peers.py folder table.csv [stage ...]`` reads the tasks that
``tasks.py`` wrote to the folder and appends one row a fit to the table: ``kind, game,
calls, method, shapley_relative_error, seconds, I_2``. Rows that are there already are
not run again. Needs shapiq 1.8 (Python 3.12), shap, xgboost, lightgbm, scikit-learn.

- ``calls`` bounds the distinct masks evaluated, the empty and the full one included; a
  method that asks for more is an error here. PermutationExplainer repeats the empty and
  the full mask in every permutation: these repeats are not charged, so it gets more
  permutations than its own ``max_evals`` would give. Other repeats are charged.
- The seed is the number of the game.
- ``seconds`` are processor seconds without those of the model.
- ``I_2``, for methods that give a function, is the root mean square of f - g over all
  masks; empty for the others.
- Settings with a choice were compared on four kinds at 250 and 1000 calls, and the
  better one of each peer is run: pairing for KernelSHAP (of 2 variants) but not for
  SVARM (of 2), cross-fitted adjustment for ProxySHAP (of 3), no selection of features
  for KernelExplainer (of 2). PolySHAP's order follows `poly_order`.
- A fit that takes more than 60 processor seconds is given up; its method is then left
  out of larger budgets of that kind.
"""

import csv
import signal
import sys
import time
import warnings
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import shap
from shapiq import approximator as shapiq
from sklearn.linear_model import LassoCV
from tasks import all_masks, load_game, load_trees, relative_error, shapley

COLUMNS = [
    "kind",
    "game",
    "calls",
    "method",
    "shapley_relative_error",
    "seconds",
    "I_2",
]
GAME_CALLS = (250, 500, 1000, 2000)
TREE_CALLS = (4, 16, 64)  # times the number of features
_PATIENCE = 60.0


class TooSlow(Exception):
    """A fit used up its processor seconds."""


class Counted:
    """A function of masks that knows its distinct masks and its own seconds."""

    def __init__(self, function, n):
        self.function, self.n = function, n
        self.seen, self.seconds = set(), 0.0

    def __call__(self, masks):
        start = time.process_time()
        masks = np.atleast_2d(np.asarray(masks)).astype(bool)
        self.seen.update(row.tobytes() for row in np.packbits(masks, axis=1))
        out = self.function(masks)
        self.seconds += time.process_time() - start
        return out


def from_shapiq(make):
    """An estimator: the first-order values of a shapiq approximator."""

    def estimate(game, calls, seed):
        found = make(game.n, calls, seed).approximate(calls, game)
        return np.array([found[(i,)] for i in range(game.n)]), None

    return estimate


def kernel_explainer(game, calls, seed):
    """KernelExplainer without its selection of ten features; two calls are its own."""
    np.random.seed(seed)  # noqa: NPY002 - the only seed that it has
    explainer = shap.KernelExplainer(game, np.zeros((1, game.n)))
    values = explainer.shap_values(
        np.ones(game.n), nsamples=calls - 2, l1_reg=False, silent=True
    )
    return np.ravel(values), None


def permutation_explainer(game, calls, seed):
    """As many pairs of permutations as distinct masks allow: 2 n - 2 a pair, and 2."""
    n = game.n
    pairs = max(1, (calls - 2) // (2 * n - 2))
    masker = shap.maskers.Independent(np.zeros((1, n)))
    explainer = shap.PermutationExplainer(game, masker, seed=seed)
    found = explainer(np.ones((1, n)), max_evals=pairs * (2 * n + 1), silent=True)
    return np.ravel(found.values), None


def poly_order(n, calls):
    """The largest order, at most 3, with at most half as many terms as calls."""
    sizes = np.cumsum([comb(n, k) for k in range(4)])
    return max(1, int(np.searchsorted(sizes, calls / 2, side="right")) - 1)


def lasso(degree):
    """An estimator: LassoCV on parities up to a degree, at uniform masks."""

    def estimate(game, calls, seed):
        rng, n = np.random.default_rng(seed), game.n
        chosen = rng.choice(1 << n, size=calls, replace=False)
        cube = all_masks(n)
        terms = [s for d in range(1, degree + 1) for s in combinations(range(n), d)]
        signs = 1.0 - 2 * cube
        table = np.stack([signs[:, list(s)].prod(1) for s in terms], axis=1)
        values = game(cube[chosen])
        model = LassoCV(eps=1e-5, tol=1e-4, cv=5, max_iter=3000)
        model.fit(table[chosen], values)
        predicted = model.predict(table)
        return shapley(predicted), predicted

    return estimate


FAST = {
    "KernelSHAP": from_shapiq(
        lambda n, _, seed: shapiq.KernelSHAP(n, pairing_trick=True, random_state=seed)
    ),
    "LeverageSHAP": from_shapiq(
        lambda n, _, seed: shapiq.LeverageSHAP(n, random_state=seed)
    ),
    "PolySHAP": from_shapiq(
        lambda n, calls, seed: shapiq.PolySHAP(
            n, max_order=poly_order(n, calls), pairing_trick=True, random_state=seed
        )
    ),
    "OddSHAP": from_shapiq(lambda n, _, seed: shapiq.OddSHAP(n, random_state=seed)),
    "RegressionMSR": from_shapiq(
        lambda n, _, seed: shapiq.RegressionMSR(n, "SV", random_state=seed)
    ),
    "ProxySHAP": from_shapiq(
        lambda n, _, seed: shapiq.ProxySHAP(
            n,
            max_order=1,
            index="SV",
            adjustment=True,
            k_folds=5,
            random_state=seed,
        )
    ),
    "PermutationSampling": from_shapiq(
        lambda n, _, seed: shapiq.PermutationSamplingSV(n, random_state=seed)
    ),
    "SVARM": from_shapiq(lambda n, _, seed: shapiq.SVARM(n, random_state=seed)),
    "UnbiasedKernelSHAP": from_shapiq(
        lambda n, _, seed: shapiq.UnbiasedKernelSHAP(
            n, pairing_trick=True, random_state=seed
        )
    ),
    "shap KernelExplainer": kernel_explainer,
    "shap PermutationExplainer": permutation_explainer,
}
SURROGATES = {"LassoCV degree 2": lasso(2), "LassoCV degree 3": lasso(3)}
SLOW = {
    "ProxySPEX": from_shapiq(
        lambda n, _, seed: shapiq.ProxySPEX(
            n=n, max_order=1, index="SV", random_state=seed
        )
    )
}


def game_cells(folder):
    """(kind, game, calls, function, n, truth, values) of the enumerated games."""
    for calls in GAME_CALLS:
        for path in sorted((folder / "games").glob("*.npz")):
            for game, values in enumerate(load_game(path)):
                n = values.size.bit_length() - 1
                if calls < values.size:
                    index = 1 << np.arange(n)
                    yield (
                        path.stem,
                        game,
                        calls,
                        lambda masks, v=values, i=index: v[masks @ i],
                        n,
                        shapley(values),
                        values,
                    )


def tree_cells(folder):
    """The same of the tree models, smallest budgets first; no table of values."""
    tasks = {p.stem: load_trees(p) for p in sorted((folder / "trees").glob("*.npz"))}
    for times in TREE_CALLS:
        for kind, task in tasks.items():
            n = task.inputs.shape[1]
            for game, truth in enumerate(task.truth):
                yield (
                    kind,
                    game,
                    times * n,
                    lambda masks, t=task, g=game: t.value(masks, g),
                    n,
                    truth,
                    None,
                )


def give_up(*_):
    raise TooSlow


def measure(estimate, function, n, calls, seed, truth, values):
    """Shapley relative error, seconds and I_2 (or "") of one fit."""
    game = Counted(function, n)
    signal.signal(signal.SIGPROF, give_up)
    # Again every second: what is raised inside a library's callback is swallowed.
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE, 1.0)
    start = time.process_time()
    try:
        found, predicted = estimate(game, calls, seed)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start - game.seconds
    if len(game.seen) > calls:
        raise ValueError(f"{len(game.seen)} distinct masks for {calls} calls")
    error = "" if predicted is None else np.sqrt(np.mean((predicted - values) ** 2))
    return relative_error(found, truth), seconds, error


def run(cells, methods, path):
    """Append the rows of these cells that the table does not hold yet."""
    with path.open(newline="") as file:
        done = {tuple(row[:4]) for row in csv.reader(file)}
    slow = set()
    for kind, game, calls, function, n, truth, values in cells:
        for method, estimate in methods.items():
            key = (kind, str(game), str(calls), method)
            if key in done or (kind, method) in slow:
                continue
            try:
                found = measure(estimate, function, n, calls, game, truth, values)
            except TooSlow:
                slow.add((kind, method))
                print(*key, "given up", flush=True)
                continue
            except Exception as error:  # one peer's refusal must not stop the others
                print(*key, type(error).__name__, error, flush=True)
                continue
            shown = [f"{x:.5g}" if x != "" else "" for x in found]
            with path.open("a", newline="") as file:
                csv.writer(file).writerow([*key, *shown])


STAGES = {
    "games": (game_cells, FAST),
    "surrogates": (game_cells, SURROGATES),
    "trees": (tree_cells, FAST),
    "slow": (game_cells, SLOW),
}


def main(folder, path, stages):
    """Run the named stages, or all but the slow one."""
    warnings.simplefilter("ignore")
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    for stage in stages or ["games", "surrogates", "trees"]:
        cells, methods = STAGES[stage]
        run(cells(folder), methods, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
