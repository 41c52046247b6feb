"""Harmonica for SHAP: model-agnostic interaction values behind every SHAP plot."""

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
    "what_if",
]
