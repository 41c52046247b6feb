"""Odd arguments for Captum and SHAP users: a result, or an error of ours with words."""

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


@fuzzed
@given(
    rows=odd_arrays.filter(lambda a: a.dtype.kind not in "UMc"),
    feature_mask=st.none() | odd_arrays.filter(lambda a: a.dtype.kind not in "UM"),
    n_samples=odd | st.just("auto"),
    per_eval=odd | st.just(4),
)
def test_odd_tensors_for_captum(rows, feature_mask, n_samples, per_eval):
    torch = pytest.importorskip("torch")
    from captum_harmonica import Harmonica

    def forward(x):
        return x.reshape(len(x), -1).float().sum(dim=1)

    if rows.size > 12 and isinstance(n_samples, int):
        n_samples = min(n_samples, 1000)  # more would be drawn, as asked for
    mask = None if feature_mask is None else torch.as_tensor(feature_mask)
    found = ours(
        lambda: Harmonica(forward).attribute(
            torch.as_tensor(rows),
            feature_mask=mask,
            n_samples=n_samples,
            perturbations_per_eval=per_eval,
        )
    )
    if found is not None:
        assert found.shape == rows.shape
        assert torch.isfinite(found).all()
