"""`compare` in a notebook or a script: your model, your rows, every method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from harmonica_compare import answer
from harmonica_compare.case import About, Case
from harmonica_compare.methods import METHODS, ON_REQUEST
from harmonica_compare.results import Cell, Results
from harmonica_compare.row_cases import Rows, column_names, numbers, row_cases
from harmonica_compare.runner import (
    Plan,
    check_radii,
    describe,
    registered_metrics,
    run_case,
    versions,
)
from harmonica_compare.tasks import TaskOptions
from harmonica_core import registry
from harmonica_core._types import Floats

# Left out as well: what takes seconds a row, where somebody waits for the cell.
_PATIENT = {"proxyspex", "svarmiq", "lassocv-3", "oddshap", "proxyshap"}
_RADII = (1, 2, 4, 8, 16, 32, None)


@dataclass(frozen=True)
class Comparison:
    """A finished comparison: shows itself in Jupyter.

    Attributes
    ----------
    results : Results
    """

    results: Results

    def __repr__(self) -> str:
        return answer.terminal(self.results)

    def _repr_html_(self) -> str:
        from harmonica_compare import report

        return report.fragment(self.results)

    def to_frame(self) -> Any:
        """Return all numbers as a pandas DataFrame, one row a cell and number."""
        import pandas

        return pandas.DataFrame(list(answer.long_rows(self.results)))

    def save(self, folder: str | Path) -> None:
        """Write results.json, tables.csv and report.html into a folder."""
        from harmonica_compare import report

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        self.results.save(out / "results.json")
        answer.write_csv(self.results, out / "tables.csv")
        (out / "report.html").write_text(report.build(self.results), encoding="utf-8")


def compare(
    model: Any,
    masker_or_baselines: Any,
    rows: Any,
    *,
    methods: Iterable[str] | None = None,
    budgets: Sequence[int] = (100, 500),
    seeds: Sequence[int] = (0,),
    truth: int = 32768,
    evaluations: int = 4096,
    progress: bool = True,
) -> Comparison:
    """Compare explanation methods on rows of your model, at equal model calls.

    Parameters
    ----------
    model : scikit-learn model, torch module, or function float (m, n) -> (m,) or (m, k)
        Of several outputs the one that is largest for a row is explained.
    masker_or_baselines : SHAP masker, or numbers (n,) or (n_background, n)
        What stands for removed features; the model is averaged over several rows.
    rows : (n_rows, n) numbers or DataFrame
        Inputs to explain.
    methods : iterable of str, optional
        Names as in ``harmonica compare --methods``; by default the quick ones and
        whatever is registered in `harmonica_core.registry`.
    budgets : sequence of int
        Model calls of every method; the last is the main one.
    seeds : sequence of int
    truth, evaluations : int
        Model calls a row for the true Shapley values, and masks to measure what-ifs on.
    progress : bool

    Returns
    -------
    Comparison

    Examples
    --------
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> found = compare(f, [0, 0, 0], [[1, 2, 3]], methods=["harmonica", "kernelshap"],
    ...                 budgets=[20], progress=False)
    >>> frame = found.to_frame()
    >>> errors = frame[frame.number == "shapley"].set_index("method")["value"]
    >>> float(errors["harmonica"]) < 1e-9
    True
    """
    cases = _cases(model, masker_or_baselines, rows)
    plan = _plan(methods, budgets, seeds, truth, evaluations)
    check_radii(plan, cases)
    n_cells = len(cases) * len(plan.keys(""))
    cells: list[Cell] = []
    with tqdm(total=n_cells, desc="Comparing", disable=not progress) as bar:
        for case in cases:
            for cell in run_case(plan, case, set()):
                cells.append(cell)
                bar.update()
    settings = {
        "task": "notebook",
        "methods": list(plan.methods),
        "budgets": list(plan.budgets),
        "radii": ["inf" if r is None else str(r) for r in plan.radii],
        "n_evaluations": evaluations,
        "n_truth": truth,
        "seeds": list(plan.seeds),
        "about": describe(plan, cases),
    }
    return Comparison(Results(settings, versions(), tuple(cells), complete=True))


def _plan(
    methods: Iterable[str] | None,
    budgets: Sequence[int],
    seeds: Sequence[int],
    truth: int,
    evaluations: int,
) -> Plan:
    known = [*METHODS, *registry.methods]
    chosen = tuple(m for m in known if m not in ON_REQUEST | _PATIENT)
    if methods is not None:
        chosen = tuple(dict.fromkeys(methods))
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise ValueError(
            f"methods={unknown or list(chosen)}: unknown; needed some of "
            f"{', '.join(known)}"
        )
    if not len(budgets) or min(budgets) < 10 or not len(seeds):
        raise ValueError(
            f"budgets={list(budgets)}, seeds={list(seeds)}; needed budgets of at least "
            "10 model calls, and a seed"
        )
    return Plan(
        task="notebook",
        options=TaskOptions(),
        methods=chosen,
        budgets=tuple(sorted({int(budget) for budget in budgets})),
        radii=_RADII,
        n_evaluations=evaluations,
        n_truth=truth,
        seeds=tuple(seeds),
        other_methods={m: registry.methods[m] for m in chosen if m not in METHODS},
        other_metrics=registered_metrics(),
    )


def _cases(model: Any, masker: Any, rows: Any) -> list[Case]:
    inputs, names = numbers(rows, "rows"), column_names(rows)
    data = getattr(masker, "data", None)
    kind = type(model).__name__
    if callable(masker) and (data is None or np.ndim(data) != 2):
        raise TypeError(
            f"masker_or_baselines is {type(masker).__name__}; needed rows of numbers, "
            "or a SHAP masker that holds some (Independent, Partition)"
        )
    is_memory = isinstance(masker, np.ndarray)
    given = masker if data is None or is_memory else data
    background = numbers(given, "masker_or_baselines")
    if background.shape[1] != inputs.shape[1]:
        raise ValueError(
            f"masker_or_baselines has {background.shape[1]} columns and rows "
            f"{inputs.shape[1]}; needed the same features"
        )
    removed = _removed(background)
    about = About("your rows", kind, "the output largest for the row", removed)
    return row_cases(model, Rows(inputs, background, names, about))


def _removed(background: Floats) -> str:
    if len(background) == 1:
        return "replaced by the baseline"
    return f"averaged over {len(background)} background rows"
