import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonica_core import Evaluated, fit_surrogate
from harmonica_core.design.masks import all_masks
from harmonica_core.evaluate import check_values, evaluate

MASKS = all_masks(5)


class Counted:
    """Remembers how large its calls were and fails where it is told to."""

    def __init__(self, fails_at=None, outputs=None):
        self.sizes = []
        self.fails_at = fails_at
        self.outputs = outputs

    def __call__(self, masks):
        if len(self.sizes) == self.fails_at:
            raise RuntimeError("the model broke")
        self.sizes.append(len(masks))
        value = masks @ np.arange(1.0, masks.shape[1] + 1)
        return value if self.outputs is None else np.outer(value, self.outputs)


@given(st.integers(1, 40), st.sampled_from([None, [1.0], [1.0, -2.0]]))
def test_batches_cover_all_masks_once(batch_size, outputs):
    f = Counted(outputs=outputs)
    values = evaluate(f, MASKS, batch_size=batch_size)
    assert np.array_equal(values, Counted(outputs=outputs)(MASKS))
    assert sum(f.sizes) == 32
    assert set(f.sizes[:-1]) <= {batch_size}


def test_no_masks_no_call():
    f = Counted()
    assert evaluate(f, MASKS[:0]).shape == (0,)
    assert f.sizes == []


def test_known_values_cost_no_call():
    f = Counted()
    known = Evaluated(MASKS[::3], Counted()(MASKS[::3]))
    assert np.array_equal(evaluate(f, MASKS, known=known), Counted()(MASKS))
    assert sum(f.sizes) == 32 - len(known)


def test_an_exception_says_where_and_keeps_what_was_paid():
    with pytest.raises(RuntimeError, match="the model broke") as caught:
        evaluate(Counted(fails_at=2), MASKS, batch_size=8)
    error = caught.value
    assert "masks 16 to 23 of 32 (the first keeps features [4])" in error.__notes__[0]
    assert np.array_equal(error.evaluated.masks, MASKS[:16])
    f = Counted()
    evaluate(f, MASKS, known=error.evaluated)
    assert f.sizes == [16]


def test_an_interrupt_keeps_what_was_paid():
    def f(masks):
        if masks[:, 4].any():
            raise KeyboardInterrupt
        return masks.sum(axis=1)

    with pytest.raises(KeyboardInterrupt) as caught:
        evaluate(f, MASKS, batch_size=4)
    assert len(caught.value.evaluated) == 16


@pytest.mark.parametrize(
    ("returned", "error", "says"),
    [
        (lambda m: m.sum(axis=1) * 1j, TypeError, "complex"),
        (lambda m: [str(x) for x in m], TypeError, "dtype"),
        (lambda m: [None] * len(m), TypeError, "object"),
        (lambda m: 1.0, ValueError, r"shape \(\)"),
        (lambda m: m.sum(axis=1)[:-1], ValueError, r"shape \(31,\) for 32 masks"),
        (lambda m: np.zeros((len(m), 0)), ValueError, "no outputs"),
        (lambda m: np.zeros((len(m), 2, 2)), ValueError, "one row per mask"),
        (lambda m: np.where(m[:, 0], np.nan, 0), ValueError, r"keeps features \[0\]"),
        (lambda m: np.where(m[:, 1], np.inf, 0), ValueError, "16 of 32 masks"),
    ],
)
def test_wrong_values_are_refused(returned, error, says):
    with pytest.raises(error, match=says):
        evaluate(returned, MASKS)


def test_outputs_may_not_change_between_batches():
    with pytest.raises(ValueError, match=r"shape \(2,\) after rows of shape \(1,\)"):
        evaluate(lambda m: np.zeros((len(m), 1 + m[0, 4])), MASKS, batch_size=16)


def test_integers_and_bools_become_floats():
    values = check_values(np.array([True, False]), MASKS[:2])
    assert values.dtype == np.float64
    assert values.tolist() == [1.0, 0.0]


def test_values_are_a_copy():
    buffer = np.zeros(8)

    def f(masks):
        buffer[: len(masks)] = masks.sum(axis=1)
        return buffer[: len(masks)]

    values = evaluate(f, MASKS, batch_size=8)
    assert values.tolist() == MASKS.sum(axis=1).tolist()


def test_not_a_function():
    with pytest.raises(TypeError, match="value_function is int"):
        fit_surrogate(3, 5)
    with pytest.raises(TypeError, match="value_function is ndarray"):
        evaluate(np.zeros(3), MASKS)


def test_progress_goes_to_stderr_only_when_asked_for(capsys):
    evaluate(Counted(), MASKS)
    assert capsys.readouterr() == ("", "")
    evaluate(Counted(), MASKS, progress=True, description="Tea")
    out, err = capsys.readouterr()
    assert out == ""
    assert "Tea: 100%" in err
    assert "32/32" in err


def test_changing_outputs_keep_what_was_paid():
    def shrinking(masks):
        return np.zeros((len(masks), 2 if masks.all() else 1))

    masks = np.array([[True, True], [False, True]])
    with pytest.raises(ValueError, match="same number of outputs") as caught:
        evaluate(shrinking, masks, batch_size=1)
    assert len(caught.value.evaluated) == 1


def test_exceptions_without_room_pass_through():
    class Tight(Exception):
        def __setattr__(self, name, value):
            if name == "evaluated":
                raise AttributeError(name)
            super().__setattr__(name, value)

    def failing(masks):
        raise Tight

    with pytest.raises(Tight):
        evaluate(failing, all_masks(2))
