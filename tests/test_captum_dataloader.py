import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from captum_harmonica import Harmonica
from captum_harmonica.dataloader import attribute_dataloader

X = torch.arange(28.0).reshape(7, 4).sin()
Y = torch.arange(7) % 2


def forward(x):
    return torch.stack([x[:, 0] * x[:, 1], x.sum(dim=1)], dim=1)


@pytest.fixture
def method():
    def closure(x):  # workers get it by value
        return torch.stack([x[:, 0] * x[:, 1], x.sum(dim=1)], dim=1)

    return Harmonica(closure, seed=0)


def by_batches(**options):
    loader = DataLoader(TensorDataset(X, Y), batch_size=3)
    return torch.cat(list(attribute_dataloader(dataloader=loader, **options)))


def test_batches_give_the_same_as_all_at_once(method):
    expected = Harmonica(forward, seed=0).attribute(X, target=1)
    assert torch.equal(by_batches(method=method, target=1), expected)


def test_labels_can_be_targets(method):
    def unpack(batch):
        return {"inputs": batch[0], "target": batch[1]}

    expected = Harmonica(forward, seed=0).attribute(X, target=Y)
    assert torch.equal(by_batches(method=method, unpack=unpack), expected)


def test_workers_change_nothing(method):
    one = by_batches(method=method, target=0)
    assert torch.equal(by_batches(method=method, target=0, n_jobs=2), one)


def test_tuples_of_inputs_stay_tuples():
    both = Harmonica(lambda a, b: (a * b).sum(dim=1), seed=0)
    batches = [((X[:2], X[2:4]),), ((X[4:6], X[5:7]),)]
    found = list(attribute_dataloader(both, batches))
    assert [len(one) for one in found] == [2, 2]
    assert torch.equal(found[1][0], both.attribute((X[4:6], X[5:7]))[0])


def test_one_batch_at_a_time(method):
    taken = []

    def batches():
        for rows in X:
            taken.append(1)
            yield rows[None]

    results = attribute_dataloader(method, batches(), target=0)
    next(results)
    assert len(taken) < 7
    results.close()


def test_progress(method, capsys):
    by_batches(method=method, target=0)
    assert capsys.readouterr().err == ""
    by_batches(method=method, target=0, show_progress=True)
    assert "Harmonica batches: 100%" in capsys.readouterr().err


def test_other_batches_need_unpack(method):
    with pytest.raises(TypeError, match="pass unpack"):
        list(attribute_dataloader(method, [{"x": X}]))
