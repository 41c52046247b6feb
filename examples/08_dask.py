"""Explain a table on a Dask cluster: joblib decides where, nothing else changes.

Any joblib backend works the same way (Ray, Spark). A worker that dies is replaced and
its rows are explained elsewhere; the numbers are those of one process.

    python examples/08_dask.py [n_workers]
"""

import sys
import time

import joblib
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from harmonica_core import fit_surrogate
from harmonica_core.parallel import row_chunks, run_parallel


def main(n_workers: int) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    removed = X.mean(axis=0)  # stands for a removed feature

    def explain(rows):
        """Shapley values (n_rows, n_features): the work of one task."""
        return np.stack(
            [
                fit_surrogate(
                    lambda masks, x=x: model.predict(np.where(masks, x, removed)),
                    X.shape[1],
                    ends=True,
                ).shapley_values()
                for x in rows
            ]
        )

    chunks = [X[rows] for rows in row_chunks(len(X), 20)]
    started = time.perf_counter()
    serial = np.concatenate(run_parallel(explain, chunks))
    print(f"one process: {len(X) / (time.perf_counter() - started):.0f} rows/s")

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        started = time.perf_counter()
        found = np.concatenate(run_parallel(explain, chunks, progress=True))
        rate = len(X) / (time.perf_counter() - started)
    print(f"{n_workers} Dask workers: {rate:.0f} rows/s")
    print("same numbers:", np.array_equal(serial, found))
    # The same for SHAP users:
    #     with joblib.parallel_config(backend="dask"):
    #         HarmonicaExplainer(model.predict, background, n_jobs=-1)(X)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
