"""Killed at any moment: nothing lost, nothing mixed, and the next run is clean.

``HARMONICA_KILLS`` sets the kills per test; a few by default.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from explain_runs import FEATURES, explain

from harmonica_core import Surrogate, fit_surrogate

sys.path.insert(0, str(Path(__file__).parent / "programs"))
import killed

PROGRAMS = Path(__file__).parent / "programs"

N_KILLS = int(os.environ.get("HARMONICA_KILLS", "3"))

pytestmark = pytest.mark.slow


def run(program, *args):
    """Run a program that kills its children; return the words that it prints."""
    command = [sys.executable, PROGRAMS / program, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("kind", ["save", "what_if"])
def test_files_are_whole(tmp_path, kind):
    states = run("killed_writes.py", kind, tmp_path, 10 * N_KILLS, 1)
    assert len(states) == 10 * N_KILLS
    assert "half" in states  # some kills did hit a write


def test_a_cached_fit_repeats_nothing_and_changes_no_bit(tmp_path):
    assert run("killed.py", tmp_path, N_KILLS, 1) == ["killed"] * N_KILLS
    lines = (tmp_path / "calls").read_text().splitlines()
    batches = [line.split() for line in lines]
    last_of_run = {run: k for k, (run, *_) in enumerate(batches)}
    in_flight = {last_of_run[run] for run in last_of_run if run != f"{N_KILLS}:"}
    paid = set()
    for k, (_, *numbers) in enumerate(batches):
        assert not paid & set(numbers)
        if k not in in_flight:
            paid.update(numbers)
    assert len(in_flight) >= N_KILLS // 2  # the kills did hit runs at work

    expected = fit_surrogate(
        killed.values, killed.N_FEATURES, killed.BUDGET, degree=1, alpha=0.01
    )
    found = Surrogate.load(tmp_path / "surrogate.npz")
    assert found.terms == expected.terms
    assert found.coef.tobytes() == expected.coef.tobytes()
    assert found.evaluated.values.tobytes() == expected.evaluated.values.tobytes()


def parts(folder):
    """Contents of the finished parts."""
    return {path.name: path.read_bytes() for path in folder.glob("part-*")}


@pytest.mark.parametrize("jobs", [1, 2])
def test_explain_goes_on(folder, jobs):
    rows = np.random.default_rng(1).normal(size=(30 * N_KILLS, 4))
    pd.DataFrame(rows, columns=FEATURES).to_csv("data.csv", index=False)
    options = ["--chunk", "3", "--batch", "24"]
    assert explain(*options, model="slow", out="whole") == 0
    whole, out, chance = parts(folder / "whole"), folder / "out", random.Random(jobs)

    command = [sys.executable, "-m", "harmonica_compare", "explain", "--quiet"]
    command += ["--model", "my_model:slow", "--data", "data.csv", "--out", "out"]
    command += [*options, "--jobs", str(jobs), "--resume"]
    before = {}
    for k in range(N_KILLS):
        # A third of the kills at any time after the start, the others at work.
        wanted = 0 if k % 3 == 0 else len(before) + chance.randrange(1, 4)
        with open("stderr", "w") as stderr:
            child = subprocess.Popen(command, stderr=stderr)
        while child.poll() is None and len(parts(out)) < wanted:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.02 if wanted else 3.0))
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert Path("stderr").read_text() == ""
        after = parts(out)
        assert before.items() <= after.items() <= whole.items()
        before = after
    assert len(before) < len(whole)

    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == ""
    assert parts(out) == whole
    assert len(list(out.iterdir())) == len(whole) + 1  # and explain.json
