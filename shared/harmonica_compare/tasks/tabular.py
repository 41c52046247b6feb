"""Tables: breast_cancer by default, or any CSV with a label column.

Two models: a small MLP (torch, so that gradient methods run) and boosted trees. A
removed feature takes its mean over the training rows (its commonest value when the
column is not a number); the output is the probability of the predicted class, or the
predicted number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_compare.case import Case
from harmonica_compare.tasks import TaskError, TaskOptions
from harmonica_compare.tasks.frames import read_frame
from harmonica_core._types import Floats, Masks

Output = Callable[[Floats], Floats]
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Table:
    """Numbers ready for a model.

    Attributes
    ----------
    features : float64 (n_rows, n_features)
        Text columns are codes of their values.
    target : float64 (n_rows,) numbers, or int class numbers
    names : feature names
    n_classes : int
        0 for a regression.
    categorical : bool (n_features,)
    """

    features: Floats
    target: np.ndarray
    names: tuple[str, ...]
    n_classes: int
    categorical: np.ndarray


def load(options: TaskOptions) -> list[Case]:
    """Train both models and return the cases of each."""
    table = _breast_cancer() if options.data is None else _read_csv(options)
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(table.target))[:_MOST_ROWS]
    n_test = max(1, min(len(order) // 5, 1000))
    test, train = order[:n_test], order[n_test:]
    if len(train) < 10:
        raise TaskError(f"{len(order)} usable rows; needed at least 12 to train on")
    baseline = _baseline(table, train)
    rows = table.features[test[: options.n_cases]]
    cases = []
    for maker in (_mlp_cases, _boosted_cases):
        cases += maker(table, train, baseline, rows, options.seed)
    return cases


def _breast_cancer() -> Table:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = tuple(str(name) for name in data.feature_names)
    categorical = np.zeros(len(names), dtype=bool)
    return Table(data.data, data.target, names, 2, categorical)


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
    return Table(features[whole], found_target[whole], names, n_classes, np.array(text))


def _baseline(table: Table, train: np.ndarray) -> Floats:
    """Mean of a number, commonest value of a category: ``(n_features,)``."""
    baseline = table.features[train].mean(axis=0)
    for i in np.flatnonzero(table.categorical):
        values, counts = np.unique(table.features[train, i], return_counts=True)
        baseline[i] = values[counts.argmax()]
    return baseline


def _boosted_cases(
    table: Table, train: np.ndarray, baseline: Floats, rows: Floats, seed: int
) -> list[Case]:
    from sklearn import ensemble

    kind = "Classifier" if table.n_classes else "Regressor"
    maker = getattr(ensemble, f"HistGradientBoosting{kind}")
    model = maker(random_state=seed).fit(table.features[train], table.target[train])

    def masked(output: Output, row: Floats, masks: Masks) -> Floats:
        return output(np.where(masks, row, baseline))

    cases = []
    for k, row in enumerate(rows):
        cases.append(
            Case(
                name=f"boosted trees, row {k}",
                n_features=len(row),
                value_function=partial(masked, _output_of(model, row), row),
                no_gradient="trees have no gradients",
                feature_names=table.names,
            )
        )
    return cases


def _output_of(model: Any, row: Floats) -> Output:
    """Probability of the class predicted for ``row``, or the predicted number."""
    if not hasattr(model, "predict_proba"):
        return lambda x: np.asarray(model.predict(x))
    k = int(model.predict_proba(row[None])[0].argmax())
    return lambda x: np.asarray(model.predict_proba(x)[:, k])


def _mlp_cases(
    table: Table, train: np.ndarray, baseline: Floats, rows: Floats, seed: int
) -> list[Case]:
    import torch

    from harmonica_compare.training import train_mlp

    centre = table.features[train].mean(axis=0)
    scale = table.features[train].std(axis=0)
    scale[scale == 0] = 1
    model = train_mlp(
        (table.features[train] - centre) / scale,
        table.target[train],
        table.n_classes,
        seed,
    )

    def output(x: torch.Tensor, k: int) -> torch.Tensor:
        out = model(x)
        return out[:, 0] if table.n_classes == 0 else out.softmax(-1)[:, k]

    cases = []
    for number, row in enumerate(rows):
        kept = torch.tensor((row - centre) / scale, dtype=torch.float32)
        gone = torch.tensor((baseline - centre) / scale, dtype=torch.float32)
        k = 0 if table.n_classes == 0 else int(model(kept[None]).argmax())

        def relaxed(
            share: torch.Tensor,
            kept: torch.Tensor = kept,
            gone: torch.Tensor = gone,
            k: int = k,
        ) -> torch.Tensor:
            return output(gone + share * (kept - gone), k)

        def value(masks: Masks, relaxed: Any = relaxed) -> Floats:
            with torch.no_grad():
                shares = torch.from_numpy(masks.astype(np.float32))
                return np.asarray(relaxed(shares).double().numpy())

        cases.append(
            Case(
                name=f"MLP, row {number}",
                n_features=len(row),
                value_function=value,
                relaxed=relaxed,
                feature_names=table.names,
            )
        )
    return cases
