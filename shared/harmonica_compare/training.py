"""Small torch models, trained from a seed without touching the global generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from harmonica_core._types import Floats


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch for a block and put its generator back afterwards."""
    with torch.random.fork_rng():
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        yield


def train_mlp(
    features: Floats, target: np.ndarray, n_classes: int, seed: int
) -> nn.Module:
    """Train a two-layer MLP; ``n_classes`` = 0 for a regression."""
    x = torch.tensor(features, dtype=torch.float32)
    if n_classes:
        y = torch.tensor(target, dtype=torch.long)
    else:
        y = torch.tensor(target, dtype=torch.float32)
    with seeded(seed):
        body = [nn.Linear(x.shape[1], 64), nn.GELU(), nn.Linear(64, 32), nn.GELU()]
        head = nn.Linear(32, max(n_classes, 1))
        model = nn.Sequential(*body, head)
        centre = 0.0 if n_classes else float(y.mean())
        spread = 1.0 if n_classes else float(y.std()) or 1.0

        def loss(rows: Tensor) -> Tensor:
            out = model(x[rows])
            if n_classes:
                return nn.functional.cross_entropy(out, y[rows])
            return nn.functional.mse_loss(out[:, 0], (y[rows] - centre) / spread)

        # Threads only wait for each other in layers of this size.
        with threadpool_limits(limits=1):
            fit(model, loss, len(x), n_steps=1000, batch=256)
    if not n_classes:  # predictions in the units of the target
        with torch.no_grad():
            head.weight.mul_(spread)
            head.bias.mul_(spread).add_(centre)
    return model.eval()


def fit(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    n_rows: int,
    n_steps: int,
    batch: int,
) -> None:
    """Minimise ``loss(rows)`` by Adam on random batches of row numbers."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss(torch.randint(n_rows, (min(batch, n_rows),))).backward()
        optimiser.step()
    model.eval()


class Standardised(nn.Module):
    """A model of standardised rows as one of raw rows, with a softmax for classes."""

    centre: Tensor
    scale: Tensor

    def __init__(
        self, model: nn.Module, centre: Floats, scale: Floats, probabilities: bool
    ) -> None:
        super().__init__()
        self.model, self.gives_probabilities = model, probabilities
        for name, values in (("centre", centre), ("scale", scale)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32))

    def forward(self, rows: Tensor) -> Tensor:
        """Return probabilities ``(m, n_classes)``, or numbers ``(m,)``."""
        out: Tensor = self.model((rows - self.centre) / self.scale)
        return out.softmax(-1) if self.gives_probabilities else out[:, 0]
