"""Fit with a cache in children that are killed at random moments; then finish.

Usage: killed.py FOLDER N_KILLS SEED. Every child appends a line "run: mask numbers" to
FOLDER/calls *before* it evaluates a batch. The last run is left alone and saves its
surrogate. A third of the kills come at any time after the start (the file may not even
exist), the others after a random number of batches, so that a slow machine does the
same as a fast one.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from harmonica_core import Calls, fit_surrogate
from harmonica_core.design.masks import mask_numbers

N_FEATURES, BUDGET, BATCH = 13, 4000, 16


def values(masks):
    number = mask_numbers(masks)
    return np.stack([np.sin(number), masks.sum(axis=1) / 3.0], axis=1)


def fit(folder, run):
    calls = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def slow(masks):
        numbers = " ".join(map(str, mask_numbers(masks)))
        os.write(calls, f"{run}: {numbers}\n".encode())
        time.sleep(0.001)
        return values(masks)

    return fit_surrogate(
        slow,
        N_FEATURES,
        BUDGET,
        degree=1,
        alpha=0.01,
        calls=Calls(
            cache=folder / "cache.sqlite",
            cache_key=("model", "input"),
            batch_size=BATCH,
        ),
    )


def wait_for_batches(calls, n_batches):
    """Return when that many more lines are in the file."""
    wanted = n_lines(calls) + n_batches
    while n_lines(calls) < wanted:
        time.sleep(0.0005)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(folder, n_kills, seed):
    folder, chance = Path(folder), random.Random(int(seed))
    for run in range(int(n_kills)):
        child = os.fork()
        if child == 0:
            fit(folder, run)
            os._exit(0)
        if run % 3:
            wait_for_batches(folder / "calls", chance.randrange(1, 13))
        time.sleep(chance.uniform(0, 0.003 if run % 3 else 0.03))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "finished")
    fit(folder, n_kills).save(folder / "surrogate.npz")


if __name__ == "__main__":
    main(*sys.argv[1:])
