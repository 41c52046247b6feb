"""The paper's tables on fully enumerated games: I_2 by radius for the whole family.

All methods by the LASSO, as published; the engine behind the doors is measured in
``test_bench_engine.py`` and ``test_bench_fidelity.py``.

Needs ``HARMONICA_GAMES``, a folder of .npz files with ``values (n_games, 2**n)``.
``python tests/benchmarks/test_bench_family.py [games per file]`` prints every table;
under pytest the claims below them are checked too.
"""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from harmonica_core import (
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    harmonica_local,
    low_degree,
)
from harmonica_core.design.masks import all_masks, mask_numbers

RADII = (1, 2, 4, 8, None)
PUBLISHED = {"engine": "lasso", "ends": False, "degree": 2}
PULLS = (0.0, 0.05, 0.2, 1.0)  # in units of the output's spread


def games_of(path, limit):
    """The first games that are not constant."""
    games = np.load(path)["values"].astype(np.float64)
    return games[games.std(axis=1) > 0][:limit]


def files():
    folder = os.environ.get("HARMONICA_GAMES")
    return sorted(Path(folder).glob("*.npz")) if folder else []


def budgets(n):
    """The paper's 2,000 and 6,000 samples, as shares of 14 features' masks."""
    return (2000, 6000) if n >= 14 else (500, 1500)


def methods(n):
    """Rows of the table: name, method of degree 2 unless it says otherwise."""
    few, many = budgets(n)
    yield "Harmonica 2", partial(harmonica, degree=2, budget=few)
    yield "Harmonica 3", partial(harmonica, degree=3, budget=few)
    yield "Local 2 (r=4)", partial(harmonica_local, **PUBLISHED, budget=few)
    for times in (1, 3, 5):
        name = f"Low-degree 2 ({times}T)"
        yield name, partial(low_degree, degree=2, budget=times * few)
    yield "Harmonica 2 (3T)", partial(harmonica, degree=2, budget=many)
    for k in (1, 3, 5, 7, 9):
        name = f"Anchor k={k} (3T)"
        yield name, partial(harmonica_anchor, **PUBLISHED, budget=many, anchors=k)
    for pull in PULLS:
        name = f"Constr. k=5 l2={pull}sd (3T)"
        yield name, partial(constrained, **PUBLISHED, budget=many, anchors=5, pull=pull)


def constrained(f, n, pull, **options):
    """The pull in units of the output's spread, so that games can be averaged."""
    consistency = pull * float(f(all_masks(n)).std())
    return harmonica_anchor_constrained(f, n, consistency=consistency, **options)


def errors(game, method, seed=0):
    """``I_2 (n_radii,)`` in units of the game's spread, and the evaluations."""
    n = len(game).bit_length() - 1
    masks = all_masks(n)
    g = method(lambda m: game[mask_numbers(m)], n, seed=seed)
    square, removed = (game - g(masks)) ** 2, (~masks).sum(axis=1)
    inside = [(removed >= bool(r)) & (removed <= (r or n)) for r in RADII]
    found = np.sqrt([square[rows].mean() for rows in inside])
    return found / game.std(), g.n_evaluations


def table(games):
    """``{name: (mean I_2 by radius, evaluations)}`` over the games."""
    n = games.shape[1].bit_length() - 1
    rows = {}
    for name, method in methods(n):
        found = [errors(game, method) for game in games]
        rows[name] = np.mean([e for e, _ in found], axis=0), found[0][1]
    return rows


def show(title, rows):
    head = "".join(f"{'r=' + str(r) if r else 'inf':>9}" for r in RADII)
    print(f"\n{title}\n{'':28}{head}{'calls':>8}")
    for name, (values, calls) in rows.items():
        print(f"{name:28}" + "".join(f"{v:9.4f}" for v in values) + f"{calls:8}")


def check_claims(rows):
    """The paper's findings, on the mean over all files."""
    at = {r: i for i, r in enumerate(RADII)}
    value = {name: values for name, (values, _) in rows.items()}
    local, world = value["Local 2 (r=4)"], value["Harmonica 2"]
    assert (local[: at[4] + 1] < world[: at[4] + 1]).all()
    assert local[at[None]] > world[at[None]]
    by_anchors = [value[f"Anchor k={k} (3T)"][at[None]] for k in (1, 3, 5, 7, 9)]
    assert (np.diff(by_anchors) < 0).all(), by_anchors
    pulled = [value[f"Constr. k=5 l2={p}sd (3T)"][at[None]] for p in PULLS]
    assert (np.diff(pulled) > -0.01 * pulled[0]).all(), pulled  # up to noise
    for between in pulled[1:-1]:
        assert 0.99 * by_anchors[2] < between < 1.01 * by_anchors[0]
    by_samples = [value[f"Low-degree 2 ({t}T)"][at[None]] for t in (1, 3, 5)]
    assert by_samples[0] > 1.1 * world[at[None]]
    assert by_samples[2] == pytest.approx(world[at[None]], rel=0.1)


def average(tables):
    return {
        name: (np.mean([rows[name][0] for rows in tables], axis=0), calls)
        for name, (_, calls) in tables[0].items()
    }


def run(limit):
    tables = []
    for path in files():
        games = games_of(path, limit)
        tables.append(table(games))
        title = f"{path.stem}: I_2 / spread, mean of {len(games)} games"
        show(title, tables[-1])
    everything = average(tables)
    show("mean of all files (calls of the first)", everything)
    return everything


def test_family_tables():
    if not files():
        pytest.skip("HARMONICA_GAMES is not set: no enumerated games to measure on")
    check_claims(run(limit=3))


if __name__ == "__main__":
    check_claims(run(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
