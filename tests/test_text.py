"""Texts from anywhere, made safe to look at; numbers as people write them."""

import numpy as np
import pandas as pd
import pytest
from explain_runs import explain

from harmonica_core.text import number, shown, visible


@pytest.mark.parametrize("char", "\u202e\u2066\u200f\u061c\x1b\x00\x9b")
def test_characters_that_deceive_are_shown_as_escapes(char):
    assert visible(f"a{char}b") == f"a\\u{ord(char):04x}b"


@pytest.mark.parametrize(
    "text", ["größe", "a\tb\nc", "\u05d0\u05d1", "👩\u200d🔬", "\ud800"]
)
def test_other_texts_stay(text):
    assert visible(text) == text


def test_errors_on_the_terminal_hold_no_control_characters(folder, capsys):
    (folder / "bad.csv").write_text("a\x1b[31m,b\n1,x\n")
    assert explain(data="bad.csv") == 2
    (folder / "bad2.csv").write_text("a\u202e,b\nx,1\n")
    assert explain(data="bad2.csv") == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err and "\u202e" not in err and "a\\u202e" in err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (23350.0, "23,350"),
        (np.float32(23350), "23,350"),
        (1234567.89, "1,234,568"),
        (1987, "1987"),
        (np.int64(12), "12"),
        (-40000, "−40,000"),
        (1.0, "1"),
        (100.0, "100"),
        (0.1, "0.1"),
        (1.23456, "1.235"),
        (-0.000123456, "−0.0001235"),
        (3.37e-16, "0"),
        (-0.0, "0"),
        (0, "0"),
        (2.5e-9, "2.5 × 10⁻⁹"),
        (6.02e23, "6.02 × 10²³"),
        (float("nan"), "missing"),
        (None, "missing"),
        (np.ma.masked, "missing"),
        (pd.NA, "missing"),
        (pd.NaT, "missing"),
        (float("inf"), "∞"),
        (10**400, str(10**400)),
        (True, "yes"),
        (np.False_, "no"),
        ("blue\u202e", "blue\\u202e"),
    ],
)
def test_cells_are_written_as_people_do(value, text):
    assert shown(value) == text


def test_rounding_never_needs_another_digit():
    assert [number(value) for value in (9999.96, 0.99999, 999999.7)] == [
        "10,000",
        "1",
        "1,000,000",
    ]
