"""Error per model call: the default fit beside its peers on enumerated games.

    python tests/benchmarks/test_bench_fidelity.py --games path/to/games [--full]
        [--budgets 250 500]

A folder of games holds ``*.npz`` files with ``values (n_games, 2**n)``, bit i of the
column = feature i is kept. Prints, for the true error over all masks,

1. the ratio to the best peer of each game and budget (mean over games and seeds; then
   the geometric mean over kinds), and the largest ratio to the LASSO of degree 3,
2. how often the true error lies within two standard errors of the stated one,
3. the ratio to the best peer for masks with 1 to 3 features removed, at 1000 calls,
4. R2 at 64 features (digits, MLP), beside LassoCV of degree 2 and ProxySPEX.

Peers come from shapiq in the same run; ProxySPEX needs lightgbm.
"""

import argparse
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LassoCV

from harmonica_core import basis, fit_surrogate
from harmonica_core.design.masks import all_masks, mask_numbers, uniform_draws

RADIUS = 3


def load_games(folder, n_games):
    """Return {kind: values (n_games, 2**n)} of every file in the folder."""
    paths = sorted(Path(folder).glob("*.npz"))
    return {p.stem: np.load(p)["values"][:n_games].astype(float) for p in paths}


def lasso(game, n, budget, seed, degree, alpha=None):
    """The LASSO on uniform masks: cross-validated, or as published (0.01)."""
    masks = all_masks(n)
    rows = np.random.default_rng(seed).choice(len(masks), budget, replace=False)
    table = basis.terms_up_to(n, degree)[1:]
    spread = game[rows].std() if alpha is None else 1.0
    if alpha is None:
        model = LassoCV(cv=5, tol=1e-4, eps=1e-5)
    else:
        model = Lasso(alpha)
    model.fit(basis.design(masks[rows], table), game[rows] / spread)
    coef = spread * model.coef_[:, None]
    return spread * model.intercept_ + basis.predict(masks, table, coef)[:, 0]


def set_function(found, n, empty):
    """Values on all masks of ``g(kept) = sum over subsets S of kept of I(S)``."""
    values = np.zeros(1 << n)
    values[0] = empty
    for term, position in found.interaction_lookup.items():
        if term:
            values[sum(1 << i for i in term)] += found.values[position]
    for i in range(n):
        halves = values.reshape(-1, 2, 1 << i)
        halves[:, 1] += halves[:, 0]
    return values


def shapiq_peers(n, seed, proxy):
    """Constructors of the peers, by name."""
    from shapiq import approximator as peers

    found = {
        "KernelSHAP-IQ 2": lambda: peers.KernelSHAPIQ(n, 2, random_state=seed),
        "RegressionFSII 2": lambda: peers.RegressionFSII(n, 2, random_state=seed),
        "RegressionFSII 3": lambda: peers.RegressionFSII(n, 3, random_state=seed),
        "RegressionFBII 2": lambda: peers.RegressionFBII(n, 2, random_state=seed),
        "RegressionFBII 3": lambda: peers.RegressionFBII(n, 3, random_state=seed),
        "SVARM-IQ 2": lambda: peers.SVARMIQ(n, 2, random_state=seed),
    }
    if proxy:
        found["ProxySPEX"] = lambda: peers.ProxySPEX(
            n=n, index="FBII", max_order=n, random_state=seed
        )
    return found


def peers_on(game, n, budget, seed, proxy):
    """Predictions ``(2**n,)`` and fit times of every peer."""
    out = {}
    for name, degree, alpha in (
        ("Harmonica 0.01", 3, 0.01),
        ("LassoCV 2", 2, None),
        ("LassoCV 3", 3, None),
    ):
        start = time.perf_counter()
        values = lasso(game, n, budget, seed, degree, alpha)
        out[name] = values, time.perf_counter() - start
    for name, make in shapiq_peers(n, seed, proxy).items():
        start = time.perf_counter()
        found = make().approximate(
            budget, lambda rows: game[mask_numbers(np.asarray(rows, dtype=bool))]
        )
        seconds = time.perf_counter() - start
        own = (
            found.values[found.interaction_lookup[()]]
            if (() in found.interaction_lookup)
            else game[0]
        )
        # The better of two constants, so that no peer suffers from a convention.
        both = [set_function(found, n, empty) for empty in (own, game[0])]
        out[name] = min(both, key=lambda g: ((g - game) ** 2).mean()), seconds
    return out


def rms(difference):
    """Root mean square."""
    return float(np.sqrt((difference**2).mean()))


def one_case(game, n, budget, seed, proxy):
    """Errors of one game, budget and seed."""
    masks = all_masks(n)
    removed = n - masks.sum(axis=1)
    near = (removed >= 1) & (removed <= RADIUS)

    def function(rows):
        return game[mask_numbers(rows)]

    start = time.perf_counter()
    ours = fit_surrogate(function, n, budget=budget, seed=seed)
    seconds = time.perf_counter() - start
    published = fit_surrogate(function, n, budget=budget, engine="lasso", seed=seed)
    found = peers_on(game, n, budget, seed, proxy)
    best = min(found, key=lambda name: rms(found[name][0] - game))
    difference = ours(masks) - game
    stated, se = float(ours.error.value), float(ours.error.standard_error)
    rounding = 1e-12 * np.abs(game).max()
    return {
        "best": best,
        "ratio": rms(difference) / rms(found[best][0] - game),
        "published": rms(difference) / max(rms(published(masks) - game), rounding),
        "near": rms(difference[near])
        / min(rms((g - game)[near]) for g, _ in found.values()),
        "covered": abs(stated - rms(difference)) <= 2 * se + rounding,
        "terms": len(ours.terms),
        "seconds": seconds,
        "proxy_seconds": found.get("ProxySPEX", (None, np.nan))[1],
    }


def games_table(games, budgets, n_seeds, proxy):
    """Print tables 1 to 3."""
    cases = defaultdict(list)
    for kind, values in games.items():
        n = int(values.shape[1]).bit_length() - 1
        for budget in budgets:
            for game in values:
                cases[kind, budget] += [
                    one_case(game, n, budget, seed, proxy) for seed in range(n_seeds)
                ]
            print_row(kind, budget, cases[kind, budget])
    print("\nratio to the best peer, geometric mean over kinds")
    for budget in budgets:
        means = [np.mean([c["ratio"] for c in cases[k, budget]]) for k in games]
        mean = np.exp(np.mean(np.log(means)))
        print(f"  {budget:5d}: {mean:.3f}")
    covered = [c["covered"] for found in cases.values() for c in found]
    print(f"\nwithin two standard errors: {np.mean(covered):.2f} of {len(covered)}")


def print_row(kind, budget, found):
    """Print one line for a kind and a budget."""
    mean = {k: np.mean([c[k] for c in found]) for k in found[0] if k != "best"}
    names = [c["best"] for c in found]
    print(
        f"{kind:14s} {budget:5d}  to best peer {mean['ratio']:.3f} "
        f"({max(set(names), key=names.count)})  to the LASSO {mean['published']:.3f}"
        f" (max {max(c['published'] for c in found):.3f})  radius {RADIUS} "
        f"{mean['near']:.3f}  covered {mean['covered']:.2f}  "
        f"terms {mean['terms']:.0f}  {mean['seconds']:.1f} s "
        f"(ProxySPEX {mean['proxy_seconds']:.1f} s)",
        flush=True,
    )


def kept_sums(found, masks, empty):
    """The same for masks too large to list."""
    out = np.full(len(masks), float(empty))
    for term, position in found.interaction_lookup.items():
        if term:
            out += found.values[position] * masks[:, list(term)].all(axis=1)
    return out


def digits_table(budgets, inputs, proxy):
    """Print table 4: R2 on 4000 held-out masks, 64 pixels, zero baseline."""
    from shapiq.approximator import ProxySPEX
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    images = images / 16
    model = MLPClassifier(hidden_layer_sizes=(64,), max_iter=300, random_state=0)
    model.fit(images[:1500], labels[:1500])
    held_out = uniform_draws(64, 4000, np.random.default_rng(99))
    for row in inputs:
        target = int(model.predict(images[[row]])[0])

        def function(masks, row=row, target=target):
            shown = np.where(masks, images[row], 0.0)
            return model.predict_proba(shown)[:, target]

        truth = function(held_out)
        for budget in budgets:
            line = []
            for name, options in (
                ("default", {}),
                ("LASSO 2", {"degree": 2, "engine": "lasso"}),
            ):
                start = time.perf_counter()
                fit = fit_surrogate(function, 64, budget=budget, seed=0, **options)
                seconds = time.perf_counter() - start
                r2 = 1 - ((fit(held_out) - truth) ** 2).mean() / truth.var()
                line.append(f"{name} R2 {r2:.3f} ({seconds:.1f} s)")
            masks = uniform_draws(64, budget, np.random.default_rng(0))
            pairs = basis.terms_up_to(64, 2)[1:]
            design, values = basis.design(masks, pairs), function(masks)
            peer = LassoCV(cv=5).fit(design, values)
            guesses = {"LassoCV 2": peer.predict(basis.design(held_out, pairs))}
            if proxy:
                peer = ProxySPEX(n=64, index="FBII", max_order=64, random_state=0)
                found = peer.approximate(budget, lambda rows: function(rows > 0))
                nothing = function(np.zeros((1, 64), dtype=bool))[0]
                guesses["ProxySPEX"] = max(
                    (kept_sums(found, held_out, c) for c in (found[()], nothing)),
                    key=lambda g: -((g - truth) ** 2).mean(),
                )
            for name, guess in guesses.items():
                r2 = 1 - ((guess - truth) ** 2).mean() / truth.var()
                line.append(f"{name} R2 {r2:.3f}")
            print(f"digits image {row}, {budget} calls: " + ", ".join(line), flush=True)


def has_lightgbm():
    """Whether ProxySPEX can run."""
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        print("ProxySPEX is left out: pip install lightgbm")
        return False
    return True


def main(folder, full, budgets=None):
    """Print all tables; with given budgets only those of the games."""
    warnings.simplefilter("ignore")
    given = budgets is not None
    budgets = budgets or ((250, 500, 1000, 2000) if full else (250, 1000))
    games = load_games(folder, 4 if full else 1)
    proxy = full and has_lightgbm()
    games_table(games, budgets, 3 if full else 1, proxy)
    if given:
        return
    inputs = (1600, 1700) if full else (1600,)
    digits_table((1000, 4000) if full else (1000,), inputs, proxy)


@pytest.mark.skipif(
    "HARMONICA_GAMES" not in os.environ,
    reason="HARMONICA_GAMES names no folder of enumerated games",
)
@pytest.mark.filterwarnings("ignore")
def test_error_per_model_call():
    main(os.environ["HARMONICA_GAMES"], full=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", default=os.environ.get("HARMONICA_GAMES"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--budgets", type=int, nargs="+")
    arguments = parser.parse_args()
    if arguments.games is None:
        parser.error("set HARMONICA_GAMES or pass --games: a folder of .npz games")
    main(arguments.games, arguments.full, arguments.budgets)
