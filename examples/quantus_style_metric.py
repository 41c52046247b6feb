"""Harmonica's metrics in Quantus' calling convention, ``metric(model, x, y, a)``.

Any attributions ``a`` of a batch are extended to all masks and compared with the model
there. Runs without Quantus; where it is installed (0.6), `quantus.evaluate` calls.
Needs: pip install "harmonica-xai[captum]"
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from captum.attr import IntegratedGradients, KernelShap
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from captum_harmonica import Harmonica
from harmonica_core import Estimate, from_attributions, metrics, registry

try:
    import quantus
except ImportError:
    quantus = None


@dataclass(frozen=True)
class MaskMetric:
    """One number per input: ``metric(f, g, n_features)`` of its attributions."""

    metric: Callable[..., Estimate]
    baseline: float = 0.0

    def __call__(
        self, model: Any, x_batch: Any, y_batch: Any, a_batch: Any, **_: Any
    ) -> list[float]:
        rows = zip(x_batch, y_batch, a_batch, strict=True)
        return [self.one(model, x, int(y), a) for x, y, a in rows]

    def one(self, model: Any, x: np.ndarray, y: int, a: np.ndarray) -> float:
        def value_function(masks: np.ndarray) -> np.ndarray:
            inputs = np.where(masks, x, self.baseline).astype(np.float32)
            with torch.no_grad():
                return model(torch.from_numpy(inputs))[:, y].numpy()

        base = float(value_function(np.zeros((1, len(x)), dtype=bool))[0])
        g = from_attributions(a, base)
        return float(self.metric(value_function, g, len(x)))


def train() -> tuple[torch.nn.Module, np.ndarray, np.ndarray]:
    """Fit a small network on the wine data (13 standardised features)."""
    x, y = load_wine(return_X_y=True)
    x = StandardScaler().fit_transform(x).astype(np.float32)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(13, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(torch.from_numpy(x)), torch.from_numpy(y)
        )
        loss.backward()
        optimiser.step()
    return torch.nn.Sequential(model, torch.nn.Softmax(dim=1)).eval(), x, y


def attributions(
    model: torch.nn.Module, x: np.ndarray, y: np.ndarray
) -> dict[str, np.ndarray]:
    """Scores of three methods for the same inputs."""
    inputs, target = torch.from_numpy(x), torch.from_numpy(y)
    torch.manual_seed(0)
    found = {
        "Integrated Gradients": IntegratedGradients(model).attribute(
            inputs, target=target
        ),
        "KernelShap": torch.cat(
            [
                KernelShap(model).attribute(one[None], target=label, n_samples=500)
                for one, label in zip(inputs, target, strict=True)
            ]
        ),
        "Harmonica": Harmonica(model, seed=0).attribute(
            inputs, target=target, n_samples=500
        ),
    }
    return {name: scores.detach().numpy() for name, scores in found.items()}


def main() -> None:
    """Print the mean of each metric for each method."""
    model, x, y = train()
    x, y = x[::60], y[::60]
    a_batches = attributions(model, x, y)
    scores = {
        "I_2": MaskMetric(metrics.interpretation_error),
        "truthful gap": MaskMetric(registry.metrics["truthful_gap"]),
    }
    if quantus is None:
        results = {
            method: {name: score(model, x, y, a) for name, score in scores.items()}
            for method, a in a_batches.items()
        }
    else:
        results = quantus.evaluate(scores, a_batches, model, x, y)
    print("called by", "quantus.evaluate" if quantus else "this script")
    for method, row in results.items():
        means = ", ".join(f"{name} {np.mean(v):.4f}" for name, v in row.items())
        print(f"{method:22s}{means}")


if __name__ == "__main__":
    main()
