import numpy as np
import torch
from captum_models import Counting, mlp
from pytest import mark, raises

from captum_harmonica import (
    Harmonica,
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaLocal,
    LowDegree,
    metrics,
)
from harmonica_core.result.anchored import AnchoredSurrogate

VARIANTS = [HarmonicaLocal, HarmonicaAnchor, HarmonicaAnchorConstrained, LowDegree]
X = torch.randn(2, 9, generator=torch.Generator().manual_seed(0))


def polynomial(x):
    return 2 * x[:, 0] * x[:, 1] - x[:, 2] + x[:, 3:].sum(1)


@mark.parametrize("method", VARIANTS)
@mark.parametrize("n_outputs", [1, 2])
def test_shapes_budget_and_rows(method, n_outputs):
    model = Counting(mlp(9, n_outputs))
    got = method(model, degree=1, seed=0).attribute(
        X, n_samples=100, perturbations_per_eval=16
    )
    assert got.shape == (2 * n_outputs, 9)
    assert torch.isfinite(got).all()
    assert max(model.rows[1:]) <= 16
    assert sum(model.rows) <= 100 * 2 + 2


@mark.parametrize("method, extra", [(HarmonicaLocal, {"radius": 5}), (LowDegree, {})])
def test_a_readable_polynomial_is_found_when_every_mask_is_seen(method, extra):
    x = torch.ones(1, 5)
    got = method(polynomial, seed=0, **extra).attribute(x)
    expected = torch.tensor([[1.0, 1.0, -1.0, 1.0, 1.0]])
    torch.testing.assert_close(got, expected, atol=5e-2, rtol=0)


@mark.parametrize("method", VARIANTS)
def test_sums_match_exactly(method):
    model = mlp(9).double()
    got = method(model, degree=2, seed=0).attribute(
        X.double(), n_samples=100, perturbations_per_eval=100
    )
    with torch.no_grad():
        difference = (model(X.double()) - model(torch.zeros(1, 9).double()))[:, 0]
    torch.testing.assert_close(got.sum(1), difference.float(), atol=1e-5, rtol=1e-5)


@mark.parametrize("method", VARIANTS)
def test_the_same_seed_the_same_bits(method):
    first, again, other = (
        method(mlp(9), degree=1, seed=seed).attribute(X[:1], n_samples=80)
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@mark.parametrize("method", VARIANTS)
def test_progress_and_features_that_do_not_exist(method, capsys):
    mask = torch.tensor([[0, 0, 2, 2, 5, 5, 6, 6, 8]])
    found = method(mlp(9), degree=2, seed=0).explain(
        X, feature_mask=mask, n_samples=20, show_progress=True
    )
    assert f"{method.get_name()} attribution: 100%" in capsys.readouterr().err
    for g in found:
        assert g.n_features == 9
        masks = np.ones((2, 9), dtype=bool)
        masks[1, [1, 3, 4, 7]] = False  # removes nothing
        assert g(masks)[0] == g(masks)[1]


def test_local_is_better_near_and_worse_far():
    model = mlp(12, width=8)
    x = torch.randn(1, 12, generator=torch.Generator().manual_seed(3))
    arguments = {"n_samples": 150, "perturbations_per_eval": 150}
    error = {}
    for method in (Harmonica, HarmonicaLocal):
        extra = {"radius": 2} if method is HarmonicaLocal else {}
        found = method(model, degree=2, seed=0, ends=False, **extra).explain(
            x, **arguments
        )
        for radius in (1, None):
            error[method, radius] = float(
                metrics.interpretation_error(model, x, found, radius=radius)
            )
    assert error[HarmonicaLocal, 1] < error[Harmonica, 1]
    assert error[HarmonicaLocal, None] > error[Harmonica, None]


def test_anchors():
    found = HarmonicaAnchor(mlp(9), degree=1, anchors=3, seed=0).explain(X)
    assert all(isinstance(g, AnchoredSurrogate) and g.n_anchors == 3 for g in found)
    near, far = (
        HarmonicaAnchorConstrained(
            mlp(9), degree=1, anchors=3, consistency=pull, seed=0, ends=False
        ).explain(X)
        for pull in (0.0, 100.0)
    )
    assert near[0].distances_to_mean().max() > 1e-3
    assert far[0].distances_to_mean().max() < 1e-3


@mark.parametrize(
    "make",
    [
        lambda f: Harmonica(f, degree=0),
        lambda f: Harmonica(f, alpha=-1),
        lambda f: Harmonica(f, terms=[(0, 99)]),
        lambda f: HarmonicaLocal(f, radius=0),
        lambda f: HarmonicaLocal(f, radius=1.5),
        lambda f: HarmonicaAnchor(f, anchors=0),
        lambda f: HarmonicaAnchorConstrained(f, consistency=-1),
        lambda f: LowDegree(f, alpha=0.1),
        lambda f: Harmonica(f, terms=5),
        lambda f: Harmonica(f, terms="all"),
        lambda f: HarmonicaLocal(f, terms=[(0, 99)]),
        lambda f: HarmonicaAnchor(f, terms=[(0, 99)]),
        lambda f: HarmonicaAnchorConstrained(f, terms="auto"),
    ],
)
@mark.parametrize("n_examples", [1, 2])
def test_wrong_settings_cost_no_model_call(make, n_examples):
    model = Counting(mlp(9))
    with raises(ValueError):
        make(model).attribute(X[:n_examples])
    assert model.rows == []


@mark.parametrize("solver", ["ridge", "lasso", "fast"])
@mark.parametrize("method", VARIANTS)
def test_a_solver_is_refused_where_there_is_none_to_choose(method, solver):
    model = Counting(mlp(9))
    chosen = method(model)
    chosen.solver = solver
    with raises(ValueError, match=f"solver='{solver}', but {method.__name__}"):
        chosen.attribute(X)
    assert model.rows == []


@mark.parametrize("method", [Harmonica, *VARIANTS[:3]])
def test_terms_are_numbered_as_the_features_of_the_batch(method):
    def forward(x):
        return x[:, 0] * x[:, 3] + x[:, 1]

    mask = torch.tensor([[0, 1, 1, 4], [0, 1, 2, 2]])  # feature 3 does not exist
    chosen = method(forward, terms=[(0, 4), (1,)], seed=0, ends=False)
    first, second = chosen.explain(torch.ones(2, 4), feature_mask=mask)
    for one in getattr(first, "surrogates", [first]):
        assert set(one.terms) <= {(), (0, 4), (1,)}
    for one in getattr(second, "surrogates", [second]):
        assert set(one.terms) <= {(), (1,)}


def test_given_terms_are_fitted_instead():
    (g,) = Harmonica(mlp(9), terms=[(0,), (1, 2)]).explain(X[:1])
    assert set(g.terms) <= {(), (0,), (1, 2)} | {(i,) for i in range(9)}
