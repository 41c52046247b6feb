"""Batches, targets and several outputs: what shares a forward and what must not."""

import numpy as np
import torch
from captum.attr import KernelShap
from captum_models import BATCH, Counting, X, close, mlp, sparse_model
from pytest import mark, raises

from captum_harmonica import Harmonica, HarmonicaAnchor


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
    found = Harmonica(model).explain(BATCH)
    assert sum(model.rows) == 16 * 3
    for target in range(3):
        one = Harmonica(model).attribute(BATCH, target=target)
        values = np.stack([g.shapley_values()[:, target] for g in found])
        close(torch.tensor(values).float(), one)


def test_outputs_of_the_whole_batch():
    def moments(x):
        return torch.stack([x.sum(), (x**2).sum(), x.max()])

    (found,) = Harmonica(moments).explain(BATCH[:2])
    close(torch.tensor(found.shapley_values()[:, 0]).float(), BATCH[:2].sum(0))


@mark.parametrize("n_examples", [1, 2])
@mark.parametrize("ppe", [1, 3])
def test_several_outputs_need_a_target_as_with_kernel_shap(n_examples, ppe):
    model = Counting(mlp(4, n_outputs=3))
    arguments = {"inputs": BATCH[:n_examples], "perturbations_per_eval": ppe}
    with raises(AssertionError):
        KernelShap(model).attribute(**arguments)
    model.rows.clear()
    for method in (Harmonica, HarmonicaAnchor):
        with raises(AssertionError, match=r"pass target=.*explain\(\)"):
            method(model).attribute(**arguments)
    assert len(model.rows) == 2  # one forward each
    method = Harmonica(model)
    method.explain(**arguments)
    with raises(AssertionError, match="target=None"):  # also of what is known already
        method.attribute(**arguments)


@mark.parametrize("target", [7, (7,), [0, 7], torch.tensor([0, 7]), torch.tensor(7)])
def test_a_target_that_is_not_there(target):
    model = Counting(mlp(4, n_outputs=3))
    with raises(ValueError, match=r"target=.*7.*shape \(2, 3\).*below 3"):
        Harmonica(model).attribute(BATCH[:2], target=target)
    assert len(model.rows) == 1


def test_errors_of_the_model_itself_go_through():
    embedding = torch.nn.Embedding(3, 2)
    with raises(IndexError):
        Harmonica(lambda ids: embedding(ids).sum(1)).attribute(
            torch.tensor([[7, 1]]), target=0
        )


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
