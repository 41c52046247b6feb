"""Tensors from anywhere: a correct result, or a ValueError or TypeError of ours."""

import torch
from fuzzing import fuzzed, odd, odd_arrays, ours
from hypothesis import given
from hypothesis import strategies as st
from pytest import mark

from captum_harmonica import Harmonica


@mark.filterwarnings("ignore:n_samples=")  # too few to tell features apart
@fuzzed
@given(
    rows=odd_arrays.filter(lambda a: a.dtype.kind not in "UMc"),
    feature_mask=st.none() | odd_arrays.filter(lambda a: a.dtype.kind not in "UM"),
    n_samples=odd | st.just("auto"),
    per_eval=odd | st.just(4),
)
def test_odd_tensors(rows, feature_mask, n_samples, per_eval):
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
