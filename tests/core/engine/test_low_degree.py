"""Low-degree: sample means, and what they make of masks that they have not seen."""

from functools import partial

import numpy as np
import pytest
import reference

from harmonica_core.design.masks import mask_numbers, paired_masks, uniform_draws
from harmonica_core.engine.low_degree import fit_low_degree
from harmonica_core.result.held_out_error import stated_error


def smooth(masks):
    z = 2.0 * masks - 1
    return np.tanh(z @ np.linspace(0.2, 1, z.shape[1])) + 0.5 * z[:, 0] * z[:, 1]


@pytest.mark.parametrize("centred", [True, False])
def test_low_degree_is_the_sample_mean(centred):
    for masks in (
        uniform_draws(6, 41, np.random.default_rng(0)),
        paired_masks(6, 40, np.random.default_rng(0)),
    ):
        values = np.c_[smooth(masks), 3 - smooth(masks[:, ::-1])]
        g = fit_low_degree(masks, values, degree=3, centred=centred)
        numbers = mask_numbers(masks)
        for term, coef in g.spectrum.items():
            chi = np.array([reference.parity(int(x), term) for x in numbers])
            middle = values.mean(axis=0) if centred and term else 0
            expected = chi @ (values - middle) / len(values)
            np.testing.assert_allclose(coef, expected, atol=1e-6)
        assert len(g.terms) == 1 + 6 + 15 + 20


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("paired", [False, True])
def test_low_degree_held_out_predictions_leave_the_mask_out(paired, centred):
    rng = np.random.default_rng(0)
    masks = paired_masks(7, 30, rng) if paired else uniform_draws(7, 31, rng)
    values = smooth(masks) + 1
    found = partial(fit_low_degree, degree=2, centred=centred)
    stated = found(masks, values)
    held_out = np.zeros(len(masks))
    for row in range(len(masks)):
        left = {row, row ^ 1} if paired else {row}
        rest = [i for i in range(len(masks)) if i not in left]
        held_out[row] = found(masks[rest], values[rest])(masks[row])[0]
    expected, spread = stated_error(
        masks, values[:, None], stated(masks)[:, None], held_out[:, None]
    )
    assert stated.error.value == pytest.approx(expected[0], rel=1e-5)
    assert stated.error.standard_error == pytest.approx(spread[0], rel=1e-4)
