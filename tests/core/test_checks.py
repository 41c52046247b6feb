"""Checks of arguments that many modules share."""

import numpy as np
import pytest

from harmonica_core import checks


@pytest.mark.parametrize("number", [0, -3, 10**30, np.int8(3), np.uint64(2)])
def test_integers_are_whole(number):
    assert checks.is_whole(number)


@pytest.mark.parametrize("other", [True, np.True_, 2.0, np.float64(2), "2", None, [2]])
def test_other_things_are_not(other):
    assert not checks.is_whole(other)
    with pytest.raises(ValueError, match="n_calls=.*; needed a whole number >= 0"):
        checks.check_count(other, "n_calls")
    with pytest.raises(ValueError, match="n_features=.*; needed a whole number"):
        checks.check_feature_count(other)


def test_counts_have_ends():
    assert type(checks.check_count(np.int64(0), "n_calls")) is int
    with pytest.raises(ValueError, match="n_calls=-1"):
        checks.check_count(-1, "n_calls")
    with pytest.raises(ValueError, match="at least 1"):
        checks.check_feature_count(0)
    with pytest.raises(ValueError, match="at most 1000000"):
        checks.check_feature_count(checks.MOST_FEATURES + 1)


def test_names_become_a_tuple_of_texts():
    assert checks.check_names(None, 2, "tokens") is None
    assert checks.check_names(iter(["a", 1]), 2, "tokens") == ("a", "1")
    with pytest.raises(ValueError, match="got 3 tokens; needed 2"):
        checks.check_names("abc", 2, "tokens")
