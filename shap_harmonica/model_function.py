"""The model as SHAP's users pass it: any callable in, float64 rows out."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from harmonica_core import BatchSize
from shap_harmonica._types import Floats

Model = Callable[..., Any]

_of_maskers: weakref.WeakKeyDictionary[Any, BatchSize] = weakref.WeakKeyDictionary()

# scikit-learn's two warnings about a model that was fitted on the other kind of input.
_NAMES_MISMATCH = r"X (has|does not have valid) feature names"


def as_function(model: Any) -> Model:
    """Return a function of arrays; a torch module is given tensors of its own dtype."""
    if is_torch_module(model):
        return TorchFunction(model)
    if not callable(model):
        methods = [m for m in ("predict_proba", "predict") if hasattr(model, m)]
        hint = f": pass model.{methods[0]}" if methods else ""
        raise TypeError(
            f"model is a {type(model).__name__}, which can not be called; needed a "
            f"function of a batch of inputs{hint}"
        )
    return model


def is_torch_module(model: object) -> bool:
    """Whether the model is a torch.nn.Module, without importing torch."""
    return any(
        base.__module__.startswith("torch.nn") and base.__name__ == "Module"
        for base in type(model).__mro__
    )


class TorchFunction:
    """A torch module as a function of arrays: no gradients, its own dtype and device.

    The module is used in the mode it is in; call ``module.eval()`` first when it has
    dropout or batch normalisation.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, *inputs: Any) -> Any:
        """Return the module's output for arrays (or DataFrames) as an array."""
        import torch

        parameter = next(iter(self.module.parameters()), None)
        like = torch.zeros(()) if parameter is None else parameter
        with torch.no_grad():
            tensors = [
                torch.as_tensor(np.asarray(x), dtype=like.dtype, device=like.device)
                for x in inputs
            ]
            return self.module(*tensors)


def as_rows(output: Any, n_rows: int) -> Floats:
    """Return a model's output as float64 ``(n_rows,)`` or ``(n_rows, n_outputs)``."""
    if hasattr(output, "detach"):  # a torch tensor, possibly on another device
        output = output.detach().cpu()
    array = np.asarray(output)
    if array.ndim not in (1, 2) or len(array) != n_rows:
        raise ValueError(
            f"the model returned shape {array.shape} for {n_rows} rows; needed "
            f"({n_rows},) or ({n_rows}, n_outputs): check the model function"
        )
    try:
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError):  # an object array of something else than numbers
        pass
    raise TypeError(
        f"the model returned dtype {array.dtype}; needed numbers: explain "
        "predict_proba or a score instead of labels"
    )


def call_strictly(model: Model, data: Any) -> Any:
    """Call the model; scikit-learn's complaint about feature names is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=_NAMES_MISMATCH)
        return model(data)


def new_call_size() -> BatchSize:
    """Return the model rows per call: any number, until memory runs out."""
    return BatchSize(sys.maxsize)


def call_size_of(masker: Any) -> BatchSize:
    """Return what is known of a masker's inputs: all of them share one size."""
    try:
        return _of_maskers.setdefault(masker, new_call_size())
    except TypeError:  # neither hashes nor weak references: known to one input only
        return new_call_size()


def class_names(model: Any) -> list[str] | None:
    """Return the classes of a scikit-learn model whose ``predict_proba`` is given."""
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") not in ("predict_proba", "predict_log_proba"):
        return None
    classes = np.asarray(getattr(owner, "classes_", None))
    return [str(name) for name in classes] if classes.ndim == 1 else None
