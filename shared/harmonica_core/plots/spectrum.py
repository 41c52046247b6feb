"""The largest coefficients of g, and where the model's own lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Term
from harmonica_core.plots import style
from harmonica_core.whatif_data import one_output

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate


def spectrum(
    surrogate: Surrogate, n_terms: int = 15, *, output: int = 0, ax: Any = None
) -> Any:
    """Bars of the largest coefficients, with the model's own where they are known.

    The black marks are `model_coefficients`: where the evaluations put the
    coefficient of the model itself, with two standard errors either way. They are left
    out when the surrogate has no stated error or no evaluations, or was fitted on a
    neighbourhood (there the parities are not orthogonal).

    Parameters
    ----------
    surrogate : Surrogate
    n_terms : int
    output : int
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
    >>> g = fit_surrogate(f, 3, feature_names=["age", "income", "city"])
    >>> [label.get_text() for label in spectrum(g, n_terms=3).get_yticklabels()]
    ['age', 'income', 'age × income']
    """
    one: Any = one_output(surrogate, output)
    terms = one.top_terms(n_terms)
    coef = np.array([one.spectrum[term] for term in terms])
    ax = style.axes(ax, 6.8, 1.1 + 0.3 * max(len(terms), 1))
    rows = np.arange(len(terms))
    ax.barh(rows, coef, height=0.68, color=[style.soft_colour_of(c) for c in coef])
    known = model_coefficients(one, terms)
    if known is not None:
        ax.errorbar(
            known[0],
            rows,
            xerr=2 * known[1],
            fmt="o",
            color=style.INK,
            markersize=3.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            elinewidth=1.3,
            capsize=3,
            label="model (± 2 standard errors)",
        )
        ax.legend(loc="lower right", frameon=False, fontsize=9, borderpad=0)
    ax.axvline(0, color=style.MUTED, linewidth=0.8)
    ax.set_yticks(
        rows, [style.shorten(one.term_name(t), 44) for t in terms], parse_math=False
    )
    ax.invert_yaxis()
    ax.set_xlabel("coefficient of g (kept = +1, removed = −1)")
    style.open_frame(ax)
    ax.spines["left"].set_visible(False)
    ax.xaxis.grid(True, color=style.LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def model_coefficients(
    surrogate: Surrogate, terms: list[Term]
) -> tuple[Floats, Floats] | None:
    """Estimates ``(n_terms,)`` of the model's own coefficients, and standard errors.

    ``fhat_S = ghat_S + E[(f - g) chi_S]``: the mean runs over the m evaluated masks,
    so shrinkage is undone. Its standard error is at most ``I_2 / sqrt(m)``, with the
    stated (held-out) ``I_2``, because ``chi_S^2 = 1``; it is 0 when all masks were
    evaluated. None when it can not be told.
    """
    known, error = surrogate.evaluated, surrogate.error
    if known is None or error is None or surrogate.radius is not None:
        return None
    residual = np.ravel(known.values) - surrogate(known.masks)
    parities = basis.design(known.masks, basis.table_of(terms))
    coef = np.array([surrogate.spectrum[term] for term in terms])
    spread = 0.0 if error.exact else float(error) / np.sqrt(len(known))
    return coef + residual @ parities / len(known), np.full(len(terms), spread)
