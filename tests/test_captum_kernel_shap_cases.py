"""Every situation of Captum's own KernelShap suite, with Harmonica in its place.

The models are Captum's test models; expected numbers are their Shapley values.
"""

import torch
from captum.testing.helpers.basic_models import (
    BasicLinearModel,
    BasicModel_MultiLayer,
    BasicModel_MultiLayer_MultiInput,
)
from pytest import mark, raises

from captum_harmonica import Harmonica

PPE = mark.parametrize("ppe", [1, 2, 3])
ONE = torch.tensor([[20.0, 50.0, 30.0]], requires_grad=True)
TWO = torch.tensor([[2.0, 10.0, 3.0], [20.0, 50.0, 30.0]], requires_grad=True)


def tensors(*rows):
    return tuple(torch.tensor(row) for row in rows)


def check(model, inputs, expected, coefs=None, tolerance=1e-2, **arguments):
    method = Harmonica(model)
    got = method.attribute(inputs, **arguments)
    assert isinstance(got, tuple) == isinstance(inputs, tuple)
    pairs = (
        zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    )
    for one, wanted in pairs:
        wanted = torch.tensor(wanted, dtype=torch.float32)
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, wanted, atol=tolerance, rtol=1e-5)
    if coefs is not None:
        flat = method.attribute(inputs, return_input_shape=False, **arguments)
        torch.testing.assert_close(flat, torch.tensor(coefs), atol=tolerance, rtol=1e-5)


def test_a_linear_region_between_input_and_baseline():
    check(
        BasicModel_MultiLayer(),
        ONE,
        [[40.0, 120.0, 80.0]],
        coefs=[[40.0, 120.0, 80.0]],
        baselines=torch.tensor([[10.0, 20.0, 10.0]], requires_grad=True),
        target=0,
        n_samples=500,
    )


@PPE
def test_one_example(ppe):
    check(
        BasicModel_MultiLayer(),
        ONE,
        [[76.6667, 196.6667, 116.6667]],
        target=0,
        perturbations_per_eval=ppe,
        n_samples=500,
    )


@PPE
def test_grouped_features(ppe):
    check(
        BasicModel_MultiLayer(),
        ONE,
        [[275.0, 275.0, 115.0]],
        coefs=[[275.0, 115.0]],
        feature_mask=torch.tensor([[0, 0, 1]]),
        target=0,
        perturbations_per_eval=ppe,
    )


@PPE
def test_a_number_as_baseline(ppe):
    check(
        BasicModel_MultiLayer(),
        ONE,
        [[248.0, 248.0, 104.0]],
        feature_mask=torch.tensor([[0, 0, 1]]),
        baselines=4,
        target=0,
        perturbations_per_eval=ppe,
    )


@PPE
def test_a_batch(ppe):
    check(
        BasicModel_MultiLayer(),
        TWO,
        [[7.0, 32.5, 10.5], [76.6667, 196.6667, 116.6667]],
        target=0,
        perturbations_per_eval=ppe,
        n_samples=20000,
    )


@PPE
def test_a_batch_with_a_mask_per_example(ppe):
    check(
        BasicModel_MultiLayer(),
        TWO,
        [[39.5, 39.5, 10.5], [275.0, 275.0, 115.0]],
        coefs=[[39.5, 10.5], [115.0, 275.0]],
        feature_mask=torch.tensor([[0, 0, 1], [1, 1, 0]]),
        target=0,
        perturbations_per_eval=ppe,
        n_samples=100,
    )


@PPE
def test_progress_reaches_the_end(ppe, capsys):
    for inputs in (ONE, TWO):
        Harmonica(BasicModel_MultiLayer()).attribute(
            inputs, target=0, perturbations_per_eval=ppe, show_progress=True
        )
        assert "Harmonica attribution: 100%" in capsys.readouterr().err


def test_no_bar_unless_asked(capsys):
    Harmonica(BasicModel_MultiLayer()).attribute(ONE, target=0)
    assert capsys.readouterr().err == ""


def test_several_inputs():
    check(
        BasicModel_MultiLayer_MultiInput(),
        tensors([[23.0, 0.0, 0.0]], [[20.0, 0.0, 50.0]], [[0.0, 100.0, 10.0]]),
        ([[90, 0, 0]], [[78, 0, 198]], [[0, 398, 38]]),
        target=0,
        additional_forward_args=(1,),
        n_samples=2000,
    )


@PPE
def test_ids_shared_across_inputs(ppe):
    arguments = {
        "feature_mask": tensors([[0, 1, 0]], [[0, 1, 2]], [[0, 0, 0]]),
        "additional_forward_args": (1,),
        "target": 0,
        "perturbations_per_eval": ppe,
    }
    inputs = tensors([[20.0, 50.0, 30.0]], [[0.0, 100.0, 0.0]], [[2.0, 10.0, 3.0]])
    check(
        BasicModel_MultiLayer_MultiInput(),
        inputs,
        ([[255.0, 595.0, 255.0]], [[255.0, 595.0, 0.0]], [[255.0] * 3]),
        **arguments,
    )
    check(
        BasicModel_MultiLayer_MultiInput(),
        inputs,
        ([[184.0, 580.0, 184.0]], [[184.0, 580.0, -12.0]], [[184.0] * 3]),
        baselines=(2, 3.0, 4),
        **arguments,
    )


@mark.parametrize("masked", [False, True])
def test_an_empty_input_among_others(masked):
    model = BasicLinearModel()
    inputs = (
        torch.tensor([[23.0, 0.0, 0.0, 23.0, 0.0, 0.0, 23.0]]),
        torch.tensor([[]]),
    )
    mask = (torch.arange(7)[None], torch.tensor([[]], dtype=torch.long))
    weight = model.linear.weight[0].detach()
    expected = (weight * inputs[0][0])[None]
    got = Harmonica(model).attribute(
        inputs, target=0, feature_mask=mask if masked else None, n_samples=2000
    )
    torch.testing.assert_close(got[0], expected, atol=1e-4, rtol=0)
    assert got[1].shape == (1, 0)


def test_several_inputs_in_a_batch():
    check(
        BasicModel_MultiLayer_MultiInput(),
        tensors(
            [[23.0, 0.0, 0.0], [20.0, 50.0, 30.0]],
            [[20.0, 0.0, 50.0], [0.0, 100.0, 0.0]],
            [[0.0, 100.0, 10.0], [0.0, 10.0, 0.0]],
        ),
        (
            [[90, 0, 0], [78.0, 198.0, 118.0]],
            [[78, 0, 198], [0.0, 398.0, 0.0]],
            [[0, 398, 38], [0.0, 38.0, 0.0]],
        ),
        coefs=[
            [90.0, 0, 0, 78, 0, 198, 0, 398, 38],
            [78.0, 198.0, 118.0, 0.0, 398.0, 0.0, 0.0, 38.0, 0.0],
        ],
        target=0,
        additional_forward_args=(1,),
        n_samples=2500,
    )


@PPE
def test_several_inputs_in_a_batch_with_mixed_masks(ppe):
    arguments = {
        "feature_mask": tensors(
            [[1, 1, 1], [0, 1, 0]], [[0, 1, 2]], [[0, 1, 2], [0, 0, 0]]
        ),
        "additional_forward_args": (1,),
        "target": 0,
        "perturbations_per_eval": ppe,
    }
    inputs = tensors(
        [[23.0, 100.0, 0.0], [20.0, 50.0, 30.0]],
        [[20.0, 50.0, 30.0], [0.0, 100.0, 0.0]],
        [[0.0, 100.0, 10.0], [2.0, 10.0, 3.0]],
    )
    check(
        BasicModel_MultiLayer_MultiInput(),
        inputs,
        (
            [[1088.6667] * 3, [255.0, 595.0, 255.0]],
            [[76.6667, 1088.6667, 156.6667], [255.0, 595.0, 0.0]],
            [[76.6667, 1088.6667, 156.6667], [255.0, 255.0, 255.0]],
        ),
        n_samples=300,
        **arguments,
    )
    check(
        BasicModel_MultiLayer_MultiInput(),
        inputs,
        (
            [[1040.0] * 3, [184.0, 580.0, 184.0]],
            [[52.0, 1040.0, 132.0], [184.0, 580.0, -12.0]],
            [[52.0, 1040.0, 132.0], [184.0] * 3],
        ),
        baselines=(2, 3.0, 4),
        **arguments,
    )


SCALARS = mark.parametrize(
    "kind",
    [lambda t: t.item(), lambda t: t, lambda t: t.reshape(1), lambda t: int(t.item())],
    ids=["float", "0-d", "1-d", "int"],
)


@SCALARS
def test_a_scalar_for_one_example(kind):
    net = BasicModel_MultiLayer()
    check(
        lambda x: kind(net(x).sum()),
        torch.tensor([[2.0, 10.0, 3.0]], requires_grad=True),
        [[79.0, 79.0, 21.0]],
        feature_mask=torch.tensor([[0, 0, 1]]),
    )


def whole_batch(kind):
    net = BasicModel_MultiLayer_MultiInput()
    inputs = tensors(
        [[23.0, 100.0, 0.0], [20.0, 50.0, 30.0]],
        [[20.0, 50.0, 30.0], [0.0, 100.0, 0.0]],
        [[0.0, 100.0, 10.0], [20.0, 10.0, 13.0]],
    )
    mask = tensors([[1, 1, 1]], [[0, 1, 2]], [[0, 1, 2]])
    return lambda *x: kind(net(*x).sum()), inputs, mask


@SCALARS
def test_a_scalar_for_the_whole_batch(kind):
    forward, inputs, mask = whole_batch(kind)
    check(
        forward,
        inputs,
        (
            [[3850.6667] * 3],
            [[306.6667, 3850.6667, 410.6667]],
            [[306.6667, 3850.6667, 410.6667]],
        ),
        coefs=[[306.6667, 3850.6667, 410.6667]],
        additional_forward_args=(1,),
        feature_mask=mask,
        n_samples=1500,
    )


@SCALARS
def test_a_scalar_for_the_whole_batch_needs_one_perturbation_per_eval(kind):
    forward, inputs, mask = whole_batch(kind)
    with raises(ValueError, match="needed perturbations_per_eval=1"):
        Harmonica(forward).attribute(
            inputs,
            additional_forward_args=(1,),
            feature_mask=mask,
            perturbations_per_eval=2,
        )


def test_futures_are_refused():
    with raises(NotImplementedError):
        Harmonica(BasicModel_MultiLayer()).attribute_future()
    later = torch.futures.Future()
    later.set_result(torch.ones(1))
    with raises(NotImplementedError, match="Future"):
        Harmonica(lambda x: later).attribute(ONE)
