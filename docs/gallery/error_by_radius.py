"""Draw the gallery's picture, error against radius, from a comparison's results.

python docs/gallery/error_by_radius.py out/sst2/results.json picture.png
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from harmonica_compare.methods import label_of
from harmonica_compare.results import Results
from harmonica_compare.summary import interval, radii_of, scores
from harmonica_core import Estimate
from harmonica_core.plots import error_by_radius

SHOWN = ("harmonica", "published-3", "faith-shap", "kernelshap", "lime", "ig")


def main(source: str, target: str) -> None:
    """Read ``results.json`` and write a PNG."""
    results = Results.load(Path(source))
    budget = results.settings["budgets"][-1]
    errors: dict[str, dict[float, Estimate]] = {}
    for radius in radii_of(results):
        found = scores(results, f"L2@{radius}", budget)
        for method in [m for m in SHOWN if m in found]:
            here = interval(found[method])
            half = (here.high - here.low) / 2 / 1.96
            line = errors.setdefault(label_of(method), {})
            line[float(radius)] = Estimate(here.mean, half, here.n_cases)
    figure = error_by_radius(errors).figure
    figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
