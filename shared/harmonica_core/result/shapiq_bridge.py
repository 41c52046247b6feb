"""Interactions of a surrogate as shapiq's own object, for its plots and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harmonica_core.result.indices import check_index, index_base, interactions

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate


def to_shapiq(surrogate: Surrogate, order: int = 2, index: str = "k-SII") -> Any:
    """Return ``shapiq.InteractionValues`` of a surrogate of one output.

    Parameters
    ----------
    surrogate : Surrogate
        For several outputs pass ``surrogate.output(k)``.
    order : int
    index : str
        One of `harmonica_core.result.indices.INDICES`, which are shapiq's names.

    Returns
    -------
    shapiq.InteractionValues
        Sizes 0 to ``order``, zeros left out; the empty interaction is the baseline.
    """
    try:
        from shapiq import InteractionValues
    except ImportError as error:
        raise ImportError(
            'to_shapiq() needs shapiq: pip install "harmonica-xai[compare]"'
        ) from error
    if surrogate.n_outputs > 1:
        raise ValueError(
            f"the surrogate has {surrogate.n_outputs} outputs; needed one: use "
            "surrogate.output(k).to_shapiq()"
        )
    found = interactions(surrogate, order, check_index(index))
    base = float(index_base(surrogate, found.index, found.order)[0])
    single = surrogate.coef.ndim == 1
    values = {term: v if single else float(v[0]) for term, v in found.items()}
    return InteractionValues(
        values={(): base, **values},
        index=found.index,
        max_order=found.order,
        n_players=surrogate.n_features,
        min_order=0,
        estimated=surrogate.error is None or not surrogate.error.exact,
        estimation_budget=surrogate.n_evaluations,
        baseline_value=base,
    )
