"""What a user of Captum gets beyond KernelShap, and the complaints that are fixed."""

import inspect

import numpy as np
import reference
import torch
from captum.attr import FeatureAblation, KernelShap, Lime, ShapleyValueSampling
from captum_models import Counting, game_of, mlp
from pytest import approx, mark, raises

from captum_harmonica import Harmonica

X = torch.tensor([[0.5, -1.0, 2.0, 0.3]])
BATCH = torch.tensor([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 0.9], [0.1, 0.2, 0.3, 1]])


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=1e-4)


def sparse_model(n, seed=0):
    """Main effects and a few products: exactly sparse in the parity basis."""
    rng = np.random.default_rng(seed)
    weight = torch.tensor(rng.normal(size=n), dtype=torch.float64)

    def forward(x):
        x = x.double()
        return x @ weight + 2 * x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3] * x[:, 4]

    return forward


def shapley_of_sparse_model(n, seed=0):
    """For x = 1 against baseline 0: a product of k features gives 1/k to each."""
    phi = np.random.default_rng(seed).normal(size=n)
    phi[:2] += 1.0
    phi[2:5] -= 1 / 3
    return torch.tensor(phi, dtype=torch.float32)[None]


# ------------------------------------------------------------------ swap-in
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


@mark.parametrize("solver, tolerance", [("lasso", 1e-3), ("ridge", 0.2)])
def test_sampled_masks_recover_a_sparse_model(solver, tolerance):
    method = Harmonica(sparse_model(20), seed=0, solver=solver)
    got = method.attribute(torch.ones(1, 20), n_samples=600, perturbations_per_eval=100)
    close(got, shapley_of_sparse_model(20), tolerance)


def test_ridge_takes_neither_strength_nor_terms():
    for settings in ({"alpha": 0.1}, {"terms": [(0,)]}):
        with raises(ValueError, match="neither alpha nor terms"):
            Harmonica(mlp(4), solver="ridge", **settings).attribute(X)
    with raises(ValueError, match="solver='fast'"):
        Harmonica(mlp(4), solver="fast").attribute(X)


def test_banzhaf_values():
    model = mlp(4)
    game = game_of(model, X, torch.zeros(1, 4), torch.arange(4)[None], 4)
    bii = reference.bii(game, 1)
    expected = torch.tensor([[bii[(i,)] for i in range(4)]]).float()
    close(Harmonica(model, index="BV").attribute(X), expected)


def test_unknown_index():
    with raises(ValueError, match="index='nonsense'"):
        Harmonica(mlp(4), index="nonsense").attribute(X)


# ------------------------------------------------------------------ batches
@mark.parametrize("n_features", [5, 14])
def test_a_batch_equals_its_examples_alone(n_features):
    x = torch.randn(5, n_features, generator=torch.Generator().manual_seed(0))
    method = Harmonica(sparse_model(n_features), seed=3)
    together = method.attribute(x, n_samples=200, perturbations_per_eval=50)
    alone = [method.attribute(one[None], n_samples=200) for one in x]
    close(together, torch.cat(alone), tolerance=1e-4)


@mark.parametrize("ppe", [1, 3, 7, 100])
def test_no_forward_has_more_rows_than_asked(ppe):
    for x, first_look in ((X, 0), (BATCH, 1)):
        model = Counting(mlp(4))
        Harmonica(model).attribute(x, perturbations_per_eval=ppe)
        rows = model.rows[first_look:]
        assert max(rows) <= ppe
        assert sum(model.rows) == 16 * len(x)
        assert len(rows) <= -(-16 * len(x) // ppe) + 1


def test_perturbations_per_eval_changes_nothing():
    method = Harmonica(lambda x: (x[:, 0] * x[:, 1]).exp() + x[:, 2:].sum(1), seed=0)
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    results = [
        method.attribute(x, n_samples=300, perturbations_per_eval=ppe)
        for ppe in (1, 2, 64, 5000)
    ]
    for other in results[1:]:
        assert torch.equal(results[0], other)


def test_examples_with_different_features_do_not_disturb_each_other():
    mask = torch.tensor([[0, 0, 1, 1], [0, 1, 2, 3], [5, 5, 5, 5]])
    model = mlp(4)
    together = Harmonica(model).attribute(BATCH, feature_mask=mask)
    for row in range(3):
        alone = Harmonica(model).attribute(
            BATCH[row : row + 1], feature_mask=mask[row : row + 1]
        )
        close(together[row : row + 1], alone)


def test_gaps_in_ids_are_features_without_effect():
    model = Counting(mlp(4))
    mask = torch.tensor([[3, 3, 7, 7]])
    flat = Harmonica(model).attribute(X, feature_mask=mask, return_input_shape=False)
    assert flat.shape == (1, 5)
    assert flat[0, 1:4].tolist() == [0, 0, 0]
    assert sum(model.rows) == 4  # only two features really exist
    dense = Harmonica(model).attribute(
        X, feature_mask=torch.tensor([[0, 0, 1, 1]]), return_input_shape=False
    )
    close(flat[:, [0, 4]], dense)
    (g,) = Harmonica(model).explain(X, feature_mask=mask)
    assert g.n_features == 5
    assert g.feature_names == tuple(f"feature {i}" for i in range(3, 8))
    np.testing.assert_allclose(g(g.evaluated.masks), g.evaluated.values, atol=1e-6)


def test_every_output_from_the_same_forwards():
    model = Counting(mlp(4, n_outputs=3))
    both = Harmonica(model).attribute(BATCH)
    assert both.shape == FeatureAblation(model.inner).attribute(BATCH).shape == (9, 4)
    assert sum(model.rows) == 16 * 3
    for target in range(3):
        one = Harmonica(model).attribute(BATCH, target=target)
        close(both[target::3], one)
    flat = Harmonica(model).attribute(BATCH, return_input_shape=False)
    assert flat.shape == (9, 4)


def test_outputs_of_the_whole_batch():
    def moments(x):
        return torch.stack([x.sum(), (x**2).sum(), x.max()])

    got = Harmonica(moments).attribute(BATCH[:2])
    assert got.shape == FeatureAblation(moments).attribute(BATCH[:2]).shape == (3, 4)
    close(got[0], BATCH[:2].sum(0))


def test_targets_per_example():
    model = mlp(4, n_outputs=3)
    each = torch.cat(
        [
            Harmonica(model).attribute(BATCH[i : i + 1], target=t)
            for i, t in enumerate([2, 0, 1])
        ]
    )
    for target in ([2, 0, 1], torch.tensor([2, 0, 1])):
        for ppe in (1, 2, 100):
            got = Harmonica(model).attribute(
                BATCH, target=target, perturbations_per_eval=ppe
            )
            close(got, each)


def test_targets_of_deeper_outputs():
    def deep(x):
        return torch.stack([x, 2 * x, 3 * x], dim=1)

    for target in ((1, 2), [(1, 2)] * 3):
        got = Harmonica(deep).attribute(BATCH, target=target, perturbations_per_eval=4)
        expected = torch.zeros(3, 4)
        expected[:, 2] = 2 * BATCH[:, 2]
        close(got, expected)


# ------------------------------------------------------------------ inputs
@mark.parametrize(
    "shape", [(6, 6), (1, 6, 6), (1, 1, 6, 6), (2, 1, 6, 6), (2, 3, 6, 6)]
)
def test_masks_broadcast(shape):
    image = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    quadrants = (torch.arange(6)[:, None] // 3) * 2 + torch.arange(6)[None] // 3
    weight = torch.linspace(-1, 1, 108).reshape(3, 6, 6)

    def forward(x):
        return torch.tanh((x * weight).sum(dim=(1, 2, 3)))

    got = Harmonica(forward).attribute(image, feature_mask=quadrants.expand(shape))
    assert got.shape == image.shape
    for row in range(2):
        game = game_of(forward, image[row : row + 1], torch.zeros(1), quadrants, 4)
        phi = torch.tensor(reference.shapley_by_permutations(game)).float()
        close(got[row], phi[quadrants].expand(3, 6, 6))


def test_whole_numbers_stay_whole_numbers():
    embedding = torch.nn.Embedding(10, 4)
    tokens = torch.tensor([[3, 5, 9]])

    def forward(ids):
        assert ids.dtype == torch.int64
        return embedding(ids).sum(dim=(1, 2))

    got = Harmonica(forward).attribute(tokens, baselines=0)
    assert got.dtype == torch.float32
    weight = embedding.weight.detach().sum(1)
    close(got, (weight[tokens] - weight[0]))


def test_a_fractional_baseline_makes_whole_numbers_floats():
    got = Harmonica(lambda x: x.sum(1)).attribute(torch.tensor([[3, 5]]), 0.5)
    close(got, torch.tensor([[2.5, 4.5]]))


@mark.parametrize("dtype", [torch.bool, torch.float64, torch.float16])
def test_dtype_of_inputs_is_kept(dtype):
    x = torch.tensor([[1, 0, 1]]).to(dtype)

    def forward(rows):
        assert rows.dtype == dtype
        return rows.double().sum(1)

    got = Harmonica(forward).attribute(x)
    assert got.dtype == torch.float32
    close(got, torch.tensor([[1.0, 0.0, 1.0]]))


@mark.parametrize(
    "baseline",
    [torch.ones(3, 4), torch.ones(1, 4), torch.ones(4), torch.tensor(1.0), 1, 1.0],
)
def test_baselines_broadcast(baseline):
    got = Harmonica(lambda x: x.sum(1)).attribute(BATCH, baseline)
    close(got, BATCH - 1)


def test_a_baseline_per_example_follows_its_example():
    got = Harmonica(lambda x: (x**2).sum(1)).attribute(
        BATCH, BATCH.flip(0), perturbations_per_eval=5
    )
    close(got, BATCH**2 - BATCH.flip(0) ** 2, tolerance=1e-4)


def test_inputs_and_model_are_left_as_they_were():
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU(inplace=True))
    for training in (True, False):
        model.train(training)
        x = X.clone().requires_grad_()
        before = x.detach().clone()

        def in_place(rows, x=x):
            assert not rows.requires_grad
            out = model(rows)
            rows.zero_()
            return out

        out = Harmonica(in_place).attribute(x, target=0)
        assert model.training == training
        assert x.requires_grad and x.grad is None and torch.equal(x.detach(), before)
        assert not out.requires_grad
        assert all(p.grad is None for p in model.parameters())


def test_additional_arguments_follow_their_example():
    scale = torch.tensor([[1.0], [10.0], [100.0]])

    def forward(x, scale, power, names, weights):
        assert len(scale) == len(x) == len(names)
        assert weights.shape == (4,)
        tens = torch.tensor([float(name) for name in names])
        return ((x * weights) ** power).sum(1) * scale[:, 0] + tens

    for ppe in (1, 2, 50):
        got = Harmonica(forward).attribute(
            BATCH,
            additional_forward_args=(scale, 1, ["1", "2", "3"], torch.ones(4)),
            perturbations_per_eval=ppe,
        )
        close(got, BATCH * scale)


def test_inputs_of_different_lengths():
    """Captum's sparse inputs: a second tensor without one row per example."""
    ids = torch.tensor([2, 7, 5])

    def forward(x, ids):
        return x.sum(1) * 10 + ids.reshape(len(x), -1).sum(1)

    for ppe in (1, 3):
        got = Harmonica(forward).attribute(
            (X, ids), perturbations_per_eval=ppe, target=None
        )
        close(got[0], X * 10)
        close(got[1], torch.full((3,), 14.0))


# ------------------------------------------------------------------ complaints
@mark.parametrize("solver", ["lasso", "ridge"])
@mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_the_output_does_not_matter(scale, solver):
    forward = sparse_model(20)
    plain, scaled = (
        Harmonica(lambda x, k=k: k * forward(x), seed=0, solver=solver).attribute(
            torch.ones(1, 20), n_samples=400, perturbations_per_eval=100
        )
        for k in (1.0, scale)
    )
    assert plain.abs().min() > 0
    close(scaled / scale, plain, tolerance=1e-4)


def test_one_feature():
    got = Harmonica(lambda x: x.sum(1) ** 2).attribute(
        torch.tensor([[1.0, 2.0]]), feature_mask=torch.tensor([[0, 0]])
    )
    close(got, torch.tensor([[9.0, 9.0]]))


def test_a_bare_tensor_as_additional_argument():
    for ppe in (1, 2, 16):
        got = Harmonica(lambda x, w: (x * w).sum(1)).attribute(
            X, additional_forward_args=2 * torch.ones(1, 4), perturbations_per_eval=ppe
        )
        close(got, 2 * X)


@mark.parametrize("ppe", [0, -1, 1.5, "2", True])
def test_impossible_perturbations_per_eval(ppe):
    with raises(ValueError, match="perturbations_per_eval"):
        Harmonica(mlp(4)).attribute(X, perturbations_per_eval=ppe)


@mark.parametrize("n_samples", [0, 1, -5, 2.5, "many", True, None])
def test_impossible_n_samples(n_samples):
    with raises(ValueError, match="n_samples"):
        Harmonica(mlp(4)).attribute(X, n_samples=n_samples)


def test_more_masks_than_memory_holds():
    model = Counting(torch.nn.Linear(40, 1))
    with raises(ValueError, match="n_samples=1000000000 masks of 40 features"):
        Harmonica(model).attribute(torch.ones(2, 40), n_samples=10**9)
    assert model.rows == []


def test_wrong_number_of_masks_or_baselines():
    mask = torch.tensor([[0, 1, 2, 3]])
    with raises(ValueError, match="2 feature masks for 1 input"):
        Harmonica(mlp(4)).attribute(X, feature_mask=(mask, mask))
    with raises(ValueError, match="ids from 0 to 1099511627776"):
        Harmonica(mlp(4)).attribute(X, feature_mask=torch.tensor([[0, 1, 2, 1 << 40]]))
    with raises(ValueError, match="1 feature masks for 2 input"):
        Harmonica(lambda a, b: a.sum(1)).attribute((X, X), feature_mask=mask)
    with raises(ValueError, match="1 baselines for 2 input"):
        Harmonica(lambda a, b: a.sum(1)).attribute((X, X), baselines=0)
    with raises(ValueError, match="does not broadcast"):
        Harmonica(mlp(4)).attribute(X, feature_mask=torch.tensor([[0, 1, 2]]))
    with raises(ValueError, match="baseline has shape"):
        Harmonica(mlp(4)).attribute(X, baselines=torch.zeros(1, 3))


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


def test_outputs_that_can_not_be_explained():
    with raises(TypeError, match=r"model\(x\).logits"):
        Harmonica(lambda x: {"logits": x}).attribute(X)
    with raises(ValueError, match="perturbations_per_eval=1"):
        Harmonica(lambda x: x.sum()).attribute(X, perturbations_per_eval=4)
    with raises(ValueError, match="NaN or infinity"):
        Harmonica(lambda x: x.sum(1) / 0).attribute(X)


def test_inputs_that_can_not_be_explained():
    with raises(ValueError, match="no example"):
        Harmonica(mlp(4)).attribute(torch.zeros(0, 4))
    with raises(ValueError, match="empty"):
        Harmonica(lambda x: x.sum(1)).attribute(torch.zeros(1, 0))
    with raises(ValueError, match="no dimensions"):
        Harmonica(lambda x: x).attribute(torch.tensor(1.0))
    with raises(TypeError, match="ndarray"):
        Harmonica(mlp(4)).attribute(np.zeros((1, 4)))


def test_memory_is_bounded_by_perturbations_per_eval():
    largest = 0

    def forward(x):
        nonlocal largest
        largest = max(largest, x.numel() * x.element_size())
        return x.mean(dim=(1, 2, 3))

    image = torch.rand(1, 3, 64, 64)
    blocks = torch.arange(64)[:, None] // 16 * 4 + torch.arange(64)[None] // 16
    Harmonica(forward, seed=0).attribute(
        image, feature_mask=blocks, n_samples=200, perturbations_per_eval=8
    )
    assert largest == 8 * image.numel() * 4


# ------------------------------------------------------------------ explain
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


def test_attribute_is_the_index_of_the_surrogate():
    method = Harmonica(mlp(14), seed=1)
    x = torch.randn(2, 14, generator=torch.Generator().manual_seed(0))
    found = method.explain(x, n_samples=200)
    flat = method.attribute(x, n_samples=200, return_input_shape=False)
    expected = np.stack([g.shapley_values() for g in found])
    assert flat.numpy() == approx(expected, abs=1e-6)
