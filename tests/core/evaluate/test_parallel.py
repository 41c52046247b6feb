import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from harmonica_core import Surrogate, fit_surrogate
from harmonica_core.design.masks import uniform_draws
from harmonica_core.parallel import (
    check_n_jobs,
    iterate_parallel,
    row_chunks,
    run_parallel,
)

ROWS = np.random.default_rng(0).normal(size=(12, 6))


def explainer(pause=0.0):
    """A closure, so that workers get it by value and need not import this file."""

    def explain(rows):
        time.sleep(pause)
        return [fit_surrogate(lambda m, x=x: np.tanh(m @ x), 6).coef for x in rows]

    return explain


def chunks(size=3):
    return [ROWS[rows] for rows in row_chunks(len(ROWS), size)]


def bits(results):
    return [coef.tobytes() for chunk in results for coef in chunk]


@pytest.fixture(scope="module")
def serial():
    return bits(run_parallel(explainer(), chunks()))


@pytest.mark.parametrize("size", [1, 5, 12, 99])
def test_chunks_change_nothing(serial, size):
    assert bits(run_parallel(explainer(), chunks(size))) == serial


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_change_nothing(serial, backend):
    with joblib.parallel_config(backend=backend):
        assert bits(run_parallel(explainer(), chunks(), n_jobs=2)) == serial


def blas_threads():
    return [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_side_by_side_tasks_use_one_thread_each(backend):
    def threads(_):
        time.sleep(0.01)
        return [x["num_threads"] for x in threadpool_info()]

    with threadpool_limits(2):
        before = blas_threads()
        with joblib.parallel_config(backend=backend):
            seen = run_parallel(threads, range(8), n_jobs=2)
        assert set(sum(seen, [])) == {1}
        assert blas_threads() == before == [2] * len(before)
        assert set(sum(run_parallel(threads, range(2)), [])) == {2}


def test_streams_are_lazy():
    taken = []

    def items():
        for k in range(100):
            taken.append(k)
            yield k

    results = iterate_parallel(lambda k: k * k, items())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(taken) < 10
    results.close()


def test_errors_come_through():
    def breaks(k):
        raise KeyError(f"item {k}")

    with pytest.raises(KeyError, match="item 0"):
        run_parallel(breaks, range(3))


@pytest.mark.parametrize("wrong", [0, 1.5, True, "all"])
def test_impossible_workers(wrong):
    with pytest.raises(ValueError, match="n_jobs"):
        run_parallel(len, [], n_jobs=wrong)
    assert check_n_jobs(np.int64(-1)) == -1


def test_impossible_chunks():
    assert row_chunks(0, 5) == []
    with pytest.raises(ValueError, match="at least 1 row"):
        row_chunks(5, 0)


def test_threads_may_share_a_surrogate(tmp_path):
    fitted = fit_surrogate(lambda m: np.tanh(m @ ROWS[0]), 6)
    fitted.save(tmp_path / "g.npz")
    expected = fitted.shapley_values().tobytes(), fitted.terms, dict(fitted.spectrum)
    masks = uniform_draws(6, 500, np.random.default_rng(1))
    predicted = fitted(masks).tobytes()
    for _ in range(5):
        fresh = Surrogate.load(tmp_path / "g.npz")  # its cached properties are unset
        start = threading.Barrier(8)

        def use(_, fresh=fresh, start=start):
            start.wait()
            phi = fresh.shapley_values().tobytes()
            return (phi, fresh.terms, dict(fresh.spectrum)), fresh(masks).tobytes()

        with ThreadPoolExecutor(8) as pool:
            for found, values in pool.map(use, range(8)):
                assert found == expected
                assert values == predicted


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def test_dask_explains_for_shap_users(cluster):
    shap_harmonica = pytest.importorskip("shap_harmonica")

    def explain(n_jobs):
        explainer = shap_harmonica.HarmonicaExplainer(
            lambda x: np.tanh(x).prod(axis=1), np.ones((1, 6)), n_jobs=n_jobs
        )
        return explainer(ROWS).values

    one = explain(1)
    with joblib.parallel_config(backend="dask"):
        assert explain(-1).tobytes() == one.tobytes()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_dask_survives_a_killed_worker(cluster, serial):
    with joblib.parallel_config(backend="dask"):
        results = iterate_parallel(explainer(pause=0.05), chunks(size=1))
        found = [next(results)]
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        found.extend(results)
    assert bits(found) == serial
