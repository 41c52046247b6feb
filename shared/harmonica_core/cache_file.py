"""The file under a value cache: opened, created or refused; one transaction at a time.

`CacheFile` knows SQLite, processes and threads; what is stored is `cache`'s business.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

APPLICATION_ID = 0x48524D43  # "HRMC"
VERSION = 1

_MAGIC = b"SQLite format 3\x00"
_BUSY_SECONDS = 60.0
_SCHEMA = (
    "CREATE TABLE inputs (id INTEGER PRIMARY KEY, model TEXT NOT NULL, "
    "input TEXT NOT NULL, n_features INTEGER NOT NULL, n_outputs INTEGER NOT NULL, "
    "UNIQUE (model, input))",
    "CREATE TABLE evaluated (input_id INTEGER NOT NULL, mask BLOB NOT NULL, "
    "numbers BLOB NOT NULL, checksum INTEGER NOT NULL, "
    "PRIMARY KEY (input_id, mask)) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
# Connections that a fork inherited: SQLite forbids even closing them in the child.
_inherited: list[sqlite3.Connection] = []


class CacheFile:
    """One SQLite file, safe to use from several threads and to send to processes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._start_afresh()
        self.execute("SELECT 1")  # opens it

    def _start_afresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._start_afresh()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._leave_parent_alone()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _leave_parent_alone(self) -> None:
        """After a fork, start with a connection and a lock of our own."""
        if self._pid != os.getpid():
            if self._connection is not None:
                _inherited.append(self._connection)
            self._start_afresh()

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Carry out one statement, which is a transaction of its own."""
        self._leave_parent_alone()
        with self._lock:
            try:
                return self._connect().execute(statement, values)
            except sqlite3.Error as error:
                raise self._translated(error) from error

    @contextmanager
    def transaction(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Everything in the block happens, or nothing."""
        self._leave_parent_alone()
        with self._lock:
            try:
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._translated(error) from error

    def damaged(self, reason: object) -> ValueError:
        """Return the error for a file whose contents can not be trusted."""
        return ValueError(
            f"the value cache {str(self.path)!r} is damaged ({reason}); it was left as "
            "it is: move it away and start a new one"
        )

    def _translated(self, error: sqlite3.Error) -> Exception:
        """Turn SQLite's errors into ours: damage is ValueError, the rest OSError."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            return OSError(f"the value cache {str(self.path)!r}: {error}")
        return self.damaged(error)  # also when a table is gone: SQLITE_ERROR

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            refuse_foreign(self.path)
            self._connection = _open(self.path)
        return self._connection


def refuse_foreign(path: Path) -> None:
    """Look at the header before SQLite may touch the file."""
    if path.is_dir():
        raise ValueError(f"cache={str(path)!r} is a folder; needed a path to a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cache={str(path)!r}: the folder {str(path.parent)!r} does not exist; "
            "make it first"
        )
    header = _first_bytes(path) if path.exists() else b""
    identity = int.from_bytes(header[68:72], "big")
    if header and (not header.startswith(_MAGIC) or identity != APPLICATION_ID):
        raise ValueError(
            f"{str(path)!r} is not a value cache of Harmonica (or is damaged); it was "
            "left as it is: give cache= another path"
        )


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _create_if_empty(connection)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise ValueError(
                f"the value cache {str(path)!r} has version {version}; this release "
                f"reads version {VERSION}: upgrade harmonica-xai"
            )
        # Another process may be just starting too; then the next opening switches.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        # Commits survive a kill without waiting for the disk.
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _create_if_empty(connection: sqlite3.Connection) -> None:
    """Write the schema through the rollback journal, in one transaction.

    So the main file is either empty or carries our identity in its header, whenever
    we are killed; processes that start together take turns.
    """
    if _n_tables(connection):
        return
    # A commit writes whole pages: small ones make commits of single rows cheap.
    connection.execute("PRAGMA page_size = 1024")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _n_tables(connection):
            for statement in _SCHEMA:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _n_tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
