"""What the user passes: rows, names and keywords, checked."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from harmonica_core import BatchSize, indices
from shap_harmonica.background import Background, one_row_frame

# Arguments of other SHAP explainers that a swapped-in call may carry along.
_FOREIGN = {"algorithm", "keep_index", "keep_index_ordered", "linearize_link"}


def is_one_row(X: Any) -> bool:
    """Whether X is a single row rather than a table."""
    return getattr(X, "ndim", 2) == 1


def check_rows(X: Any, background: Background) -> tuple[Any, np.ndarray]:
    """Return rows for the model's inputs, and the array that plots show.

    Parameters
    ----------
    X : array, DataFrame, Series, sparse matrix, tensor or list of rows
    background : Background
    """
    if isinstance(X, pd.Series):
        X = one_row_frame(X)
    elif hasattr(X, "detach"):
        X = X.detach().cpu().numpy()
    elif scipy.sparse.issparse(X):
        X = X.toarray()
    if not isinstance(X, pd.DataFrame):
        X = np.atleast_2d(np.asarray(X))
    if X.ndim != 2 or X.shape[1] != background.n_columns:
        raise ValueError(
            f"X has shape {X.shape}; needed (n_rows, {background.n_columns}), the "
            "columns of the background"
        )
    if len(X) == 0:
        raise ValueError("X has no rows; needed at least one row to explain")
    _check_columns(X, background)
    return X, X.to_numpy() if isinstance(X, pd.DataFrame) else X


def _check_columns(X: Any, background: Background) -> None:
    """Refuse other columns than the background's: values would change places."""
    named = isinstance(X, pd.DataFrame) and not isinstance(X.columns, pd.RangeIndex)
    if not named or background.names is None or background.groups is not None:
        return
    own, expected = list(X.columns), list(background.names)
    if own == expected:
        return
    if set(own) == set(expected):
        raise ValueError(
            f"X has the background's columns in another order ({own[:5]} ... instead "
            f"of {expected[:5]} ...); pass X[list(background.columns)]"
        )
    new = [name for name in own if name not in expected][:5]
    gone = [name for name in expected if name not in own][:5]
    raise ValueError(
        f"X has columns {new} that the background does not have, and lacks {gone}; "
        "needed the background's columns: rename them, or pass X.to_numpy()"
    )


def table_names(
    given: Any, rows: Any, background: Background, n_features: int
) -> list[Any]:
    """Feature names: those given, the rows' columns, the background's, or numbers."""
    candidates = [given, getattr(rows, "columns", None), background.names]
    if background.groups is not None:
        candidates = [given, background.names]
    for names in candidates:
        if names is not None and len(names):
            return list(names)
    return [f"Feature {i}" for i in range(n_features)]


def masked_arguments(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """One tuple of model arguments per input."""
    columns = [list(_iterable(arg)) for arg in args]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"the model's arguments hold {lengths} inputs; needed as many of each: "
            "pass one entry per explained input for every argument"
        )
    rows = list(zip(*columns, strict=True))
    if not rows:
        raise ValueError("there is nothing to explain; needed at least one input")
    return rows


def _iterable(arg: Any) -> Any:
    if isinstance(arg, str):
        return [arg]
    if isinstance(arg, pd.DataFrame):
        return arg.to_numpy()
    if isinstance(arg, dict) and "text" in arg:
        return arg["text"]
    return arg


def check_batch_size(batch_size: Any) -> Any:
    """Return the model rows per call, or "auto"."""
    if isinstance(batch_size, str) and batch_size == "auto":
        return batch_size
    return BatchSize(batch_size).size


def refuse_unknown(kwargs: dict[str, Any]) -> None:
    """Let other explainers' arguments pass, and name what nobody knows."""
    if "solver" in kwargs:
        raise TypeError(
            f'solver={kwargs["solver"]!r} is gone; needed engine="auto", "bayes" or '
            '"lasso"'
        )
    unknown = sorted(set(kwargs) - _FOREIGN)
    if unknown:
        raise TypeError(f"unknown arguments {unknown}; see help(HarmonicaExplainer)")


def warn_about_l1(kwargs: dict[str, Any], stacklevel: int = 3) -> None:
    """Take KernelExplainer's ``l1_reg`` out, with a warning."""
    if kwargs.pop("l1_reg", None) is not None:
        warnings.warn(
            "l1_reg is ignored, as it is not needed: the default fit has no L1 penalty;"
            " set alpha= on the explainer for a sparse one",
            stacklevel=stacklevel,
        )


def check_pair_index(index: object) -> str:
    """Return the spelling of an index that has pairs."""
    pairs = [name for name in indices.INDICES if name not in ("SV", "BV")]
    try:
        name = indices.check_index(index)
    except ValueError:
        name = ""
    if name not in pairs:
        raise ValueError(f"interaction_index={index!r}; needed one of {pairs}")
    return name


def check_interactions(interactions: object) -> bool:
    """Return whether the cube of pairs is wanted."""
    if interactions in (False, True, 2):
        return bool(interactions)
    raise ValueError(
        f"interactions={interactions!r}; needed False, True or 2 (pairs); larger "
        "ones are in explainer.surrogates[i].interactions(order)"
    )
