"""Import what the user names on the command line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
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
