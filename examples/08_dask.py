# %% [markdown]
# # Explain a table on a Dask cluster
# joblib decides where the work is done, nothing else changes; any joblib backend works
# the same way (Ray, Spark). A worker that dies is replaced and its rows are explained
# elsewhere; the numbers are those of one process.

# %%
import time

import joblib
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from harmonica_core import fit_surrogate
from harmonica_core.parallel import row_chunks, run_parallel

X, y = load_diabetes(return_X_y=True)
model = GradientBoostingRegressor(random_state=0).fit(X, y)
removed = X.mean(axis=0)  # stands for a removed feature


def explain(rows):
    """Shapley values (n_rows, n_features): the work of one task."""
    found = []
    for x in rows:

        def value_function(masks, x=x):
            return model.predict(np.where(masks, x, removed))

        found.append(fit_surrogate(value_function, X.shape[1], ends=True))
    return np.stack([surrogate.shapley_values() for surrogate in found])


def timed(name):
    """Explain all rows wherever joblib is told to."""
    chunks = [X[rows] for rows in row_chunks(len(X), 20)]
    started = time.perf_counter()
    values = np.concatenate(run_parallel(explain, chunks))
    print(f"{name}: {len(X) / (time.perf_counter() - started):.0f} rows/s")
    return values


# %% [markdown]
# The workers of a local cluster import this file, hence the test of `__name__`: only
# the first process starts anything. A notebook does not need it.

# %%
if __name__ == "__main__":
    serial = timed("one process")

# %%
if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        found = timed("two Dask workers")
    print("same numbers:", np.array_equal(serial, found))

# %% [markdown]
# The same for SHAP users:
#
#     with joblib.parallel_config(backend="dask"):
#         HarmonicaExplainer(model.predict, background, n_jobs=-1)(X)
