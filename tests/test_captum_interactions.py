import numpy as np
import reference
import torch
from captum_models import game_of, mlp
from pytest import approx, mark, raises

from captum_harmonica import (
    Harmonica,
    HarmonicaAnchor,
    interactions_with,
    pair_matrix,
    top_pairs,
    what_if,
)

MODEL = mlp(4)
X = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


def test_pairs_are_the_index_by_definition():
    matrix = pair_matrix(Harmonica(MODEL).explain(X, target=0))
    assert matrix.shape == (2, 4, 4)
    for row in range(2):
        game = game_of(
            MODEL, X[row : row + 1], torch.zeros(1), torch.arange(4)[None], 4
        )
        sii = reference.sii(game, 2)
        for i in range(4):
            assert matrix[row, i, i] == 0
            for j in range(i):
                assert float(matrix[row, i, j]) == approx(sii[(j, i)], abs=1e-5)
                assert matrix[row, i, j] == matrix[row, j, i]


def test_values_lie_at_the_positions_of_their_features():
    image = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    blocks = torch.arange(4)[:, None] // 2 * 2 + torch.arange(4)[None] // 2

    def forward(x):
        quarter = x.mean(1)
        return quarter[:, 0, 0] * quarter[:, 3, 3] + quarter.sum(dim=(1, 2))

    found = Harmonica(forward).explain(image, feature_mask=blocks)
    got = interactions_with(found, 0, image, blocks)
    assert got.shape == image.shape
    means = image.mean(1)
    expected = means[:, 0, 0] * means[:, 3, 3]
    assert got[:, 1, 2, 3].numpy() == approx(expected.numpy(), abs=1e-5)
    assert got[:, :, :2].abs().max() < 1e-5
    strongest = top_pairs(found[1], image, blocks, n=1, example=1)[0]
    assert strongest.features == (0, 3)
    assert strongest.names == ("feature 0", "feature 3")
    assert strongest.value == approx(float(expected[1]), abs=1e-5)
    assert strongest.first.shape == (3, 4, 4)
    assert torch.equal(strongest.second[0], blocks == 3)


def test_masks_per_example_and_tuples():
    split = (X[:, :2], X[:, 2:])
    mask = (torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2, 2]]))

    def forward(a, b):
        return a[:, 0] * b.sum(1)

    found = Harmonica(forward).explain(split, feature_mask=mask)
    first, second = interactions_with(found, 2, split, mask)
    expected = (X[:, 0] * X[:, 2:].sum(1)).numpy()
    assert first[:, 0].numpy() == approx(expected, abs=1e-5)
    assert first[:, 1].abs().max() < 1e-6 and second.abs().max() < 1e-6
    pair = top_pairs(found[1], split, mask, n=1, example=1)[0]
    assert pair.features == (1, 2)
    assert pair.first[0].tolist() == [True, False]
    assert pair.second[1].tolist() == [True, True]


def test_anchored_surrogates_and_surrogates_without_pairs():
    anchored = HarmonicaAnchor(MODEL, anchors=2, seed=0).explain(X, target=0)
    assert pair_matrix(anchored).shape == (2, 4, 4)
    assert len(top_pairs(anchored[0], X, n=3)) <= 3
    (single,) = Harmonica(lambda x: x.sum(1), degree=1).explain(X[:1])
    assert top_pairs(single, X[:1]) == []


def test_wrong_questions():
    found = Harmonica(mlp(4, n_outputs=2)).explain(X)
    with raises(ValueError, match="2 outputs"):
        interactions_with(found, 0, X)
    one = [g.output(0) for g in found]
    with raises(ValueError, match="feature=4"):
        interactions_with(one, 4, X)
    with raises(ValueError, match="4 features and the inputs"):
        interactions_with(one, 0, X[:, :3])
    assert interactions_with(one, 3, X).shape == X.shape


@mark.parametrize("read", [top_pairs, what_if])
def test_surrogates_of_other_inputs(read):
    (g, _) = Harmonica(MODEL).explain(X, target=0)
    for example in (2, -3, 1.0, True):
        with raises(ValueError, match=f"example={example}.*batch of 2"):
            read(g, X, example=example)
    mask = torch.tensor([[0, 0, 1, 1]])
    for inputs, feature_mask in ((X[:, :3], None), (X, mask)):
        with raises(ValueError, match="surrogate has 4 features and the inputs"):
            read(g, inputs, feature_mask)
    assert read(g, X, example=1)
    assert read(g, X, example=np.int64(-1))


def test_a_tensor_that_all_examples_share():
    inputs = (X, torch.tensor([[7.25]]))
    found = Harmonica(lambda a, b: a.sum(1) * b[:, 0]).explain(inputs)
    assert "7.25" in what_if(found[1], inputs, example=1).html
    assert top_pairs(found[1], inputs, n=1, example=1)[0].features[1] == 4
