"""One sparse fit in a process of its own, so that its peak memory is its own.

``python one_fit.py n_features degree n_masks n_targets`` prints CPU seconds of the
first fit in the process, peak megabytes beyond the imports, active terms, held-out
error relative to the spread, and the duality gap.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np

from harmonica_core import Settings, draw_design
from harmonica_core.engine.lasso.solve import fit_sparse


def network(n_features, n_targets, rng, width=30):
    """A small random network of the masks: many terms, none of them large."""
    inside = rng.normal(size=(n_features, width)) * 1.2 / np.sqrt(n_features)
    shift = rng.normal(size=width) * 0.7
    outside = rng.normal(size=(width, n_targets))
    return lambda masks: np.tanh((2.0 * masks - 1) @ inside + shift) @ outside


def problem(n_features, n_masks, n_targets=1, seed=0):
    """Masks in complementary pairs, values of a network, and the network."""
    rng = np.random.default_rng(seed)
    function = network(n_features, n_targets, rng)
    masks = draw_design(Settings(engine="lasso"), n_features, n_masks, rng).masks
    return masks, function(masks), function


def peak():
    """Peak resident megabytes of this process.

    Linux hands ``ru_maxrss`` on to children; the mark in /proc is the process's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    n, degree, n_masks, n_targets = (int(word) for word in sys.argv[1:])
    masks, values, _ = problem(n, n_masks, n_targets)
    before, start = peak(), time.process_time()
    fit = fit_sparse(masks, values, degree)
    seconds = time.process_time() - start
    error = np.std(values - fit.held_out, axis=0) / values.std(axis=0)
    active = np.count_nonzero(fit.coef, axis=0).mean()
    print(seconds, peak() - before, active, error.mean(), fit.gap.max())
