"""Run ``harmonica compare`` and check the results.json that it wrote."""

import json

import numpy as np

from harmonica_compare.cli import main
from harmonica_compare.results import Results

NUMBER = (int, float)
# A type, a tuple of types, a set of allowed values, [shape of every item],
# {name: shape}, or {str: shape of every value}.
CELL = {
    "case": str,
    "method": str,
    "budget": int,
    "seed": int,
    "status": {"ok", "not applicable", "failed"},
    "message": str,
    "n_calls": int,
    "seconds": NUMBER,
    "numbers": {str: [NUMBER]},
}
ABOUT = {
    **dict.fromkeys(("data", "model", "output", "removed"), str),
    "n_features": int,
    "truth": {"enumerated", "TreeSHAP", "sampled"},
    "cases": [str],
    "features": [str],
}
SETTINGS = {
    "task": {"tabular", "text", "image", "games", "custom"},
    "methods": [str],
    "budgets": [int],
    "radii": [str],
    "n_evaluations": int,
    "n_truth": int,
    "seeds": [int],
    "data": (str, type(None)),
    "label": (str, type(None)),
    "model": (str, type(None)),
    "features": (str, type(None)),
    "background": (str, type(None)),
    "unit": {"word", "sentence"},
    "superpixels": int,
    "baseline": {"zero", "mean", "blur"},
    "n_cases": int,
    "about": [ABOUT],
}
SCHEMA = {
    "format": {"harmonica-compare"},
    "version": {2},
    "settings": SETTINGS,
    "versions": {str: str},
    "cells": [CELL],
    "complete": bool,
}


def mismatches(content, shape, where="results"):
    """Where the content has not the shape: a list of texts."""
    if isinstance(shape, set):
        return [] if content in shape else [f"{where}: {content!r}"]
    if isinstance(shape, list):
        if not isinstance(content, list):
            return [f"{where}: {content!r} is no list"]
        parts = [(part, shape[0], f"{where}[{k}]") for k, part in enumerate(content)]
    elif isinstance(shape, dict):
        if not isinstance(content, dict):
            return [f"{where}: {content!r} is no object"]
        shapes = dict.fromkeys(content, shape[str]) if str in shape else shape
        if set(shapes) != set(content):
            return [f"{where}: names {sorted(set(shapes) ^ set(content))}"]
        parts = [(content[k], shapes[k], f"{where}.{k}") for k in content]
    else:
        # True is an int to isinstance, and none to whoever reads the file.
        fits = isinstance(content, shape) and (shape is bool or content is not True)
        return [] if fits and content == content else [f"{where}: {content!r}"]
    return [line for part in parts for line in mismatches(*part)]


def compare(*args, out=None, jobs=1):
    extra = [] if out is None else ["--out", str(out)]
    return main(["compare", "--jobs", str(jobs), *map(str, args), *extra])


def check_file(path):
    """The schema, and that every number comes with its standard error."""
    content = json.loads(path.read_text())
    assert mismatches(content, SCHEMA) == []
    assert "numpy" in content["versions"]
    for cell in content["cells"]:
        assert cell["n_calls"] <= cell["budget"]
        for value, standard_error in cell["numbers"].values():
            assert np.isfinite([value, standard_error]).all()
    return Results.load(path)
