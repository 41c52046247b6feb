"""Integrated gradients and Hessians on functions whose answer is known."""

import numpy as np
import pytest
import torch

from harmonica_compare.gradients import integrated_gradients, integrated_hessians


def quadratic(matrix, slope):
    a = torch.tensor(matrix, dtype=torch.float32)
    b = torch.tensor(slope, dtype=torch.float32)
    return lambda x: ((x @ a) * x).sum(1) + x @ b


def test_a_quadratic_model_is_split_as_defined():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(4, 4))
    matrix = (matrix + matrix.T) / 2
    slope = rng.normal(size=4)
    f = quadratic(matrix, slope)
    # f = x'Ax + b'x along s*1: the Hessian is 2A; int int ab da db = 1/4.
    expected = 2 * matrix / 4
    # df/dx_i = 2 s (A 1)_i + b_i, and E[ab] = 1/4.
    expected[np.diag_indices(4)] += 2 * matrix.sum(axis=1) / 4 + slope
    found = integrated_hessians(f, 4, 50)
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("steps", [50])
def test_hessians_sum_to_the_difference_of_the_ends(steps):
    def f(x):
        return torch.tanh(x[:, 0] * x[:, 1] + x[:, 2]) + x[:, 2] ** 3

    total = integrated_hessians(f, 3, steps).sum()
    ends = f(torch.ones(1, 3)) - f(torch.zeros(1, 3))
    assert total == pytest.approx(float(ends), abs=5e-3)


def test_gradients_of_a_product():
    scores = integrated_gradients(lambda x: x[:, 0] * x[:, 1], 2, 200)
    np.testing.assert_allclose(scores, [0.5, 0.5], atol=1e-3)


def test_a_linear_model_has_no_pairs():
    found = integrated_hessians(lambda x: x @ torch.tensor([1.0, 2.0]), 2, 20)
    np.testing.assert_allclose(found, [[1, 0], [0, 2]], atol=1e-2)
