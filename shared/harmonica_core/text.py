"""Texts from anywhere, made safe to look at; and numbers as people write them."""

from __future__ import annotations

import re

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
