"""Tables larger than memory: read in chunks, written in parts that are never half."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.files import replacing

READERS = (".csv", ".csv.gz", ".parquet")


class Source:
    """A CSV or Parquet file of numbers, read in chunks of rows.

    Parameters
    ----------
    path : Path
    features : list of str, optional
        Columns to read, in this order; None: all. Spaces around a name that no column
        has are left out.
    """

    def __init__(self, path: Path, features: list[str] | None = None) -> None:
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file")
        if not path.name.endswith(READERS):
            raise ValueError(f"{path}: needed a file ending in {', '.join(READERS)}")
        self.path = path
        names = self._names()
        self.features = names if features is None else _stripped(features, names)
        missing = [name or "''" for name in self.features if name not in names]
        if missing:
            raise ValueError(
                f"{path} has no column {', '.join(missing)}; it has {', '.join(names)}"
            )
        twice = [name for name in self.features if self.features.count(name) > 1]
        if twice or not self.features:
            raise ValueError(
                f"{path}: column {twice[0]} twice; needed distinct columns"
                if twice
                else f"{path}: no columns; needed at least one feature"
            )
        if self._is_empty():
            raise ValueError(f"{path} has no rows; needed at least one")

    @property
    def _is_parquet(self) -> bool:
        return self.path.name.endswith(".parquet")

    def _names(self) -> list[str]:
        if self._is_parquet:
            return list(_parquet(self.path).schema_arrow.names)
        pandas = _pandas()
        with _readable(self.path):
            names = list(pandas.read_csv(self.path, nrows=0).columns)
            with suppress(pandas.errors.EmptyDataError):
                row = pandas.read_csv(self.path, header=None, skiprows=1, nrows=1)
                if row.shape[1] > len(names):  # pandas would take an index from it
                    raise ValueError("rows have more fields than the header")
        return names

    def _is_empty(self) -> bool:
        if self._is_parquet:
            return not self.n_rows()
        with _readable(self.path):
            return not len(_pandas().read_csv(self.path, nrows=1))

    def n_rows(self) -> int | None:
        """Return the number of rows where the file says so (Parquet), else None."""
        return _parquet(self.path).metadata.num_rows if self._is_parquet else None

    def chunks(self, size: int) -> Iterator[tuple[int, Floats]]:
        """Yield (first row, float64 (size, n_features)); the last one is shorter."""
        start, left = 0, np.zeros((0, len(self.features)))
        for block in self._blocks(size):
            left = np.concatenate([left, self._numbers(block, start + len(left))])
            while len(left) >= size:
                yield start, left[:size]
                start, left = start + size, left[size:].copy()
        if len(left):
            yield start, left

    def _blocks(self, size: int) -> Iterator[Any]:
        if self._is_parquet:
            file = _parquet(self.path)
            with _readable(self.path):
                for batch in file.iter_batches(batch_size=size, columns=self.features):
                    yield batch.to_pandas()
            return
        pandas = _pandas()
        # All columns: with usecols, pandas drops surplus fields silently.
        with (
            _readable(self.path),
            pandas.read_csv(self.path, chunksize=size) as reader,
        ):
            yield from reader

    def _numbers(self, block: Any, first_row: int) -> Floats:
        block = block[self.features]
        words = [name for name in self.features if block[name].dtype.kind not in "biuf"]
        if words:
            raise ValueError(
                f"{self.path}: column {', '.join(words)} is not a number in the "
                f"{len(block)} rows from row {first_row}; encode it, or name the "
                "numeric columns with --features"
            )
        return np.asarray(block.to_numpy(dtype=np.float64))

    def mean(self, size: int) -> Floats:
        """Return the mean of each column's finite values, in one pass."""
        total, count = np.zeros(len(self.features)), np.zeros(len(self.features))
        for _, rows in self.chunks(size):
            finite = np.isfinite(rows)
            total += np.where(finite, rows, 0.0).sum(axis=0)
            count += finite.sum(axis=0)
        return np.asarray(total / np.maximum(count, 1))


def content_hash(*paths: Path) -> str:
    """Return a hash of what is in some files; their names and times do not count."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def write_part(path: Path, columns: dict[str, Any]) -> None:
    """Write a table to ``path`` (.csv or .parquet): completely, or not at all."""
    frame = _pandas().DataFrame(columns)
    with replacing(path) as file:
        if path.suffix == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, index=False)


def is_whole_part(path: Path, names: list[str], start: int, n_rows: int) -> bool:
    """Whether `write_part` has written these columns of these rows to ``path``."""
    try:
        table = _read_part(path)
        numbers = table.to_numpy(dtype=np.float64)
    except Exception:  # not there, cut off, damaged: the rows are explained again
        return False
    expected = np.arange(start, start + n_rows)
    return (
        list(table) == names
        and np.array_equal(table["row"], expected)
        and bool(np.isfinite(numbers).all())
    )


def _read_part(path: Path) -> Any:
    if path.suffix == ".parquet":
        return _pandas().read_parquet(path)
    # Without its end, a last number is still a number.
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} is cut off")
    return _pandas().read_csv(path)


def need_writer(kind: str) -> None:
    """Say which package is missing before anything is explained."""
    _pandas()
    if kind == "parquet":
        _arrow()


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ValueError(
            'harmonica explain needs pandas: pip install "harmonica-xai[explain]"'
        ) from error
    return pandas


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            "Parquet files need pyarrow; --format csv does without: pip install "
            '"harmonica-xai[explain]"'
        ) from error
    return pyarrow.parquet


def _parquet(path: Path) -> Any:
    arrow = _arrow()
    with _readable(path):
        return arrow.ParquetFile(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which file it is that can not be read: cut off, damaged, or no table."""
    try:
        yield
    except Exception as error:  # ValueError, OSError, EOFError, zlib's, Arrow's
        raise ValueError(f"{path} can not be read: {error}") from error


def _stripped(features: list[str], names: list[str]) -> list[str]:
    return [name if name in names else name.strip() for name in features]
