"""Ranks, intervals and the answer, from results whose answer is known."""

import numpy as np
import pytest

from harmonica_compare import answer, report, summary
from harmonica_compare.results import Cell, Results


def results(table, budgets=(100, 1000), methods=None):
    """Results from ``{(method, budget): errors of the cases}``."""
    cells = [
        Cell(
            f"case {k}",
            method,
            budget,
            0,
            "ok",
            n_calls=budget,
            seconds=0.1,
            numbers={
                "shapley": [error, 0.0],
                "whatif@inf": [2 * error, 0.0],
                "L2@inf": [error, 0.0],
            },
        )
        for (method, budget), errors in table.items()
        for k, error in enumerate(errors)
    ]
    settings = {
        "task": "games",
        "methods": methods or list(dict.fromkeys(m for m, _ in table)),
        "budgets": list(budgets),
        "radii": ["inf"],
        "n_evaluations": 16,
        "n_truth": 64,
        "seeds": [0],
        "about": [],
    }
    return Results(settings, {"numpy": "0"}, tuple(cells), complete=True)


TABLE = {
    ("harmonica", 100): [0.2, 0.4],
    ("harmonica", 1000): [0.02, 0.04],
    ("kernelshap", 100): [0.1, 0.3],
    ("kernelshap", 1000): [0.1, 0.2],
    ("lime", 100): [0.4, 0.6],
    ("lime", 1000): [0.3, 0.5],
    ("ig", 1000): [0.001],  # half of the cases, the easy half
}


def test_the_sentence_names_the_best_peer_that_ran_everywhere():
    text = answer.sentence(results(TABLE))
    assert "at 1000 model calls, Harmonica is off in its Shapley values by 3.0%" in text
    assert "the best peer by 15% (Captum KernelShap) and by 30%" in text
    assert "Integrated Gradients" not in text


def test_where_ours_is_not_first_is_said():
    (first, second) = answer.not_first(results(TABLE))
    assert first == ("Shapley values, 100 calls: Captum KernelShap 20%, Harmonica 30%")
    assert second.startswith("What-if, any removal, 100 calls")


def test_ranks_of_complete_methods():
    found = summary.ranks([summary.scores(results(TABLE), "shapley", 1000)])
    assert {m: rank.mean for m, rank in found.items()} == {
        "harmonica": 1,
        "kernelshap": 2,
        "lime": 3,
    }
    tied = {"harmonica": {"a": 0.0, "b": 1.0}, "lime": {"a": 0.0, "b": 2.0}}
    assert {m: r.mean for m, r in summary.ranks([tied]).items()} == {
        "harmonica": 1.25,
        "lime": 1.75,
    }


def test_budgets_are_no_cases_of_their_own():
    few = {"harmonica": {"a": 1.0, "b": 1.0}, "lime": {"a": 2.0, "b": 2.0}}
    many = {"harmonica": {"a": 2.0, "b": 1.0}, "lime": {"a": 1.0, "b": 2.0}}
    found = summary.ranks([few, many])["harmonica"]
    assert (found.mean, found.low, found.high, found.n_cases) == (1.25, 1.0, 1.5, 2)


def test_intervals_are_over_cases():
    values = np.random.default_rng(0).normal(5, 1, size=100)
    found = summary.interval({str(k): v for k, v in enumerate(values)})
    half = 1.96 * values.std() / 10
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.mean == pytest.approx(half, rel=0.15)
    assert found.mean - found.low == pytest.approx(half, rel=0.15)
    assert summary.interval({"one": 2.0}) == summary.Interval(2, 2, 2, 1)


def test_seeds_are_averaged_before_cases():
    cells = [
        Cell("a", "lime", 10, seed, "ok", numbers={"shapley": [value, 0.0]})
        for seed, value in enumerate([0.1, 0.3])
    ]
    found = summary.scores(Results({}, {}, tuple(cells)), "shapley", 10)
    assert found == {"lime": {"a": pytest.approx(0.2)}}


def test_calls_that_an_error_takes():
    def line(**errors):
        return {int(b[1:]): summary.Interval(e, e, e, 1) for b, e in errors.items()}

    # A power of the calls: from 0.4 to 0.1 with ten times the calls.
    text, calls = summary.calls_for(line(b100=0.4, b1000=0.1), 0.2)
    assert (text, calls) == ("316", pytest.approx(10**2.5))
    assert summary.calls_for(line(b100=0.04, b1000=0.01), 0.05)[0] == "≤ 100"
    assert summary.calls_for(line(b100=0.4, b1000=0.1), 0.05) == ("> 1000", np.inf)
    assert summary.calls_for(line(b100=0.4, b1000=0.0), 0.05)[1] <= 1000


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0312, "3.1%"),
        (0.15, "15%"),
        (2.5, "250%"),
        (0, "0%"),
        (0.0004, "0.04%"),
        (1e-9, "<0.01%"),
    ],
)
def test_percentages(value, text):
    assert answer.percent(value) == text


def test_the_page_has_the_answer_first_and_escapes_texts():
    found = results({**TABLE, ("<i>bad</i>", 1000): [0.5, 0.6]})
    page = report.build(found)
    assert page.index(answer.sentence(found)) < page.index("<svg")
    assert "<i>bad" not in page and "&lt;i&gt;bad" in page
    assert "<script" not in page and "http://www.w3.org" in page
    # Ours, two peers; the stand-ins became the page's colours.
    assert "var(--hue0)" in page and "var(--hue2)" in page and "#050505" not in page


def test_no_picture_repeats_an_identifier_of_another():
    page = report.build(results(TABLE))
    import re

    ids = re.findall(r' id="([^"]+)"', page)
    uses = set(re.findall(r"#([0-9a-z]+)", page))
    repeated = {name for name in ids if ids.count(name) > 1}
    assert not repeated & uses
