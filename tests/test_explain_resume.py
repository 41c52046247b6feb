"""``harmonica explain --resume``: goes on with the same work, or says what differs."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from explain_runs import FEATURES, MODEL, ROWS, explain, read

CHUNK = ("--chunk", "10")


@pytest.fixture
def stopped(folder):
    """A run of which the parts from row 20 on are missing."""
    assert explain(*CHUNK) == 0
    for part in sorted((folder / "out").glob("part-*"))[2:]:
        part.unlink()
    return folder


def files(folder):
    return {path: path.read_bytes() for path in (folder / "out").iterdir()}


def edit_model(folder):
    (folder / "my_model.py").write_text(MODEL.replace("-2.0", "-2.5"))


def edit_comment(folder):
    (folder / "my_model.py").write_text(MODEL + "# seen\n")


def reorder(folder):
    pd.DataFrame(ROWS[::-1], columns=FEATURES).to_csv("data.csv", index=False)


def edit_background(folder):
    pd.DataFrame(ROWS[5:10], columns=FEATURES).to_csv("background.csv", index=False)


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        (edit_model, [], "the model's file has changed, the model answers otherwise"),
        (edit_comment, [], "(the model's file has changed)"),
        (reorder, [], "the data has changed, the background has changed)"),
        (None, ["--background", "background.csv"], "(the background has changed)"),
        (
            None,
            ["--degree", "1", "--seed", "7"],
            "--degree was None, is 1, --seed",
        ),
        (None, ["--budget", "12"], "--budget was 16, is 12"),
    ],
)
def test_nothing_else_is_mixed_in(stopped, capsys, change, options, told):
    if change:
        change(stopped)
    before = files(stopped)
    assert explain(*CHUNK, *options, "--resume") == 2
    err = capsys.readouterr().err
    assert told in err and "--force" in err and err.count("\n") == 1
    assert files(stopped) == before

    assert explain(*CHUNK, *options, "--resume", "--force") == 0
    assert len(read(stopped / "out")) == 53
    kept = {path: text for path, text in before.items() if "part" in path.name}
    assert kept.items() <= files(stopped).items()
    forced = json.loads((stopped / "out" / "explain.json").read_text())["forced"]
    assert forced
    assert explain(*CHUNK, *options, "--resume") == 0  # asked once, then settled


def test_a_background_of_other_rows_is_noticed(folder, capsys):
    options = [*CHUNK, "--background", "background.csv", "--resume"]
    assert explain(*options) == 0
    edit_background(folder)
    assert explain(*options) == 2
    assert "the background has changed" in capsys.readouterr().err


def test_other_weights_are_noticed_though_no_file_of_code_changed(folder, capsys):
    (folder / "weight.txt").write_text("1.0")
    loads = "\ndef weighted(x):\n    return f(x) * np.loadtxt('weight.txt')\n"
    (folder / "my_model.py").write_text(MODEL + loads)
    assert explain(*CHUNK, model="weighted") == 0
    (folder / "weight.txt").write_text("1.001")
    assert explain(*CHUNK, "--resume", model="weighted") == 2
    assert "(the model answers otherwise)" in capsys.readouterr().err


def test_a_module_that_the_model_imports_is_part_of_it(folder, capsys):
    (folder / "helper_of_mine.py").write_text("shift = 0\n")
    (folder / "my_model.py").write_text(MODEL + "\nimport helper_of_mine\n")
    assert explain(*CHUNK) == 0
    (folder / "helper_of_mine.py").write_text("shift = 1\n")
    assert explain(*CHUNK, "--resume") == 2
    assert "the model's file has changed" in capsys.readouterr().err


def test_the_same_rows_under_another_name_are_the_same(stopped):
    os.rename("data.csv", "renamed.csv")
    assert explain(*CHUNK, "--resume", data="renamed.csv") == 0
    assert len(read(stopped / "out")) == 53


@pytest.mark.parametrize(
    "options", [["--chunk", "20"], [*CHUNK, "--format", "csv"], [*CHUNK, "--features"]]
)
def test_parts_of_another_shape_can_not_be_forced(stopped, capsys, options):
    if options[-1] == "--features":
        options = [*options, ",".join(reversed(FEATURES))]
    assert explain(*options, "--resume", "--force") == 2
    err = capsys.readouterr().err
    assert "parts of another shape" in err and "--force" not in err


def cut(content, kind):
    return {
        "empty": b"",
        "half": content[: len(content) // 2],
        "a byte short": content[:-1],
        "zeros": bytes(len(content)),
    }[kind]


@pytest.mark.parametrize("kind", ["empty", "half", "a byte short", "zeros"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_part_that_is_cut_off_is_explained_again(folder, form, kind):
    assert explain(*CHUNK, "--format", form) == 0
    before = files(folder)
    part = folder / "out" / f"part-000000000020.{form}"
    part.write_bytes(cut(part.read_bytes(), kind))
    assert explain(*CHUNK, "--format", form, "--resume") == 0
    assert files(folder) == before


def test_rows_that_are_missing_in_a_part_are_explained_again(folder):
    assert explain(*CHUNK, "--format", "csv") == 0
    before = files(folder)
    part = folder / "out" / "part-000000000020.csv"
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:-1]))
    assert explain(*CHUNK, "--format", "csv", "--resume") == 0
    assert files(folder) == before


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_disk_that_is_full_at_the_start_blocks_nothing(
    folder, monkeypatch, capsys, resume
):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert explain(*CHUNK) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert list(folder.glob("out/*")) == []
    assert explain(*CHUNK, *resume) == 0
    assert len(read(folder / "out")) == 53


KILLS_ITSELF = f"""
import signal

def mortal(x):
    if os.path.exists("deadly") and np.isclose(x[:, 0], {ROWS[30, 0]}).any():
        os.kill(os.getpid(), signal.SIGKILL)
    return f(x)
"""


def test_a_worker_that_is_killed_ends_in_one_line(folder):
    (folder / "my_model.py").write_text("import os\n" + MODEL + KILLS_ITSELF)
    (folder / "deadly").touch()
    command = [sys.executable, "-m", "harmonica_compare", "explain", "--quiet"]
    command += ["--model", "my_model:mortal", "--data", "data.csv", "--out", "out"]
    command += ["--chunk", "3", "--jobs", "2"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1, found.stderr
    assert "a process died" in found.stderr and "--resume" in found.stderr
    (folder / "deadly").unlink()
    before = files(folder)
    assert 1 <= len(before) < 19
    assert explain("--chunk", "3", "--resume", model="mortal") == 0
    assert before.items() <= files(folder).items()
    assert explain("--chunk", "3", out="whole", model="mortal") == 0
    pd.testing.assert_frame_equal(read(folder / "out"), read(folder / "whole"))
