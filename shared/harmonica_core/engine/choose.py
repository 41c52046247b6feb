"""The one fork: which engine turns evaluated masks into surrogates."""

from __future__ import annotations

from typing import Any

import numpy as np

from harmonica_core._types import Floats, Masks, Values
from harmonica_core.basis.kernel import Prior
from harmonica_core.design.draw import Design
from harmonica_core.design.masks import check_masks, rows_of_all
from harmonica_core.engine.anchored_fit import fit_anchored
from harmonica_core.engine.bayes import fit_bayes
from harmonica_core.engine.constrained_fit import fit_constrained
from harmonica_core.engine.explicit import ReadableSet, fit_values
from harmonica_core.engine.low_degree import fit_low_degree
from harmonica_core.engine.prior import learn_prior as learn_from
from harmonica_core.engine.sample import Sample
from harmonica_core.evaluate import check_values
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.result.surrogates_of import posterior_surrogates, surrogates_of
from harmonica_core.settings import Settings
from harmonica_core.threads import one_thread


def fit_functions(
    design: Design, values: Any, settings: Settings, prior: Prior | None = None
) -> list[Any]:
    """Fit many functions known on the same masks: one surrogate each.

    Parameters
    ----------
    design : Design
    values : float64 (n_masks, n_functions) or (n_masks, n_functions, n_outputs)
    settings : Settings
    prior : Prior, optional
        Learnt before; otherwise one is learnt for all functions together.

    Returns
    -------
    list of Surrogate or AnchoredSurrogate

    Examples
    --------
    >>> from harmonica_core import draw_design
    >>> design = draw_design(Settings(), n_features=4)
    >>> (g,) = fit_functions(design, design.masks[:, :1] * 2.0, Settings())
    >>> g.shapley_values().tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    masks = check_masks(design.masks, design.n_features)
    values = _check_functions(values, masks)
    with one_thread():
        if settings.method in ("anchor", "constrained"):
            return [_fit_anchors(design, one, settings) for one in _functions(values)]
        if settings.method == "low_degree":
            # From all masks every coefficient is known, not only those of degree 3.
            whole = settings.degree is None and rows_of_all(masks) is not None
            return [
                fit_low_degree(
                    masks,
                    one,
                    masks.shape[1] if whole else settings.published_degree,
                    centred=settings.centred,
                    ends=settings.ends,
                )
                for one in _functions(values)
            ]
        return _fit_one_polynomial(masks, values, settings, prior)


def learn_prior(design: Design, values: Any, settings: Settings) -> Prior | None:
    """Return the prior that `fit_functions` would learn; None where it needs none.

    Learnt once from a sample of rows and passed on as ``prior``, it makes the result
    of every further row depend on that row alone.

    Parameters
    ----------
    design, values, settings
        As in `fit_functions`.

    Examples
    --------
    >>> from harmonica_core import draw_design
    >>> settings = Settings()
    >>> design = draw_design(settings, n_features=12, budget=200)
    >>> rows = np.stack([design.masks @ np.arange(12) ** 2, design.masks[:, 3]], axis=1)
    >>> prior = learn_prior(design, rows**2, settings)
    >>> prior.n_features
    12
    """
    masks = check_masks(design.masks, design.n_features)
    values = _check_functions(values, masks)
    plain = settings.method in ("harmonica", "local") and settings.solver == "bayes"
    if not plain or rows_of_all(masks) is not None:
        return None
    degree = None if settings.degree is None else min(settings.degree, masks.shape[1])
    with one_thread():
        return learn_from(Sample.of(masks, values.reshape(len(values), -1)), degree)


def _fit_one_polynomial(
    masks: Masks, values: Values, settings: Settings, prior: Prior | None
) -> list[Surrogate]:
    n = masks.shape[1]
    radius = settings.radius_of(n)
    flat = values.reshape(len(values), -1)
    whole = rows_of_all(masks) is not None and radius in (None, n)
    if settings.solver == "bayes" and not whole:
        degree = None if settings.degree is None else min(settings.degree, n)
        fit = fit_bayes(masks, flat, degree, prior, settings.ends)
        return posterior_surrogates(fit, masks, values, radius, settings.degree)
    grows = settings.solver == "bayes" and settings.degree is None
    readable = ReadableSet.of(
        settings.terms, n, n if grows else settings.published_degree
    )
    # All masks say what f is, in every neighbourhood.
    near = None if settings.solver == "bayes" else radius
    found = fit_values(masks, flat, readable, settings.strength, near)
    return surrogates_of(
        found,
        masks,
        values,
        max_degree=readable.max_degree,
        radius=radius,
        ends=settings.ends,
    )


def _fit_anchors(design: Design, values: Values, settings: Settings) -> Any:
    fit = fit_constrained if settings.method == "constrained" else fit_anchored
    return fit(design, values, settings)


def _functions(values: Values) -> list[Values]:
    return [values[:, k] for k in range(values.shape[1])]


def _check_functions(values: object, masks: Masks) -> Floats:
    """Return values ``(m, n_functions[, n_outputs])`` or say what is wrong."""
    array = np.asarray(values)
    if array.ndim not in (2, 3) or len(array) != len(masks) or not array.size:
        raise ValueError(
            f"values have shape {array.shape} for {len(masks)} masks; needed "
            f"({len(masks)}, n_functions) or ({len(masks)}, n_functions, n_outputs)"
        )
    return check_values(array.reshape(len(array), -1), masks).reshape(array.shape)
