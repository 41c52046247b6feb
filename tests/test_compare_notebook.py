"""`harmonica_compare.compare`: models, maskers and rows as people have them."""

import numpy as np
import pandas as pd
import pytest
import shap
import torch
from sklearn.ensemble import RandomForestClassifier

from harmonica_compare import compare
from harmonica_compare.results import Results

QUICK = {"budgets": [40], "progress": False}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))


def test_a_forest_a_masker_and_a_frame(table, tmp_path):
    model = RandomForestClassifier(10, random_state=0)
    model.fit(table.to_numpy(), table["a"] * table["b"] > 0)
    masker = shap.maskers.Independent(table.to_numpy()[:4])
    found = compare(
        model, masker, table[5:7], methods=["harmonica", "shap-tree", "lime"], **QUICK
    )
    frame = found.to_frame()
    errors = frame[frame.number == "shapley"].groupby("method")["value"].max()
    # All 32 masks are within the budget, and the masker's rows are averaged over.
    assert errors["harmonica"] < 1e-9 and errors["shap-tree"] < 1e-6 < errors["lime"]
    (group,) = found.results.settings["about"]
    assert group["removed"] == "averaged over 4 background rows"
    assert group["features"] == list("abcde")
    page = found._repr_html_()
    assert page.count("<svg") >= 2 and "Harmonica" in page and "<html" not in page
    found.save(tmp_path / "out")
    assert Results.load(tmp_path / "out" / "results.json").complete
    assert "Which explanation" in (tmp_path / "out" / "report.html").read_text()


def test_a_torch_module_has_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(dim=1))
    rows = np.ones((1, 4))
    found = compare(model, np.zeros(4), rows, methods=["ig", "harmonica"], **QUICK)
    assert {cell.status for cell in found.results.cells} == {"ok"}
    assert "Harmonica" in repr(found)


def test_a_function_and_a_list():
    def product(x):
        return x[:, 0] * x[:, 1] + x[:, 2]

    found = compare(product, [0, 0, 0], [[1, 2, 3]], methods=["harmonica"], **QUICK)
    (cell,) = found.results.cells
    assert cell.numbers["pairs"][0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "masker, rows, settings, message",
    [
        ([0, 0], [[1, 2, 3]], {}, "2 columns and rows 3"),
        ([0, 0, 0], [[1, 2, "x"]], {}, "rows of numbers"),
        ([0, 0, 0], [[1, 2, 3]], {"methods": ["magic"]}, "magic"),
        ([0, 0, 0], [[1, 2, 3]], {"budgets": []}, "at least 10 model calls"),
        (lambda mask, x: x, [[1, 2, 3]], {}, "a SHAP masker that holds some"),
    ],
)
def test_refusals(masker, rows, settings, message):
    settings = {**QUICK, "methods": ["harmonica"], **settings}
    with pytest.raises((ValueError, TypeError), match=message):
        compare(lambda x: x[:, 0], masker, rows, **settings)
