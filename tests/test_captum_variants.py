import numpy as np
import reference
import torch
from captum_models import Counting, close, game_of, mlp
from pytest import mark, raises

from captum_harmonica import (
    Harmonica,
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaLocal,
    LowDegree,
    metrics,
)
from harmonica_core import AnchoredSurrogate

VARIANTS = [HarmonicaLocal, HarmonicaAnchor, HarmonicaAnchorConstrained, LowDegree]
X = torch.randn(2, 9, generator=torch.Generator().manual_seed(0))


@mark.parametrize("method", VARIANTS)
@mark.parametrize("n_outputs", [1, 2])
def test_shapes_budget_and_rows(method, n_outputs):
    model = Counting(mlp(9, n_outputs))
    found = method(model, degree=1, seed=0).explain(
        X, n_samples=100, perturbations_per_eval=16
    )
    for g in found:
        values = g.shapley_values()
        assert values.shape == ((9,) if n_outputs == 1 else (9, n_outputs))
        assert np.isfinite(values).all()
    assert max(model.rows[1:]) <= 16
    assert sum(model.rows) <= 100 * 2 + 2


@mark.parametrize("method", [Harmonica, *VARIANTS])
@mark.parametrize("n_outputs", [1, 2])
def test_every_value_is_exact_where_all_masks_are_known(method, n_outputs):
    model, x = mlp(7, n_outputs), 3 * X[:, :7]
    settings = {"radius": 7} if method is HarmonicaLocal else {}
    mask = torch.tensor([[0, 1, 2, 4, 4, 5, 6]])  # feature 3 does not exist
    for feature_mask in (None, mask):
        ids = torch.arange(7)[None] if feature_mask is None else mask
        for target in range(n_outputs):
            got = method(model, seed=0, **settings).attribute(
                x, target=target, feature_mask=feature_mask
            )
            for row in range(2):
                game = game_of(
                    lambda one, k=target: model(one)[:, k],
                    x[row : row + 1],
                    torch.zeros(1),
                    ids,
                    7,
                )
                phi = torch.tensor(reference.shapley_by_permutations(game)).float()
                close(got[row], phi[ids[0]])


@mark.parametrize("method", [HarmonicaAnchor, HarmonicaAnchorConstrained])
def test_what_is_exact_stays_so_in_a_file(method, tmp_path):
    mask = torch.tensor([[0, 1, 2, 4, 4, 5, 6, 6, 6]])
    for n_outputs in (1, 2):
        (g, _) = method(mlp(9, n_outputs), seed=0).explain(X, feature_mask=mask)
        g.save(tmp_path / "g.npz")
        again = AnchoredSurrogate.load(tmp_path / "g.npz")
        for one in (again, again.with_names("abcdefg")):
            assert np.array_equal(one.shapley_values(), g.shapley_values())
        if n_outputs == 2:
            values = g.output(1).shapley_values()
            assert np.array_equal(values, g.shapley_values()[:, 1])


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
        lambda f: Harmonica(f, engine="fast"),
        lambda f: Harmonica(f, engine="bayes", alpha=0.1),
        lambda f: Harmonica(f, engine="bayes", terms=[(0,)]),
        lambda f: LowDegree(f, engine="bayes"),
        lambda f: LowDegree(f, terms=[(0,)]),
    ],
)
@mark.parametrize("n_examples", [1, 2])
def test_wrong_settings_cost_no_model_call(make, n_examples):
    model = Counting(mlp(9))
    with raises(ValueError):
        make(model).attribute(X[:n_examples])
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
