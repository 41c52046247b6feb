"""Inputs, small models and an oracle shared by the Captum tests."""

import numpy as np
import torch
from torch import nn

X = torch.tensor([[0.5, -1.0, 2.0, 0.3]])
BATCH = torch.tensor([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 0.9], [0.1, 0.2, 0.3, 1]])


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


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=1e-4)


def sparse_model(n, seed=0):
    """Main effects and a few products: exactly sparse in the parity basis."""
    rng = np.random.default_rng(seed)
    weight = torch.tensor(rng.normal(size=n), dtype=torch.float64)

    def forward(x):
        x = x.double()
        return x @ weight + 2 * x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3] * x[:, 4]

    return forward


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
