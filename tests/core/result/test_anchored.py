import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import AnchoredSurrogate, Estimate, Evaluated, Surrogate, metrics
from harmonica_core.design.draw import draw_anchors
from harmonica_core.design.masks import all_masks
from harmonica_core.result.anchored import common_terms, nearest_anchor


def parts(n=4, k=3, outputs=None, seed=0):
    """Random sparse polynomials on different terms."""
    rng = np.random.default_rng(seed)
    terms = [(), (0,), (1, 2), (0, 1, 3)]
    out = []
    for i in range(k):
        own = terms[: 2 + i % 3]
        shape = len(own) if outputs is None else (len(own), outputs)
        out.append(Surrogate(n, own, rng.normal(size=shape), max_degree=3))
    return tuple(out)


def anchored(n=4, k=3, outputs=None, seed=0, **kw):
    anchors = draw_anchors(n, k, np.random.default_rng(seed))
    return AnchoredSurrogate(anchors, parts(n, k, outputs, seed), **kw)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 6), st.booleans())
def test_each_mask_goes_to_the_nearest_anchor_in_any_lp(seed, n, k, repeat):
    rng = np.random.default_rng(seed)
    masks, anchors = rng.random((20, n)) < 0.5, rng.random((k, n)) < 0.5
    if repeat:
        anchors[-1] = anchors[0]
    gap = np.abs(masks[:, None].astype(float) - anchors[None])
    found = nearest_anchor(masks, anchors)
    for p in (1, 2, 3.5):
        distance = (gap**p).sum(axis=2) ** (1 / p)
        expected = [min(range(k), key=lambda i: (round(d[i], 9), i)) for d in distance]
        assert found.tolist() == expected


def test_predictions_are_those_of_the_nearest_anchor():
    for outputs in (None, 2):
        g = anchored(outputs=outputs)
        masks = all_masks(4)
        cell = g.nearest(masks)
        assert len(set(cell.tolist())) == 3
        for mask, i, value in zip(masks, cell, g(masks), strict=True):
            np.testing.assert_allclose(value, g.surrogates[i](mask)[0], atol=1e-12)
    assert g(np.zeros((0, 4), dtype=bool)).shape == (0, 2)


def test_common_terms_hold_every_part():
    g = anchored(outputs=2)
    table, coef = common_terms(g.surrogates)
    masks = all_masks(4)
    for part, row in zip(g.surrogates, coef, strict=True):
        np.testing.assert_allclose(Surrogate(4, table, row)(masks), part(masks))
    assert table.tolist()[0] == [-1, -1, -1]
    rng = np.random.default_rng(0)
    terms = [(), (0, 1, 2), (3,), (0, 2), (0,), (1, 3), (0, 1)]
    many = [Surrogate(4, terms[i:], rng.normal(size=7 - i)) for i in range(4)]
    table, coef = common_terms(many)
    for part, row in zip(many, coef[:, :, 0], strict=True):
        np.testing.assert_allclose(Surrogate(4, table, row)(masks), part(masks))
    constants = [Surrogate(2, [()], [1.0]), Surrogate(2, [()], [3.0])]
    assert common_terms(constants)[1].ravel().tolist() == [1.0, 3.0]


def test_mean_and_distances_agree_with_the_metrics():
    g = anchored()
    masks = all_masks(4)
    mean = np.mean([part(masks) for part in g.surrogates], axis=0)
    np.testing.assert_allclose(g.mean(masks), mean)
    assert g.log_k == pytest.approx(math.log(3))
    for p in (1, 2):
        between, away = g.spectrum_distances(p), g.distances_to_mean(p)
        for i, one in enumerate(g.surrogates):
            to_mean = metrics.spectrum_distance(one, g.mean, p).value
            assert away[i] == pytest.approx(to_mean)
            for j, other in enumerate(g.surrogates):
                expected = metrics.spectrum_distance(one, other, p).value
                assert between[i, j] == pytest.approx(expected)
    # Parseval: the distance of two parts is their root mean square gap.
    gap = g.surrogates[0](masks) - g.surrogates[2](masks)
    assert g.spectrum_distances()[0, 2] == pytest.approx(np.sqrt((gap**2).mean()))
    two = anchored(outputs=2)
    assert two.spectrum_distances().shape == (3, 3, 2)
    assert two.distances_to_mean().shape == (3, 2)


def test_indices_are_those_of_the_inputs_own_polynomial():
    g = anchored(seed=2)
    np.testing.assert_array_equal(g.shapley_values(), g.surrogates[0].shapley_values())
    assert g.interactions(2, "STII") == g.surrogates[0].interactions(2, "STII")
    np.testing.assert_array_equal(
        g.interaction_matrix(), g.surrogates[0].interaction_matrix()
    )
    assert g.full_value == pytest.approx(g.surrogates[0].full_value)
    owner = g.nearest(np.zeros(4, dtype=bool))[0]
    assert g.base_value == pytest.approx(g.surrogates[owner].base_value)


@pytest.mark.parametrize("outputs", [None, 2])
def test_saved_and_loaded_it_is_the_same(tmp_path, outputs):
    masks = all_masks(4)[:6]
    number = 0.5 if outputs is None else np.array([0.5, 0.25])
    g = anchored(
        outputs=outputs,
        error=Estimate(number, number / 10, 6),
        n_evaluations=6,
        feature_names=("a", "b", "c", "d"),
        output_names=None if outputs is None else ("no", "yes"),
        evaluated=Evaluated(masks, anchored(outputs=outputs)(masks)),
    )
    g.save(tmp_path / "g.npz")
    again = AnchoredSurrogate.load(tmp_path / "g.npz")
    np.testing.assert_array_equal(again(all_masks(4)), g(all_masks(4)))
    np.testing.assert_array_equal(again.anchors, g.anchors)
    np.testing.assert_array_equal(again.evaluated.values, g.evaluated.values)
    np.testing.assert_array_equal(again.error.value, number)
    assert again.n_evaluations == 6 and again.max_degree == 3
    assert again.feature_names == g.feature_names
    assert again.output_names == g.output_names
    assert [s.spectrum.keys() for s in again.surrogates] == [
        s.spectrum.keys() for s in g.surrogates
    ]
    with pytest.raises(ValueError, match="needed a 'surrogate'"):
        Surrogate.load(tmp_path / "g.npz")


def test_one_output_of_several():
    masks = all_masks(4)
    g = anchored(outputs=2, error=Estimate(np.array([0.5, 0.25]), np.zeros(2), 6))
    one = g.output(1)
    np.testing.assert_allclose(one(masks), g(masks)[:, 1])
    assert one.error.value == 0.25


def test_it_is_frozen_and_readable():
    g = anchored(error=Estimate(0.5, 0.1, 6), n_evaluations=6)
    with pytest.raises(AttributeError):
        g.n_evaluations = 7
    with pytest.raises(ValueError, match="read-only"):
        g.anchors[0, 0] = False
    text = repr(g)
    assert "4 features, 3 anchors (log k = 1.1), 6 evaluations" in text
    assert "0.5 ± 0.1" in text and "anchor keeping all: 2 terms" in text
    named = g.with_names(("a", "b", "c", "d"))
    assert named.own.feature_name(2) == "c"


def test_bad_input():
    good = parts()
    with pytest.raises(ValueError, match="got no surrogates"):
        AnchoredSurrogate(np.ones((0, 4), dtype=bool), ())
    with pytest.raises(ValueError, match="2 anchors and 3 surrogates"):
        AnchoredSurrogate(np.ones((2, 4), dtype=bool), good)
    with pytest.raises(ValueError, match="differ"):
        mixed = (*good[:2], *parts(outputs=2)[:1])
        AnchoredSurrogate(np.ones((3, 4), dtype=bool), mixed)
    with pytest.raises(ValueError, match="shape"):
        AnchoredSurrogate(np.ones((3, 5), dtype=bool), good)
    with pytest.raises(ValueError, match="masks have shape"):
        anchored()(np.ones((2, 5), dtype=bool))
