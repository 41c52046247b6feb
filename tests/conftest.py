"""Settings of all tests: the same examples on every run, however slow the machine."""

import numpy as np
import pytest
from hypothesis import settings

from harmonica_core import registry

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")


@pytest.fixture
def games(tmp_path):
    """Two games of five features in one file."""
    values = np.random.default_rng(0).normal(size=(2, 32)).cumsum(axis=1)
    folder = tmp_path / "games"
    folder.mkdir()
    np.savez(folder / "toy5.npz", values=values)
    return folder


@pytest.fixture
def registered():
    """Names in the registries that are removed after the test."""
    before = set(registry.methods), set(registry.metrics)
    yield registry
    for known, names in zip((registry.methods, registry.metrics), before, strict=True):
        for name in set(known) - names:
            known.remove(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Working folder of ``harmonica explain``: models, data and a background."""
    from explain_runs import prepared

    with prepared(tmp_path, monkeypatch):
        yield tmp_path
