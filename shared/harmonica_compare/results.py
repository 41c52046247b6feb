"""results.json: every number of a comparison, written atomically, checked when read."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harmonica_core.storage import parse_json

FORMAT = "harmonica-compare"
VERSION = 2
STATUSES = ("ok", "not applicable", "failed")


@dataclass(frozen=True)
class Cell:
    """One method on one case at one budget.

    Attributes
    ----------
    case, method : str
    budget, seed : int
    status : "ok", "not applicable" or "failed"
    message : str
        Why it is not "ok".
    n_calls : int
        Model evaluations used.
    seconds : float
        Time of the method, without the model's.
    numbers : dict
        ``{name: [value, standard error]}``; names such as ``shapley``, ``L2@4``,
        ``coverage``, ``first_seconds``: see `harmonica_compare.judge`.
    """

    case: str
    method: str
    budget: int
    seed: int
    status: str
    message: str = ""
    n_calls: int = 0
    seconds: float = 0.0
    numbers: dict[str, list[float]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What makes it unique."""
        return self.case, self.method, self.budget, self.seed


@dataclass(frozen=True)
class Results:
    """All cells of a comparison with its settings."""

    settings: dict[str, Any]
    versions: dict[str, str]
    cells: tuple[Cell, ...] = ()
    complete: bool = False

    def save(self, path: Path) -> None:
        """Write; whoever reads sees the old file or the whole new one."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".results")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1, allow_nan=False)
            os.replace(name, path)
        except BaseException:  # Ctrl-C too leaves nothing behind
            os.unlink(name)
            raise

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote, or say why that is impossible."""
        try:
            content = parse_json(path.read_text(encoding="utf-8"))
            return cls._parse(content)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise ValueError(
                f"{path} is damaged or not a result of harmonica compare ({error!r}); "
                "needed a results.json that it wrote"
            ) from error

    @classmethod
    def _parse(cls, content: dict[str, Any]) -> Results:
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError(
                f"format {content['format']!r} version {content['version']!r}; needed "
                f"{FORMAT!r} version {VERSION}"
            )
        cells = tuple(Cell(**cell) for cell in content["cells"])
        for cell in cells:
            _check_cell(cell)
        settings, versions = dict(content["settings"]), dict(content["versions"])
        return cls(settings, versions, cells, bool(content["complete"]))


def _check_cell(cell: Cell) -> None:
    texts = (cell.case, cell.method, cell.message)
    counts = (cell.budget, cell.seed, cell.n_calls)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{texts!r} where texts were expected")
    if not all(type(count) is int for count in counts):
        raise TypeError(f"{counts!r} where whole numbers were expected")
    if cell.status not in STATUSES:
        raise ValueError(f"status {cell.status!r}")
    errors = [standard_error for _, standard_error in cell.numbers.values()]
    for number in (cell.seconds, cell.n_calls, *errors):
        if _finite(number) < 0:
            raise ValueError(f"{number!r} where a number >= 0 was expected")
    for value, _ in cell.numbers.values():
        _finite(value)


def _finite(number: Any) -> float:
    if not math.isfinite(number):  # 1e999 is infinite, though it is JSON
        raise ValueError(f"{number!r} where a finite number was expected")
    return float(number)
