"""attribute after explain costs nothing, and never returns what is out of date."""

import functools

import numpy as np
import torch
from captum_models import Counting, mlp
from pytest import mark, raises

from captum_harmonica import Harmonica
from captum_harmonica.reuse import NotComparable, content

X = torch.tensor([[0.5, -1.0, 2.0, 0.3]])


def explained(**arguments):
    model = Counting(mlp(4))
    method = Harmonica(model, seed=0)
    x = X.clone()
    method.explain(x, **arguments)
    model.rows.clear()
    return model, method, x


def test_attribute_after_explain_costs_no_model_call():
    mask = torch.tensor([[0, 1, 1, 2]])
    arguments = {"baselines": 0.5, "target": 0, "feature_mask": mask, "n_samples": 100}
    model, method, x = explained(**arguments)
    arguments["feature_mask"] = mask.clone()
    got = method.attribute(x, **arguments, perturbations_per_eval=5)
    assert model.rows == []
    fresh = Harmonica(model, seed=0).attribute(x, **arguments)
    assert torch.equal(got, fresh)
    flat = method.attribute(x, **arguments, return_input_shape=False)
    assert flat.shape == (1, 3)


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
    method.attribute(x, **arguments)
    assert model.rows


def test_the_index_can_be_chosen_afterwards():
    model, method, x = explained()
    method.index = "BV"
    assert torch.equal(
        method.attribute(x), Harmonica(model.inner, index="BV").attribute(x)
    )
    assert model.rows == []


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
    thing = object()
    method.explain(X, additional_forward_args=(thing,))
    count = len(calls)
    method.attribute(X, additional_forward_args=(thing,))
    assert len(calls) > count


def test_content():
    same = [torch.ones(2), (1, 2.0, "a"), {"a": [None, True]}, np.ones(2), torch.float]
    for value in same:
        assert content(value) == content(value)
    assert content(torch.ones(2)) != content(torch.ones(2, 1))
    assert content(torch.ones(2)) != content(torch.ones(2).double())
    assert content(1) != content(1.0) != content("1")
    assert content(torch.ones(1, dtype=torch.bfloat16)) is not None
    for value in (object(), np.array([object()]), torch.ones(2).to_sparse()):
        with raises(NotComparable):
            content(value)
