"""The paper's five algorithms by name; `fit_surrogate` describes what they share."""

from __future__ import annotations

from typing import Any

from harmonica_core._types import ValueFunction
from harmonica_core.fit import fit_with
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.settings import Settings

_SETTINGS = set(Settings.__dataclass_fields__) - {"method"}


def _fit(
    method: str, value_function: ValueFunction, n_features: int, options: dict[str, Any]
) -> Any:
    own = {name: options.pop(name) for name in _SETTINGS & options.keys()}
    return fit_with(Settings(method, **own), value_function, n_features, **options)


def harmonica(
    value_function: ValueFunction, n_features: int, **options: Any
) -> Surrogate:
    """Harmonica as published: the LASSO on terms up to ``degree`` from uniform masks.

    Parameters
    ----------
    value_function, n_features
    options
        Those of `fit_surrogate`; ``degree`` is 3 and ``engine`` "lasso" unless given.
        The published strength is ``alpha=0.01``.

    Examples
    --------
    >>> f = lambda masks: 3.0 * masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])
    >>> g = harmonica(f, n_features=20, budget=200)  # of 2**20 masks
    >>> sorted(g.top_terms(4))
    [(0,), (1,), (1, 2), (2,)]
    """
    options = {"engine": "lasso", "ends": False, **options}
    found: Surrogate = _fit("harmonica", value_function, n_features, options)
    return found


def harmonica_local(
    value_function: ValueFunction, n_features: int, **options: Any
) -> Surrogate:
    """Harmonica-local: from masks with 1 to ``radius`` (4) features removed.

    Better inside that neighbourhood, worse outside. Options as in `fit_surrogate`;
    with ``engine="lasso"`` as published.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks.all(axis=1) + masks[:, 0]
    >>> g = harmonica_local(f, n_features=8, degree=1, radius=2, ends=False)
    >>> g.radius, g.n_evaluations  # 8 + 28 masks
    (2, 36)
    """
    found: Surrogate = _fit("local", value_function, n_features, options)
    return found


def harmonica_anchor(
    value_function: ValueFunction, n_features: int, **options: Any
) -> AnchoredSurrogate:
    """Harmonica-anchor: one polynomial for the masks nearest to each of k anchors.

    As in the paper's experiments, T masks and T/k masks with at most 4 features
    removed are evaluated, here within ``budget``: ``T + T/k <= budget``. An anchor
    keeps the polynomial of all masks, or that with a correction of its own where that
    predicts held-out masks better. With ``alpha`` given, the published algorithm: a
    LASSO of the anchor's own masks.

    Parameters
    ----------
    value_function, n_features
    options
        ``anchors`` (3): the input itself and k - 1 uniform masks; all others as in
        `fit_surrogate`.

    Examples
    --------
    >>> import numpy as np
    >>> f = lambda masks: np.maximum(masks.sum(axis=1) - 3, 0)  # a kink
    >>> one = harmonica(f, n_features=6, degree=1)
    >>> published = {"degree": 1, "engine": "lasso", "ends": False}
    >>> two = harmonica_anchor(f, n_features=6, anchors=2, **published)
    >>> f"{one.error.value:.1f} with one, {two.error.value:.1f} with two"
    '0.4 with one, 0.2 with two'
    """
    found: AnchoredSurrogate = _fit("anchor", value_function, n_features, options)
    return found


def harmonica_anchor_constrained(
    value_function: ValueFunction, n_features: int, **options: Any
) -> AnchoredSurrogate:
    """Harmonica-anchor-constrained: all anchors at once, pulled towards their mean.

    Minimises ``L_f + l1 L_r + l2 L_c`` to its optimum (see
    `engine.constrained`), with ``l1 = 2 alpha`` and ``l2 = consistency``.

    Parameters
    ----------
    value_function, n_features
    options
        ``consistency`` (a number >= 0 in the units of the output, or "auto": a fifth
        of its spread): 0 leaves the anchors independent; from some value on all
        polynomials are equal. ``anchors`` (3); all others as in `fit_surrogate`.

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks.sum(axis=1) >= 2)
    >>> for pull in (0.0, 0.15, 100.0):
    ...     g = harmonica_anchor_constrained(
    ...         f, 4, degree=1, consistency=pull, ends=False
    ...     )
    ...     apart = g.distances_to_mean().sum()
    ...     print(f"error {g.error.value:.2f}, apart by {apart:.1f}")
    error 0.00, apart by 1.3
    error 0.08, apart by 0.8
    error 0.28, apart by 0.0
    """
    found: AnchoredSurrogate = _fit("constrained", value_function, n_features, options)
    return found


def low_degree(
    value_function: ValueFunction, n_features: int, **options: Any
) -> Surrogate:
    """Low-degree: coefficients are sample means, ``a_S = mean_t f(x_t) chi_S(x_t)``.

    No regression and no sparsity, so it needs several times Harmonica's samples. f is
    taken around its sample mean, so that a constant added to f changes nothing else;
    ``centred=False`` is the published formula. Options as in `fit_surrogate`.

    Examples
    --------
    >>> f = lambda masks: 3.0 * masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])
    >>> low_degree(f, n_features=4, degree=2).spectrum
    {(): 2.0, (0,): 1.5, (1,): 0.5, (2,): 0.5, (1, 2): 0.5}
    """
    options = {"ends": False, **options}
    found: Surrogate = _fit("low_degree", value_function, n_features, options)
    return found
