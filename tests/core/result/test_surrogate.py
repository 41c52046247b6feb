"""The surrogate: what it answers and what it refuses."""

import numpy as np
import pytest
from core_games import f3

from harmonica_core import Estimate, Surrogate, fit_surrogate
from harmonica_core.design import masks as draw


@pytest.fixture
def two_outputs():
    def f(masks):
        return np.stack([f3(masks), masks[:, 0] * 2.0], axis=1)

    names = ("age", "income", "sex")
    return fit_surrogate(f, 3, feature_names=names, output_names=("no", "yes"))


def test_its_arrays_are_read_only(two_outputs):
    with pytest.raises(ValueError, match="read-only"):
        two_outputs.coef[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        two_outputs.table[0] = 1


def test_predictions_have_the_shape_of_the_values(two_outputs):
    masks = draw.all_masks(3)
    assert two_outputs(masks).shape == (8, 2)
    np.testing.assert_allclose(two_outputs(masks)[:, 0], f3(masks), atol=1e-15)
    one = fit_surrogate(f3, 3)
    assert one(masks).shape == (8,)
    assert one(masks[3]).shape == (1,)
    assert one(np.zeros((0, 3), bool)).shape == (0,)


def test_shapley_values_are_the_definition(two_outputs):
    value = {mask.tobytes(): f3(mask[None])[0] for mask in draw.all_masks(3)}
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    phi = np.zeros(3)
    for order in orders:
        mask = np.zeros(3, bool)
        for i in order:
            before = value[mask.tobytes()]
            mask[i] = True
            phi[i] += (value[mask.tobytes()] - before) / len(orders)
    np.testing.assert_allclose(two_outputs.shapley_values()[:, 0], phi)
    total = two_outputs.full_value - two_outputs.base_value
    np.testing.assert_allclose(two_outputs.shapley_values().sum(axis=0), total)


def test_one_output_alone(two_outputs):
    yes = two_outputs.output(1)
    assert yes.coef.ndim == 1 and yes.output_names == ("yes",)
    assert yes.terms == ((), (0,))
    np.testing.assert_array_equal(
        yes(draw.all_masks(3)), two_outputs(draw.all_masks(3))[:, 1]
    )
    assert float(yes.error) == 0
    with pytest.raises(ValueError, match="from 0 to 1"):
        two_outputs.output(2)


def test_repr_names_the_top_terms(two_outputs):
    text = repr(two_outputs.output(0))
    assert "error (I_2): 0 (exact)" in text
    assert "age × income" in text and "8 evaluations" in text
    many = Surrogate(
        40, [(), *[(i,) for i in range(40)]], np.arange(41.0), n_evaluations=5
    )
    assert "x39" in repr(many) and "and 30 smaller terms" in repr(many)


def test_to_frame(two_outputs):
    frame = two_outputs.to_frame()
    assert list(frame.columns) == ["term", "name", "size", "no", "yes"]
    assert frame.loc[frame.name == "age", "yes"].item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        (dict(coef=np.zeros(3)), "one row of coef per term"),
        (dict(coef=np.array([np.nan, 1.0])), "finite"),
        (dict(feature_names=("a",)), "needed 2"),
        (dict(output_names=("a", "b")), "needed 1"),
    ],
)
def test_what_does_not_fit_is_refused(kwargs, message):
    good = dict(n_features=2, table=((), (0,)), coef=np.zeros(2))
    with pytest.raises(ValueError, match=message):
        Surrogate(**{**good, **kwargs})


def test_masks_of_the_wrong_width_are_refused(two_outputs):
    with pytest.raises(ValueError, match=r"needed \(n_masks, 3\)"):
        two_outputs(np.ones((2, 4), bool))


def test_estimates_unpack_and_read_well():
    value, standard_error = Estimate(0.5, 0.125, 10)
    assert (value, standard_error) == (0.5, 0.125)
    assert repr(Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2]), 3)) == (
        "[1 ± 0.1, 2 ± 0.2]"
    )
    assert np.asarray(Estimate(0.5, 0.1, 3)) == 0.5


def test_numpy_integers_are_integers(tmp_path):
    found = Surrogate(np.int64(3), ((), (0,)), np.ones(2), n_evaluations=np.int64(5))
    found.save(tmp_path / "file")
    assert Surrogate.load(tmp_path / "file").n_evaluations == 5


@pytest.mark.parametrize("wrong", [{"n_features": True}, {"n_evaluations": -3}])
def test_counts_are_whole_numbers(wrong):
    with pytest.raises(ValueError, match="whole number"):
        Surrogate(**({"n_features": 3, "table": ((),), "coef": np.ones(1)} | wrong))
