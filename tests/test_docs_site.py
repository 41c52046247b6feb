"""`make docs`: the API site builds without a warning and holds every public name."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pdoc")
ROOT = Path(__file__).parents[1]


def test_the_site_holds_every_public_name(tmp_path):
    script = ROOT / "docs" / "build_site.py"
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "index.html").exists()
    for package in ("harmonica_core", "captum_harmonica", "shap_harmonica"):
        page = (tmp_path / f"{package}.html").read_text(encoding="utf-8")
        for name in importlib.import_module(package).__all__:
            assert f'id="{name}"' in page or f"{package}/{name}.html" in page, name
