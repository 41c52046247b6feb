"""Texts from anywhere, made safe to look at; numbers as people write them."""

import pytest
from explain_runs import explain

from harmonica_core.text import visible


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
