"""Masked numpy arrays: what lies below the mask is never read as a number."""

import numpy as np
import pytest
from explain_runs import MODEL, explain

from harmonica_core import Surrogate, fit_surrogate, input_key
from harmonica_core.checks import check_unmasked

HOLE = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[False, True, False, False])


def test_masked_values_are_refused():
    with pytest.raises(ValueError, match="values: got a masked array with 2 masked"):
        fit_surrogate(lambda masks: np.ma.array(masks[:, 0], mask=~masks[:, 1]), 2)


def test_a_mask_that_hides_nothing_is_no_obstacle():
    g = fit_surrogate(lambda masks: np.ma.array(masks[:, 0] * 1.0), 2)
    assert g.full_value == pytest.approx(1.0)
    check_unmasked(np.ma.array([1.0]), "values")


def test_masked_inputs_have_no_key():
    with pytest.raises(ValueError, match="masked entries; needed plain numbers"):
        input_key(HOLE)


def test_masked_pictures_are_refused():
    g = Surrogate(2, ((), (0,)), np.array([0.0, 1.0]))
    picture = np.ma.array([[0.0, 1.0]], mask=[[True, False]])
    with pytest.raises(ValueError, match="image: got a masked array"):
        g.what_if(image=picture, segments=[[0, 1]])


def test_masked_outputs_of_a_model_are_named(folder, capsys):
    hides = "\ndef hides(x):\n    return np.ma.array(f(x), mask=x[:, 0] > 0)\n"
    (folder / "my_model.py").write_text(MODEL + hides)
    assert explain(model="hides") == 2
    err = capsys.readouterr().err
    assert "its outputs: got a masked array" in err and err.count("\n") == 1
