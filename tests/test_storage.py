"""Files: round trips, and refusal of everything that is not ours."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import Estimate, Surrogate, fit_surrogate, storage


def example(n=4, outputs=2, seed=0):
    values = np.random.default_rng(seed).normal(size=(2**n, outputs))
    return fit_surrogate(
        lambda masks: values[masks @ (1 << np.arange(n))],
        n,
        degree=2,
        feature_names=[f"</script>{i}é" for i in range(n)],
    )


def assert_same(a, b):
    assert a.terms == b.terms
    np.testing.assert_array_equal(a.coef, b.coef)
    assert a.feature_names == b.feature_names
    assert a.output_names == b.output_names
    assert a.n_evaluations == b.n_evaluations and a.radius == b.radius
    np.testing.assert_array_equal(a.alpha, b.alpha)
    np.testing.assert_array_equal(a.error.value, b.error.value)
    np.testing.assert_array_equal(a.evaluated.masks, b.evaluated.masks)
    np.testing.assert_array_equal(a.evaluated.values, b.evaluated.values)


@settings(max_examples=20)
@given(n=st.integers(1, 6), outputs=st.integers(1, 3), seed=st.integers(0, 99))
def test_round_trip(tmp_path_factory, n, outputs, seed):
    path = tmp_path_factory.mktemp("s") / "a.npz"
    surrogate = example(n, outputs, seed)
    surrogate.save(path)
    assert_same(surrogate, Surrogate.load(path))


def test_a_surrogate_made_by_hand_round_trips(tmp_path):
    path = tmp_path / "a.npz"
    Surrogate(3, ((), (0, 2)), np.array([1.0, 2.0])).save(path)
    loaded = Surrogate.load(path)
    assert loaded.spectrum == {(): 1.0, (0, 2): 2.0}
    assert loaded.error is None and loaded.evaluated is None


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    example().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged or not a file of ours"):
        Surrogate.load(path)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match="damaged or not a file of ours"):
        Surrogate.load(path)
    path.write_text("hello")
    with pytest.raises(ValueError, match="damaged or not a file of ours"):
        Surrogate.load(path)
    with pytest.raises(FileNotFoundError):
        Surrogate.load(tmp_path / "absent.npz")


def rewrite(path, arrays=None, **changes):
    header, old = storage.read(path, "surrogate")
    header = {**header, **changes}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, header=text, **{**old, **(arrays or {})})


def stated(**changes):
    return dict(value=0.1, standard_error=0.0, n_evaluations=3, exact=False) | changes


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(version=99), "upgrade harmonica-xai"),
        (dict(format="other"), "not written by Harmonica"),
        (dict(kind="anchored"), "needed a 'surrogate'"),
        (dict(n_features=2), "not valid"),
        (dict(n_features="x"), "damaged|invalid literal"),
        (dict(error=3), "damaged"),
        (dict(error=stated(value=float("nan"))), "NaN where a finite number"),
        (dict(error=stated(value=None)), "finite numbers >= 0"),
        (dict(error=stated(value="inf")), "finite numbers >= 0"),
        (dict(error=stated(value=[0.1, -0.1])), "finite numbers >= 0"),
        (dict(error=stated(standard_error=-1.0)), "finite numbers >= 0"),
        (dict(alpha=-0.1), "finite numbers >= 0"),
        (dict(alpha=float("inf")), "Infinity where a finite number"),
    ],
)
def test_headers_that_do_not_fit_are_refused(tmp_path, changes, message):
    path = tmp_path / "a.npz"
    example().save(path)
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message):
        Surrogate.load(path)


@pytest.mark.parametrize("name", ["values", "coef"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(tmp_path, name, bad):
    path = tmp_path / "a.npz"
    example().save(path)
    array = storage.read(path, "surrogate")[1][name].copy()
    array[1, 1] = bad
    rewrite(path, {name: array})
    with pytest.raises(ValueError, match="NaN or infini"):
        Surrogate.load(path)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    bad = example().changed(error=Estimate(np.nan, 0.0, 1))
    with pytest.raises(ValueError, match="can not be saved; needed finite numbers"):
        bad.save(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


def test_members_that_are_not_ours_are_not_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    example().save(path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("bomb.npy", b"not an array: unpacking it would raise")
    assert_same(Surrogate.load(path), example())
    with pytest.raises(ValueError, match="damaged"):
        storage.read_arrays(path)["bomb"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    example().save(path)
    before = path.read_bytes()

    def fails(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fails)
    with pytest.raises(OSError, match="disk full"):
        example(seed=1).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
