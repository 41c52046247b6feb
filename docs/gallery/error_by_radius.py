"""Draw the README's picture, error against radius, from a comparison's results.

python docs/gallery/error_by_radius.py out/sst2/results.json picture.png
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from harmonica_compare.results import Results
from harmonica_compare.tables import label_of, mean, ok_cells, radii_of
from harmonica_core.plots import error_by_radius

SHOWN = ("harmonica-3", "harmonica-auto", "faith-shap", "kernelshap", "lime", "ig")


def main(source: str, target: str) -> None:
    """Read ``results.json`` and write a PNG."""
    results = Results.load(Path(source))
    cells = ok_cells(results, results.settings["budgets"][-1])
    errors = {
        label_of(method): {
            float(radius): mean(cells[method], f"L2@{radius}")
            for radius in radii_of(results)
        }
        for method in SHOWN
        if method in cells
    }
    figure = error_by_radius(errors).figure
    figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
