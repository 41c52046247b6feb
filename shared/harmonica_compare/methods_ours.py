"""Our own methods: what people get by default, and the published family beside it."""

from __future__ import annotations

from functools import partial
from typing import Any

from harmonica_compare.case import Case, Counted
from harmonica_compare.method import Method
from harmonica_core import family, fit_surrogate

# The published strength, on uniform masks only.
_PUBLISHED: dict[str, Any] = {"alpha": 0.01, "engine": "lasso", "ends": False}


def _given(case: Case, f: Counted, seed: int) -> dict[str, Any]:
    """What every fit is given."""
    settings = {"budget": f.budget, "seed": seed}
    return {"value_function": f, "n_features": case.n_features, **settings}


def harmonica(case: Case, f: Counted, seed: int) -> Any:
    """Fit with the defaults of the plug-ins: the only thing set is the budget."""
    return fit_surrogate(**_given(case, f, seed))


def published(case: Case, f: Counted, seed: int, degree: int) -> Any:
    """Algorithm 1: the LASSO on all terms up to a degree from uniform masks."""
    return family.harmonica(**_given(case, f, seed), degree=degree, **_PUBLISHED)


def local(case: Case, f: Counted, seed: int) -> Any:
    """Algorithm 2, on the ball of radius 4."""
    settings: dict[str, Any] = {"radius": min(4, case.n_features), **_PUBLISHED}
    return family.harmonica_local(**_given(case, f, seed), **settings)


def anchored(case: Case, f: Counted, seed: int, anchors: int) -> Any:
    """Algorithm 3: one polynomial an anchor."""
    settings: dict[str, Any] = {"anchors": anchors, **_PUBLISHED}
    return family.harmonica_anchor(**_given(case, f, seed), **settings)


def constrained(case: Case, f: Counted, seed: int) -> Any:
    """Algorithm 4: five anchors of degree 2, pulled together."""
    settings: dict[str, Any] = {
        "degree": 2,
        "anchors": 5,
        "consistency": 1.0,
        "ends": False,
    }
    return family.harmonica_anchor_constrained(**_given(case, f, seed), **settings)


def low_degree(case: Case, f: Counted, seed: int) -> Any:
    """Algorithm 5: empirical Fourier coefficients up to degree 3."""
    return family.low_degree(**_given(case, f, seed))


_LASSO = "LASSO 0.01, uniform masks, degree"
_FAMILY = (
    (
        "published-2",
        "Published Harmonica 2",
        partial(published, degree=2),
        f"{_LASSO} 2",
    ),
    (
        "published-3",
        "Published Harmonica 3",
        partial(published, degree=3),
        f"{_LASSO} 3",
    ),
    ("local", "Published local (r=4)", local, "LASSO 0.01 on the ball of radius 4"),
    ("anchor-3", "Published anchor 3", partial(anchored, anchors=3), "3 anchors"),
    ("anchor-5", "Published anchor 5", partial(anchored, anchors=5), "5 anchors"),
    ("anchor-9", "Published anchor 9", partial(anchored, anchors=9), "9 anchors"),
    ("constrained", "Published constrained 5", constrained, "5 anchors, lambda2 = 1"),
    ("low-degree", "Published Low-degree 3", low_degree, "degree 3"),
)
OURS = (
    Method("harmonica", "Harmonica", harmonica, "ours", "all defaults", cost=15),
    *(Method(name, label, run, "published", how) for name, label, run, how in _FAMILY),
)
