"""The fast Walsh-Hadamard transform against its definition."""

import numpy as np
import pytest

from harmonica_core import basis
from harmonica_core.basis import table_of_numbers, term_numbers, transform
from harmonica_core.design import masks as draw


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("tail", [(), (3,)])
def test_spectrum_is_the_mean_of_value_times_parity(n, tail):
    values = np.random.default_rng(n).normal(size=(2**n, *tail))
    spectrum = transform.spectrum_of_values(values)
    masks = draw.all_masks(n)
    for number in range(2**n):
        in_term = [i for i in range(n) if number >> i & 1]
        chi = np.prod(np.where(masks[:, in_term], 1.0, -1.0), axis=1)
        expected = (values.T * chi).T.mean(axis=0)
        np.testing.assert_allclose(spectrum[number], expected, atol=1e-14)


def test_the_input_is_left_alone():
    values = np.arange(4.0)
    transform.spectrum_of_values(values)
    np.testing.assert_array_equal(values, np.arange(4.0))


def test_a_length_that_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="power of two"):
        transform.spectrum_of_values(np.zeros(3))


def test_term_numbers_round_trip():
    table = basis.terms_up_to(6, 6)
    numbers = term_numbers(table, 6)
    assert sorted(numbers) == list(range(64))
    np.testing.assert_array_equal(table_of_numbers(numbers, 6), table)
