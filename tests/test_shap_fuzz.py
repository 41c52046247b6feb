"""Tables from anywhere: a finite result, or a ValueError or TypeError of ours."""

import numpy as np
import pytest
from fuzzing import fuzzed, odd, odd_arrays, ours
from hypothesis import given
from hypothesis import strategies as st


@fuzzed
@given(
    background=odd_arrays | st.just(np.zeros((2, 3))),
    rows=odd_arrays | st.just(np.ones((2, 3))),
    max_evals=odd | st.just("auto"),
)
def test_odd_tables_for_shap(background, rows, max_evals):
    pytest.importorskip("shap")
    from shap_harmonica import HarmonicaExplainer

    def model(x):
        with np.errstate(over="ignore"):
            return np.asarray(x).astype(complex).real.sum(axis=1)

    found = ours(
        lambda: HarmonicaExplainer(model, background)(rows, max_evals=max_evals)
    )
    if found is not None:
        assert np.isfinite(found.values).all()
