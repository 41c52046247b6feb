"""Inputs, baselines, masks and arguments: which are taken and which are refused."""

import numpy as np
import reference
import torch
from captum_models import BATCH, Counting, X, close, game_of, mlp
from pytest import mark, raises, warns

from captum_harmonica import Harmonica


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


def test_a_bare_tensor_as_additional_argument():
    for ppe in (1, 2, 16):
        got = Harmonica(lambda x, w: (x * w).sum(1)).attribute(
            X, additional_forward_args=2 * torch.ones(1, 4), perturbations_per_eval=ppe
        )
        close(got, 2 * X)


def test_one_feature():
    got = Harmonica(lambda x: x.sum(1) ** 2).attribute(
        torch.tensor([[1.0, 2.0]]), feature_mask=torch.tensor([[0, 0]])
    )
    close(got, torch.tensor([[9.0, 9.0]]))


@mark.parametrize("ppe", [0, -1, 1.5, "2", True])
def test_impossible_perturbations_per_eval(ppe):
    with raises(ValueError, match="perturbations_per_eval"):
        Harmonica(mlp(4)).attribute(X, perturbations_per_eval=ppe)


@mark.parametrize("n_samples", [0, 1, -5, 2.5, "many", True, None])
def test_impossible_n_samples(n_samples):
    with raises(ValueError, match="n_samples"):
        Harmonica(mlp(4)).attribute(X, n_samples=n_samples)


def test_too_few_samples_to_tell_features_apart():
    with warns(UserWarning, match=r"n_samples=3 .* 10 features .* at least 12, .*1024"):
        Harmonica(mlp(10)).attribute(torch.ones(1, 10), n_samples=3)
    Harmonica(mlp(10)).attribute(torch.ones(1, 10), n_samples=12)
    Harmonica(mlp(2)).attribute(torch.ones(1, 2), n_samples=4)  # all there are


def test_a_feature_for_each_pixel_is_announced_before_the_first_forward():
    image = torch.rand(1, 1, 32, 33)

    def refuse(x):
        raise RuntimeError("called")

    said = r"1056 features takes 3136 model evaluations .*feature_mask=superpixels.*"
    with raises(RuntimeError, match="called"), warns(UserWarning, match=said):
        Harmonica(refuse).attribute(image)
    with raises(RuntimeError):  # no warning: somebody has chosen
        Harmonica(refuse).attribute(image, n_samples=1100)
    blocks = torch.arange(32)[:, None] // 8 * 5 + torch.arange(33)[None] // 8
    with raises(RuntimeError):
        Harmonica(refuse).attribute(image, feature_mask=blocks)


def test_warnings_name_the_line_that_called():
    with warns(UserWarning) as caught:
        Harmonica(mlp(10)).attribute(torch.ones(1, 10), n_samples=3)
        Harmonica(mlp(10)).explain(torch.ones(1, 10), n_samples=3)
        Harmonica(mlp(10)).attribute_std(torch.ones(1, 10), n_samples=3)
    assert [one.filename for one in caught] == [__file__] * 3


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
