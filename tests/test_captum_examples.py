"""The numbered examples run as they are, from an empty folder."""

import pathlib
import subprocess
import sys

from pytest import mark

FOLDER = pathlib.Path(__file__).parent.parent / "examples"
EXPECTED = {
    "01_captum_image.py": "error of the polynomial",
    "02_captum_text_llm.py": "strongest pair: ('not', 'bad')",
    "09_captum_tabular.py": "error over all removals",
}


@mark.parametrize("name", EXPECTED)
def test_example(name, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert EXPECTED[name] in run.stdout
