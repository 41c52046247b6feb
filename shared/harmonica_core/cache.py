"""Values that were paid for once: (model key, input key, mask) -> values, on disk.

One SQLite file in WAL mode. Each batch is one transaction, so a process may be killed
at any moment and loses at most the batch in flight; several processes and threads may
share the file (on a local disk: WAL needs shared memory). Nothing is pickled: masks
are packed bits, values are raw little-endian float64, and every row carries a checksum
that also covers its key. A power failure can cost the last transactions, never the
file.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Masks, Values
from harmonica_core.cache_file import CacheFile
from harmonica_core.checks import check_unmasked

CacheKey: TypeAlias = str | tuple[str, str]

_INSERT = "INSERT OR IGNORE INTO evaluated VALUES (?, ?, ?, ?)"


def input_key(*arrays: Any) -> str:
    """Return a key for an input: a hash of its arrays' contents, shapes and dtypes.

    Examples
    --------
    >>> input_key([1.0, 2.0]) == input_key([1.0, 2.0]) != input_key([1.0, 2.5])
    True
    """
    digest = hashlib.sha256()
    for given in arrays:
        check_unmasked(given, "input_key's arrays")
        array = np.asarray(given)
        if array.dtype.hasobject:
            raise TypeError(
                f"input_key got dtype {array.dtype}; needed plain numbers or "
                "fixed-width strings: convert first, for instance with .astype(str)"
            )
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def check_key(key: object) -> tuple[str, str]:
    """Return (model key, input key) from a string or a pair of strings."""
    pair = (key, "") if isinstance(key, str) else key
    if not _is_pair_of_names(pair):
        raise ValueError(
            f"cache_key={key!r}; needed a string that names the model and the input, "
            'such as "my-model-v3/input-17", or a pair (model key, input key): values '
            "of different models or inputs must not mix"
        )
    return pair  # type: ignore[return-value]


def _is_pair_of_names(pair: object) -> bool:
    if not isinstance(pair, tuple) or len(pair) != 2 or not pair[0]:
        return False
    if not all(isinstance(part, str) and "\0" not in part for part in pair):
        return False
    try:
        "".join(pair).encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True


class ValueCache(CacheFile):
    """A file of evaluated masks, for any number of models and inputs.

    Parameters
    ----------
    path : str or path
        Created when it does not exist. A file that is not a value cache, or is
        damaged, is refused with a ValueError and left as it is.

    Examples
    --------
    >>> import tempfile
    >>> from harmonica_core import Calls, fit_surrogate
    >>> def f(masks):
    ...     print("evaluates", len(masks))
    ...     return masks.sum(axis=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ValueCache(folder + "/values.sqlite") as cache:
    ...         calls = Calls(cache=cache, cache_key="sum/v1")
    ...         g = fit_surrogate(f, 3, calls=calls)
    ...         g = fit_surrogate(f, 3, calls=calls)
    evaluates 8
    """

    # The entry that was written to last: entries never change, so it is looked up once.
    _last: tuple[tuple[CacheKey, int, int], _Entry] | None = None

    def __len__(self) -> int:
        """Return the number of evaluated masks in the file."""
        with self.transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM evaluated").fetchone()
        return int(count)

    def look_up(self, key: CacheKey, masks: Masks) -> tuple[NDArray[np.int64], Values]:
        """Return the rows of ``masks`` that are in the file, and their values."""
        pair = check_key(key)
        with self.transaction() as connection:
            entry = _find_input(connection, pair, masks.shape[1])
            if entry is None:
                return np.zeros(0, dtype=np.int64), np.zeros(0)
            rows, found = [], []
            for row, mask in enumerate(_rows_of_bytes(np.packbits(masks, axis=1))):
                hit = connection.execute(
                    "SELECT numbers, checksum FROM evaluated "
                    "WHERE input_id = ? AND mask = ?",
                    (entry.number, mask),
                ).fetchone()
                if hit is not None:
                    rows.append(row)
                    found.append(entry.checked(mask, *hit))
            values = np.frombuffer(b"".join(found), dtype="<f8").astype(np.float64)
            if not np.isfinite(values).all():
                raise sqlite3.DatabaseError("a value is NaN or infinite")
        return np.array(rows, dtype=np.int64), entry.shaped(values)

    def store(self, key: CacheKey, masks: Masks, values: Values) -> None:
        """Add values ``(m,)`` or ``(m, n_outputs)`` in one transaction.

        A mask that is there already keeps its values. NaN and infinity are refused.
        """
        if not np.isfinite(values).all():
            raise ValueError(
                "values hold NaN or infinity; a cache needs finite numbers: leave "
                "those masks out"
            )
        n_outputs = -1 if values.ndim == 1 else values.shape[1]
        numbers = _rows_of_bytes(values.astype("<f8", copy=False))
        packed = _rows_of_bytes(np.packbits(masks, axis=1))
        kind = (key, masks.shape[1], n_outputs)
        last = self._last  # read once: other threads may change it
        entry = last[1] if last and last[0] == kind else None
        if entry and len(packed) == len(numbers) == 1:  # no BEGIN and COMMIT: faster
            self.execute(_INSERT, entry.row(packed[0], numbers[0]))
            return
        with self.transaction(write=True) as connection:
            entry = entry or _add_input(connection, check_key(key), *kind[1:])
            rows = [entry.row(*row) for row in zip(packed, numbers, strict=True)]
            connection.executemany(_INSERT, rows)
        self._last = (kind, entry)  # only now: a failed transaction took it back

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._last = None
        super().close()


@dataclass(frozen=True)
class BoundCache:
    """A cache together with the key of one model and input."""

    cache: ValueCache
    key: CacheKey

    def look_up(self, masks: Masks) -> tuple[NDArray[np.int64], Values]:
        """See `ValueCache.look_up`."""
        return self.cache.look_up(self.key, masks)

    def store(self, masks: Masks, values: Values) -> None:
        """See `ValueCache.store`."""
        self.cache.store(self.key, masks, values)


@contextmanager
def opened(
    cache: ValueCache | str | os.PathLike[str] | None, key: CacheKey | None
) -> Iterator[BoundCache | None]:
    """Yield what ``cache=`` and ``cache_key=`` ask for; None without a cache."""
    if cache is None:
        if key is not None:
            raise ValueError(f"cache_key={key!r} without a cache; add cache=path")
        yield None
    elif isinstance(cache, ValueCache):
        yield BoundCache(cache, check_key(key))
    else:
        pair = check_key(key)
        with ValueCache(cache) as own:
            yield BoundCache(own, pair)


@dataclass(frozen=True)
class _Entry:
    """One (model key, input key) in the file.

    ``n_outputs`` is -1 for values of shape (m,). ``checksum`` covers the key and is
    where the checksum of each row starts.
    """

    number: int
    n_outputs: int
    checksum: int

    @classmethod
    def of(
        cls, number: int, pair: tuple[str, str], n_features: int, n_outputs: int
    ) -> _Entry:
        text = "\0".join((*pair, str(n_features), str(n_outputs)))
        return cls(number, n_outputs, zlib.crc32(text.encode()))

    def row(self, mask: bytes, numbers: bytes) -> tuple[int, bytes, bytes, int]:
        """Return a mask's row of the table."""
        return self.number, mask, numbers, zlib.crc32(mask + numbers, self.checksum)

    def checked(self, mask: bytes, numbers: object, checksum: object) -> bytes:
        if (
            isinstance(numbers, bytes)
            and len(numbers) == 8 * abs(self.n_outputs)
            and zlib.crc32(mask + numbers, self.checksum) == checksum
        ):
            return numbers
        raise sqlite3.DatabaseError("a value does not match its checksum")

    def shaped(self, values: Values) -> Values:
        return values if self.n_outputs < 0 else values.reshape(-1, self.n_outputs)


def _find_input(
    connection: sqlite3.Connection, pair: tuple[str, str], n_features: int
) -> _Entry | None:
    row = connection.execute(
        "SELECT id, n_features, n_outputs FROM inputs WHERE model = ? AND input = ?",
        pair,
    ).fetchone()
    if row is None:
        return None
    if not all(isinstance(number, int) for number in row):
        raise sqlite3.DatabaseError("an input's sizes are not numbers")
    number, known_features, n_outputs = row
    if known_features != n_features:
        raise ValueError(
            f"cache_key={pair!r} holds masks of {known_features} features, this fit "
            f"has {n_features}; give another model or input its own key"
        )
    if n_outputs != -1 and n_outputs < 1:
        raise sqlite3.DatabaseError(f"an input has {n_outputs} outputs")
    return _Entry.of(number, pair, n_features, n_outputs)


def _add_input(
    connection: sqlite3.Connection,
    pair: tuple[str, str],
    n_features: int,
    n_outputs: int,
) -> _Entry:
    entry = _find_input(connection, pair, n_features)
    if entry is None:
        number = connection.execute(
            "INSERT INTO inputs (model, input, n_features, n_outputs) "
            "VALUES (?, ?, ?, ?)",
            (*pair, n_features, n_outputs),
        ).lastrowid
        return _Entry.of(number or 0, pair, n_features, n_outputs)
    if entry.n_outputs != n_outputs:
        raise ValueError(
            f"cache_key={pair!r} holds {_shape(entry.n_outputs)}, this value function "
            f"returned {_shape(n_outputs)}; give another model its own key"
        )
    return entry


def _shape(n_outputs: int) -> str:
    return "values of shape (m,)" if n_outputs < 0 else f"values (m, {n_outputs})"


def _rows_of_bytes(array: NDArray[Any]) -> list[bytes]:
    """Return the raw bytes of each row."""
    data = array.tobytes()
    width = len(data) // max(len(array), 1)
    return [data[i * width : (i + 1) * width] for i in range(len(array))]
