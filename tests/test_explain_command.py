import gzip
import itertools
import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from harmonica_compare.cli import main
from harmonica_compare.masked_rows import load_model, rows_that_fit
from harmonica_compare.streams import Source

MODEL = """
import time
import numpy as np

W = np.array([1.0, -2.0, 0.5, 0.25])

def f(x):
    return np.tanh(x @ W) + x[:, 0] * x[:, 1]

def two(x):
    return np.stack([f(x), -f(x)], axis=1)

def slow(x):
    time.sleep(0.005)
    return f(x)

def breaks(x):
    raise KeyError("no such\\nweight")

def nan(x):
    return np.full(len(x), np.nan)

def log(x):
    with np.errstate(all="ignore"):
        return np.log(x[:, 0] + 10)

def short(x):
    return f(x)[:-1]

def cube(x):
    return np.zeros((len(x), 2, 2))

def nothing(x):
    return np.zeros((len(x), 0))

calls = []

def small(x):
    calls.append(len(x))
    if len(x) > 9:
        raise MemoryError("only 9 rows fit")
    return f(x)

def no_memory(x):
    raise MemoryError("no row fits")

def words(x):
    return np.array(["a"] * len(x))

number = 3
"""
FEATURES = ["age", "größe", "x y", "d"]
ROWS = np.random.default_rng(0).normal(size=(53, 4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_model.py").write_text(MODEL)
    frame = pd.DataFrame(ROWS, columns=FEATURES)
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False, row_group_size=7)
    frame[:5].to_csv("background.csv", index=False)
    frame.assign(name="ann").to_csv("words.csv", index=False)
    yield tmp_path
    sys.modules.pop("my_model", None)
    load_model.cache_clear()
    rows_that_fit.cache_clear()


def explain(*options, model="f", data="data.csv", out="out"):
    options = ["--model", f"my_model:{model}", "--data", data, "--out", out, *options]
    return main(["explain", "--quiet", *options])


def read(out="out"):
    parts = sorted(out.glob("part-*") if hasattr(out, "glob") else [])
    read_one = {".parquet": pd.read_parquet, ".csv": pd.read_csv}
    return pd.concat([read_one[p.suffix](p) for p in parts], ignore_index=True)


def shapley(x, background):
    """Shapley values of one row, from the definition."""
    weights = np.array([1.0, -2.0, 0.5, 0.25])

    def value(kept):
        rows = background.copy()
        rows[:, list(kept)] = x[list(kept)]
        return float(np.mean(np.tanh(rows @ weights) + rows[:, 0] * rows[:, 1]))

    phi = np.zeros(4)
    for order in itertools.permutations(range(4)):
        for k, i in enumerate(order):
            phi[i] += value(order[: k + 1]) - value(order[:k])
    return value(()), phi / math.factorial(4)


@pytest.mark.parametrize("data", ["data.csv", "data.parquet"])
def test_attributions_are_the_shapley_values(folder, data, capsys):
    assert explain("--chunk", "10", data=data) == 0
    assert "53 rows explained" in capsys.readouterr().out
    table = read(folder / "out")
    names = [f"phi_{name}" for name in FEATURES]
    assert list(table) == ["row", "base_value", "error", *names]
    assert table["row"].tolist() == list(range(53))
    for k in (0, 17, 52):
        base, phi = shapley(ROWS[k], ROWS.mean(axis=0)[None, :])
        np.testing.assert_allclose(table.loc[k, "base_value"], base, atol=1e-12)
        found = table.loc[k, names].astype(float)
        np.testing.assert_allclose(found, phi, atol=1e-12)


def test_background_rows_are_averaged_over(folder):
    assert explain("--background", "background.csv", "--batch", "7") == 0
    table = read(folder / "out")
    base, phi = shapley(ROWS[3], ROWS[:5])
    np.testing.assert_allclose(table.loc[3, "base_value"], base, atol=1e-12)
    np.testing.assert_allclose(table.loc[3, "phi_age"], phi[0], atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        ["--chunk", "1"],
        ["--chunk", "53"],
        ["--chunk", "9", "--batch", "1"],
        ["--format", "csv", "--chunk", "20"],
        ["--features", ",".join(FEATURES)],
        ["--budget", "16"],
    ],
)
def test_how_it_is_cut_changes_nothing(folder, options):
    assert explain() == 0
    assert explain(*options, out="other") == 0
    pd.testing.assert_frame_equal(
        read(folder / "out"), read(folder / "other"), atol=1e-12
    )


def test_workers_change_nothing(folder):
    assert explain("--chunk", "10") == 0
    assert explain("--chunk", "10", "--n-jobs", "2", out="other") == 0
    for part in sorted((folder / "out").glob("part-*")):
        assert part.read_bytes() == (folder / "other" / part.name).read_bytes()


def test_workers_are_started_deaf_to_ctrl_c(folder, monkeypatch):
    asked = []
    monkeypatch.setattr("harmonica_compare.explain.start_workers", asked.append)
    assert explain("--chunk", "30", "--n-jobs", "2") == 0
    assert asked == [2]


def test_several_outputs(folder):
    assert explain(model="two", out="two") == 0
    assert explain() == 0
    one, two = read(folder / "out"), read(folder / "two")
    np.testing.assert_allclose(two["phi_d.0"], one["phi_d"], atol=1e-12)
    np.testing.assert_allclose(two["phi_d.1"], -one["phi_d"], atol=1e-12)
    assert {"base_value.0", "error.1"} <= set(two)


def test_sampled_masks(folder):
    assert explain("--budget", "12", "--degree", "1") == 0
    table = read(folder / "out")
    total = table[[f"phi_{n}" for n in FEATURES]].sum(axis=1) + table["base_value"]
    expected = np.tanh(ROWS @ [1.0, -2.0, 0.5, 0.25]) + ROWS[:, 0] * ROWS[:, 1]
    np.testing.assert_allclose(total, expected, atol=1e-9)
    assert (table["error"] > 0).all()


def test_the_degree_holds_when_all_masks_are_covered(folder):
    for degree in (1, 2, 3):
        assert explain("--degree", str(degree), out=f"degree{degree}") == 0
    one, two, three = (read(folder / f"degree{k}")["error"] for k in (1, 2, 3))
    assert (one > two).all() and (two > 1e-6).all()
    np.testing.assert_allclose(three, 0, atol=1e-12)


def test_killed_and_resumed(folder):
    command = [sys.executable, "-m", "harmonica_compare", "explain", "--quiet"]
    command += ["--model", "my_model:slow", "--data", "data.csv", "--out", "out"]
    command += ["--chunk", "3", "--batch", "3"]
    child = subprocess.Popen(command)
    while len(list(folder.glob("out/part-*"))) < 3:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    (folder / "out" / ".part-000000000050.parquet.1.tmp").write_text("half")
    before = {p: p.stat().st_mtime_ns for p in folder.glob("out/part-*")}
    assert 3 <= len(before) < 18

    assert explain("--chunk", "3", "--batch", "3", "--resume", model="slow") == 0
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert len(list(folder.glob("out/part-*"))) == 18
    assert not list(folder.glob("out/.part*"))
    assert explain("--chunk", "3", "--batch", "3", model="slow", out="whole") == 0
    pd.testing.assert_frame_equal(
        read(folder / "out"), read(folder / "whole"), check_exact=True
    )


def test_resuming_what_is_complete_does_nothing(folder, capsys):
    assert explain() == 0
    assert explain("--resume") == 0
    assert "0 rows explained" in capsys.readouterr().out
    assert explain("--resume", out="new") == 0


def damaged_files(folder):
    (folder / "header.csv").write_text(",".join(FEATURES) + "\n")
    (folder / "spaced.csv").write_text("\n" + ",".join(FEATURES) + "\n\n\n")
    pd.DataFrame(ROWS[:0], columns=FEATURES).to_parquet("header.parquet", index=False)
    # Long enough for the header to be read before the damage.
    text = pd.DataFrame(np.tile(ROWS, (400, 1)), columns=FEATURES).to_csv(index=False)
    packed = gzip.compress(text.encode())
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "flipped.csv.gz").write_bytes(flipped(packed))
    (folder / "plain.csv.gz").write_text(text)
    whole = (folder / "data.parquet").read_bytes()
    (folder / "flipped.parquet").write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 64 + content[middle + 64 :]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "missing"}, "has no missing"),
        ({"model": "number"}, "is int; needed a function"),
        ({"model": "breaks"}, "raised KeyError"),
        ({"model": "nan"}, "returned nan for row 0"),
        ({"model": "short"}, "needed numbers"),
        ({"model": "words"}, "needed numbers"),
        ({"data": "no.csv"}, "no such file"),
        ({"data": "my_model.py"}, "ending in .csv"),
        ({"data": "words.csv"}, "column name is not a number"),
        ({"options": ["--features", "age,weight"]}, "no column weight"),
        ({"options": ["--background", "no.csv"]}, "no such file"),
        ({"options": ["--budget", "many"]}, "--budget many"),
        ({"options": ["--budget", "1"]}, "--budget 1"),
        ({"options": ["--chunk", "0"]}, "at least 1 row"),
        ({"options": ["--degree", "0"]}, "--degree 0"),
        ({"options": ["--n-jobs", "0"]}, "--n-jobs 0"),
        ({"options": ["--seed", "-1"]}, "--seed -1: needed a whole number, at least 0"),
        ({"options": ["--features", ""]}, "no column ''"),
        ({"model": "cube"}, "needed numbers"),
        ({"model": "nothing"}, "needed numbers"),
        ({"model": "no_memory"}, "raised MemoryError: no row fits"),
        ({"data": "header.csv"}, "header.csv has no rows"),
        ({"data": "spaced.csv"}, "spaced.csv has no rows"),
        ({"data": "header.parquet"}, "header.parquet has no rows"),
        ({"options": ["--background", "header.csv"]}, "header.csv has no rows"),
        ({"data": "cut.csv.gz"}, "cut.csv.gz can not be read"),
        ({"data": "flipped.csv.gz"}, "flipped.csv.gz can not be read"),
        ({"data": "plain.csv.gz"}, "plain.csv.gz"),
        ({"data": "flipped.parquet"}, "flipped.parquet can not be read"),
        ({"data": "broken.parquet"}, "can not be read"),
        ({"data": "empty.csv"}, "can not be read"),
        ({"data": "binary.csv"}, "can not be read"),
        ({"data": "ragged.csv"}, "can not be read"),
        ({"data": "shifted.csv"}, "more fields than the header"),
        ({"data": "twice.parquet"}, "column age twice"),
        ({"options": ["--features", "d,age,d"]}, "column d twice"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(folder, capsys, options, says):
    (folder / "broken.parquet").write_bytes(b"PAR1 not really")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x81,\x9d\n1,2\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    (folder / "shifted.csv").write_text("a,b\n1,2,3\n3,4,5\n")
    twice = pyarrow.table([[1.0], [2.0]], names=["age", "age"])
    pyarrow.parquet.write_table(twice, "twice.parquet")
    damaged_files(folder)
    assert explain(*options.pop("options", []), **options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("harmonica explain: ")
    assert err.count("\n") == 1
    assert says in err


def test_nothing_is_overwritten(folder, capsys):
    assert explain() == 0
    before = {p: p.read_bytes() for p in (folder / "out").iterdir()}
    assert explain() == 2
    assert "add --resume" in capsys.readouterr().err
    assert explain("--resume", "--degree", "1") == 2
    assert "other settings (degree: 3, now 1)" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in (folder / "out").iterdir()} == before

    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("mine")
    for resume in ([], ["--resume"]):
        assert explain(*resume, out="mine") == 2
    assert [p.name for p in (folder / "mine").iterdir()] == ["thesis.txt"]
    assert explain(out="data.csv") == 2
    assert len(pd.read_csv("data.csv")) == 53


@pytest.mark.parametrize("text", ["", "[]", "{", '"a"', "[" * 100_000])
def test_a_damaged_manifest_is_refused(folder, capsys, text):
    assert explain() == 0
    (folder / "out" / "explain.json").write_text(text)
    assert explain("--resume") == 2
    err = capsys.readouterr().err
    assert "give --out another folder" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ["--degree", "0"]},
        {"options": ["--seed", "-1"]},
        {"options": ["--n-jobs", "0"]},
    ],
)
def test_wrong_options_leave_no_folder(folder, wrong):
    assert explain(*wrong["options"]) == 2
    assert not (folder / "out").exists()


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_that_explained_nothing_can_be_corrected(folder, resume):
    assert explain("--degree", "1", model="breaks") == 2
    (folder / "out" / ".part-000000000000.parquet.1.tmp").write_text("half")
    assert explain(*resume) == 0
    assert len(read(folder / "out")) == 53
    assert not list(folder.glob("out/.part*"))
    manifest = json.loads((folder / "out" / "explain.json").read_text())
    assert (manifest["model"], manifest["degree"]) == ("my_model:f", 3)


@pytest.mark.parametrize("text", ["{}", "[]", "{", "mine"])
def test_a_manifest_of_somebody_else_is_kept(folder, capsys, text):
    (folder / "out").mkdir()
    (folder / "out" / "explain.json").write_text(text)
    for resume in ([], ["--resume"]):
        assert explain(*resume) == 2
        assert "nothing was changed" in capsys.readouterr().err
    assert (folder / "out" / "explain.json").read_text() == text


@pytest.mark.parametrize("cell", [np.inf, -np.inf, np.nan])
def test_the_default_background_leaves_out_what_is_not_finite(folder, cell):
    rows = ROWS.copy()
    rows[7, 3] = cell
    pd.DataFrame(rows, columns=FEATURES).to_csv("hole.csv", index=False)
    mean = Source(folder / "hole.csv").mean(10)
    expected = [*ROWS[:, :3].mean(axis=0), np.delete(ROWS[:, 3], 7).mean()]
    np.testing.assert_allclose(mean, expected, atol=1e-12)


@pytest.mark.parametrize("options", [[], ["--batch", "3"], ["--n-jobs", "2"]])
def test_the_row_without_a_finite_output_is_named(folder, capsys, options):
    rows = ROWS.copy()
    rows[[37, 39], 0] = -11.0
    pd.DataFrame(rows, columns=FEATURES).to_csv("hole.csv", index=False)
    options = ["--chunk", "10", "--background", "background.csv", *options]
    assert explain(*options, model="log", data="hole.csv") == 2
    err = capsys.readouterr().err
    assert "returned nan for row 37 of the data (the first is row 0)" in err
    assert err.count("\n") == 1


def test_features_may_be_written_with_spaces(folder):
    assert explain("--features", " age, größe,x y , d") == 0
    manifest = json.loads((folder / "out" / "explain.json").read_text())
    assert manifest["features"] == FEATURES
    pd.DataFrame(ROWS[:, :2], columns=["a", " b"]).to_csv("space.csv", index=False)
    assert Source(folder / "space.csv", ["a", " b"]).features == ["a", " b"]


@pytest.mark.parametrize("options", [[], ["--background", "background.csv"]])
def test_calls_that_do_not_fit_into_memory_are_halved(folder, options):
    assert explain(*options) == 0
    assert explain("--chunk", "20", *options, model="small", out="small") == 0
    pd.testing.assert_frame_equal(
        read(folder / "out"), read(folder / "small"), atol=1e-12
    )
    calls = sys.modules["my_model"].calls
    first = next(k for k, n_rows in enumerate(calls) if n_rows <= 9)
    assert max(calls[first:]) <= 9  # the size that worked is remembered


def test_the_manifest_is_readable(folder):
    assert explain() == 0
    manifest = json.loads((folder / "out" / "explain.json").read_text())
    assert manifest["features"] == FEATURES
    assert manifest["model"] == "my_model:f"


def test_progress_and_help(folder, capsys):
    args = ["--model", "my_model:f", "--data", "data.parquet", "--out", "out"]
    assert main(["explain", *args]) == 0
    assert "Harmonica: 100%" in capsys.readouterr().err
    for asked in (["--help"], ["explain", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(asked)
        assert caught.value.code == 0
        assert "explain" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
