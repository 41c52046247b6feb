"""results.json: numbers that no comparison can have written are refused in one line."""

import json

import pytest

from harmonica_compare.cli import main
from harmonica_compare.results import Cell, Results


def text_of(**changes):
    cell = {"numbers": {"L2@4": [0.1, 0.01]}, "seconds": 0.5, "n_calls": 9, **changes}
    whole = {"case": "a", "method": "lime", "budget": 9, "seed": 0, "status": "ok"}
    return json.dumps(
        {
            "format": "harmonica-compare",
            "version": 2,
            "settings": {},
            "versions": {},
            "cells": [{**whole, **cell}],
            "complete": True,
        }
    )


def test_what_was_written_is_read(tmp_path):
    cells = (Cell("a", "lime", 9, 0, "ok", numbers={"L2@4": [-0.1, 0.0]}),)
    Results({}, {}, cells).save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json").cells == cells


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": {"L2@4": [float("nan"), 0.01]}},
        {"numbers": {"L2@4": [float("-inf"), 0.01]}},
        {"numbers": {"L2@4": [0.1, float("inf")]}},
        {"numbers": {"L2@4": [0.1, -0.01]}},
        {"numbers": {"L2@4": [None, 0.01]}},
        {"numbers": {"L2@4": ["nan", 0.01]}},
        {"seconds": float("nan")},
        {"seconds": -1},
        {"n_calls": -1},
    ],
)
def test_numbers_that_can_not_be_are_refused(tmp_path, games, capsys, changes):
    path = tmp_path / "results.json"
    path.write_text(text_of(**changes))
    with pytest.raises(ValueError, match="damaged or not a result"):
        Results.load(path)
    options = ["--task", "games", "--data", str(games), "--out", str(tmp_path)]
    assert main(["compare", *options, "--resume"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "results.json is damaged" in err


def test_numbers_beyond_all_floats_are_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text_of().replace("0.1", "1e999"))
    with pytest.raises(ValueError, match="inf where a finite number"):
        Results.load(path)
