"""A bare install: the command names the extra that is missing, in one line."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {package!r}:
            raise ModuleNotFoundError("No module named " + name, name=name)
sys.meta_path.insert(0, Blocked())
from harmonica_compare.cli import main
sys.exit(main(sys.argv[1:]))
"""
FEW = ["--cases", "1", "--budget", "32", "--evaluations", "16", "--jobs", "1"]


def refused(package, *options, cwd):
    code = WITHOUT.format(package=package)
    found = subprocess.run(
        [sys.executable, "-c", code, *map(str, options)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 2, found.stderr
    lines = [line for line in found.stderr.splitlines() if "harmonica" in line]
    assert "Traceback" not in found.stderr and len(lines) == 1, found.stderr
    return lines[0]


@pytest.mark.parametrize("package", ["torch", "captum", "shap", "shapiq"])
def test_compare_needs_every_method_of_its_default(tmp_path, package):
    line = refused(package, "compare", *FEW, cwd=tmp_path)
    assert f'{package} is not installed: pip install "harmonica-xai[compare]"' in line


def test_compare_asks_for_matplotlib_before_it_measures(tmp_path, games):
    options = ["--task", "games", "--data", games, "--methods", "harmonica", *FEW]
    line = refused("matplotlib", "compare", *options, "--out", "out", cwd=tmp_path)
    assert line == (
        "harmonica compare: matplotlib is not installed: pip install "
        '"harmonica-xai[compare]"'
    )
    assert not (tmp_path / "out").exists()


def test_compare_tells_what_a_task_needs(tmp_path):
    options = ["--task", "tabular", "--methods", "harmonica", *FEW]
    line = refused("torch", "compare", *options, cwd=tmp_path)
    assert 'torch is not installed: pip install "harmonica-xai[compare]"' in line


@pytest.mark.parametrize(
    ("package", "says"),
    [
        ("pandas", 'needs pandas: pip install "harmonica-xai[explain]"'),
        ("pyarrow", '--format csv does without: pip install "harmonica-xai[explain]"'),
        ("torch", "--model net:f can not be imported: ModuleNotFoundError"),
    ],
)
def test_explain_tells_what_it_needs(tmp_path, package, says):
    (tmp_path / "net.py").write_text("import torch\ndef f(x):\n    return x[:, 0]\n")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n")
    options = ["--model", "net:f", "--data", "data.csv", "--out", "out"]
    assert says in refused(package, "explain", *options, cwd=tmp_path)
    assert not (tmp_path / "out").exists()
