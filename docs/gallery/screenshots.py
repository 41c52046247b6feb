"""Pictures of the pages that examples/05_what_if.py wrote: `make gallery`.

Small PNGs for the README, 1280 and 400 pixels wide, in this folder.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import browser

# What to remove for the picture: the answer should be worth a look.
SCENES = {
    "table": "[20, 27]",
    "sentence": "[3, 4]",
    "image": "[18, 21]",
}
SIZES = {"": (1280, 900), "-phone": (400, 860)}
SETUP = """
const removed = %s;
whatIf.set(Array.from(whatIf.model.kept, (_, i) => (removed.includes(i) ? 0 : 1)));
document.getElementById("find").click();
document.getElementById("live").textContent = "";
"""


def small(picture: bytes, limit: int = 140_000) -> bytes:
    """Return the PNG again, compressed well, with fewer colours if it must be."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (None, 256, 128, 64):
        out = io.BytesIO()
        shown = image if colours is None else image.quantize(colours, kmeans=1)
        shown.save(out, "PNG", optimize=True)
        if out.tell() <= limit:
            break
    return out.getvalue()


def main(pages: Path, folder: Path) -> None:
    """Take every picture."""
    reason = browser.missing()
    if reason is not None:
        print(f"no screenshots: {reason}")
        return
    with (
        tempfile.TemporaryDirectory() as profile,
        browser.chromium(Path(profile)) as driver,
    ):
        for name, removed in SCENES.items():
            for suffix, (width, height) in SIZES.items():
                browser.resize(driver, width, height, dark=name == "sentence")
                driver.get((pages / f"{name}.html").resolve().as_uri())
                driver.execute_script(SETUP % removed)
                # Marks glide to their places; wait for the end of that.
                driver.execute_async_script("setTimeout(arguments[0], 300)")
                target = folder / f"what-if-{name}{suffix}.png"
                target.write_bytes(small(driver.get_screenshot_as_png()))
                print(f"{target.name}  {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent)
