"""``harmonica compare`` on unusable input: one clear line and exit code 2."""

import gzip
import json
import zlib

import numpy as np
import pytest

from harmonica_compare.cli import main
from harmonica_compare.results import Results

QUICK = ["--methods", "published-2", "--budget", "12", "--cases", "1"]
QUICK += ["--evaluations", "16", "--jobs", "1"]


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """A check that arguments are refused in one line that says ``message``."""
    monkeypatch.chdir(tmp_path)

    def check(message, *args):
        assert main(["compare", *QUICK, *map(str, args)]) == 2
        error = capsys.readouterr().err
        lines = [line for line in error.splitlines() if line.startswith("harmonica")]
        assert len(lines) == 1 and message in lines[0], error
        assert error.rstrip().endswith(lines[0])
        assert "Traceback" not in error

    return check


def save(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def save_game(path, values):
    np.savez(path, values=np.atleast_2d(np.asarray(values, dtype=float)))
    return path


def test_tables(refused, tmp_path):
    label = ["--label", "y", "--data"]
    only = save(tmp_path / "only.csv", "y\n" + "a\nb\n" * 20)
    refused("no column beside", *label, only)
    missing = save(tmp_path / "missing.csv", "a,b,y\n" + ",1,x\n2,,y\n" * 20)
    refused("missing value", *label, missing)
    rows = "".join(f"{k},{'inf' if k % 3 == 0 else k}\n" for k in range(60))
    refused("infinite", *label, save(tmp_path / "inf.csv", "a,y\n" + rows))


@pytest.mark.parametrize("damage", ["cut", "garbled"])
@pytest.mark.parametrize("task", ["tabular", "text", "custom"])
def test_damaged_compressed_files(refused, tmp_path, task, damage):
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{a > 0}\n" for a in rng.normal(size=400))
    packed = bytearray(gzip.compress(f"a,y\n{rows}".encode()))
    if damage == "cut":
        packed = packed[:90]
    else:
        packed[200:260] = b"x" * 60
        with pytest.raises((zlib.error, EOFError, OSError)):
            gzip.decompress(bytes(packed))
    data = save(tmp_path / f"{damage}.csv.gz", bytes(packed))
    save(tmp_path / "model_for_gz.py", "class M:\n    predict = print\n")
    extra = {"tabular": ["--label", "y"], "custom": ["--model", "model_for_gz:M"]}
    args = ["--task", task, "--data", data, *extra.get(task, [])]
    refused("not a readable", *args)


def test_games(refused, tmp_path):
    values = np.ones(32)
    values[3] = np.nan
    args = ["--task", "games", "--data"]
    refused("finite", *args, save_game(tmp_path / "nan.npz", values))
    one = save_game(tmp_path / "one.npz", [0, 1])
    refused("--radii 8", *args, one, "--radii", 8)


def test_a_case_too_small_for_the_radii_costs_only_its_cells(tmp_path):
    folder, out = tmp_path / "games", tmp_path / "out"
    folder.mkdir()
    save_game(folder / "a.npz", np.arange(4.0))
    save_game(folder / "b.npz", np.arange(16.0))
    args = ["--task", "games", "--data", str(folder), "--radii", "3"]
    assert main(["compare", *QUICK, *args, "--out", str(out)]) == 0
    small, large = Results.load(out / "results.json").cells
    assert (small.status, large.status) == ("not applicable", "ok")
    assert "2 features" in small.message


CUSTOM = """
import numpy as np
def raises(): raise RuntimeError("no gpu\\nat all")
not_a_function = 3
def dies():
    def f(masks): raise RuntimeError("model died")
    return f, 4
def dies_later():
    def f(masks):
        if len(masks) > 8: raise RuntimeError("out of luck")
        return 1.0 * masks[:, 0]
    return f, 4
def nan(): return (lambda masks: masks.sum(1) * np.nan), 4
def nothing(): return (lambda masks: masks.sum(1)), 0
def two(): return (lambda masks: np.ones((len(masks), 2))), 4
def short(): return (lambda masks: np.ones(1)), 4
def linear():
    from sklearn.linear_model import LinearRegression
    return LinearRegression().fit(np.eye(3), np.ones(3))
"""


@pytest.mark.parametrize(
    "name, message",
    [
        ("raises", "RuntimeError: no gpu at all"),
        ("not_a_function", "not_a_function is int; needed a function"),
        ("absent", "absent"),
        ("dies", "model died"),
        ("dies_later", "out of luck"),
        ("nan", "NaN"),
        ("nothing", "0 features"),
        ("two", "(4, 2)"),
        ("short", "(1,)"),
        ("linear", "needs --data"),
    ],
)
def test_custom_functions(refused, tmp_path, name, message):
    save(tmp_path / "broken_functions.py", CUSTOM)
    refused(message, "--task", "custom", "--model", f"broken_functions:{name}")


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b,c,d\n1,2,3,4\n", "expecting 3 features"),
        ("a,b,c\n1,,3\n1,2,3\n", "NaN"),
        ("a,b,c\n1,,3\n1,,3\n", "column b has no numbers"),
        ("a\nx\n", "no column of numbers"),
        ("a,b,c\n", "no rows"),
    ],
)
def test_tables_for_a_custom_model(refused, tmp_path, content, message):
    save(tmp_path / "linear_model.py", CUSTOM)
    data = save(tmp_path / "rows.csv", content)
    model = ["--task", "custom", "--model", "linear_model:linear"]
    refused(message, *model, "--data", data)


def test_a_custom_module_that_does_not_compile(refused, tmp_path):
    save(tmp_path / "no_syntax.py", "def (")
    refused("SyntaxError", "--task", "custom", "--model", "no_syntax:f")
    save(tmp_path / "leaves.py", "import sys\nsys.exit(0)")
    refused("SystemExit", "--task", "custom", "--model", "leaves:f")


def test_folders_that_can_not_be_written_to(refused, tmp_path):
    game = save_game(tmp_path / "game.npz", np.arange(8.0))
    file = save(tmp_path / "file", "mine")
    args = ["--task", "games", "--data", game, "--out"]
    refused("not a folder", *args, file)
    refused("not a folder", *args, file / "below")
    (tmp_path / "out" / "results.json").mkdir(parents=True)
    refused("results.json is a folder", *args, tmp_path / "out")
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "args, message",
    [
        (["--jobs", 0], "--jobs 0"),
        (["--seed", -1], "--seed -1"),
        (["--seed", 2**32], f"--seed {2**32}"),
        (["--budget", ","], "whole numbers"),
        (["--radii", "inf,2,0"], "numbers >= 1"),
        (["--plugin", "no_such_plugin"], "no_such_plugin"),
    ],
)
def test_numbers(refused, tmp_path, args, message):
    game = save_game(tmp_path / "game.npz", np.arange(8.0))
    refused(message, "--task", "games", "--data", game, *args)


@pytest.fixture
def texts(tmp_path):
    lines = ["a good film\t1", "a bad film\t0"] * 8
    return save(tmp_path / "texts.tsv", "\n".join(["sentence\tlabel", *lines]))


def test_damaged_text_models_are_named_and_kept(refused, tmp_path, texts):
    cache = tmp_path / "cache"
    args = ["--task", "text", "--data", texts, "--radii", "1", "--cache", cache]
    assert main(["compare", *QUICK, *map(str, args)]) == 0
    (model,) = cache.glob("*.npz")
    model.write_bytes(b"junk")
    # Other options, so that the task is not remembered.
    refused("delete it", *args, "--cases", 2)
    assert model.read_bytes() == b"junk"
    refused("--cache", *args[:-1], save(tmp_path / "file", ""), "--cases", 3)


def test_texts_that_are_too_long(refused, tmp_path):
    words, sentences = " ".join(["word"] * 60), "So. " * 70
    for unit, long, limit in [("word", words, 50), ("sentence", sentences, 64)]:
        content = f"sentence\tlabel\n{long}\t1\n{long}\t0\n"
        data = save(tmp_path / f"{unit}.tsv", content)
        args = ["--task", "text", "--data", data, "--cache", tmp_path / "cache"]
        advice = "use --unit sentence" if unit == "word" else "use shorter texts"
        message = f"more than {limit} {unit}s; {advice}"
        refused(message, *args, "--unit", unit)


def test_pictures(refused, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the image extra")
    from PIL import Image

    folder = tmp_path / "pictures"
    (folder / "folder.png").mkdir(parents=True)
    args = ["--task", "image", "--data", folder]
    refused("no picture", *args)
    Image.fromarray(np.zeros((60, 80, 3), dtype=np.uint8)).save(folder / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    refused("decompression bomb", *args)


def test_results_without_settings_are_refused(refused, tmp_path):
    game = save_game(tmp_path / "game.npz", np.arange(8.0))
    out = tmp_path / "out"
    out.mkdir()
    content = {"format": "harmonica-compare", "version": 2, "cells": [], "settings": 1}
    save(out / "results.json", json.dumps({**content, "versions": {}, "complete": 0}))
    refused("damaged", "--task", "games", "--data", game, "--out", out, "--resume")
