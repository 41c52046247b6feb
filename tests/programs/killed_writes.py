"""Write the same file again and again in children that are killed at random moments.

Usage: killed_writes.py save|what_if FOLDER N_KILLS SEED. After each kill the file must
be one of the two that are written in turn, whole; then a last child writes once more.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from harmonica_core import Evaluated, Surrogate, basis
from harmonica_core.design.masks import all_masks

N_FEATURES = 12


def surrogate(seed):
    """Large enough for a write to take milliseconds."""
    rng = np.random.default_rng(seed)
    masks = all_masks(N_FEATURES)
    table = basis.terms_up_to(N_FEATURES, 3)
    return Surrogate(
        N_FEATURES,
        table,
        rng.normal(size=len(table)),
        evaluated=Evaluated(masks, rng.normal(size=len(masks))),
    )


def save(one, path):
    one.save(path)


def what_if(one, path):
    one.what_if(path)


def write_for_ever(write, both, path):
    while True:
        for one in both:
            write(one, path)


def in_a_child(work, *args):
    """Run ``work`` in a child; return its process number."""
    child = os.fork()
    if child == 0:
        work(*args)
        os._exit(0)
    return child


def main(kind, folder, n_kills, seed):
    folder, chance = Path(folder), random.Random(int(seed))
    write, path = {"save": save, "what_if": what_if}[kind], folder / "file"
    both = [surrogate(k) for k in range(2)]
    whole = set()
    for k, one in enumerate(both):
        (folder / f"whole{k}").mkdir()
        write(one, folder / f"whole{k}" / "file")
        whole.add((folder / f"whole{k}" / "file").read_bytes())
    for _ in range(int(n_kills)):
        child = in_a_child(write_for_ever, write, both, path)
        time.sleep(chance.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert not path.exists() or path.read_bytes() in whole, "half a file"
        print("half" if list(folder.glob(".harmonica-*")) else "between")
    os.waitpid(in_a_child(write, both[0], path), 0)
    assert path.read_bytes() in whole
    assert not list(folder.glob(".harmonica-*")), "leftovers"


if __name__ == "__main__":
    main(*sys.argv[1:])
