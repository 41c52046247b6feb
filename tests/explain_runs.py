"""Runs of ``harmonica explain`` on a small file, shared by its tests."""

import contextlib
import importlib
import sys

import numpy as np
import pandas as pd

from harmonica_compare.cli import main
from harmonica_compare.masked_rows import load_model, rows_that_fit

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


@contextlib.contextmanager
def prepared(tmp_path, monkeypatch):
    """Make ``tmp_path`` the working folder, with models, data and a background."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_model.py").write_text(MODEL)
    frame = pd.DataFrame(ROWS, columns=FEATURES)
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False, row_group_size=7)
    frame[:5].to_csv("background.csv", index=False)
    frame.assign(name="ann").to_csv("words.csv", index=False)
    yield
    forget_models()


def forget_models():
    """Let the next run import its model again, as a new process does."""
    for name in ("my_model", "helper_of_mine"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    load_model.cache_clear()
    rows_that_fit.cache_clear()


def explain(*options, model="f", data="data.csv", out="out"):
    forget_models()
    options = ["--model", f"my_model:{model}", "--data", data, "--out", out, *options]
    return main(["explain", "--quiet", *options])


def read(out):
    """All parts in a folder as one table."""
    parts = sorted(out.glob("part-*"))
    read_one = {".parquet": pd.read_parquet, ".csv": pd.read_csv}
    return pd.concat([read_one[p.suffix](p) for p in parts], ignore_index=True)
