"""Files are replaced whole or not at all, and nothing is left behind."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from harmonica_core import files

KILLED = """
import os, signal, sys
from harmonica_core.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(path, content=b"new"):
    with files.replacing(path) as file:
        file.write(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    write(path, b"old")
    with pytest.raises(OSError, match="full"), files.replacing(path) as file:
        file.write(b"half")
        raise OSError("full")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_kill_leaves_the_old_file_and_the_next_start_cleans_up(tmp_path):
    path = tmp_path / "a"
    write(path, b"old")
    killed = subprocess.run([sys.executable, "-c", KILLED, path])
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(names(tmp_path)) == 2
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["a"]


def test_the_first_write_into_a_folder_cleans_up(tmp_path):
    (tmp_path / ".harmonica-0.tmp").write_bytes(b"half")
    write(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_what_somebody_is_writing_is_left_alone(tmp_path):
    with files.replacing(tmp_path / "a") as file:
        file.write(b"new")
        files.remove_leftovers(tmp_path)
    assert (tmp_path / "a").read_bytes() == b"new"


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    write(path)
    usual = tmp_path / "usual"
    usual.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    path.chmod(0o640)
    link.symlink_to(path)
    write(link, b"newer")
    assert link.is_symlink() and path.read_bytes() == b"newer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_folders_are_refused_and_devices_written_to(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    write(os.devnull)
    assert not os.path.isfile(os.devnull)
