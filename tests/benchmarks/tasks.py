"""Tuning tasks with exact Shapley values: their loaders, and the command that builds.

``python tests/benchmarks/tasks.py folder [kind ...]`` writes ``folder/games/*.npz``
(every mask of 10 to 14 features; see ``game_tasks.py``) and ``folder/trees/*.npz``
(tree models of 30 to 100 features; see ``tree_tasks.py``), or the named kinds only.
Kinds that read the data sets need the environment variable ``HARMONICA_DATA``, a
folder with ``tabular/adult.csv.gz``, ``tabular/bike.csv.gz`` and ``sst2/train.tsv.gz``.

Loading needs numpy alone::

    values = load_game("folder/games/wine_rf13.npz")  # (n_games, 2**n)
    truth = shapley(values[0])  # (n,)
    task = load_trees("folder/trees/cancer30_gb_b1.npz")
    task.value(masks, game=0)  # masks (m, n) of bool -> (m,)
    task.truth[0]  # (n,), exact interventional Shapley values
"""

import sys
import time
from dataclasses import dataclass
from math import comb
from pathlib import Path

import numpy as np

# Entries of a (masks, trees) table of nodes held at once by `TreeTask.value`.
_BLOCK = 1 << 20


def all_masks(n):
    """Every mask of n features, (2**n, n) of bool; bit i of a row's index is i kept."""
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)


def shapley(values):
    """Exact Shapley values (n,) of a game given by its values (2**n,)."""
    n = int(values.size).bit_length() - 1
    size = all_masks(n).sum(1)
    weight = np.array([1 / (n * comb(n - 1, k)) for k in range(n)])
    phi = np.empty(n)
    for i in range(n):
        pairs = values.reshape(-1, 2, 1 << i)
        without = size.reshape(-1, 2, 1 << i)[:, 0]
        phi[i] = np.sum(weight[without] * (pairs[:, 1] - pairs[:, 0]))
    return phi


def relative_error(estimate, truth):
    """Root mean square of the difference, relative to that of the truth."""
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))


def load_game(path):
    """Values (n_games, 2**n) of an enumerated kind, float64."""
    with np.load(path) as file:
        return file["values"]


@dataclass(frozen=True)
class TreeTask:
    """A sum of trees, the inputs to explain, and their exact Shapley values.

    Feature i of a removed mask bit is replaced by that of each background row, and
    the outputs are averaged over the rows. A leaf is its own child, so that ``depth``
    steps lead from every root to a leaf.
    """

    feature: np.ndarray  # (n_nodes,) of int
    threshold: np.ndarray  # (n_nodes,); at most the threshold goes left
    left: np.ndarray  # (n_nodes,) of int
    right: np.ndarray  # (n_nodes,) of int
    leaf_value: np.ndarray  # (n_nodes,)
    roots: np.ndarray  # (n_trees,) of int
    base: np.ndarray  # (), added to the sum over trees
    inputs: np.ndarray  # (n_games, n)
    background: np.ndarray  # (n_rows, n)
    truth: np.ndarray  # (n_games, n)

    def value(self, masks, game=0):
        """Outputs (m,) of one input at masks (m, n) of bool, True kept."""
        masks = np.ascontiguousarray(masks, dtype=bool)
        kept = self._child(self.inputs[game])
        total = np.zeros(len(masks))
        for row in self.background:
            # Entry 2 v + b: the child of node v where its feature's mask bit is b.
            child = np.stack([self._child(row), kept], axis=1).ravel()
            total += self._sums(masks, child)
        return self.base + total / len(self.background)

    def _child(self, x):
        """The child (n_nodes,) that x goes to at each node."""
        return np.where(x[self.feature] <= self.threshold, self.left, self.right)

    def _sums(self, masks, child):
        """Sums over trees (m,) of the leaves that the masks lead to."""
        n_masks, n = masks.shape
        block = max(1, _BLOCK // len(self.roots))
        out = np.empty(n_masks)
        for start in range(0, n_masks, block):
            bits = masks[start : start + block].ravel()
            rows = np.arange(len(bits) // n)[:, None] * n
            node = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
            moved = True
            while moved:
                step = child[2 * node + bits[rows + self.feature[node]]]
                moved, node = not np.array_equal(step, node), step
            out[start : start + block] = self.leaf_value[node].sum(1)
        return out


def load_trees(path):
    """The `TreeTask` of a file."""
    with np.load(path) as file:
        return TreeTask(**{name: file[name] for name in file.files})


def save_trees(path, task):
    """Write a `TreeTask` as plain arrays."""
    np.savez_compressed(path, **vars(task))


def build(folder, kinds=()):
    """Write the named kinds, or all; print the seconds of each."""
    import game_tasks
    import neural_tasks
    import tree_tasks

    every = [
        ("games", game_tasks.KINDS | neural_tasks.KINDS),
        ("trees", tree_tasks.KINDS),
    ]
    for sort, makers in every:
        (folder / sort).mkdir(parents=True, exist_ok=True)
        for kind, make in makers.items():
            if kinds and kind not in kinds:
                continue
            start, path = time.perf_counter(), folder / sort / f"{kind}.npz"
            made = make()
            if sort == "games":
                np.savez_compressed(path, values=made)
            else:
                save_trees(path, made)
            print(f"{kind} {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2:])
