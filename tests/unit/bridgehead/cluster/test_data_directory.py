"""A cluster's folder has one owner."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    mask = os.umask(0o077)
    yield
    os.umask(mask)


def test_only_one_process_owns_a_folder(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    assert not directory.is_claimed()
    owner = directory.claim()
    assert directory.is_claimed()
    with pytest.raises(ClusterError, match=f"already running in .* as pid {os.getpid()}"):
        directory.claim()
    os.close(owner)
    assert not directory.is_claimed()


def test_a_command_that_looks_for_the_owner_does_not_prevent_a_start(
    tmp_path: Path,
) -> None:
    directory = DataDirectory(tmp_path)
    os.close(directory.claim())
    looking = os.open(directory.supervisor_pid, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)  # the lock that is_claimed takes
    threading.Timer(0.05, os.close, (looking,)).start()
    os.close(directory.claim())
