"""Numeric sections run on one BLAS thread, whatever the environment says."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from core_games import random_network
from threadpoolctl import threadpool_info, threadpool_limits

import harmonica_core
from harmonica_core import fit_surrogate, harmonica_anchor
from harmonica_core.design.masks import all_masks
from harmonica_core.threads import one_thread

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def blas_threads():
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]


def test_the_limit_holds_inside_and_is_taken_back():
    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}


def test_sections_of_several_python_threads_share_the_limit():
    inside, leave = threading.Event(), threading.Event()

    def section():
        with one_thread():
            inside.set()
            leave.wait()

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=section)
        try:
            with one_thread():
                other.start()
                inside.wait()
            assert set(blas_threads()) == {1}  # the other one is still at work
        finally:
            leave.set()
            other.join()
        assert set(blas_threads()) == {2}


def bits(g, n):
    answers = g.predict(all_masks(n), return_std=True)
    readings = [*answers, *g.shapley_values(return_std=True), g.coef, g.error.value]
    return [np.asarray(reading).tobytes() for reading in readings]


@pytest.mark.parametrize("engine", ["bayes", "lasso"])
def test_results_do_not_depend_on_the_number_of_threads(engine):
    network = random_network(12, np.random.default_rng(0), 3)
    values = network(all_masks(12))

    def f(masks):
        return values[masks @ (1 << np.arange(12))]

    found = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            found.append(bits(fit_surrogate(f, 12, 400, engine=engine), 12))
    assert found[0] == found[1] == found[2]


def test_anchors_do_not_depend_on_the_number_of_threads():
    weights = np.random.default_rng(0).normal(size=10)

    def f(masks):
        return np.tanh((masks * weights).sum(axis=1))

    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(harmonica_anchor(f, 10, budget=200)(all_masks(10)).tobytes())
    assert found[0] == found[1]


# Counts threads at every Cholesky factor of a fit and at every answer.
PROGRAM = """
import json
import numpy as np
import scipy.linalg.lapack as lapack
from threadpoolctl import threadpool_info
from harmonica_core import fit_surrogate
from harmonica_core.engine.posterior import Posterior

def threads():
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

seen = {"outside": threads(), "fit": [], "answers": []}
def counted(function, where):
    def call(*args, **kwargs):
        if len(seen[where]) < 50:
            seen[where] += threads()
        return function(*args, **kwargs)
    return call

lapack.dpotrf = counted(lapack.dpotrf, "fit")
Posterior.predict = counted(Posterior.predict, "answers")
Posterior.shapley_std = counted(Posterior.shapley_std, "answers")
f = lambda masks: np.tanh(masks @ np.linspace(-1, 1, 14))
g = fit_surrogate(f, 14, budget=300)
g.predict(g.evaluated.masks), g.shapley_values(return_std=True)
print(json.dumps(seen))
"""


def test_without_thread_variables_beside_a_busy_process_one_thread_computes(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in THREAD_VARIABLES}
    env["PYTHONPATH"] = str(Path(harmonica_core.__file__).parents[1])
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        busy.kill()
        busy.wait()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["fit"] and set(seen["fit"]) == {1}
    assert seen["answers"] and set(seen["answers"]) == {1}
    if os.cpu_count() > 1:
        assert max(seen["outside"]) > 1  # otherwise this shows nothing
