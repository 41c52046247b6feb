"""Import what the user names on the command line."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from harmonica_compare.case import told
from harmonica_compare.tasks import TaskError


def load_module(name: str, option: str) -> Any:
    """Import a module, from the current folder too; ``option`` is what named it."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # it may do anything while it is imported
        raise TaskError(f"{option}: {told(error)}") from error


def call_function(model: str | None) -> Any:
    """Return what ``module:function`` returns when it is called without arguments."""
    if not model or ":" not in model:
        raise TaskError(f"--model {model}: needed module:function")
    module_name, _, name = model.partition(":")
    module = load_module(module_name, f"--model {model}")
    if not hasattr(module, name):
        raise TaskError(f"--model {model}: {module_name} has no {name}")
    function = getattr(module, name)
    if not callable(function):
        kind = type(function).__name__
        raise TaskError(f"--model {model}: {name} is {kind}, not a function")
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise TaskError(f"--model {model}: {told(error)}") from error
