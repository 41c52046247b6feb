"""Games as functions of masks and as surrogates, shared by the tests of the core."""

import numpy as np
import reference

from harmonica_core import fit_surrogate
from harmonica_core.masks import mask_numbers


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
