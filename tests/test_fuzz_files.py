"""Files from anywhere: the right contents or one of our errors, never anything else."""

import io
import json
import zipfile

import numpy as np
import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from harmonica_compare.results import Cell, Results
from harmonica_compare.tasks import TaskError, TaskOptions, games
from harmonica_core import (
    AnchoredSurrogate,
    Calls,
    Surrogate,
    ValueCache,
    fit_surrogate,
    harmonica_anchor,
)
from harmonica_core.design.masks import all_masks

MASKS = all_masks(4)


def f(masks):
    return np.stack([masks.sum(axis=1) ** 2, np.sin(masks @ np.arange(4.0))], axis=1)


def fitted(n_outputs):
    columns = 0 if n_outputs is None else slice(n_outputs)
    return fit_surrogate(
        lambda masks: f(masks)[:, columns],
        4,
        2,
        feature_names=["a", "é", "</script>", ""],
    )


@pytest.fixture(scope="module", params=[None, 2])
def surrogate_file(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("surrogate")
    fitted(request.param).save(folder / "good.npz")
    return folder / "good.npz"


@pytest.fixture(scope="module")
def anchored_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("anchored")
    found = harmonica_anchor(
        lambda masks: f(masks)[:, 0], 4, degree=1, anchors=2, budget=16, terms=None
    )
    found.save(folder / "good.npz")
    return folder / "good.npz"


def mutations():
    """Functions bytes -> bytes that do what disks, networks and people do."""

    def flip(data, spots):
        damaged = bytearray(data)
        for where, bit in spots:
            damaged[int(where * len(data)) % max(len(data), 1)] ^= 1 << bit
        return bytes(damaged)

    def splice(data, where, length, new):
        start = int(where * len(data))
        return data[:start] + new + data[start + length :]

    spot = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
    flips = st.lists(spot, min_size=1, max_size=8)
    where = st.floats(0, 1)
    return st.one_of(
        flips.map(lambda spots: lambda data: flip(data, spots)),
        where.map(lambda share: lambda data: data[: int(share * len(data))]),
        st.builds(
            lambda w, n, new: lambda data: splice(data, w, n, new),
            where,
            st.integers(0, 40),
            st.binary(max_size=40),
        ),
        st.binary(max_size=200).map(lambda new: lambda data: new),
    )


def use(surrogate):
    """Everything that can be asked of a surrogate gives finite numbers."""
    masks = np.random.default_rng(0).random((7, surrogate.n_features)) < 0.5
    predicted = surrogate(masks)
    assert predicted.shape == (7, *np.shape(surrogate.coef)[1:])
    assert surrogate.shapley_values().shape[0] == surrogate.n_features
    assert len(surrogate.spectrum) == len(surrogate.terms)
    assert repr(surrogate)
    assert len(surrogate.to_frame()) == len(surrogate.terms)
    surrogate.base_value, surrogate.full_value, surrogate.top_terms()


def load_or_refuse(kind, path, content):
    path = path.with_name("fuzzed.npz")
    path.write_bytes(content)
    try:
        return kind.load(path)
    except ValueError:
        return None


@fuzzed
@given(mutate=mutations())
def test_damaged_surrogates(surrogate_file, mutate):
    content = mutate(surrogate_file.read_bytes())
    found = load_or_refuse(Surrogate, surrogate_file, content)
    if found is not None:
        good = Surrogate.load(surrogate_file)
        assert found.coef.tobytes() == good.coef.tobytes()
        assert found.feature_names == good.feature_names


@fuzzed
@given(mutate=mutations())
def test_damaged_anchored_surrogates(anchored_file, mutate):
    content = mutate(anchored_file.read_bytes())
    found = load_or_refuse(AnchoredSurrogate, anchored_file, content)
    if found is not None:
        good = AnchoredSurrogate.load(anchored_file)
        assert found(MASKS).tobytes() == good(MASKS).tobytes()


def unpacked(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def as_npy(array, pickled=False):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=pickled)
    return out.getvalue()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.integers()
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=6,
)
arrays = st_numpy.arrays(
    dtype=st.sampled_from(
        ["f8", "f4", "<i4", ">i4", "i8", "u1", "u8", "?", "c16", "U3", "M8[s]"]
    ),
    shape=st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
)


def members_of(path):
    return st.sampled_from(sorted(unpacked(path)))


@fuzzed
@given(data=st.data())
def test_well_formed_files_with_odd_contents(surrogate_file, data):
    members = unpacked(surrogate_file)
    what = data.draw(
        st.sampled_from(["header", "array", "bytes", "drop", "pickle", "extra"])
    )
    header = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
    if what == "header":
        for key in data.draw(st.sets(st.sampled_from(sorted(header)), min_size=1)):
            header[key] = data.draw(json_values)
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        members["header.npy"] = as_npy(text)
    elif what == "array":
        members[data.draw(members_of(surrogate_file))] = as_npy(data.draw(arrays))
    elif what == "bytes":
        name = data.draw(members_of(surrogate_file))
        members[name] = data.draw(mutations())(members[name])
    elif what == "drop":
        del members[data.draw(members_of(surrogate_file))]
    elif what == "pickle":
        name = data.draw(members_of(surrogate_file))
        members[name] = as_npy(np.array([{"a": 1}]), pickled=True)
    else:
        name = st.text(
            st.characters(codec="utf-8", exclude_characters="\0"), min_size=1
        )
        members[data.draw(name)] = data.draw(st.binary(max_size=20))
    found = load_or_refuse(Surrogate, surrogate_file, packed(members))
    if found is not None:
        use(found)


def test_a_header_that_announces_too_much_memory(surrogate_file):
    members = unpacked(surrogate_file)
    shape = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
    for size in (1 << 45, 1 << 62, 1 << 80):
        text = (shape % size).ljust(117) + "\n"
        members["coef.npy"] = b"\x93NUMPY\x01\x00v\x00" + text.encode() + b"\0" * 64
        assert load_or_refuse(Surrogate, surrogate_file, packed(members)) is None


def test_a_header_nested_beyond_reason(surrogate_file):
    members = unpacked(surrogate_file)
    text = np.frombuffer(b"[" * 100_000, dtype=np.uint8)
    members["header.npy"] = as_npy(text)
    assert load_or_refuse(Surrogate, surrogate_file, packed(members)) is None


@pytest.fixture(scope="module")
def cache_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache") / "good"
    with ValueCache(path) as cache:
        cache.store(("m", "x"), MASKS, f(MASKS))
        cache.store(("other", "x"), MASKS, f(MASKS) + 1)
    return path


@fuzzed
@given(mutate=mutations())
def test_damaged_caches(cache_file, mutate):
    content = mutate(cache_file.read_bytes())
    path = cache_file.with_name("fuzzed")
    for leftover in cache_file.parent.glob("fuzzed*"):
        leftover.unlink()
    path.write_bytes(content)
    try:
        with ValueCache(path) as cache:
            rows, values = cache.look_up(("m", "x"), MASKS)
    except (ValueError, OSError):
        pass
    else:
        if len(rows):  # a value that comes back is the value that went in
            assert values.tobytes() == f(MASKS)[rows].tobytes()
        if len(rows) < len(MASKS):
            try:
                fit_surrogate(f, 4, calls=Calls(cache=path, cache_key=("m", "x")))
            except (ValueError, OSError):
                pass


@pytest.fixture(scope="module")
def results_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "good.json"
    cell = Cell("case", "method", 10, 0, "ok", numbers={"L2": [0.5, 0.1]})
    Results({"task": "games"}, {"numpy": "2"}, (cell,), True).save(path)
    return path


def read_results(path, text):
    path = path.with_name("fuzzed.json")
    path.write_bytes(text)
    try:
        found = Results.load(path)
    except ValueError:
        return
    assert all(isinstance(hash(cell.key), int) for cell in found.cells)


@fuzzed
@given(mutate=mutations())
def test_damaged_results(results_file, mutate):
    read_results(results_file, mutate(results_file.read_bytes()))


@fuzzed
@given(data=st.data())
def test_results_with_odd_contents(results_file, data):
    content = json.loads(results_file.read_text())
    places = [(content, key) for key in content]
    places += [(content["cells"][0], key) for key in content["cells"][0]]
    place, key = data.draw(st.sampled_from(range(len(places))).map(places.__getitem__))
    place[key] = data.draw(json_values)
    read_results(results_file, json.dumps(content).encode())
    read_results(results_file, b"[" * 100_000)


@fuzzed
@given(data=st.data())
def test_games(tmp_path, data):
    path = tmp_path / "game.npz"
    good = packed({"values.npy": as_npy(f(MASKS).T)})
    if data.draw(st.booleans()):
        path.write_bytes(data.draw(mutations())(good))
    else:
        path.write_bytes(packed({"values.npy": as_npy(data.draw(arrays))}))
    try:
        cases = games.load(TaskOptions(data=path))
    except TaskError:
        return
    for case in cases:
        values = case.value_function(all_masks(case.n_features))
        assert values.shape == (1 << case.n_features,)
