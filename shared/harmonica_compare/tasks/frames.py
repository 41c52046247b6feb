"""Tables from files: whatever is wrong with a file is a TaskError."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harmonica_compare.case import one_line
from harmonica_compare.tasks import TaskError

if TYPE_CHECKING:
    import pandas as pd

# Each kind of compression has its own way to say that a file is damaged.
_UNREADABLE = (
    ValueError,
    OverflowError,
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)


def read_frame(path: Path, kind: str, **options: Any) -> pd.DataFrame:
    """Return a table of a Parquet file, or of ``pandas.read_csv(path, **options)``.

    ``kind`` is "CSV" or "TSV", for the complaint.
    """
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        frame: pd.DataFrame = pd.read_csv(path, **options)
    except _UNREADABLE as error:
        reason = one_line(error)
        raise TaskError(f"--data {path}: not a readable {kind} ({reason})") from error
    return frame
