import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import from_attributions
from harmonica_core.design.masks import all_masks


def test_scores_add_up_over_what_is_kept():
    scores = np.array([0.5, -0.25, 2.0])
    g = from_attributions(scores, base=1.5, n_evaluations=7)
    masks = all_masks(3)
    np.testing.assert_allclose(g(masks), 1.5 + masks @ scores)
    np.testing.assert_allclose(g.shapley_values(), scores)
    assert g.base_value == pytest.approx(1.5)
    assert (g.n_evaluations, g.error, g.max_degree) == (7, None, 1)


def test_several_outputs_and_names():
    scores = np.array([[0.5, 1.0], [0.0, 0.0], [2.0, -1.0]])
    g = from_attributions(
        scores, base=[1.0, 2.0], feature_names="abc", output_names=("no", "yes")
    )
    masks = all_masks(3)
    np.testing.assert_allclose(g(masks), [1.0, 2.0] + masks @ scores)
    assert g.feature_names == ("a", "b", "c") and g.output_names == ("no", "yes")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), outputs=st.integers(0, 2))
def test_interactions_add_up_over_the_subsets_of_what_is_kept(seed, n, outputs):
    rng = np.random.default_rng(seed)
    tail = (outputs,) if outputs else ()
    terms = [t for t in reference.subsets(range(n), 1) if rng.random() < 0.5]
    values = {term: rng.normal(size=tail) for term in terms}
    base = rng.normal(size=tail)
    g = from_attributions(values, base, n)
    for k in range(max(outputs, 1)):
        one = {term: np.ravel(v)[k] for term, v in values.items()}
        expected = reference.game_from_interactions(one, np.ravel(base)[k], n)
        found = g(all_masks(n)).reshape(1 << n, -1)[:, k]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_there_and_back_through_moebius_coefficients():
    rng = np.random.default_rng(0)
    values = {term: rng.normal() for term in reference.subsets(range(4), 1)}
    moebius = from_attributions(values, 0.0, 4).interactions(4, "Moebius")
    assert moebius == pytest.approx(values)


def test_a_matrix_in_shap_layout():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 4, 2))
    matrix = half + half.swapaxes(0, 1)
    uneven = np.triu(np.ones((4, 4)), 1)[:, :, None] * half  # both halves count
    uneven = matrix + uneven - uneven.swapaxes(0, 1)
    g = from_attributions(uneven, base=[0.0, 1.0])
    for mask in all_masks(4):
        inside = matrix[np.ix_(mask, mask)].sum(axis=(0, 1))
        np.testing.assert_allclose(g(mask)[0], [0.0, 1.0] + inside, atol=1e-12)
    np.testing.assert_allclose(g.interaction_matrix(), matrix, atol=1e-12)
    one = from_attributions(matrix[:, :, 1], base=1.0)
    np.testing.assert_allclose(one(all_masks(4)), g(all_masks(4))[:, 1])
    assert from_attributions([[2.0]], base=1.0)([[True]]) == pytest.approx(3.0)


def test_the_empty_term_is_the_base_value():
    g = from_attributions({(): 2.0, (1,): 3.0}, n_features=2)
    assert g([[False, True]]) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="needed one of them"):
        from_attributions({(): 2.0}, base=1.0, n_features=2)
    assert from_attributions({}, base=1.0, n_features=2).spectrum == {(): 1.0}


def test_bad_input():
    for wrong, base in [
        (np.zeros((2, 2, 2)), 0.0),
        (3.0, 0.0),
        ([], 0.0),
        ([1.0, 2.0], [0.0, 1.0]),
        (np.zeros((2, 3)), 0.0),
        (np.zeros((2, 3)), [0.0, 0.0]),
    ]:
        with pytest.raises(ValueError, match="values have shape.*n_features"):
            from_attributions(wrong, base)
    with pytest.raises(ValueError, match="base is missing"):
        from_attributions(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="base is missing"):
        from_attributions({(0,): 1.0}, n_features=2)
    with pytest.raises(ValueError, match="n_features=None"):
        from_attributions({(0,): 1.0}, 0.0)
    with pytest.raises(ValueError, match="shape \\(2,\\) and the base \\(\\)"):
        from_attributions({(0,): [1.0, 2.0]}, 0.0, 2)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        from_attributions({(0, 2): 1.0}, 0.0, 2)
    with pytest.raises(ValueError, match="twice"):
        from_attributions({(0, 1): 1.0, (1, 0): 2.0}, 0.0, 2)
    with pytest.raises(ValueError, match="too many"):
        from_attributions({tuple(range(30)): 1.0}, 0.0, 30)
    with pytest.raises(ValueError, match="finite"):
        from_attributions([np.nan], 0.0)
