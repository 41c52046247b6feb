"""Texts from anywhere, made safe to look at; and numbers as people write them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Control characters but for tab and line ends, and what turns the direction of writing:
# a name that holds these can be shown as another one.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    r"""Return the text with control and direction characters as escapes.

    For everything that ends up before a reader: pages, reports, the terminal.

    Examples
    --------
    >>> print(visible("income\u202e"))
    income\u202e
    """
    return _HIDDEN.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def shown(value: Any) -> str:
    """Return a value of a table's cell as people write it.

    Examples
    --------
    >>> [shown(value) for value in (23350.0, 1987, 0.123456, 3.4e-16, float("nan"))]
    ['23,350', '1987', '0.1235', '0', 'missing']
    """
    if value is None or value is np.ma.masked:
        return "missing"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, float, np.integer, np.floating)) and not _is_huge(value):
        size = float(value)
        return number(size) if math.isfinite(size) else _not_finite(size)
    text = visible(str(value))
    return "missing" if text in ("<NA>", "NaT") else text


def number(value: float, digits: int = 4) -> str:
    """Return a finite number with so many significant digits, or all before the point.

    Examples
    --------
    >>> number(1234567.8), number(-0.00123456, 3), number(2.5e-9)
    ('1,234,568', '−0.00123', '2.5 × 10⁻⁹')
    """
    size = abs(value)
    if size < 1e-12:  # what rounding leaves of zero
        return "0"
    if not 1e-6 <= size < 1e15:
        power = math.floor(math.log10(size))
        return (
            f"{_plain(value / 10.0**power, digits)} × 10{str(power).translate(_RAISED)}"
        )
    return _plain(value, digits)


def _plain(value: float, digits: int) -> str:
    after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, after)
    comma = "," if abs(rounded) >= 10_000 else ""  # 1987 may be a year
    text = f"{rounded:{comma}.{after}f}"
    return (text.rstrip("0").rstrip(".") if after else text).replace("-", "−")


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > 1000  # beyond all floats


def _not_finite(value: float) -> str:
    return "missing" if math.isnan(value) else ("−∞" if value < 0 else "∞")
