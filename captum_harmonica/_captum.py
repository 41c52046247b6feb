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
    _format_additional_forward_args as format_args,
)
from captum._utils.common import _select_targets as select_targets  # noqa: E402
from captum.attr._utils.attribution import PerturbationAttribution  # noqa: E402

__all__ = [
    "PerturbationAttribution",
    "format_args",
    "select_targets",
]
