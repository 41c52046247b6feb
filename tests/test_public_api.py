"""Public names: what is promised, and that every one of them is documented."""

import importlib
import inspect

import pytest

import harmonica_core

PACKAGES = ("harmonica_core", "captum_harmonica", "shap_harmonica")


def test_the_core_exports_its_promised_names():
    promised = {
        "AnchoredSurrogate",
        "Estimate",
        "Evaluated",
        "Surrogate",
        "fit_surrogate",
        "fit_surrogates",
        "from_attributions",
        "harmonica",
        "harmonica_anchor",
        "harmonica_anchor_constrained",
        "harmonica_local",
        "indices",
        "low_degree",
        "metrics",
    }
    assert promised <= set(harmonica_core.__all__)


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_the_plug_ins_export_the_family(package):
    names = set(importlib.import_module(package).__all__)
    first = "Harmonica" if package == "captum_harmonica" else "HarmonicaExplainer"
    assert {first, "HarmonicaLocal", "HarmonicaAnchor"} <= names
    assert {"HarmonicaAnchorConstrained", "LowDegree"} <= names


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_every_name_is_documented(package):
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__)
    for name in module.__all__:
        thing = getattr(module, name)
        if not name.startswith("__"):
            assert inspect.getdoc(thing), f"{package}.{name} has no docstring"


def test_fit_surrogate_keeps_its_positional_order():
    names = list(inspect.signature(harmonica_core.fit_surrogate).parameters)
    assert names[:6] == [
        "value_function",
        "n_features",
        "budget",
        "degree",
        "engine",
        "alpha",
    ]
