"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest


def modules(package):
    root = importlib.import_module(package)
    yield package
    for found in pkgutil.walk_packages(root.__path__, package + "."):
        if not found.name.endswith("__main__"):
            yield found.name


NAMES = [
    name
    for package in (
        "harmonica_core",
        "harmonica_compare",
        "captum_harmonica",
        "shap_harmonica",
    )
    for name in modules(package)
]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name):
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0
