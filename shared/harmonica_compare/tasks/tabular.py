"""Tables: wine and breast_cancer by default, or any CSV with a label column.

Two models: a small MLP (torch, so that gradient methods run) and trees. A
removed feature takes its mean over the training rows (its commonest value when the
column is not a number); the output is the probability of the predicted class, or the
predicted number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_compare.case import About, Case
from harmonica_compare.row_cases import Rows, row_cases
from harmonica_compare.tasks import TaskError, TaskOptions
from harmonica_compare.tasks.frames import read_frame
from harmonica_core._types import Floats

_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Table:
    """Numbers ready for a model.

    Attributes
    ----------
    data : str
        Its name.
    features : float64 (n_rows, n_features)
        Text columns are codes of their values.
    target : float64 (n_rows,) numbers, or int class numbers
    names : feature names
    n_classes : int
        0 for a regression.
    categorical : bool (n_features,)
    """

    data: str
    features: Floats
    target: np.ndarray
    names: tuple[str, ...]
    n_classes: int
    categorical: np.ndarray


def load(options: TaskOptions) -> list[Case]:
    """Train both models on every table and return the cases of each."""
    if options.data is None:
        tables = [_bundled("wine"), _bundled("breast_cancer")]
    else:
        tables = [_read_csv(options)]
    return [case for table in tables for case in _cases(table, options)]


def _cases(table: Table, options: TaskOptions) -> list[Case]:
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(table.target))[:_MOST_ROWS]
    n_test = max(1, min(len(order) // 5, 1000))
    test, train = order[:n_test], order[n_test:]
    if len(train) < 10:
        raise TaskError(f"{len(order)} usable rows; needed at least 12 to train on")
    rows = table.features[test[: options.n_cases]]
    background = _baseline(table, train)[None]
    cases = []
    for name, maker in (("MLP", _mlp), ("trees", _trees)):
        label = f"{table.data}, {name}"
        model = maker(table, table.features[train], table.target[train], options.seed)
        about = About(
            data=table.data,
            model=_MODELS[name, table.n_classes > 0],
            output="probability of the predicted class"
            if table.n_classes
            else "predicted number",
            removed="replaced by its mean over the training rows (commonest value of "
            "a category)",
        )
        inputs = Rows(rows, background, table.names, about, label)
        cases += row_cases(model, inputs)
    return cases


_MODELS = {
    ("MLP", True): "MLP (torch)",
    ("MLP", False): "MLP (torch)",
    ("trees", True): "random forest (scikit-learn)",
    ("trees", False): "boosted trees (scikit-learn)",
}


def _bundled(name: str) -> Table:
    """Return a table that ships with scikit-learn."""
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")()
    names = tuple(str(name) for name in data.feature_names)
    categorical = np.zeros(len(names), dtype=bool)
    n_classes = len(data.target_names)
    return Table(name, data.data, data.target, names, n_classes, categorical)


def _read_csv(options: TaskOptions) -> Table:
    import pandas as pd

    path = Path(options.data or "")
    if not path.is_file():
        raise TaskError(f"--data {path}: no such file")
    frame = read_frame(path, "CSV", skipinitialspace=True)
    label = options.label
    if label is None or label not in frame.columns:
        found = ", ".join(map(str, frame.columns[:20]))
        raise TaskError(f"--label {label}: no such column; the file has {found}")
    frame = frame.dropna(subset=[label])
    target = frame.pop(label)
    if frame.shape[1] == 0:
        raise TaskError(
            f"--data {path}: no column beside --label {label}; needed at least one "
            "feature"
        )
    text = [not pd.api.types.is_numeric_dtype(frame[c]) for c in frame.columns]
    features = np.column_stack(
        [
            pd.factorize(frame[c], sort=True)[0] if is_text else frame[c].to_numpy()
            for c, is_text in zip(frame.columns, text, strict=True)
        ]
    ).astype(np.float64)
    whole = np.isfinite(features).all(axis=1)
    if not whole.any():
        raise TaskError(
            f"--data {path}: every row has a missing value; fill them in, or remove "
            "the columns that have many"
        )
    numbers = pd.api.types.is_numeric_dtype(target) and target.nunique() > 10
    if numbers:
        found_target, n_classes = target.to_numpy(np.float64), 0
        if not np.isfinite(found_target).all():
            raise TaskError(
                f"--label {label} has infinite values; remove those rows from the file"
            )
    else:
        found_target, classes = pd.factorize(target, sort=True)
        n_classes = len(classes)
    if n_classes == 1 or len(np.unique(found_target[whole])) < 2:
        raise TaskError(
            f"--label {label} has one value only; needed at least two classes"
        )
    names = tuple(map(str, frame.columns))
    values, kept = features[whole], found_target[whole]
    return Table(path.name, values, kept, names, n_classes, np.array(text))


def _baseline(table: Table, train: np.ndarray) -> Floats:
    """Mean of a number, commonest value of a category: ``(n_features,)``."""
    baseline = table.features[train].mean(axis=0)
    for i in np.flatnonzero(table.categorical):
        values, counts = np.unique(table.features[train, i], return_counts=True)
        baseline[i] = values[counts.argmax()]
    return baseline


def _trees(table: Table, features: Floats, target: np.ndarray, seed: int) -> Any:
    """Trees whose exact Shapley values are known: a sum of them is what is explained.

    The probability of boosted trees is no sum over them, that of a forest is.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier

    if table.n_classes:
        return RandomForestClassifier(100, random_state=seed).fit(features, target)
    return HistGradientBoostingRegressor(random_state=seed).fit(features, target)


def _mlp(table: Table, features: Floats, target: np.ndarray, seed: int) -> Any:
    from harmonica_compare.training import Standardised, train_mlp

    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale == 0] = 1
    model = train_mlp((features - centre) / scale, target, table.n_classes, seed)
    return Standardised(model, centre, scale, probabilities=table.n_classes > 0)
