"""Gradient methods on fractional masks: integrated gradients and Hessians."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from captum.attr import IntegratedGradients
from torch import Tensor

from harmonica_core._types import Floats

Relaxed = Callable[[Tensor], Tensor]


def integrated_gradients(relaxed: Relaxed, n_features: int, n_steps: int) -> Floats:
    """Captum's Integrated Gradients from all removed to all kept, ``(n_features,)``."""
    ones = torch.ones(1, n_features)
    scores = IntegratedGradients(relaxed).attribute(
        ones, torch.zeros_like(ones), n_steps=n_steps, internal_batch_size=64
    )
    return scores[0].detach().double().numpy()


def integrated_hessians(relaxed: Relaxed, n_features: int, n_steps: int) -> Floats:
    """Integrated Hessians ``(n_features, n_features)`` from all removed to all kept.

    With the path ``s * ones`` (Janizek, Sturmfels and Lee, 2021):

        Gamma_ij = int int a b  d2f/dx_i dx_j (a b * ones) da db           (i != j)
        Gamma_ii = int int [ df/dx_i + a b d2f/dx_i^2 ] (a b * ones) da db

    The product ``s = a b`` of two uniform numbers has density ``-log s``, so each
    double integral is a single one, taken here by Gauss-Legendre quadrature. All
    entries together sum to ``f(all kept) - f(all removed)``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_steps)
    total = np.zeros((n_features, n_features))
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        gradient, hessian = _derivatives(relaxed, n_features, float(node))
        density = -np.log(node) * weight
        total += density * (node * hessian + np.diag(gradient))
    return total


def _derivatives(
    relaxed: Relaxed, n_features: int, scale: float
) -> tuple[Floats, Floats]:
    """Gradient and Hessian of f at ``scale * ones``."""
    point = torch.full((1, n_features), scale, requires_grad=True)
    with torch.enable_grad():
        value = relaxed(point).sum()
        (gradient,) = torch.autograd.grad(value, point, create_graph=True)
        rows = [_second(gradient[0, i], point) for i in range(n_features)]
    return gradient[0].detach().double().numpy(), np.stack(rows)


def _second(slope: Tensor, point: Tensor) -> Floats:
    """One row of the Hessian; zeros where the gradient does not depend on x."""
    if not slope.requires_grad:
        return np.zeros(point.shape[1])
    (row,) = torch.autograd.grad(slope, point, retain_graph=True, allow_unused=True)
    if row is None:
        return np.zeros(point.shape[1])
    return np.asarray(row[0].detach().double().numpy())
