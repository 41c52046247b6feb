"""Which Captum is taken, and where its private helpers are imported."""

import ast
import pathlib

from pytest import mark, raises

import captum_harmonica
import harmonica_core
from captum_harmonica._captum import check_version

PACKAGE = pathlib.Path(captum_harmonica.__file__).parent


@mark.parametrize("version", ["0.9", "0.9.0", "0.9.1", "0.9.0.dev1"])
def test_the_tested_series_is_accepted(version):
    check_version(version)


@mark.parametrize("version", ["0.8.0", "0.10.0", "1.0", "0.90.1"])
def test_other_versions_are_refused_with_the_remedy(version):
    with raises(ImportError) as error:
        check_version(version)
    assert version in str(error.value)
    assert 'pip install "harmonica-xai[captum]"' in str(error.value)


def test_only_public_names_of_the_core_are_imported():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
                if node.module == "harmonica_core":
                    asked = {alias.name for alias in node.names}
                    assert asked <= set(harmonica_core.__all__), path.name
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            inner = [name for name in names if name.startswith("harmonica_core.")]
            assert inner == [], path.name


def test_the_core_stays_small():
    assert len(harmonica_core.__all__) <= 50


def test_private_helpers_are_imported_in_one_module_only():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and path.name != "_captum.py":
                private = node.module and node.module.split(".")[0] == "captum"
                assert not (private and "._" in node.module), path.name
