"""Given a prior, a function's surrogate depends on that function alone, bit for bit."""

import numpy as np
import pytest

from harmonica_core import Settings, draw_design, fit_functions, learn_prior


def functions(masks, n_functions):
    rng = np.random.default_rng(0)
    n = masks.shape[1]
    mixed = rng.normal(size=(n, 8))
    values = [
        np.tanh((masks * rng.normal(size=n)) @ mixed).sum(axis=1)
        for _ in range(n_functions)
    ]
    values[3] = masks @ np.arange(n)  # linear
    values[5] = 1.5 * (masks[:, 1] & masks[:, 3]) + masks[:, 0]  # quadratic
    values[7] = np.full(len(masks), 3.0)
    return np.stack(values, axis=1)


def bits(surrogate, masks):
    values, std = surrogate.shapley_values(return_std=True)
    answers, doubt = surrogate.predict(masks, return_std=True)
    error = surrogate.error.value, surrogate.error.standard_error
    parts = (values, std, answers, doubt, *error)
    return b"".join(np.asarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("shape", [(70,), (35, 2)])
@pytest.mark.parametrize(("n", "budget"), [(14, 256), (14, 101), (9, 100)])
def test_other_functions_of_a_batch_have_no_say(n, budget, shape):
    settings = Settings()
    design = draw_design(settings, n, budget)
    values = functions(design.masks, 70).reshape(len(design.masks), *shape)
    prior = learn_prior(design, values[:, :20], settings)
    asked = np.random.default_rng(1).random((10, n)) < 0.5
    together = fit_functions(design, values, settings, prior)
    for chosen in ([0], [3], [5], [7], [9, 2, 5], range(34, -1, -1)):
        found = fit_functions(design, values[:, list(chosen)], settings, prior)
        for k, surrogate in zip(chosen, found, strict=True):
            assert bits(surrogate, asked) == bits(together[k], asked)
