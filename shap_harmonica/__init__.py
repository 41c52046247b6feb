"""Harmonica for SHAP: model-agnostic interaction values behind every SHAP plot.

Examples
--------
>>> import numpy as np
>>> from shap_harmonica import HarmonicaExplainer
>>> explainer = HarmonicaExplainer(lambda X: X[:, 0] * X[:, 1], np.zeros((1, 2)))
>>> explainer(np.array([[2.0, 3.0]])).values
array([[3., 3.]])
"""

import importlib

try:
    import shap  # noqa: F401
except ImportError as error:
    raise ImportError(
        'shap_harmonica needs SHAP: pip install "harmonica-xai[shap]"'
    ) from error

from shap_harmonica import metrics
from shap_harmonica.explainer import HarmonicaExplainer
from shap_harmonica.pairs import pairs
from shap_harmonica.variants import (
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaLocal,
    LowDegree,
)
from shap_harmonica.whatif import what_if

__all__ = [
    "HarmonicaAnchor",
    "HarmonicaAnchorConstrained",
    "HarmonicaExplainer",
    "HarmonicaLocal",
    "LowDegree",
    "metrics",
    "pairs",
    "plots",
    "what_if",
]


def __getattr__(name: str) -> object:
    """Import ``plots`` when it is first asked for: matplotlib is optional."""
    if name == "plots":
        return importlib.import_module("shap_harmonica.plots")
    raise AttributeError(f"module 'shap_harmonica' has no attribute {name!r}")
