"""The what-if page of one row, with names, tokens and images from SHAP's objects."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import shap

from shap_harmonica.groups import feature_of_columns, patches


def what_if(
    explainer: Any,
    explanation: shap.Explanation,
    row: int = 0,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Build the what-if page of one explained row.

    Rows of a table show their names and values, texts their tokens in the sentence,
    images their superpixels (the explainer's ``groups``, or its patches).

    Parameters
    ----------
    explainer, explanation
        The explanation that the explainer returned last.
    row : int
    path : path-like, optional
        Where to write the page.
    **options
        Passed on to `Surrogate.what_if`: title, threshold, output, ...

    Returns
    -------
    WhatIfPage

    Examples
    --------
    >>> from shap_harmonica import HarmonicaExplainer
    >>> explainer = HarmonicaExplainer(lambda X: X[:, 0] * X[:, 1], np.zeros((1, 2)))
    >>> explanation = explainer(np.array([[2.0, 3.0]]))
    >>> page = what_if(explainer, explanation, title="And without the second?")
    >>> "And without the second?" in page.html
    True
    """
    n_rows = len(explainer.surrogates)
    alone = n_rows == 1 and np.ndim(explanation.base_values) == np.ndim(
        explainer.surrogates[0].base_value
    )
    n_explained = 1 if alone else len(explanation)
    if n_rows != n_explained or not 0 <= row < n_rows:
        raise ValueError(
            f"row {row} of an explanation of {n_explained} rows, and an explainer "
            f"that explained {n_rows} rows last; needed a row of the explanation that "
            "the explainer returned last"
        )
    surrogate = explainer.surrogates[row]
    data = np.asarray(explanation.data if alone else explanation.data[row])
    shown = _shown(explainer, data, surrogate.n_features)
    return surrogate.what_if(path, **{**shown, **options})


def named(surrogates: list[Any], parts: list[shap.Explanation]) -> list[Any]:
    """Return the surrogates with the explanation's names, where those fit."""
    if len(parts) != 1:  # several arguments: names of none are for all
        return surrogates
    (explanation,) = parts
    return [
        one.with_names(
            _fitting(explanation.feature_names, row, one.n_features),
            _fitting(explanation.output_names, row, one.n_outputs),
        )
        for row, one in enumerate(surrogates)
    ]


def _fitting(names: Any, row: int, needed: int) -> list[str] | None:
    """Names of one row: the same for all rows, or a list for each of them."""
    if names is None or isinstance(names, str):
        return None
    if any(isinstance(name, (list, tuple, np.ndarray)) for name in names):
        names = names[row]
    return [str(name) for name in names] if len(names) == needed else None


def _shown(explainer: Any, data: np.ndarray, n: int) -> dict[str, Any]:
    """Return what of a row's data the page can show."""
    if getattr(explainer.masker, "image_data", False):
        return _image(explainer.groups, data)
    if data.ndim == 1 and len(data) == n and data.dtype.kind in "OUS":
        words = [str(value) for value in data]
        if getattr(explainer.masker, "text_data", False):
            return {"tokens": words}
    shown: dict[str, Any] = {}
    if data.shape == (n,):
        shown["feature_values"] = data.tolist()
    return shown


def _image(groups: Any, data: np.ndarray) -> dict[str, Any]:
    """Return image and one label per pixel, if a group never splits a pixel."""
    labels = patches(data.shape) if groups is None else groups
    columns = feature_of_columns(labels, data, data.size).reshape(data.shape)
    if (columns != columns[..., :1]).any():
        return {}
    return {"image": data, "segments": columns[..., 0]}
