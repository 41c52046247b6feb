"""Enumerated games: every mask of three inputs of models trained here.

``KINDS`` maps a kind to a function of no arguments that returns ``values``
(n_games, 2**n), float64, where bit i of the index says that feature i is kept.
"""

import os
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tasks import all_masks

N_GAMES = 3


def data_folder():
    """The folder of the data sets, from the environment."""
    return Path(os.environ["HARMONICA_DATA"])


def marginal(predict, inputs, background):
    """Games (n_games, 2**n): removed columns come from each background row in turn."""
    masks = all_masks(inputs.shape[1])
    return np.stack(
        [
            np.mean([predict(np.where(masks, x, row)) for row in background], axis=0)
            for x in inputs
        ]
    )


def split(x, seed, n_background):
    """Inputs (3, n), background (n_background, n) and the other rows' numbers."""
    order = np.random.default_rng(seed).permutation(len(x))
    stop = N_GAMES + n_background
    return x[order[:N_GAMES]], x[order[N_GAMES:stop]], order[stop:]


def probability(model):
    """The model's probability of its last class, as a function of rows."""
    return lambda rows: model.predict_proba(rows)[:, -1]


@cache
def read_table(name, target):
    """Columns (rows, n) with categories as numbers of their rank, and the target."""
    import pandas as pd

    table = pd.read_csv(data_folder() / "tabular" / f"{name}.csv.gz")
    columns = table.drop(columns=target).apply(
        lambda c: c if c.dtype.kind in "if" else c.astype("category").cat.codes
    )
    return columns.to_numpy(float), table[target].to_numpy()


def adult(model, n_background, log_odds=False):
    """Adult census, 14 columns: probability or log-odds of a high income."""
    x, income = read_table("adult", "income")
    inputs, background, rest = split(x, 1, n_background)
    model.fit(x[rest[:12000]], income[rest[:12000]] == ">50K")
    predict = model.decision_function if log_odds else probability(model)
    return marginal(predict, inputs, background)


def adult_boosting(n_background, log_odds):
    model = HistGradientBoostingClassifier(max_iter=150, random_state=0)
    return adult(model, n_background, log_odds)


def adult_network(n_background):
    network = MLPClassifier((48, 24), max_iter=25, early_stopping=True, random_state=0)
    return adult(make_pipeline(StandardScaler(), network), n_background)


def bike(n_background):
    """Bike sharing, 12 columns: a random forest's hourly count."""
    x, count = read_table("bike", "count")
    inputs, background, rest = split(x, 2, n_background)
    model = RandomForestRegressor(40, max_depth=12, random_state=0)
    model.fit(x[rest[:8000]], count[rest[:8000]])
    return marginal(model.predict, inputs, background)


def cancer_svm():
    """Breast cancer, first 14 columns: an RBF machine's decision, 20 rows."""
    x, y = load_breast_cancer(return_X_y=True)
    inputs, background, rest = split(x[:, :14], 3, 20)
    model = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=0.15))
    model.fit(x[rest, :14], y[rest])
    return marginal(model.decision_function, inputs, background)


def cancer_boosting():
    """Breast cancer, first 14 columns: boosted trees' probability, one row."""
    x, y = load_breast_cancer(return_X_y=True)
    inputs, background, rest = split(x[:, :14], 4, 1)
    model = GradientBoostingClassifier(max_depth=4, random_state=0)
    model.fit(x[rest, :14], y[rest])
    return marginal(probability(model), inputs, background)


def wine_forest():
    """Wine, 13 columns: a forest's probability of the input's own class, 20 rows."""
    x, y = load_wine(return_X_y=True)
    inputs, background, rest = split(x, 5, 20)
    model = RandomForestClassifier(100, random_state=0).fit(x[rest], y[rest])
    own = model.predict(inputs)
    games = [
        marginal(lambda rows, c=c: model.predict_proba(rows)[:, c], row, background)
        for row, c in zip(inputs[:, None], own, strict=True)
    ]
    return np.concatenate(games)


def diabetes(model):
    """Diabetes, 10 columns, one background row."""
    x, y = load_diabetes(return_X_y=True)
    inputs, background, rest = split(x, 6, 1)
    model.fit(x[rest] * 20, y[rest] / 100)
    return marginal(lambda rows: model.predict(rows * 20), inputs, background)


def diabetes_neighbours():
    return diabetes(KNeighborsRegressor(8, weights="distance"))


def diabetes_process():
    return diabetes(
        GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.3), optimizer=None)
    )


def digits_network():
    """Digits, 14 patches of the 8 x 8 image: a network's log-odds of its class.

    Patches are nearest-centre cells of 14 scattered pixels; a removed one is blank.
    """
    x, y = load_digits(return_X_y=True)
    inputs, _, rest = split(x, 7, 0)
    model = MLPClassifier((64, 32), max_iter=60, random_state=0).fit(x[rest], y[rest])
    pixel = np.stack(np.divmod(np.arange(64), 8), axis=1)
    centre = np.random.default_rng(7).permutation(pixel)[:14]
    patch = ((pixel[:, None] - centre) ** 2).sum(-1).argmin(1)
    kept = all_masks(14)[:, patch]
    games = []
    for row in inputs:
        logp = model.predict_log_proba(np.where(kept, row, 0.0))
        logp = np.maximum(logp, -30.0)
        own = logp[-1].argmax()
        games.append(logp[:, own] - np.delete(logp, own, axis=1).max(1))
    return np.stack(games)


def random_network(n=12):
    """Random networks of four tanh layers: terms of all sizes."""
    games = []
    for game in range(N_GAMES):
        rng = np.random.default_rng(80 + game)
        widths = [n, 40, 40, 40, 1]
        out = 2.0 * all_masks(n) - 1
        for a, b in pairwise(widths):
            out = out @ rng.normal(size=(a, b)) * 1.5 / np.sqrt(a)
            out = np.tanh(out + rng.normal(size=b) * 0.3) if b > 1 else out
        games.append(out[:, 0])
    return np.stack(games)


def thresholds(n=13):
    """Mixtures of weighted majorities and conjunctions of three to six features."""
    games = []
    for game in range(N_GAMES):
        rng, total = np.random.default_rng(90 + game), 0.0
        masks = all_masks(n)
        for _ in range(6):
            weight = rng.exponential(size=n) * (rng.random(n) < 0.6)
            total = total + rng.normal() * (masks @ weight > weight.sum() / 2)
        for _ in range(8):
            chosen = rng.permutation(n)[: rng.integers(3, 7)]
            total = total + rng.normal() * masks[:, chosen].all(1)
        games.append(total)
    return np.stack(games)


KINDS = {
    "random_mlp12": random_network,
    "threshold13": thresholds,
    "diabetes_knn10": diabetes_neighbours,
    "diabetes_gp10": diabetes_process,
    "cancer_gb14_b1": cancer_boosting,
    "digits_mlp14": digits_network,
    "adult_gb14_b1": lambda: adult_boosting(1, log_odds=False),
    "adult_mlp14_b1": lambda: adult_network(1),
    "cancer_svm14_b20": cancer_svm,
    "wine_rf13_b20": wine_forest,
    "adult_gb14_b50": lambda: adult_boosting(50, log_odds=True),
    "adult_mlp14_b50": lambda: adult_network(50),
    "bike_rf12_b20": lambda: bike(20),
}
