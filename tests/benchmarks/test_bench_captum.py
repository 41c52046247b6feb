"""Harmonica beside Captum's KernelShap and Lime: the same samples, one thread.

A text CNN, of the paper's size and a small one, on 16 and 50 words and an image CNN on
16 superpixels, 2,000 samples, with perturbations_per_eval 1, 64 and 2000. Wall-clock,
beside that of the model alone on as many rows, and I_2 over masks with at most 1 and 4
features removed and over all masks.
"""

import time

import numpy as np
import pytest
import torch
from captum.attr import KernelShap, Lime
from torch import nn

from captum_harmonica import Harmonica
from captum_harmonica.metrics import interpretation_error

N_SAMPLES = 2000
RADII = (1, 4, None)


class TextCNN(nn.Module):
    """The shape of the paper's text model, or smaller; weights are random."""

    def __init__(self, width=100):
        super().__init__()
        self.embedding = nn.Embedding(2000, width, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, size, padding=size // 2) for size in (3, 4, 5)
        )
        self.out = nn.Linear(3 * width, 1)

    def forward(self, tokens):
        embedded = self.embedding(tokens).transpose(1, 2)
        pooled = [c(embedded).relu().amax(2) for c in self.convolutions]
        return torch.sigmoid(self.out(torch.cat(pooled, 1)))[:, 0]


class ImageCNN(nn.Module):
    """Three convolutions and a head."""

    def __init__(self):
        super().__init__()
        layers = []
        for before, after in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(64, 1)

    def forward(self, images):
        return torch.sigmoid(8 * self.head(self.body(images).mean((2, 3))))[:, 0]


def cases():
    torch.manual_seed(0)
    text, small, image = TextCNN().eval(), TextCNN(32).eval(), ImageCNN().eval()
    for name, model in (("text", text), ("small text", small)):
        for n in (16, 50):
            yield f"{name}, {n} words", model, torch.randint(1, 2000, (1, n)), None
    rows = torch.arange(64) // 16
    superpixels = (4 * rows[:, None] + rows[None, :])[None, None]
    yield "image, 16 parts", image, torch.randn(1, 3, 64, 64), superpixels


@pytest.mark.filterwarnings("ignore")
def test_beside_kernel_shap_and_lime():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print("\ncase, perturbations_per_eval, method: seconds, I_2 at radius 1, 4, all")
    try:
        for name, model, inputs, ids in cases():
            for at_once in (1, 64, 2000):
                show(name, model, inputs, ids, at_once)
    finally:
        torch.set_num_threads(threads)


def error_of(model, inputs, found, ids, radius):
    error = interpretation_error(model, inputs, found, feature_mask=ids, radius=radius)
    return float(error[0])


def seconds_of_the_model(model, inputs, at_once):
    """As many rows as there are samples, and nothing else."""
    rows = inputs.repeat(at_once, *[1] * (inputs.ndim - 1))
    start = time.perf_counter()
    with torch.no_grad():
        for _ in range(N_SAMPLES // at_once):
            model(rows)
        if N_SAMPLES % at_once:
            model(rows[: N_SAMPLES % at_once])
    return time.perf_counter() - start


def show(name, model, inputs, ids, at_once):
    alone = min(seconds_of_the_model(model, inputs, at_once) for _ in range(3))
    print(f"{name:20s} {at_once:5d} {'the model':11s} {alone:7.3f} s")
    methods = {
        "KernelShap": KernelShap(model),
        "Lime": Lime(model),
        "Harmonica": Harmonica(model, seed=0),
    }
    first = None
    for method, attribution in methods.items():
        torch.manual_seed(0)
        seconds = []
        for _ in range(1 if at_once == 1 else 3):
            start = time.perf_counter()
            found = attribution.attribute(
                inputs,
                feature_mask=ids,
                n_samples=N_SAMPLES,
                perturbations_per_eval=at_once,
            )
            seconds.append(time.perf_counter() - start)
        if isinstance(attribution, Harmonica):
            found = attribution.explain(
                inputs,
                feature_mask=ids,
                n_samples=N_SAMPLES,
                perturbations_per_eval=at_once,
            )
        errors = [error_of(model, inputs, found, ids, radius) for radius in RADII]
        best = min(seconds)
        first = first or (best, errors)
        ratios = [first[0] / best, *(np.divide(first[1], errors))]
        print(
            f"{name:20s} {at_once:5d} {method:11s} {best:7.3f} s  "
            + "  ".join(f"{error:.2e}" for error in errors)
            + "   KernelShap / this: "
            + "  ".join(f"{ratio:.1f}x" for ratio in ratios)
        )


@pytest.mark.filterwarnings("ignore")
def test_overhead_beside_a_large_model():
    """Everything that is not the model, as a share of the model's own time."""
    from harmonica_compare.tasks.image import _network

    network, inside = _network(), []

    def forward(images):
        start = time.perf_counter()
        out = network(images).softmax(1)
        inside.append(time.perf_counter() - start)
        return out

    blocks = torch.arange(224) // 56
    ids = (4 * blocks[:, None] + blocks[None, :])[None, None]
    start = time.perf_counter()
    Harmonica(forward, seed=0).attribute(
        torch.randn(1, 3, 224, 224),
        target=0,
        feature_mask=ids,
        n_samples=500,
        perturbations_per_eval=8,
    )
    total = time.perf_counter() - start
    print(
        f"\nEfficientNet-Lite0, 16 superpixels, 500 samples: {total:.1f} s, of which "
        f"the model {sum(inside):.1f} s: overhead {total / sum(inside) - 1:.1%}"
    )
