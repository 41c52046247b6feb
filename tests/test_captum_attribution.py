"""What a user of Captum gets in place of KernelShap, and beyond it."""

import inspect

import numpy as np
import reference
import torch
from captum.attr import KernelShap, Lime, ShapleyValueSampling
from captum_models import BATCH, Counting, X, close, game_of, mlp, sparse_model
from pytest import approx, mark, raises

from captum_harmonica import Harmonica, HarmonicaAnchorConstrained, LowDegree
from harmonica_core import fit_surrogate


def shapley_of_sparse_model(n, seed=0):
    """For x = 1 against baseline 0: a product of k features gives 1/k to each."""
    phi = np.random.default_rng(seed).normal(size=n)
    phi[:2] += 1.0
    phi[2:5] -= 1 / 3
    return torch.tensor(phi, dtype=torch.float32)[None]


def test_signature_is_kernel_shap_s():
    def positional(method):
        parameters = list(inspect.signature(method.attribute).parameters.values())
        return [(p.name, p.kind) for p in parameters]

    assert positional(Harmonica) == positional(KernelShap)


def test_types_that_captum_asks_for():
    method = Harmonica(mlp(4))
    for kind in (KernelShap, Lime, ShapleyValueSampling):
        assert isinstance(method, kind)
    assert not method.has_convergence_delta()
    assert method.multiplies_by_inputs == KernelShap(mlp(4)).multiplies_by_inputs
    assert method.get_name() == "Harmonica"


@mark.parametrize("seed", range(3))
def test_values_are_exact_shapley_values_of_any_function(seed):
    model = mlp(6, seed=seed)
    x = torch.linspace(-2, 3, 6)[None]
    game = game_of(model, x, torch.zeros(1, 6), torch.arange(6)[None], 6)
    expected = torch.tensor(reference.shapley_by_permutations(game))[None].float()
    close(Harmonica(model).attribute(x), expected)


def test_a_low_degree_is_a_limit():
    (g,) = Harmonica(mlp(4), degree=2).explain(X)
    assert g.degree <= 2
    (g,) = Harmonica(mlp(4)).explain(X)
    assert g.degree == 4


@mark.parametrize("engine, tolerance", [("lasso", 1e-3), ("bayes", 0.02)])
def test_sampled_masks_recover_a_sparse_model(engine, tolerance):
    method = Harmonica(sparse_model(20), seed=0, engine=engine)
    got = method.attribute(torch.ones(1, 20), n_samples=600, perturbations_per_eval=100)
    close(got, shapley_of_sparse_model(20), tolerance)


def test_a_solver_is_an_engine_now():
    for method in (Harmonica, HarmonicaAnchorConstrained, LowDegree):
        with raises(TypeError, match="solver= is now engine="):
            method(mlp(4), solver="ridge")
        with raises(TypeError, match="near"):
            method(mlp(4), near=0.5)


def test_banzhaf_values():
    model = mlp(4)
    game = game_of(model, X, torch.zeros(1, 4), torch.arange(4)[None], 4)
    bii = reference.bii(game, 1)
    expected = torch.tensor([[bii[(i,)] for i in range(4)]]).float()
    close(Harmonica(model, index="BV").attribute(X), expected)


def test_unknown_index():
    with raises(ValueError, match="index='nonsense'"):
        Harmonica(mlp(4), index="nonsense").attribute(X)


@mark.parametrize("engine", ["lasso", "bayes"])
@mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_the_output_does_not_matter(scale, engine):
    forward = sparse_model(20)
    plain, scaled = (
        Harmonica(lambda x, k=k: k * forward(x), seed=0, engine=engine).attribute(
            torch.ones(1, 20), n_samples=400, perturbations_per_eval=100
        )
        for k in (1.0, scale)
    )
    assert plain.abs().min() > 0
    close(scaled / scale, plain, tolerance=1e-4)


def test_a_seed_and_torch_s_seed():
    model, x = mlp(14), torch.randn(1, 14, generator=torch.Generator().manual_seed(0))

    def run(seed):
        return Harmonica(model, seed=seed).attribute(x, n_samples=100)

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    with torch.random.fork_rng():
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        first = run(None)
        assert torch.equal(torch.random.get_rng_state(), before)
        torch.manual_seed(5)
        torch.rand(3)
        assert torch.equal(run(None), first)
        torch.manual_seed(6)
        assert not torch.equal(run(None), first)


def test_numpy_s_global_state_is_not_used():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    Harmonica(mlp(14)).attribute(torch.ones(1, 14), n_samples=60)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@mark.parametrize("n_samples", [4096, 150])
def test_sums_match_exactly(n_samples):
    n = 12
    model = mlp(n).double()
    x = 4 * torch.randn(2, n, generator=torch.Generator().manual_seed(2)).double()
    base = torch.full((1, n), 0.3).double()
    got = Harmonica(model, seed=0).attribute(
        x, base, n_samples=n_samples, perturbations_per_eval=400
    )
    with torch.no_grad():
        difference = (model(x) - model(base))[:, 0].float()
    torch.testing.assert_close(got.sum(1), difference, atol=2e-6, rtol=1e-5)
    loose = Harmonica(model, degree=1, seed=0, ends=False).attribute(
        x, base, n_samples=150, perturbations_per_eval=400
    )
    assert not torch.allclose(loose.sum(1), difference, atol=1e-4)


def test_surrogates_explain_every_removal():
    model = mlp(4, n_outputs=2)
    found = Harmonica(model).explain(
        BATCH, feature_names=list("abcd"), output_names=["no", "yes"]
    )
    assert len(found) == 3
    kept = np.array([[True, False, True, True]])
    for row, g in enumerate(found):
        assert g.feature_names == ("a", "b", "c", "d")
        assert g.output_names == ("no", "yes")
        with torch.no_grad():
            expected = model(BATCH[row : row + 1] * torch.tensor(kept))
        np.testing.assert_allclose(g(kept), expected.numpy(), atol=1e-5)
        assert g.error.exact


def test_names_of_features():
    f = Harmonica(lambda *x: sum(one.flatten(1).sum(1) for one in x))
    assert f.explain(X)[0].feature_names[1] == "input[1]"
    image = torch.rand(1, 2, 2)
    names = f.explain((image, X))[0].feature_names
    assert names[:3] == ("input0[0, 0]", "input0[0, 1]", "input0[1, 0]")
    assert names[4] == "input1[0]"


@mark.parametrize("n, budget", [(5, "auto"), (14, 200), (24, "auto")])
@mark.parametrize("engine", ["bayes", "lasso"])
def test_the_core_finds_the_same_surrogate_to_the_last_bit(n, budget, engine):
    model = mlp(n)
    x = torch.randn(1, n, generator=torch.Generator().manual_seed(0))

    def value_function(masks):
        with torch.no_grad():
            rows = [model(x * torch.tensor(mask)[None]) for mask in masks]
        return torch.cat(rows)[:, 0].double().numpy()

    expected = fit_surrogate(value_function, n, budget, engine=engine, seed=3)
    (got,) = Harmonica(model, seed=3, engine=engine).explain(x, n_samples=budget)
    masks = np.random.default_rng(1).random((50, n)) < 0.5
    assert np.array_equal(got(masks), expected(masks))
    assert np.array_equal(got.shapley_values(), expected.shapley_values())
    assert got.n_evaluations == expected.n_evaluations


def test_the_default_engine_finds_no_terms_until_they_are_asked_for():
    method = Harmonica(mlp(14), degree=3, seed=0)
    (g,) = method.explain(torch.ones(1, 14), n_samples=100)
    method.attribute(torch.ones(1, 14), n_samples=100)
    method.attribute_std(torch.ones(1, 14), n_samples=100)
    assert g.mean is not None
    assert all("_polynomial" not in vars(one) for one in (g, *method._last.surrogates))


@mark.parametrize("return_input_shape", [True, False])
def test_standard_deviations_of_attributions(return_input_shape):
    model, mask = mlp(14), torch.arange(14)[None] // 2 * 2
    x = torch.randn(3, 14, generator=torch.Generator().manual_seed(0))
    method = Harmonica(model, seed=0)
    shape = {"return_input_shape": return_input_shape}
    got = method.attribute(x, n_samples=60, **shape)
    std = method.attribute_std(x, n_samples=60, **shape)
    expected = [
        g.shapley_values(return_std=True)[1] for g in method.explain(x, n_samples=60)
    ]
    assert std.shape == got.shape and std.dtype == torch.float32
    assert std.numpy() == approx(np.stack(expected), rel=1e-6)
    exact = Harmonica(model).attribute(x, n_samples=2**14, perturbations_per_eval=4096)
    assert (std > 0).all() and ((got - exact).abs() < 5 * std).all()
    none = method.attribute_std(x, feature_mask=mask, **shape)  # all masks are known
    assert none.abs().max() == 0
    assert none.shape == ((3, 14) if return_input_shape else (3, 13))


def test_standard_deviations_that_nobody_states():
    model = Counting(mlp(14))
    x = torch.ones(1, 14)
    for method, said in (
        (Harmonica(model, index="BV"), "index='BV'"),
        (Harmonica(model, engine="lasso"), "engine='lasso'"),
        (Harmonica(model, alpha=0.1), "engine='lasso'"),
        (HarmonicaAnchorConstrained(model), "HarmonicaAnchorConstrained"),
        (LowDegree(model), "LowDegree"),
    ):
        with raises(ValueError, match=said):
            method.attribute_std(x, n_samples=100)
    assert model.rows == []


def test_attribute_is_the_index_of_the_surrogate():
    method = Harmonica(mlp(14), seed=1)
    x = torch.randn(2, 14, generator=torch.Generator().manual_seed(0))
    found = method.explain(x, n_samples=200)
    flat = method.attribute(x, n_samples=200, return_input_shape=False)
    expected = np.stack([g.shapley_values() for g in found])
    assert flat.numpy() == approx(expected, abs=1e-6)
