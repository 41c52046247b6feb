"""Cells of other processes, known here before their whole case is finished."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from harmonica_compare.results import Cell

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Journal:
    """A folder with one file a process and one line a cell."""

    folder: str

    def write(self, cell: Cell) -> None:
        """Append a cell; nothing depends on it, so a full disk is no reason to stop."""
        try:
            with open(Path(self.folder) / f"{os.getpid()}.jsonl", "a") as file:
                file.write(json.dumps(asdict(cell)) + "\n")
        except OSError:
            return

    def read(self, done: dict[str, int]) -> Iterator[Cell]:
        """Yield the cells after the ``done`` bytes of each file, and move those on."""
        for path in sorted(Path(self.folder).glob("*.jsonl")):
            with open(path, "rb") as file:
                file.seek(done.get(path.name, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    done[path.name] = done.get(path.name, 0) + len(line)
                    yield Cell(**json.loads(line))


@contextmanager
def watched(
    on_cell: Callable[[Cell], None], on_look: Callable[[], object]
) -> Iterator[Journal]:
    """Give a journal whose cells go to ``on_cell``, from a thread, as they come.

    ``on_look`` is called at every look, whether there are new cells or not.
    """
    with TemporaryDirectory(prefix="harmonica", ignore_cleanup_errors=True) as folder:
        journal, over = Journal(folder), Event()
        done: dict[str, int] = {}

        def look() -> None:
            for cell in journal.read(done):
                on_cell(cell)

        def keep_looking() -> None:
            while not over.wait(_SECONDS_BETWEEN_LOOKS):
                look()
                on_look()

        thread = Thread(target=keep_looking, daemon=True)
        thread.start()
        try:
            yield journal
        finally:
            over.set()
            thread.join()
            look()
