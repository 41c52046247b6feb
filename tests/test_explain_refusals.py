"""``harmonica explain``: what it refuses, in one line, and what it leaves alone."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from explain_runs import FEATURES, ROWS, explain, read


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
        ({"options": ["--jobs", "0"]}, "--jobs 0"),
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


@pytest.mark.parametrize("options", [[], ["--batch", "3"], ["--jobs", "2"]])
def test_the_row_without_a_finite_output_is_named(folder, capsys, options):
    rows = ROWS.copy()
    rows[[37, 39], 0] = -11.0
    pd.DataFrame(rows, columns=FEATURES).to_csv("hole.csv", index=False)
    options = ["--chunk", "10", "--background", "background.csv", *options]
    assert explain(*options, model="log", data="hole.csv") == 2
    err = capsys.readouterr().err
    assert "returned nan for row 37 of the data (the first is row 0)" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ["--degree", "0"]},
        {"options": ["--seed", "-1"]},
        {"options": ["--jobs", "0"]},
    ],
)
def test_wrong_options_leave_no_folder(folder, wrong):
    assert explain(*wrong["options"]) == 2
    assert not (folder / "out").exists()


def test_nothing_is_overwritten(folder, capsys):
    assert explain() == 0
    before = {p: p.read_bytes() for p in (folder / "out").iterdir()}
    assert explain() == 2
    assert "add --resume" in capsys.readouterr().err
    assert explain("--resume", "--degree", "1") == 2
    assert "(--degree was None, is 1)" in capsys.readouterr().err
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


@pytest.mark.parametrize("text", ["{}", "[]", "{", "mine"])
def test_a_manifest_of_somebody_else_is_kept(folder, capsys, text):
    (folder / "out").mkdir()
    (folder / "out" / "explain.json").write_text(text)
    for resume in ([], ["--resume"]):
        assert explain(*resume) == 2
        assert "nothing was changed" in capsys.readouterr().err
    assert (folder / "out" / "explain.json").read_text() == text


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_that_explained_nothing_can_be_corrected(folder, resume):
    pd.DataFrame(ROWS - 20, columns=FEATURES).to_csv("first.csv", index=False)
    assert explain("--degree", "1", model="log", data="first.csv") == 2
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out" / ".harmonica-1.tmp").write_text("half")
    assert explain(*resume) == 0
    assert len(read(folder / "out")) == 53
    assert not list(folder.glob("out/.*"))
    manifest = json.loads((folder / "out" / "explain.json").read_text())
    assert (manifest["model"], manifest["degree"]) == ("my_model:f", None)
