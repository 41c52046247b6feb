"""Import what the user names on the command line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harmonica_compare.case import told
from harmonica_compare.tasks import TaskError


def look_in(folder: str) -> None:
    """Let modules of this folder be imported."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def load_module(name: str, option: str) -> Any:
    """Import a module, from the current folder too; ``option`` is what named it."""
    look_in(os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # it may do anything while it is imported
        raise TaskError(f"{option}: {told(error)}") from error


def find_function(model: str | None) -> Callable[..., Any]:
    """Return the function that ``module:function`` names."""
    module_name, _, names = (model or "").partition(":")
    if not module_name or not names:
        raise TaskError(f"--model {model}: needed module:function")
    found = load_module(module_name, f"--model {model} can not be imported")
    for name in names.split("."):
        if not hasattr(found, name):
            raise TaskError(f"--model {model}: {module_name} has no {names}")
        found = getattr(found, name)
    if not callable(found):
        raise TaskError(f"--model {model} is {type(found).__name__}; needed a function")
    function: Callable[..., Any] = found
    return function


def call_function(model: str | None) -> Any:
    """Return what ``module:function`` returns when it is called without arguments."""
    function = find_function(model)
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise TaskError(f"--model {model}: {told(error)}") from error


def source_files(model: str) -> list[Path]:
    """Return the files of an imported ``module:function`` and of what it imports.

    Those in its own folder only: installed packages have versions, a user's modules
    are edited.
    """
    name = model.partition(":")[0]
    own = _file(sys.modules[name.partition(".")[0]]) or _file(sys.modules[name])
    if own is None:  # built in
        return []
    files = filter(None, map(_file, list(sys.modules.values())))
    return sorted({own, *(file for file in files if _beside(own, file))})


def _beside(own: Path, file: Path) -> bool:
    if not file.is_relative_to(own.parent):
        return False
    return "site-packages" not in file.relative_to(own.parent).parts


def _file(module: Any) -> Path | None:
    # Not getattr: some packages import what is asked for.
    name = getattr(module, "__dict__", {}).get("__file__")
    return Path(name) if isinstance(name, str) and Path(name).is_file() else None
