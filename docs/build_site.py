"""Build the API site from the docstrings: `make docs` writes site/index.html.

Any warning about our own docstrings or annotations is an error.
"""

import sys
import typing
import warnings
from pathlib import Path

import pdoc

import captum_harmonica.metrics
import harmonica_core.metrics

PACKAGES = ("harmonica_core", "captum_harmonica", "shap_harmonica", "harmonica_compare")
# A public module that lies elsewhere; its page has the name that people import.
INDICES = "harmonica_core.indices"
# pdoc does not look up the names in the constructors of these by itself.
TUPLES = (
    captum_harmonica.metrics.Inconsistency,
    harmonica_core.metrics.Inconsistency,
)


def build(folder: Path) -> None:
    """Write the pages of all packages."""
    for each in TUPLES:
        each.__new__.__annotations__ = typing.get_type_hints(each)
    harmonica_core.indices.__name__ = INDICES
    sys.modules[INDICES] = harmonica_core.indices
    pdoc.render.configure(docformat="numpy", footer_text="Harmonica")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pdoc.pdoc(*PACKAGES, output_directory=folder)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
