"""Files that are there whole or not at all, whenever a process is killed."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

_LEFTOVERS = ".harmonica-*.tmp"
_cleaned: set[Path] = set()  # folders, once for each process: listing them takes time


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a file to write to; it takes the place of ``path`` at the end of the block.

    Until then, and for good when the block raises or the process is killed, ``path``
    is what it was. Links are followed, permissions kept, and the contents are on the
    disk before the name points at them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(folder + "/page.html") as file:
    ...         _ = file.write(b"whole")
    ...     Path(folder, "page.html").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a folder is refused, a device is not
        with target.open("wb") as device:
            yield device
        return
    if target.parent not in _cleaned:
        remove_leftovers(target.parent)
    file, temporary = _create(target.parent)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too leaves nothing behind
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes began to write in a folder, and nobody else."""
    _cleaned.add(folder)
    for leftover in folder.glob(_LEFTOVERS):
        with suppress(OSError), leftover.open("rb") as file:
            if _lock(file, wait=False):  # whoever still writes holds the lock
                leftover.unlink()


def is_leftover(path: Path) -> bool:
    """Whether a file is the beginning of one that was never finished."""
    return path.match(_LEFTOVERS)


def _create(folder: Path) -> tuple[IO[bytes], Path]:
    """Open a new file that `remove_leftovers` in another process leaves alone."""
    while True:
        temporary = folder / f".harmonica-{secrets.token_hex(8)}.tmp"
        file = temporary.open("xb")
        _lock(file, wait=True)
        if temporary.exists():
            return file, temporary
        file.close()  # removed between the opening and the lock


def _lock(file: IO[bytes], wait: bool) -> bool:
    """Lock a file until it is closed; False when somebody else holds the lock."""
    if sys.platform != "win32":  # there, what is open can not be deleted anyway
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True
