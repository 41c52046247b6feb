"""Small models and an oracle shared by the Captum tests."""

import numpy as np
import torch
from torch import nn


def seeded(seed, build):
    """Build a module without touching torch's global random state."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build()


def mlp(n_inputs, n_outputs=1, seed=0, width=16):
    return seeded(
        seed,
        lambda: nn.Sequential(
            nn.Linear(n_inputs, width), nn.Tanh(), nn.Linear(width, n_outputs)
        ).eval(),
    )


class Counting(nn.Module):
    """Counts forwards and remembers how many rows each had."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.rows = []

    def forward(self, *inputs):
        self.rows.append(len(inputs[0]))
        return self.inner(*inputs)


def game_of(f, x, baseline, ids, n_features):
    """Values of all masks of one example (leading dimension 1), one at a time.

    In the order that `reference` wants: bit i of the position = feature i is kept.
    """
    values = []
    for position in range(1 << n_features):
        kept = [i for i in range(n_features) if position >> i & 1]
        mask = torch.isin(ids, torch.tensor(kept, dtype=torch.long))
        with torch.no_grad():
            values.append(float(f(torch.where(mask, x, baseline))))
    return np.array(values)
