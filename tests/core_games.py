"""Games as functions of masks and as surrogates, shared by the tests of the core."""

import numpy as np
import reference

from harmonica_core import Prior, basis, fit_surrogate
from harmonica_core.design.masks import mask_numbers


def function_of(game):
    """The value function of a game; masks of 0 and 1, and a single one, pass."""
    n = reference.n_features_of(game)

    def function(masks):
        masks = np.atleast_2d(masks).astype(bool)
        assert masks.shape[1] == n
        return game[mask_numbers(masks)]

    return function


def surrogate_of(game):
    """The whole spectrum of a game, exactly."""
    n = reference.n_features_of(game)
    return fit_surrogate(function_of(game), n, degree=n, budget=1 << n)


def f1(masks):
    """The paper's first polynomial; the next two add pairs and a triple."""
    a, b, c = np.where(masks, 1.0, -1.0)[:, :3].T
    return a / 2 - b / 3 + c / 4


def f2(masks):
    a, b, c = np.where(masks, 1.0, -1.0)[:, :3].T
    return f1(masks) - a * b / 5 + a * c / 6 - b * c / 7


def f3(masks):
    a, b, c = np.where(masks, 1.0, -1.0)[:, :3].T
    return f2(masks) + a * b * c / 8


def draw_pairs(n_features, n_masks, rng):
    """Complementary pairs of uniform masks; some may occur twice."""
    half = rng.random((n_masks // 2, n_features)) < 0.5
    return np.stack([half, ~half], axis=1).reshape(-1, n_features)


def random_network(n_features, rng, n_targets=1):
    """A function of masks with terms of every size."""
    inner = rng.normal(size=(n_features, 12)) * 1.5 / np.sqrt(n_features)
    outer = rng.normal(size=(12, n_targets))
    return lambda masks: np.tanh(np.where(masks, 1.0, -1.0) @ inner) @ outer + 3


def predict(fit, masks):
    """Values ``(m, K)`` of a sparse or adaptive fit."""
    return basis.predict(masks, fit.table, fit.coef) + fit.intercept


def random_prior(n_features, degree=None, n_products=2, seed=0):
    """Return a prior with unequal features; a degree leaves no products."""
    rng = np.random.default_rng(seed)
    n_orders, n_products = (
        (min(3, n_features), n_products) if degree is None else (degree, 0)
    )
    return Prior(
        relevance=np.exp(rng.normal(size=n_features)),
        orders=np.exp(rng.normal(size=n_orders)),
        rates=np.exp(rng.normal(-1, 0.7, size=(n_products, n_features))),
        products=np.exp(rng.normal(size=(2, n_products))),
        white=np.exp(rng.normal(-3, 1, size=2)),
    )


def misleading(masks):
    """The best first flip (feature 0) turns out not to be needed."""
    a, b, c = 1.0 - masks.T
    return 3 * a + 2 * b + 2 * c - 3 * a * b + 3 * b * c
