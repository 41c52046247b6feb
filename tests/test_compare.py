"""``harmonica compare`` on every task, at tiny sizes, with the real methods."""

import csv
import json
import re
from pathlib import Path

import browser
import numpy as np
import pytest
from compare_results import SCHEMA, check_file, compare, mismatches

from harmonica_compare.methods import METHODS
from harmonica_compare.results import Results
from harmonica_compare.summary import interval, scores
from harmonica_core import registry


def test_the_schema_check_finds_what_is_wrong(games, tmp_path):
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--cases", 1, "--budget", 20]
    assert compare(*args, "--methods", "published-2", "--radii", "1", out=out) == 0
    good = json.loads((out / "results.json").read_text())
    assert mismatches(good, SCHEMA) == []
    cell = good["cells"][0]
    for wrong in (
        {**good, "complete": 1},
        {**good, "version": 1},
        {**good, "more": 1},
        {**good, "cells": [{**cell, "budget": "20"}]},
        {**good, "cells": [{**cell, "n_calls": True}]},
        {**good, "cells": [{**cell, "seconds": float("nan")}]},
        {**good, "cells": [{**cell, "numbers": {"L2@1": 0.5}}]},
        {**good, "settings": {**good["settings"], "radii": [1]}},
    ):
        assert len(mismatches(wrong, SCHEMA)) == 1


def test_games_with_every_method(games, tmp_path, capsys):
    out = tmp_path / "out"
    code = compare(
        *("--task", "games", "--data", games, "--cases", 1, "--budget", 60),
        *("--radii", "1,2,inf", "--methods", "all"),
        out=out,
    )
    assert code == 0
    results = check_file(out / "results.json")
    assert results.complete and len(results.cells) == len(METHODS)
    status = {cell.method: cell for cell in results.cells}
    # shapiq's sparse methods need more than 5 features; that costs only their cells.
    assert {m for m, c in status.items() if c.status == "failed"} <= {
        "proxyspex",
        "spex",
    }
    assert status["ig"].status == status["ih"].status == "not applicable"
    assert "no gradients" in status["ig"].message
    exact = status["harmonica"].numbers
    assert exact["shapley"][0] == pytest.approx(0, abs=1e-9)
    assert exact["pairs"][0] == pytest.approx(0, abs=1e-9)
    assert exact["first_seconds"][0] >= 0
    assert exact["L2@inf"][0] == pytest.approx(0, abs=1e-9)
    assert exact["L2@inf"][0] < status["kernelshap"].numbers["L2@inf"][0]
    rows = list(csv.DictReader((out / "tables.csv").read_text().splitlines()))
    assert {row["method"] for row in rows} == set(METHODS)
    printed = capsys.readouterr().out
    assert "Captum KernelShap" in printed and "no gradients" in printed


def test_budgets_are_enforced(games, tmp_path):
    out = tmp_path / "out"

    @registry.methods.register("greedy")
    def greedy(value_function, n_features, *, budget, seed):
        value_function(np.ones((budget + 1, n_features), dtype=bool))

    try:
        args = ["--task", "games", "--data", games, "--budget", 20]
        compare(*args, "--methods", "greedy,lime", out=out)
    finally:
        registry.methods.remove("greedy")
    cells = Results.load(out / "results.json").cells
    failed = [cell for cell in cells if cell.method == "greedy"]
    assert failed and all(c.status == "failed" for c in failed)
    assert "asked for 21 of 20" in failed[0].message
    # The failing method cost only its row.
    assert all(c.status == "ok" for c in cells if c.method == "lime")


def test_tabular_from_a_csv(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3))
    label = np.where(rows[:, 0] + rows[:, 1] * rows[:, 2] > 0, "yes", "no")
    colour = rng.choice(["red", "blue"], 80)
    with open(tmp_path / "table.csv", "w") as file:
        file.write("a,b,c,colour,answer\n")
        for row, k, y in zip(rows, colour, label, strict=True):
            file.write(",".join([*map(str, row), k, y]) + "\n")
    out = tmp_path / "out"
    code = compare(
        *("--data", tmp_path / "table.csv", "--label", "answer", "--cases", 1),
        *("--budget", 16, "--methods", "published-3,ig,ih"),
        out=out,
    )
    assert code == 0
    cells = {(c.case, c.method): c for c in check_file(out / "results.json").cells}
    assert cells["table.csv, MLP, row 0", "ih"].status == "ok"
    trees = cells["table.csv, trees, row 0", "ig"]
    assert (trees.status, trees.message) == (
        "not applicable",
        "RandomForestClassifier has no gradients",
    )


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "train.tsv"
    good = ["a good film", "truly good and warm", "good fun . we laughed . twice ."]
    bad = ["a bad film", "truly bad and cold", "bad taste . we left . early ."]
    lines = [f"{s}\t{k}" for k, group in enumerate([bad, good]) for s in group]
    path.write_text("\n".join(["sentence\tlabel", *lines * 10]))
    return path


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_text(texts, tmp_path, unit):
    out, cache = tmp_path / "out", tmp_path / "cache"
    args = [
        *("--task", "text", "--data", texts, "--unit", unit, "--cache", cache),
        *("--cases", 1, "--budget", 12, "--methods", "published-2,ig,kernelshap"),
        *("--radii", "1,inf"),
    ]
    assert compare(*args, out=out) == 0
    results = check_file(out / "results.json")
    assert {cell.status for cell in results.cells} == {"ok"}
    (model,) = cache.glob("*.npz")
    before = model.stat().st_mtime_ns
    assert compare(*args, out=tmp_path / "again") == 0
    assert model.stat().st_mtime_ns == before  # trained once
    assert "published" in (out / "report.html").read_text()


def test_image(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the image extra")
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    (tmp_path / "pictures").mkdir()
    Image.fromarray(pixels).save(tmp_path / "pictures" / "noise.png")
    Image.fromarray(255 - pixels).save(tmp_path / "pictures" / "noise.jpg")
    out = tmp_path / "out"
    code = compare(
        *("--task", "image", "--data", tmp_path / "pictures", "--superpixels", 3),
        *("--baseline", "blur", "--budget", 10, "--methods", "published-2,ig"),
        *("--evaluations", 16, "--radii", "1,inf"),
        out=out,
    )
    assert code == 0
    results = check_file(out / "results.json")
    assert {cell.status for cell in results.cells} == {"ok"}
    # Two pictures, although they differ in their endings only.
    assert {cell.case for cell in results.cells} == {"noise.png", "noise.jpg"}


def test_custom_value_function(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def make():\n"
        "    return (lambda masks: masks[:, 0] * 1.0 + masks[:, 1:].sum(1)), 4\n"
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    args = ["--task", "custom", "--model", "mine:make", "--methods", "published-2,lime"]
    assert compare(*args, out=out, jobs=1) == 0
    assert len(check_file(out / "results.json").cells) == 2 * 3


def test_custom_model_with_a_table(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "import numpy as np\n"
        "def make():\n"
        "    x = np.random.default_rng(0).normal(size=(50, 3))\n"
        "    return LogisticRegression().fit(x, x[:, 0] > 0)\n"
    )
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n-1,0,1\n0.5,0.5,0\n")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    code = compare(
        *("--task", "custom", "--model", "theirs:make", "--data", "rows.csv"),
        *("--cases", 2, "--budget", 10, "--methods", "published-3"),
        out=out,
    )
    assert code == 0
    cells = check_file(out / "results.json").cells
    assert [cell.case for cell in cells] == ["row 0", "row 1"]


def test_custom_torch_module_has_gradients(tmp_path, monkeypatch):
    (tmp_path / "network.py").write_text(
        "import torch\n"
        "class Product(torch.nn.Module):\n"
        "    n_features = 3\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.drop = torch.nn.Dropout(0.5)\n"
        "        self.scale = torch.nn.Parameter(torch.ones(1).double())\n"
        "    def forward(self, x):\n"
        "        y = self.drop(x[:, 0] * x[:, 1] + self.scale * x[:, 2])\n"
        "        return torch.stack([y - 1e3, y], 1)\n"
    )
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n-1,0,1\n0,1,-1\n")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    code = compare(
        *("--task", "custom", "--model", "network:Product", "--data", "rows.csv"),
        *("--cases", 1, "--budget", 300, "--methods", "harmonica,ig,ih"),
        out=out,
    )
    assert code == 0
    cells = {cell.method: cell for cell in check_file(out / "results.json").cells}
    assert {cell.status for cell in cells.values()} == {"ok"}
    assert cells["harmonica"].numbers["L2@inf"][0] == pytest.approx(0, abs=1e-5)
    # One product: gradients sum to the ends but miss the pair, Hessians do not.
    for method in ("ig", "ih"):
        gap = cells[method].numbers["efficiency_gap"][0]
        assert gap == pytest.approx(0, abs=0.05)
    errors = [cells[method].numbers["L2@inf"][0] for method in ("ih", "ig")]
    assert errors[0] < errors[1]


@pytest.mark.parametrize(
    "values, args",
    [
        (np.arange(32.0) ** 2, ["--radii", "1,2", "--methods", "published-2,lime"]),
        (np.arange(32.0), ["--methods", "ig,ih"]),
        (np.ones(32), ["--methods", "published-2,published-3,anchor-3,lime"]),
    ],
    ids=["no inf", "nothing applicable", "constant"],
)
def test_reports_without_some_figures(tmp_path, values, args):
    np.savez(tmp_path / "game.npz", values=values[None])
    out = tmp_path / "out"
    task = ["--task", "games", "--data", tmp_path / "game.npz", "--budget", "10,20"]
    assert compare(*task, *args, out=out) == 0
    assert check_file(out / "results.json").complete
    page = (out / "report.html").read_text()
    assert page.endswith("</html>\n") and "What was compared" in page


def test_a_radius_that_only_the_second_case_has(tmp_path):
    folder, out = tmp_path / "games", tmp_path / "out"
    folder.mkdir()
    for name, n in [("a", 2), ("b", 4)]:
        np.savez(folder / f"{name}.npz", values=np.arange(2.0**n)[None] ** 2)
    args = ["--task", "games", "--data", folder, "--radii", "2,4", "--budget", 10]
    assert compare(*args, "--methods", "published-2", out=out) == 0
    results = check_file(out / "results.json")
    wide = interval(scores(results, "L2@4", 10)["published-2"])
    assert (wide.mean, wide.n_cases) == (results.cells[1].numbers["L2@4"][0], 1)


def test_only_the_direction_that_is_better_is_marked(games, tmp_path):
    out = tmp_path / "out"
    args = ["--task", "games", "--data", games, "--budget", 24, "--cases", 1]
    methods = "published-2,published-3,lime,kernelshap"
    assert compare(*args, "--methods", methods, "--radii", "inf", out=out) == 0
    cells = check_file(out / "results.json").cells
    best = max(cell.numbers["insertion"][0] for cell in cells)
    page = (out / "report.html").read_text()
    table = page[page.index("<summary>Insertion and deletion") :]
    assert f'<td class="best">{best:.2g}<' in table


@pytest.mark.parametrize(
    "args, message",
    [
        (["--data", "absent.csv", "--label", "y"], "no such file"),
        (["--task", "text"], "needs --data"),
        (["--task", "games", "--data", "nowhere"], "no such file or folder"),
        (["--methods", "magic"], "unknown; needed some of"),
        (["--budget", "3"], "at least 10"),
        (["--budget", "many"], "--budget many: needed whole numbers"),
        (["--budget", ","], "--budget ,: needed whole numbers"),
        (["--radii", "1,far"], "--radii 1,far: needed whole numbers"),
        (["--radii", "0,inf"], "numbers >= 1"),
        (["--cases", "0"], "at least 1"),
        (["--task", "custom", "--model", "nothing"], "module:function"),
        (["--task", "custom", "--model", "no_such_module:f"], "No module named"),
        (["--resume"], "needs --out"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(args, message, capsys, tmp_path):
    assert compare(*args, out=None if "--resume" in args else tmp_path / "out") == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert not (tmp_path / "out" / "results.json").exists()


@pytest.mark.parametrize(
    "content, args, message",
    [
        ("a,b\n1,2\n", ["--label", "y"], "no such column; the file has a, b"),
        ("a,y\n1,x\n2,x\n3,x\n", ["--label", "y"], "one value only"),
        ("a,y\n" + "1,x\n2,z\n" * 5 + "3,x\n", ["--label", "y"], "at least 12"),
    ],
)
def test_unusable_tables(tmp_path, capsys, content, args, message):
    path = tmp_path / "table.csv"
    path.write_text(content)
    assert compare("--data", path, *args) == 2
    assert message in capsys.readouterr().err


def test_unusable_texts_and_pictures(tmp_path, capsys):
    path = tmp_path / "texts.tsv"
    path.write_text("sentence\tlabel\n" + "one two\t1\n" * 3)
    assert compare("--task", "text", "--data", path) == 2
    assert "one class only" in capsys.readouterr().err
    long = " ".join(["word"] * 60)
    path.write_text(f"sentence\tlabel\n{long}\t1\n{long}\t0\n")
    assert compare("--task", "text", "--data", path, "--cache", tmp_path / "c") == 2
    assert "--unit sentence" in capsys.readouterr().err
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the image extra")
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    assert compare("--task", "image", "--data", tmp_path) == 2
    assert "not a readable picture" in capsys.readouterr().err


@pytest.mark.skipif(bool(browser.missing()), reason=str(browser.missing()))
def test_the_report_in_a_real_browser(games, tmp_path):
    folder = tmp_path / "games"
    (folder / "toy5.npz").rename(folder / "<b>odd & game.npz")
    out = tmp_path / "out"
    args = ["--task", "games", "--data", folder, "--budget", "10,24", "--cases", 2]
    methods = "harmonica,published-3,anchor-3,kernelshap,lime,ig"
    assert compare(*args, "--methods", methods, "--radii", "1,2,inf", out=out) == 0
    with browser.chromium(tmp_path / "profile") as driver:
        for width in (1280, 400):
            browser.resize(driver, width, 900)
            driver.get((out / "report.html").as_uri())
            found = driver.execute_script(
                "const shown = [...document.querySelectorAll('figure svg')]"
                ".map(svg => svg.getBoundingClientRect().width);"
                "return [document.querySelectorAll('table').length, shown,"
                "document.querySelectorAll('.tip title').length,"
                "document.querySelectorAll('b').length,"
                "document.documentElement.scrollWidth]"
            )
            assert found[0] >= 4 and len(found[1]) >= 4 and min(found[1]) > 250
            assert found[2] >= 10  # lines say their names
            assert found[3] == 0  # the folder's name is a text, not a tag
            assert found[4] <= width  # tables scroll by themselves, the page does not
        log = driver.get_log("browser")
    assert [entry for entry in log if entry["level"] == "SEVERE"] == []


def test_a_function_of_rows_with_a_background_as_explain_takes_it(
    tmp_path, monkeypatch
):
    (tmp_path / "rows_model.py").write_text(
        "def predict(x):\n    return x[:, 0] * x[:, 1] + x[:, 2]\n"
    )
    (tmp_path / "rows.csv").write_text("a,b,c,other\n1,2,3,9\n-1,0,1,9\n")
    (tmp_path / "background.csv").write_text("other,c,b,a\n9,1,1,0\n9,3,1,2\n")
    monkeypatch.chdir(tmp_path)
    args = ["--task", "custom", "--model", "rows_model:predict", "--data", "rows.csv"]
    args += ["--features", "a,b,c", "--background", "background.csv", "--cases", 1]
    out = tmp_path / "out"
    assert compare(*args, "--budget", 10, "--methods", "harmonica", out=out) == 0
    (group,) = check_file(out / "results.json").settings["about"]
    assert group["features"] == ["a", "b", "c"] and group["n_features"] == 3
    assert group["removed"] == "averaged over 2 rows of background.csv"


def test_a_plugin_from_a_file_as_documented(games, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "compare.md").read_text()
    (code,) = re.findall(r"```python\n(import numpy.*?)```", page, flags=re.S)
    assert len(code.strip().splitlines()) <= 10
    (tmp_path / "theirs_of_docs.py").write_text(code)
    args = ["--task", "games", "--data", games, "--budget", 24, "--cases", 1]
    args += ["--plugin", tmp_path / "theirs_of_docs.py", "--methods", "theirs,lime"]
    try:
        assert compare(*args, out=tmp_path / "out") == 0
    finally:
        registry.methods.remove("theirs")
    cells = {c.method: c for c in check_file(tmp_path / "out" / "results.json").cells}
    assert cells["theirs"].status == "ok"
    assert 0 < cells["theirs"].numbers["shapley"][0] < 1
    assert "the least of 2 methods" in (tmp_path / "out" / "report.html").read_text()
    assert compare("--plugin", tmp_path / "absent.py") == 2
