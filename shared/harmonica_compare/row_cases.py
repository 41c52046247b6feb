"""Cases of a model on rows of numbers: what a removed feature becomes, which output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from harmonica_compare.case import About, Case, told
from harmonica_compare.tasks import TaskError
from harmonica_core._types import Floats, Masks
from harmonica_core.evaluate import check_values

# Models whose explained output is a sum over trees, which TreeSHAP takes apart exactly.
_SUMS_OF_TREES = {
    *("RandomForestClassifier", "RandomForestRegressor", "DecisionTreeClassifier"),
    *("ExtraTreesClassifier", "ExtraTreesRegressor", "DecisionTreeRegressor"),
    *("GradientBoostingRegressor", "HistGradientBoostingRegressor"),
}


@dataclass(frozen=True)
class Rows:
    """Rows to explain and what stands in for removed features.

    Attributes
    ----------
    rows : float64 (n_rows, n_features)
    background : float64 (n_background, n_features)
        The model is averaged over these for what a mask removes.
    names : tuple of str, optional
    about : About
    label : str
        Begins the name of every case.
    """

    rows: Floats
    background: Floats
    names: tuple[str, ...] | None = None
    about: About = About()
    label: str = ""

    def name(self, k: int) -> str:
        """Return the name of the case of row k."""
        return f"{self.label}, row {k}" if self.label else f"row {k}"


def row_cases(model: Any, rows: Rows) -> list[Case]:
    """Return one case a row, for a torch module, a scikit-learn model or a function.

    The output is the class predicted for the row, or the only one there is. Every case
    is tried on a few masks.
    """
    maker = _torch_case if is_torch(model) else _array_case
    cases = [maker(model, rows, k) for k in range(len(rows.rows))]
    for case in cases:
        try_case(case)
    return cases


def is_torch(model: Any) -> bool:
    """Whether it is a torch module; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def single(function: Callable[[Masks], Any]) -> Callable[[Masks], Floats]:
    """Check a value function's results; a single column becomes a row."""

    def value(masks: Masks) -> Floats:
        values = check_values(function(masks), masks)
        if values.ndim == 2 and values.shape[1] != 1:
            raise ValueError(
                f"the value function returned shape {values.shape}; needed one value "
                f"a mask, ({len(masks)},): choose one output"
            )
        return values.reshape(len(masks))

    return value


def try_case(case: Case) -> None:
    """Evaluate four masks: all kept, all removed, and every other feature."""
    masks = np.zeros((4, case.n_features), dtype=bool)
    masks[0], masks[2, ::2], masks[3, 1::2] = True, True, True
    try:
        case.value_function(masks)
    except Exception as error:  # someone else's model
        names = case.feature_names
        columns = "" if names is None else f" with columns {', '.join(names[:20])}"
        raise TaskError(
            f"--model fails on {case.name}{columns}: {told(error)}"
        ) from error


def _array_case(model: Any, rows: Rows, k: int) -> Case:
    output = getattr(model, "predict_proba", None) or getattr(model, "predict", model)
    row, background = rows.rows[k], rows.background
    top = _top(output, row)

    def value(masks: Masks) -> Any:
        inputs = np.where(masks[:, None], row, background[None])
        found = np.asarray(output(inputs.reshape(-1, len(row))), dtype=np.float64)
        if top is not None:
            found = found[:, top]
        return found.reshape(len(masks), len(background), -1).mean(axis=1)

    case = Case(
        rows.name(k),
        len(row),
        single(value),
        no_gradient=f"{type(model).__name__} has no gradients",
        feature_names=rows.names,
        about=rows.about,
        probability=hasattr(model, "predict_proba"),
    )
    if type(model).__name__ not in _SUMS_OF_TREES:
        return case
    return replace(
        case, tree_shapley=partial(_tree_shapley, model, row, background, top)
    )


def _top(output: Callable[[Any], Any], row: Floats) -> int | None:
    """Return which of several outputs is largest for a row; None for a single one."""
    try:
        found = np.asarray(output(row[None]), dtype=np.float64)
    except Exception:  # the trial on masks says what is wrong
        return None
    several = found.ndim == 2 and found.shape[1] > 1
    return int(found[0].argmax()) if several else None


def _tree_shapley(
    model: Any, row: Floats, background: Floats, top: int | None
) -> Floats:
    """Return exact Shapley values from SHAP's TreeExplainer."""
    import shap

    how = "interventional"
    explainer = shap.TreeExplainer(model, background, feature_perturbation=how)
    found = np.asarray(explainer.shap_values(row[None], check_additivity=False))[0]
    return np.asarray(found if found.ndim == 1 else found[:, top or 0], dtype=float)


def _torch_case(model: Any, rows: Rows, k: int) -> Case:
    """Output of the unit that is largest for the row, on fractional masks too."""
    import torch

    model.eval()
    first = next(model.parameters(), torch.empty(0))
    kept = torch.from_numpy(rows.rows[k]).to(first)
    gone = torch.from_numpy(rows.background).to(first)
    with torch.no_grad():
        out = model(kept[None])
    top = int(out[0].argmax()) if out.ndim == 2 and out.shape[1] > 1 else None

    def relaxed(share: torch.Tensor) -> torch.Tensor:
        part = share.to(first)[:, None]
        inputs = (gone + part * (kept - gone)).reshape(-1, len(kept))
        found = model(inputs)
        found = found.reshape(-1) if top is None else found[:, top]
        return found.reshape(len(share), len(gone)).mean(dim=1).cpu()

    def value(masks: Masks) -> Any:
        with torch.no_grad():
            return relaxed(torch.from_numpy(masks)).double().numpy()

    return Case(
        rows.name(k),
        len(kept),
        single(value),
        relaxed,
        feature_names=rows.names,
        about=rows.about,
        probability=bool(getattr(model, "gives_probabilities", False)),
    )


def numbers(rows: Any, what: str) -> Floats:
    """Return rows as float64 ``(m, n)``; a single row becomes one of many."""
    try:
        found = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what}: needed rows of numbers ({error})") from error
    if found.ndim != 2 or not found.size:
        raise ValueError(f"{what} has shape {found.shape}; needed (n_rows, n_features)")
    return found


def column_names(rows: Any) -> tuple[str, ...] | None:
    """Return the names of a table's columns; None for a plain array."""
    columns: Sequence[Any] | None = getattr(rows, "columns", None)
    return None if columns is None else tuple(map(str, columns))
