"""Every public name has an example, and every example in a docstring runs."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

PUBLIC = (
    "harmonica_core",
    "harmonica_core.result.indices",
    "harmonica_core.metrics",
    "harmonica_core.plots",
    "captum_harmonica",
    "captum_harmonica.metrics",
    "shap_harmonica",
    "shap_harmonica.metrics",
)


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


def public_things(name):
    """Yield (name, function or class) of what a module says is public."""
    module = importlib.import_module(name)
    for public in module.__all__:
        thing = getattr(module, public)
        if inspect.isroutine(thing) or inspect.isclass(thing):
            yield public, thing


@pytest.fixture(autouse=True)
def no_windows():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name):
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    bare = [public for public, thing in public_things(name) if not examples_of(thing)]
    assert not bare, f"no >>> in the docstring of {bare}"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_of_public_names_are_among_those_that_run(name):
    for public, thing in public_things(name):
        assert thing.__module__ in NAMES, public
        home = importlib.import_module(thing.__module__)
        found = doctest.DocTestFinder().find(home)
        run = {case.name for case in found if case.examples}
        assert f"{home.__name__}.{thing.__qualname__}" in run, public


def examples_of(thing):
    return doctest.DocTestParser().get_examples(thing.__doc__ or "")
