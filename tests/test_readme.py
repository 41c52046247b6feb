"""The README's code runs, it shows the two commands, and it stays short."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_captum_examples import EXPECTED as CAPTUM

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


def run(code, tmp_path):
    env = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_blocks_run(number, tmp_path):
    done = run(BLOCKS[number], tmp_path)
    assert done.returncode == 0, done.stderr


def test_it_shows_both_commands_and_stays_short():
    assert "make compare" in README and "make test" in README
    assert len(BLOCKS) >= 2
    assert len(README.splitlines()) <= 200
    assert README.splitlines().index("```python") < 30


@pytest.mark.parametrize("page", ["README.md", "docs/gallery/README.md"])
def test_every_link_to_a_file_is_there(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target


FOLDERS = "shared|captum_harmonica|shap_harmonica|tests|docs|examples"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_every_path_in_backticks_is_there(page):
    paths = re.findall(rf"`((?:{FOLDERS})/[^`\s]*)`", (ROOT / page).read_text())
    assert len(paths) > 3
    assert [path for path in paths if not (ROOT / path).exists()] == []


# Those of tests/test_captum_examples.py run there, where what they print is checked.
EXAMPLES = [
    path for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in CAPTUM
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    done = run(
        f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')", tmp_path
    )
    assert done.returncode == 0, done.stderr
