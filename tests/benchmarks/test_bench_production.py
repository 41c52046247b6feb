"""Load figures: cache overhead, a million masks, 100,000 rows, Dask workers, soak.

Run with ``make bench``, or alone::

    python -m pytest -o addopts="" -q -s tests/benchmarks/test_bench_production.py
"""

import os
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest

from harmonica_core import ValueCache, fit_surrogate
from harmonica_core.design.masks import masks_from_numbers, uniform_draws
from harmonica_core.evaluate import evaluate
from harmonica_core.parallel import iterate_parallel, row_chunks

MODEL = """
import numpy as np
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 8))
fitted = LogisticRegression().fit(X, X[:, 0] * X[:, 1] + X[:, 2] > 0)

def f(x):
    return fitted.predict_proba(x)[:, 1]
"""


def slow(masks):
    time.sleep(0.001 * len(masks))
    return masks.sum(axis=1)


@pytest.mark.parametrize("batch_size", [1, 16, 1024])
def test_cache_overhead_for_a_model_of_1_ms_per_row(tmp_path, batch_size):
    masks = np.unique(uniform_draws(30, 2000, np.random.default_rng(0)), axis=0)
    seconds = {"plain": [], "cached": []}
    for repeat in range(3):
        for name in seconds:
            options = {"cache": tmp_path / f"{repeat}", "cache_key": "slow"}
            started = time.perf_counter()
            evaluate(
                slow,
                masks,
                batch_size=batch_size,
                **(options if name == "cached" else {}),
            )
            seconds[name].append(time.perf_counter() - started)
    plain, cached = min(seconds["plain"]), min(seconds["cached"])
    print(
        f"\ncache, 1 ms per row, batch {batch_size}: {plain:.3f} s without, "
        f"{cached:.3f} s with: {cached / plain - 1:+.1%}"
    )


def test_a_million_masks(tmp_path):
    path = tmp_path / "million"
    masks = masks_from_numbers(np.arange(1_000_000), 40)
    with ValueCache(path) as cache:
        started = time.perf_counter()
        for rows in row_chunks(len(masks), 10_000):
            cache.store("m", masks[rows], np.arange(rows.start, rows.stop) * 1.0)
        stored = time.perf_counter() - started
    some = np.random.default_rng(0).permutation(len(masks))[:2000]
    started = time.perf_counter()
    with ValueCache(path) as cache:
        opened = time.perf_counter() - started
        rows, values = cache.look_up("m", masks[some])
        looked = time.perf_counter() - started - opened
    assert values.tolist() == some.tolist()
    print(
        f"\n1,000,000 masks: stored in {stored:.1f} s, {path.stat().st_size >> 20} MB; "
        f"opened in {opened * 1e3:.1f} ms; 2,000 looked up in {looked * 1e3:.0f} ms"
    )


def test_100_000_rows_of_a_file(tmp_path):
    (tmp_path / "bench_model.py").write_text(MODEL)
    rows = np.random.default_rng(1).normal(size=(100_000, 8))
    pd.DataFrame(rows, columns=list("abcdefgh")).to_csv(
        tmp_path / "big.csv", index=False
    )
    command = [sys.executable, "-m", "harmonica_compare", "explain", "--quiet"]
    command += ["--model", "bench_model:f", "--data", "big.csv", "--out", "out"]
    child = subprocess.Popen(command, cwd=tmp_path)
    process, memory = psutil.Process(child.pid), {}
    while child.poll() is None:
        done = len(list(tmp_path.glob("out/part-*")))
        memory.setdefault(done, process.memory_info().rss / 2**20)
        time.sleep(0.05)
    steady = [mb for done, mb in memory.items() if done >= 10]
    print(
        f"memory after 10,000 rows {steady[0]:.0f} MB, largest {max(steady):.0f} MB, "
        f"growth {max(steady) - steady[0]:+.1f} MB over 90,000 rows"
    )
    assert child.returncode == 0


def explain_chunk(rows):
    return [
        fit_surrogate(lambda masks, x=x: np.tanh(masks @ x), len(x)).shapley_values()
        for x in rows
    ]


def test_dask_workers():
    distributed = pytest.importorskip("distributed")
    rows = np.random.default_rng(0).normal(size=(2000, 8))
    chunks = [rows[part] for part in row_chunks(len(rows), 50)]
    for n_workers in (1, 2):
        with (
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=50,
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            list(iterate_parallel(lambda x: explain_chunk(x), chunks[: 2 * n_workers]))
            started = time.perf_counter()
            list(iterate_parallel(lambda x: explain_chunk(x), chunks))
            rate = len(rows) / (time.perf_counter() - started)
        print(f"\nDask, {n_workers} worker(s): {rate:.0f} rows/s")


def test_soak_10_000_explanations_in_one_process():
    process = psutil.Process(os.getpid())
    rng = np.random.default_rng(0)
    started, memory = time.perf_counter(), {}
    for k in range(10_001):
        x = rng.normal(size=8)
        found = fit_surrogate(lambda masks, x=x: np.tanh(masks @ x), 8)
        found.shapley_values(), found.spectrum, found.interactions(2)
        if k in (1000, 5000, 10_000):
            memory[k] = process.memory_info().rss / 2**20
    seconds = time.perf_counter() - started
    growth = memory[10_000] - memory[1000]
    print(
        f"\nsoak: 10,000 explanations in {seconds:.0f} s; memory after 1,000: "
        f"{memory[1000]:.1f} MB, after 10,000: {memory[10_000]:.1f} MB "
        f"({growth:+.1f} MB)"
    )
