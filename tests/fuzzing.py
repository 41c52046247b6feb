"""What the fuzz tests share: odd arguments, functions of any size, what may come back.

HARMONICA_FUZZ sets the number of inputs per test (default 40).
"""

import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from harmonica_core.evaluate import EvaluationTimeout

fuzzed = settings(
    max_examples=int(os.environ.get("HARMONICA_FUZZ", "40")),
    deadline=None,
    # The same inputs on every run of the tests; new ones when more are asked for.
    derandomize="HARMONICA_FUZZ" not in os.environ,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
SCALES = [0.0, 1e-310, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1e300]

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 20),
    st.sampled_from([2**31, 2**63, 10**30, -(2**63)]),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.lists(st.integers(-2, 5), max_size=4),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.just(np.zeros((2, 2))),
    st.just(np.float64("nan")),
    st.just(np.int8(3)),
    st.just(object()),
)
odd_arrays = st_numpy.arrays(
    dtype=st.sampled_from(["f8", "f4", "f2", "i8", "u1", "?", "c16", "U2", "M8[s]"]),
    shape=st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)


def ours(call):
    """Return the result, or None for a documented error; anything else goes through."""
    try:
        return call()
    except (ValueError, TypeError, EvaluationTimeout) as error:
        assert len(str(error)) > 10, f"no explanation in {error!r}"
        # What the library made itself is not for the user to mend.
        assert "coef has NaN" not in str(error), error
        return None


@st.composite
def tables(draw):
    """A function of 1 to 8 features as its table of values, of any magnitude."""
    n_features = draw(st.integers(1, 8))
    outputs = draw(st.sampled_from([(), (1,), (3,)]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from(["normal", "constant", "spike", "steps", "offset"]))
    values = rng.normal(size=(1 << n_features, *outputs))
    if kind == "constant":
        values = np.ones_like(values)
    elif kind == "spike":
        values = (np.arange(len(values)) == 0).reshape(-1, *[1] * len(outputs)) * values
    elif kind == "steps":
        values = np.round(values)
    elif kind == "offset":
        values = values * 1e-9 + 1.0
    scale = draw(st.sampled_from(SCALES))
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "?"]))
    with np.errstate(all="ignore"):
        return n_features, (values * scale / np.abs(values).max()).astype(dtype)
