"""The only module that touches Captum's private helpers; 0.9 is the tested series."""

from __future__ import annotations

import captum

REMEDY = 'pip install "harmonica-xai[captum]"'


def check_version(version: str) -> None:
    """Refuse every Captum but 0.9: private helpers move between minor versions."""
    if version.split(".")[:2] != ["0", "9"]:
        raise ImportError(
            f"captum_harmonica needs captum>=0.9,<0.10 and found captum {version}: "
            f"{REMEDY}"
        )


check_version(captum.__version__)

from captum._utils.common import (  # noqa: E402  (after the version check)
    _format_additional_forward_args,
    _format_output,
    _format_tensor_into_tuples,
    _is_tuple,
    _run_forward,
)
from captum._utils.progress import NullProgress, Progress, progress  # noqa: E402
from captum.attr._utils.attribution import PerturbationAttribution  # noqa: E402

__all__ = [
    "NullProgress",
    "PerturbationAttribution",
    "Progress",
    "format_args",
    "format_inputs",
    "format_output",
    "is_tuple",
    "progress",
    "run_forward",
]

format_args = _format_additional_forward_args
format_inputs = _format_tensor_into_tuples
format_output = _format_output
is_tuple = _is_tuple
run_forward = _run_forward
