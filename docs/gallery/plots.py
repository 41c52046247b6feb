"""Pictures that the examples draw, for docs/gallery/README.md: `make gallery`.

Runs examples 01, 04 and 07 in a folder and keeps their PNGs here, made small.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from screenshots import browser, small

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
DRAWN = {
    "01_captum_image.py": {"image.png": "captum-image.png"},
    "07_anchors_trade_off.py": {"trade_off.png": "trade-off.png"},
    "04_shap_interactions.py": {},
}


def keep(picture: bytes, name: str) -> None:
    """Write one picture."""
    target = HERE / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(small(picture, 90_000))
    print(f"{target} {target.stat().st_size // 1000} kB")


def main(folder: Path) -> None:
    """Run the examples and collect what they drew."""
    for example, names in DRAWN.items():
        words = [sys.executable, str(EXAMPLES / example)]
        subprocess.run(words, cwd=folder, check=True)
        for drawn, name in names.items():
            keep((folder / drawn).read_bytes(), name)
    plots = folder / "out" / "shap_gallery"
    for path in sorted(plots.glob("*.png")):
        keep(path.read_bytes(), f"shap/{path.name}")
    reason = browser.missing()
    if reason is not None:
        print(f"no picture of SHAP's text plot: {reason}")
        return
    with browser.chromium(folder / "profile") as driver:
        browser.resize(driver, 900, 320)
        driver.get((plots / "text.html").resolve().as_uri())
        driver.execute_async_script("setTimeout(arguments[0], 300)")
        keep(driver.get_screenshot_as_png(), "shap/text.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
