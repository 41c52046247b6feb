"""attribute after explain costs nothing, and never returns what is out of date."""

import functools
import threading

import numpy as np
import torch
from captum_models import Counting, X, mlp
from pytest import mark
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from torch.nn.functional import softmax

from captum_harmonica import Harmonica
from captum_harmonica.reuse import picture


def explained(**arguments):
    model = Counting(mlp(4))
    method = Harmonica(model, seed=0)
    x = X.clone()
    method.explain(x, **arguments)
    return model, method, x


def test_attribute_after_explain_costs_no_model_call():
    mask = torch.tensor([[0, 1, 1, 2]])
    arguments = {"baselines": 0.5, "target": 0, "feature_mask": mask, "n_samples": 100}
    model, method, x = explained(**arguments)
    forwards = len(model.rows)
    arguments["feature_mask"] = mask.clone()
    got = method.attribute(x, **arguments, perturbations_per_eval=5)
    std = method.attribute_std(x, **arguments)
    assert len(model.rows) == forwards
    assert std.shape == got.shape
    fresh = Harmonica(model, seed=0).attribute(x, **arguments)
    assert torch.equal(got, fresh)
    forwards = len(model.rows)
    flat = method.attribute(x, **arguments, return_input_shape=False)
    assert flat.shape == (1, 3)
    assert len(model.rows) > forwards  # other calls came in between


def test_each_of_the_three_reuses_what_another_one_found():
    model = Counting(mlp(4))
    method = Harmonica(model, seed=0)
    for ask in (method.attribute, method.attribute_std, method.explain):
        ask(X)
    assert sum(model.rows) == 16
    method.attribute(X)  # its own question again: perhaps the model is random
    assert sum(model.rows) == 32


@mark.parametrize(
    "change",
    [
        lambda model, method, x: x.add_(1),
        lambda model, method, x: model.inner[0].weight.data.mul_(2),
        lambda model, method, x: model.inner[0].bias.data.fill_(3),
        lambda model, method, x: model.train(),
        lambda model, method, x: setattr(method, "seed", 1),
        lambda model, method, x: setattr(method, "degree", 2),
        lambda model, method, x: setattr(method, "forward_func", mlp(4, seed=9)),
    ],
)
def test_what_was_changed_is_evaluated_anew(change):
    model, method, x = explained()
    model.eval()
    method.explain(x)
    change(model, method, x)
    got = method.attribute(x)
    fresh = Harmonica(method.forward_func, method.degree, seed=method.seed).attribute(x)
    assert torch.equal(got, fresh)


@mark.parametrize(
    "arguments",
    [
        {"baselines": 1},
        {"target": 0},
        {"n_samples": 8},
        {"baselines": torch.ones(1, 4)},
    ],
)
def test_other_arguments_are_other_questions(arguments):
    model, method, x = explained()
    forwards = len(model.rows)
    method.attribute(x, **arguments)
    assert len(model.rows) > forwards


def test_the_index_can_be_chosen_afterwards():
    model, method, x = explained()
    forwards = len(model.rows)
    method.index = "BV"
    assert torch.equal(
        method.attribute(x), Harmonica(model.inner, index="BV").attribute(x)
    )
    assert len(model.rows) == forwards


def test_weights_behind_functions_are_seen():
    inner = mlp(4)

    class Wrapper:
        def __init__(self, model):
            self.model = model

        def __call__(self, x):
            return self.model(x)

    for forward in (
        lambda x: inner(x),
        functools.partial(lambda model, x: model(x), inner),
        Wrapper(inner),
        inner.forward,
    ):
        method = Harmonica(forward)
        before = method.explain(X)[0].shapley_values()
        with torch.no_grad():
            inner[2].weight *= 2
        after = method.attribute(X)
        with torch.no_grad():
            inner[2].weight /= 2
        np.testing.assert_allclose(after[0] / 2, before, rtol=1e-4)


def test_weights_in_containers_and_hooks_are_seen():
    inner, held = mlp(4), {"scale": torch.ones(())}

    def double():
        held["scale"] *= 2

    def hook():
        inner[2].register_forward_hook(lambda module, inputs, output: 3 * output)

    for forward, change in (
        (lambda x: [inner][0](x) * held["scale"], double),
        (inner, hook),
    ):
        method = Harmonica(forward)
        before = method.explain(X)[0].shapley_values()
        change()
        assert not np.allclose(method.attribute(X)[0], before)


def test_weights_made_in_inference_mode():
    with torch.inference_mode():
        model = torch.nn.Linear(4, 1)
    method = Harmonica(model)
    (surrogate, *_) = method.explain(X)
    np.testing.assert_allclose(
        method.attribute(X)[0], surrogate.shapley_values(), rtol=1e-5
    )


def test_arguments_that_can_not_be_compared_are_evaluated_anew():
    calls = []

    def forward(x, thing):
        calls.append(len(x))
        return x.sum(1)

    method = Harmonica(forward)
    thing = threading.Lock()
    method.explain(X, additional_forward_args=(thing,))
    count = len(calls)
    method.attribute(X, additional_forward_args=(thing,))
    assert len(calls) > count


def test_content():
    def of(value):
        return picture(value, torch.tanh)

    same = [torch.ones(2), (1, 2.0, "a"), {"a": [None, True]}, np.ones(2), torch.float]
    for value in same:
        assert of(value) == of(value)
    assert of(torch.ones(2)) == of(torch.ones(2))
    assert of(torch.ones(2)) != of(torch.ones(2, 1))
    assert of(torch.ones(2)) != of(torch.ones(2).double())
    assert of(1) != of(1.0) != of("1")
    assert of([1, 2]) != of((1, 2))
    assert of(torch.ones(1, dtype=torch.bfloat16)) is not None
    assert of(torch.ones(2).to_sparse()) is None
    assert of(threading.Lock()) is None


def stale_after(forward, change):
    """Whether attribute answers with what explain found before a change."""
    method = Harmonica(forward, seed=0)
    before = torch.as_tensor(method.explain(X)[0].shapley_values()).float().reshape(-1)
    change()
    after = method.attribute(X).reshape(-1)
    fresh = Harmonica(forward, seed=0).attribute(X).reshape(-1)
    assert not torch.allclose(before, fresh)  # the change matters
    return not torch.equal(after, fresh)


def test_arrays_in_closures_are_seen():
    weights = np.arange(4.0)

    def forward(x):
        return x @ torch.from_numpy(weights).float()

    assert not stale_after(forward, lambda: weights.__setitem__(0, 9.0))


def test_plain_tensors_of_modules_are_seen():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self._w = torch.ones(4)

        def forward(self, x):
            return x @ self._w

    net = Net()
    assert not stale_after(net, lambda: net._w.__setitem__(0, 9.0))


class Fitted(torch.nn.Module):
    """A scikit-learn model as a module."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return torch.as_tensor(self.model.predict(x.numpy())).float()


@mark.parametrize("kind", [LinearRegression, DecisionTreeRegressor])
@mark.parametrize("wrap", [Fitted, lambda model: Fitted(model).forward])
def test_refitted_models_are_seen(kind, wrap):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    model = kind().fit(rows, rows[:, 0])
    forward = wrap(model)
    assert not stale_after(forward, lambda: model.fit(rows, 5 * rows[:, 2]))
    assert not stale_after(
        lambda x: forward(x), lambda: model.fit(rows, 5 * rows[:, 1])
    )


def test_settings_of_modules_and_functions_are_seen():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())
    held = {"scale": 1.0, "finish": torch.tanh}

    def forward(x):
        return held["finish"](net(x).sum(1)) * held["scale"]

    assert not stale_after(forward, lambda: net.__setitem__(1, torch.nn.ReLU()))
    assert not stale_after(forward, lambda: held.update(scale=3.0))
    assert not stale_after(forward, lambda: held.update(finish=torch.exp))


def test_what_forward_reads_from_around_its_class_is_seen():
    weights = torch.ones(4)

    class Net(torch.nn.Module):
        def forward(self, x):
            return x @ weights

    class Function:
        def __call__(self, x):
            return x @ weights

    for forward in (Net(), Function()):
        assert not stale_after(forward, lambda: weights.mul_(2))


def test_objects_of_plain_values_cost_no_model_call():
    class Config:
        def __init__(self):
            self.name, self.sizes = "small", {"width": [4, 8]}

    class Net(Counting):
        def __init__(self):
            super().__init__(mlp(4))
            self.config, self.scale = Config(), np.float64(2.0)

    net = Net()
    method = Harmonica(lambda x: softmax(net(x), 1) + np.exp(0), seed=0)
    method.explain(X)
    forwards = len(net.rows)
    method.attribute(X)
    assert len(net.rows) == forwards


def test_whole_numbers_slots_and_inner_functions_are_seen():
    class Slots:
        __slots__ = ("weight",)

        def __call__(self, x):
            return x.sum(1) * self.weight

    held = Slots()
    held.weight = 1
    assert not stale_after(held, lambda: setattr(held, "weight", 2))
    assert not stale_after(_with_inner_function, _change_what_it_reads)


AROUND = [1.0]


def _with_inner_function(x):
    return torch.stack([row.sum() * AROUND[0] for row in x])


def _change_what_it_reads():
    AROUND[0] += 1


class Raises:
    """An object that can not even be asked for its state."""

    def __reduce_ex__(self, protocol):
        raise RuntimeError("do not look")

    def __call__(self, x):
        return x.sum(1)


@mark.parametrize(
    "forward, comparable",
    [
        (torch.nn.LSTM(4, 2), True),
        (torch.nn.functional.softmax, True),
        (torch.Tensor.sum, True),
        (torch.no_grad()(lambda x: np.where(x > 0, np.exp(x), 0)), True),
        (torch.compile(torch.nn.Linear(4, 1), backend="eager"), True),
        (torch.nn.DataParallel(torch.nn.Linear(4, 1)), True),
        (DecisionTreeRegressor().fit(np.eye(3), np.arange(3)).predict, True),
        (Raises(), False),
        (threading.Lock().acquire, False),
        (functools.lru_cache(lambda x: x), False),
    ],
)
def test_which_models_can_be_compared(forward, comparable):
    found = picture(X, forward)
    assert found == picture(X, forward)
    assert (found is not None) == comparable


@mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_models_are_seen():
    net = torch.jit.script(torch.nn.Linear(4, 1))
    assert picture(X, net) is not None
    assert not stale_after(net, lambda: net.weight.data.mul_(2))
