"""What is built, what it installs, and what it must not."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"captum_harmonica", "shap_harmonica", "harmonica_core", "harmonica_compare"}


def run(*args, cwd, env=None, ok=True):
    done = subprocess.run(
        [str(a) for a in args], cwd=cwd, env=env, capture_output=True, text=True
    )
    if ok:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist of a clean copy of the tracked files."""
    copy = tmp_path_factory.mktemp("copy")
    names = run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")
    for name in filter(None, names):
        source = ROOT / name
        if source.exists():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    out = tmp_path_factory.mktemp("dist")
    run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy, cwd=copy
    )
    return out


def test_the_wheel_holds_exactly_our_packages(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == OURS
    for package in OURS:
        assert f"{package}/py.typed" in names
    tracked = run("git", "ls-files", "shared", *OURS, cwd=ROOT).stdout.split()
    shipped = {n for n in names if not n.split("/")[0].endswith(".dist-info")}
    assert {name.removeprefix("shared/") for name in tracked} <= shipped


def test_metadata_is_clean(built):
    files = [str(path) for path in built.iterdir()]
    assert len(files) == 2
    run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=built)


def test_the_sdist_builds_the_same_packages(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("shared/harmonica_core/fit.py") for name in names)


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_a_clean_environment_imports_ours_and_not_shared(built, tmp_path, kind):
    (package,) = built.glob(kind)
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    # Dependencies come from this environment's folder, whose editable install is
    # not active there (a folder on PYTHONPATH runs no .pth file).
    env = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    run(
        python, "-m", "pip", "install", "--no-deps", "--no-index",
        "--no-build-isolation", "--quiet", package, cwd=tmp_path, env=env,
    )  # fmt: skip
    for name in sorted(OURS):
        found = run(
            python,
            "-c",
            f"import {name}; print({name}.__file__)",
            cwd=tmp_path,
            env=env,
        )
        assert str(tmp_path) in found.stdout
    for name in ("shared", "tests"):
        refused = run(python, "-c", f"import {name}", cwd=tmp_path, env=env, ok=False)
        assert "ModuleNotFoundError" in refused.stderr
    command = tmp_path / "env" / "bin" / "harmonica"
    assert "compare" in run(command, "--help", cwd=tmp_path, env=env).stdout


def test_the_editable_install_does_not_import_shared(tmp_path):
    for name in ("shared", "tests"):
        refused = run(sys.executable, "-c", f"import {name}", cwd=tmp_path, ok=False)
        assert "ModuleNotFoundError" in refused.stderr


BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError("No module named " + name)
sys.meta_path.insert(0, Blocked())
"""


def test_the_core_needs_no_host(tmp_path):
    blocked = {"torch", "captum", "shap", "shapiq", "pandas", "matplotlib"}
    code = BLOCK.format(blocked=blocked) + (
        "import harmonica_core as h, numpy as np\n"
        "f = lambda m: m.sum(axis=1) * 1.0 + (m[:, 0] & m[:, 1])\n"
        "print(h.fit_surrogate(f, 12, budget=200).shapley_values().sum())\n"
    )
    found = run(sys.executable, "-c", code, cwd=tmp_path)
    assert float(found.stdout) == pytest.approx(13.0)


@pytest.mark.parametrize(
    "package, host, extra",
    [
        ("captum_harmonica", "captum", "captum"),
        ("captum_harmonica", "torch", "captum"),
        ("shap_harmonica", "shap", "shap"),
    ],
)
def test_a_missing_host_names_the_pip_line(tmp_path, package, host, extra):
    code = BLOCK.format(blocked={host}) + f"import {package}\n"
    refused = run(sys.executable, "-c", code, cwd=tmp_path, ok=False)
    last = refused.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert f'pip install "harmonica-xai[{extra}]"' in last
