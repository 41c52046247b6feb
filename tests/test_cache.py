import concurrent.futures
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from harmonica_core import Calls, ValueCache, fit_surrogate, input_key
from harmonica_core.design.masks import all_masks, uniform_draws

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.sqlite"


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    with ValueCache(tmp_path_factory.mktemp("cache") / "c") as cache:
        yield cache


class Counted:
    def __init__(self, n_features, n_outputs=None, seed=0):
        rng = np.random.default_rng(seed)
        shape = (n_features,) if n_outputs is None else (n_features, n_outputs)
        self.weights = rng.integers(-99, 100, shape) / 7
        self.masks = []

    def __call__(self, masks):
        self.masks.extend(mask.tobytes() for mask in masks)
        return np.tensordot(masks, self.weights, 1) ** 2

    def take(self):
        found, self.masks = self.masks, []
        return found


def same_bits(a, b):
    assert a.terms == b.terms
    assert a.coef.tobytes() == b.coef.tobytes()
    assert np.asarray(a.error).tobytes() == np.asarray(b.error).tobytes()
    assert a.evaluated.values.tobytes() == b.evaluated.values.tobytes()


@pytest.mark.parametrize("n_outputs", [None, 1, 3])
@pytest.mark.parametrize("n_features", [6, 14])
def test_a_rerun_evaluates_nothing_and_gives_the_same_bits(path, n_features, n_outputs):
    f = Counted(n_features, n_outputs)
    settings = {"degree": 2, "budget": 200, "alpha": 0.01}
    plain = fit_surrogate(f, n_features, **settings)
    f.take()
    first = fit_surrogate(
        f, n_features, **settings, calls=Calls(cache=path, cache_key="m")
    )
    assert len(f.take()) == plain.n_evaluations
    again = fit_surrogate(
        f, n_features, **settings, calls=Calls(cache=path, cache_key="m")
    )
    assert f.take() == []
    same_bits(plain, first)
    same_bits(first, again)


def test_a_larger_budget_extends_the_old_samples(path):
    f = Counted(14)
    calls = Calls(cache=path, cache_key="m")
    fit_surrogate(f, 14, 100, 1, alpha=0.1, calls=calls)
    old = set(f.take())
    larger = fit_surrogate(
        f, 14, 160, 1, alpha=0.1, calls=Calls(cache=path, cache_key="m")
    )
    new = f.take()
    assert len(new) == 60
    assert not old & set(new)
    same_bits(larger, fit_surrogate(f, 14, 160, 1, alpha=0.1))


def test_a_model_that_breaks_loses_nothing(path):
    f, calls = Counted(8), []

    def breaks(masks):
        calls.append(len(masks))
        if len(calls) == 4:
            raise RuntimeError("down")
        return f(masks)

    with pytest.raises(RuntimeError, match="down"):
        fit_surrogate(breaks, 8, calls=Calls(batch_size=50, cache=path, cache_key="m"))
    paid = f.take()
    fit_surrogate(f, 8, calls=Calls(cache=path, cache_key="m"))
    assert not set(paid) & set(f.take())
    assert len(paid) == 150


def test_keys_keep_models_and_inputs_apart(path):
    f, g = Counted(5, seed=1), Counted(5, seed=2)
    with ValueCache(path) as cache:
        for function, key in [(f, ("f", "1")), (g, ("g", "1")), (g, ("f", "2"))]:
            found = fit_surrogate(function, 5, calls=Calls(cache=cache, cache_key=key))
            same_bits(found, fit_surrogate(function, 5))
        assert len(cache) == 3 * 32


@pytest.mark.parametrize(
    "key", [None, "", ("", "x"), ("m",), ("m", 3), 7, b"m", ("a", "b", "c"), "\udc80"]
)
def test_a_cache_needs_a_key(path, key):
    with pytest.raises(ValueError, match="must not mix"):
        fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key=key))
    assert not path.exists()


def test_a_key_needs_a_cache():
    with pytest.raises(ValueError, match="add cache=path"):
        fit_surrogate(Counted(4), 4, calls=Calls(cache_key="m"))


def test_a_key_belongs_to_one_shape(path):
    fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key="m"))
    with pytest.raises(ValueError, match="holds masks of 4 features, this fit has 5"):
        fit_surrogate(Counted(5), 5, calls=Calls(cache=path, cache_key="m"))
    before = path.read_bytes()
    with ValueCache(path) as cache:
        new = uniform_draws(4, 1, np.random.default_rng(0))
        with pytest.raises(ValueError, match=r"\(m,\), this value .* \(m, 1\)"):
            cache.store("m", new, np.zeros((1, 1)))
    assert path.read_bytes() == before


@given(
    st_numpy.arrays(
        bool, st.tuples(st.integers(0, 30), st.integers(1, 70)), unique=False
    ),
    st.integers(-1, 3).filter(bool),
    st.text(min_size=1).filter(lambda s: "\0" not in s),
    st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_what_was_stored_is_found(one_file, masks, n_outputs, name, seed):
    masks = np.unique(masks, axis=0)
    rng = np.random.default_rng(seed)
    shape = (len(masks),) if n_outputs < 0 else (len(masks), n_outputs)
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-300, 300, shape)
    stored = rng.random(len(masks)) < 0.5
    key = (name, f"{len(one_file)} {seed} {masks.shape} {n_outputs}")
    one_file.store(key, masks[stored], values[stored])
    rows, found = one_file.look_up(key, masks)
    assert rows.tolist() == np.flatnonzero(stored).tolist()
    if len(rows):
        assert found.tobytes() == values[stored].tobytes()
        assert found.shape == values[stored].shape
    assert len(one_file.look_up(("other", *key[1:]), masks)[0]) == 0


def test_the_first_value_stays(path):
    with ValueCache(path) as cache:
        cache.store("m", all_masks(2), np.arange(4.0))
        cache.store("m", all_masks(2), np.zeros(4))
        assert cache.look_up("m", all_masks(2))[1].tolist() == [0, 1, 2, 3]


def change(path, command):
    """Run SQL on a file behind the cache's back."""
    connection = sqlite3.connect(path)
    connection.execute(command)
    connection.commit()
    connection.close()


def foreign_files(path):
    text = path.with_name("text")
    text.write_text("my thesis")
    sqlite = path.with_name("sqlite")
    change(sqlite, "CREATE TABLE inputs (a)")
    short = path.with_name("short")
    short.write_bytes(b"SQLite format 3\x00")
    return text, sqlite, short


def test_foreign_files_are_refused_and_left_alone(path):
    for foreign in foreign_files(path):
        before = foreign.read_bytes()
        with pytest.raises(ValueError, match="is not a value cache"):
            fit_surrogate(Counted(4), 4, calls=Calls(cache=foreign, cache_key="m"))
        assert foreign.read_bytes() == before
    left = {p.name for p in path.parent.iterdir()}
    assert left == {"text", "sqlite", "short"}


def test_a_later_version_is_refused(path):
    ValueCache(path).close()
    change(path, "PRAGMA user_version = 9")
    with pytest.raises(ValueError, match="has version 9; this release reads version 1"):
        ValueCache(path)


def test_folders_and_missing_folders(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        ValueCache(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ValueCache(tmp_path / "no" / "cache")


def test_a_changed_value_is_noticed(path):
    fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key="m"))
    change(path, "UPDATE evaluated SET numbers = zeroblob(8) WHERE mask = x'F0'")
    with pytest.raises(ValueError, match="does not match its checksum"):
        fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key="m"))


def test_rows_moved_to_another_key_are_noticed(path):
    fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key="m"))
    change(path, "UPDATE inputs SET model = 'other'")
    with pytest.raises(ValueError, match="does not match its checksum"):
        fit_surrogate(Counted(4), 4, calls=Calls(cache=path, cache_key="other"))


def test_a_full_disk_keeps_what_was_paid(path, monkeypatch):
    def full(self, key, masks, values):
        raise OSError("no space left on device")

    monkeypatch.setattr(ValueCache, "store", full)
    with pytest.raises(OSError, match="no space") as caught:
        fit_surrogate(
            Counted(4), 4, calls=Calls(batch_size=8, cache=path, cache_key="m")
        )
    assert len(caught.value.evaluated) == 8


def test_a_failed_transaction_leaves_no_trace(path):
    with ValueCache(path) as cache:
        with pytest.raises(ValueError, match="zip"):
            cache.store("m", all_masks(2), np.zeros(3))
        cache.store("other", all_masks(2), np.zeros(4))
        cache.store("m", all_masks(2), np.ones(4))
        assert cache.look_up("m", all_masks(2))[1].tolist() == [1, 1, 1, 1]
        assert cache.look_up("other", all_masks(2))[1].tolist() == [0, 0, 0, 0]


def test_a_cache_can_be_sent_to_another_process(path):
    with ValueCache(path) as cache:
        cache.store("m", all_masks(2), np.arange(4.0))
        with pickle.loads(pickle.dumps(cache)) as other:
            assert other.look_up("m", all_masks(2))[1].tolist() == [0, 1, 2, 3]


def test_a_closed_cache_opens_again(path):
    cache = ValueCache(path)
    cache.close()
    cache.store("m", all_masks(2), np.arange(4.0))
    cache.close()
    assert len(cache) == 4
    cache.close()


def test_threads_share_one_cache(path):
    f = Counted(8)
    with ValueCache(path) as cache, concurrent.futures.ThreadPoolExecutor(8) as pool:
        fits = pool.map(
            lambda k: fit_surrogate(
                f,
                8,
                calls=Calls(batch_size=16, cache=cache, cache_key=("m", str(k % 4))),
            ),
            range(16),
        )
        expected = fit_surrogate(f, 8)
        for found in fits:
            same_bits(found, expected)
        assert len(cache) == 4 * 256


def test_processes_that_start_together_share_one_file(path):
    program = PROGRAMS / "shared_cache.py"
    children = [
        subprocess.Popen(
            [sys.executable, program, path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    printed = {child.communicate(timeout=120)[0] for child in children}
    assert [child.returncode for child in children] == [0, 0, 0]
    assert len(printed) == 1
    assert "coef" in printed.pop()
    with ValueCache(path) as cache:
        assert len(cache) == 512


def test_input_key_tells_inputs_apart():
    a = np.arange(6.0)
    keys = [
        input_key(a),
        input_key(a.reshape(2, 3)),
        input_key(a.astype(np.float32)),
        input_key(a, a),
        input_key(a[:0]),
        input_key(a[::-1]),
    ]
    assert len(set(keys)) == len(keys)
    assert input_key(a) == input_key(np.stack([a, a], 1)[:, 0])
    with pytest.raises(TypeError, match="object"):
        input_key(np.array([None]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_go_neither_in_nor_out(path, monkeypatch, bad):
    values = np.array([0.0, bad, 1.0, 2.0])
    with ValueCache(path) as cache:
        with pytest.raises(ValueError, match="a cache needs finite numbers"):
            cache.store("m", all_masks(2), values)
        with monkeypatch.context() as patch:  # what another program may have written
            patch.setattr(np, "isfinite", lambda values: np.ones(len(values), bool))
            cache.store("m", all_masks(2), values)
        with pytest.raises(ValueError, match="damaged .a value is NaN or infinite"):
            cache.look_up("m", all_masks(2))
