"""``harmonica explain``: what it writes, however it is cut, killed and resumed."""

import itertools
import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from explain_runs import FEATURES, ROWS, explain, read

from harmonica_compare.cli import main
from harmonica_compare.streams import Source


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
    assert explain("--chunk", "10", "--jobs", "2", out="other") == 0
    for part in sorted((folder / "out").glob("part-*")):
        assert part.read_bytes() == (folder / "other" / part.name).read_bytes()


def test_workers_are_started_deaf_to_ctrl_c(folder, monkeypatch):
    asked = []
    monkeypatch.setattr("harmonica_compare.explain.start_workers", asked.append)
    assert explain("--chunk", "30", "--jobs", "2") == 0
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
    for degree in (1, 2):
        assert explain("--degree", str(degree), out=f"degree{degree}") == 0
    assert explain(out="all") == 0
    one, two = (read(folder / f"degree{k}")["error"] for k in (1, 2))
    assert (one > two).all() and (two > 1e-6).all()
    np.testing.assert_allclose(read(folder / "all")["error"], 0, atol=1e-12)


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
    (folder / "out" / ".harmonica-1.tmp").write_text("half")
    before = {p: p.stat().st_mtime_ns for p in folder.glob("out/part-*")}
    assert 3 <= len(before) < 18

    assert explain("--chunk", "3", "--batch", "3", "--resume", model="slow") == 0
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert len(list(folder.glob("out/part-*"))) == 18
    assert not list(folder.glob("out/.*"))
    assert explain("--chunk", "3", "--batch", "3", model="slow", out="whole") == 0
    pd.testing.assert_frame_equal(
        read(folder / "out"), read(folder / "whole"), check_exact=True
    )


def test_resuming_what_is_complete_does_nothing(folder, capsys):
    assert explain() == 0
    assert explain("--resume") == 0
    assert "0 rows explained" in capsys.readouterr().out
    assert explain("--resume", out="new") == 0


@pytest.mark.parametrize("cell", [np.inf, -np.inf, np.nan])
def test_the_default_background_leaves_out_what_is_not_finite(folder, cell):
    rows = ROWS.copy()
    rows[7, 3] = cell
    pd.DataFrame(rows, columns=FEATURES).to_csv("hole.csv", index=False)
    mean = Source(folder / "hole.csv").mean(10)
    expected = [*ROWS[:, :3].mean(axis=0), np.delete(ROWS[:, 3], 7).mean()]
    np.testing.assert_allclose(mean, expected, atol=1e-12)


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
    large = [k for k, n_rows in enumerate(calls) if n_rows > 9]
    # The size that worked is remembered: no call is too large after the first series.
    assert large == list(range(large[0], large[0] + len(large)))


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
