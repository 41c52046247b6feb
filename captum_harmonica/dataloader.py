"""Whole datasets: attributions for each batch of a DataLoader, in flat memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor
from tqdm.auto import tqdm

from captum_harmonica.features import Inputs, as_tuple
from harmonica_core import iterate_parallel


def attribute_dataloader(
    method: Any,
    dataloader: Iterable[Any],
    *,
    unpack: Callable[[Any], Mapping[str, Any]] | None = None,
    n_jobs: int | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Iterator[Inputs]:
    """Yield ``method.attribute(...)`` of each batch, on the CPU, one at a time.

    Nothing is kept: write each result away, or concatenate them where they fit.

    Parameters
    ----------
    method : Harmonica
        Or any attribution with ``attribute``. Give it a ``seed``: then the result does
        not depend on ``n_jobs``.
    dataloader : DataLoader
        Or any iterable of batches.
    unpack : callable, optional
        Arguments of ``attribute`` from a batch, such as
        ``lambda batch: {"inputs": batch[0], "target": batch[1]}``. Default: the batch,
        or the first entry of a list or tuple, is ``inputs``.
    n_jobs : int, optional
        Processes; None is 1, or what ``joblib.parallel_config`` says (also a Dask
        cluster).
    show_progress : bool
        Show a bar of batches.
    **options
        Passed on to every ``attribute``.

    Examples
    --------
    >>> import torch
    >>> from captum_harmonica import Harmonica
    >>> batches = torch.eye(4).split(2)
    >>> method = Harmonica(lambda x: x.sum(1), seed=0)
    >>> torch.cat(list(attribute_dataloader(method, batches))).diag().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    arguments = _first_is_inputs if unpack is None else unpack
    results = iterate_parallel(
        lambda batch: _on_cpu(method.attribute(**{**options, **arguments(batch)})),
        dataloader,
        n_jobs,
    )
    return iter(
        tqdm(
            results,
            total=operator.length_hint(dataloader) or None,
            desc=f"{method.get_name()} batches",
            disable=not show_progress,
        )
    )


def _first_is_inputs(batch: Any) -> dict[str, Any]:
    """Return a tensor, or the first entry of ``(inputs, labels, ...)``, as inputs."""
    found = batch[0] if isinstance(batch, (list, tuple)) else batch
    if not isinstance(found, (Tensor, tuple)):
        raise TypeError(
            f"a batch of type {type(batch).__name__} is not a tensor nor starts with "
            "one; pass unpack=lambda batch: {'inputs': ...}"
        )
    return {"inputs": found}


def _on_cpu(attributions: Inputs) -> Inputs:
    moved = tuple(tensor.detach().cpu() for tensor in as_tuple(attributions))
    return moved if isinstance(attributions, tuple) else moved[0]
