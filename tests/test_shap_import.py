"""What happens at import without SHAP."""

import subprocess
import sys


def test_a_missing_package_names_the_pip_line():
    code = "import sys; sys.modules['shap'] = None; import shap_harmonica"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert 'pip install "harmonica-xai[shap]"' in run.stderr.splitlines()[-1]
