"""Ask a surrogate in the browser: one self-contained HTML file, no server.

The page itself lies in ``page/``: page.html, page.css, model.js (numbers), draw.js and
page.js. This module fills in the data. Names and data may come from anywhere, so all
of it is embedded as inert JSON and only ever becomes text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_core import whatif_data
from harmonica_core.files import replacing
from harmonica_core.result import smallest_change as search
from harmonica_core.result.smallest_change import Change
from harmonica_core.text import visible
from harmonica_core.whatif_data import AnySurrogate


@dataclass(frozen=True)
class WhatIfPage:
    """A finished page; Jupyter shows it in a sandboxed frame.

    Attributes
    ----------
    html : str
    path : Path or None
        Where it was written, if it was.
    """

    html: str
    path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> WhatIfPage:
        """Write the page to ``path`` and return a copy that knows where it is."""
        with replacing(path) as file:
            file.write(self.html.encode("utf-8", "replace"))
        return WhatIfPage(self.html, Path(path))

    def __fspath__(self) -> str:
        if self.path is None:
            raise ValueError("this page was not written yet; call save(path) first")
        return os.fspath(self.path)

    def __repr__(self) -> str:
        where = "not written" if self.path is None else f"in {str(self.path)!r}"
        return f"WhatIfPage of {len(self.html) / 1024:.0f} KiB, {where}"

    def _repr_html_(self) -> str:
        return (
            '<iframe title="What if?" sandbox="allow-scripts" '
            'style="width:100%;height:760px;border:0" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def render(data: dict[str, Any], title: str) -> str:
    """Return the whole page for ``data``.

    The policy allows exactly this script and this style sheet, and nothing from a
    network.
    """
    style = _part("page.css")
    script = "\n".join(_part(name) for name in ("model.js", "draw.js", "page.js"))
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(visible(title)),
        "style": style,
        "script": script,
        "data": inert_json(data),
    }
    # One pass, so that a title can not smuggle in another placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda hit: parts[hit[1]], _part("page.html"))


def inert_json(data: Any) -> str:
    """JSON that can not end a script element or start a comment, in pure ASCII."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


@cache
def _part(name: str) -> str:
    return (resources.files("harmonica_core") / "page" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _at(g: AnySurrogate, kept: bool) -> Any:
    value = g(np.full((1, g.n_features), kept))[0]
    return value if np.ndim(value) else float(value)


class Askable:
    """What every surrogate can be asked: both ends, `what_if`, `smallest_change`."""

    @property
    def base_value(self: AnySurrogate) -> Any:
        """``g(all removed)``: a float, or ``(n_outputs,)``."""
        return _at(self, kept=False)

    @property
    def full_value(self: AnySurrogate) -> Any:
        """``g(all kept)``: a float, or ``(n_outputs,)``."""
        return _at(self, kept=True)

    def what_if(
        self: AnySurrogate,
        path: str | os.PathLike[str] | None = None,
        feature_names: Iterable[str] | None = None,
        *,
        feature_values: Iterable[Any] | None = None,
        tokens: Iterable[str | tuple[str, int | None]] | None = None,
        image: Any = None,
        segments: Any = None,
        title: str = "What if?",
        threshold: float | None = None,
        output: int | str = 0,
        start: Any = None,
        max_evaluated: int = 20_000,
        removed: str | None = None,
    ) -> WhatIfPage:
        """Build a page on which features are switched off and on and g answers.

        It shows g with its stated error, the model's own value where that was
        evaluated, the additive (Shapley) sum beside it, the terms behind the answer,
        and the smallest change that crosses a threshold. Red raises the output, blue
        lowers it. One HTML file, no network.

        Parameters
        ----------
        path : path-like, optional
            Where to write it; without, the page is only returned (Jupyter shows it).
        feature_names : iterable of str, optional
            Instead of the surrogate's own.
        feature_values : iterable, optional
            The input's values, shown beside the names; None, NaN and masked ones as
            "missing".
        tokens : iterable, optional
            Show a sentence: one string per feature, or pairs ``(text, feature)`` with
            None for text that is no feature.
        image, segments : arrays, optional
            Show an image: pixels (height, width[, 3]) or channels first, and one label
            per pixel; the labels in ascending order are features 0, 1, ...
        title : str
        threshold : float, optional
            Set in advance for the smallest change; it can be edited on the page.
        output : int or str
            Which output, if there are several; by number or name.
        start : bool (n_features,), optional
            Mask to begin with; everything kept by default.
        max_evaluated : int
            Most evaluated masks to carry, those with the fewest removed first.
        removed : str, optional
            What removing means, told to the reader: "replaced by the average of 100
            other customers".

        Returns
        -------
        WhatIfPage

        Examples
        --------
        >>> from harmonica_core import fit_surrogate
        >>> g = fit_surrogate(lambda masks: masks.all(axis=1), 2, feature_names="ab")
        >>> page = g.what_if(title="Why yes?", threshold=0.5)
        >>> page.path is None, "Why yes?" in page.html
        (True, True)
        """
        data = whatif_data.collect(
            self,
            feature_names=feature_names,
            feature_values=feature_values,
            tokens=tokens,
            image=image,
            segments=segments,
            threshold=threshold,
            output=output,
            start=search.as_start(start, self.n_features),
            max_evaluated=max_evaluated,
            removed=removed,
        )
        page = WhatIfPage(render(data, str(title)))
        return page if path is None else page.save(path)

    def smallest_change(
        self: AnySurrogate,
        threshold: float,
        *,
        start: Any = None,
        output: int | str = 0,
        max_tries: int = search.MAX_TRIES,
    ) -> Change:
        """Find the fewest features to flip so that g crosses ``threshold``.

        Exact while all changes up to the needed size number at most ``max_tries``,
        greedy beyond; `Change.exact` says which. See `search.smallest_change`.

        Parameters
        ----------
        threshold : float
        start : bool (n_features,), optional
            Mask to start from; everything kept by default.
        output : int or str
        max_tries : int
            Largest number of changes to try exhaustively.

        Examples
        --------
        >>> from harmonica_core import fit_surrogate
        >>> f = lambda masks: 3.0 * masks[:, 0] + masks[:, 1] + masks[:, 2]
        >>> change = fit_surrogate(f, n_features=3).smallest_change(threshold=2.5)
        >>> change.features, round(change.after, 6), change.exact
        ((0,), 2.0, True)
        """
        one = whatif_data.one_output(self, output)
        return search.smallest_change(
            one,
            search.as_start(start, self.n_features),
            threshold,
            tolerance=whatif_data.tolerance(one),
            max_tries=max_tries,
        )

    def _repr_html_(self: AnySurrogate) -> str:
        # Notebooks store what they show: carry fewer evaluated masks than a file.
        return Askable.what_if(self, max_evaluated=2000)._repr_html_()
