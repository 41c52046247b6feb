"""Speed of what every metric spends its time on: `make bench`."""

import numpy as np

from harmonica_core import Surrogate, basis, metrics
from harmonica_core.design import masks as draw


def test_a_million_masks_of_500_terms(benchmark):
    rng = np.random.default_rng(0)
    table = basis.terms_up_to(30, 3)
    table = table[np.sort(rng.permutation(len(table))[:500])]
    g = Surrogate(30, table, rng.normal(size=500))
    masks = draw.uniform_draws(30, 10**6, rng)
    benchmark.pedantic(g, (masks,), rounds=3)


def test_truthful_gap_of_all_triples_of_200_features(benchmark):
    weights = np.random.default_rng(0).normal(size=200) / 10

    def gap():
        return metrics.truthful_gap(
            lambda masks: np.tanh(masks @ weights), lambda masks: masks @ weights, 200
        )

    benchmark.pedantic(gap, rounds=1)
