"""File descriptors: the limit is raised, and no purpose uses up those of another."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys

import pytest

from broker_proxy.connections.admission import WAITING_MAX
from broker_proxy.connections.server import ACCEPTED_AT_ONCE
from data_plane.log.open_files import OPEN_FILES_MAX
from node.descriptors import OWN, descriptor_shares


@pytest.mark.parametrize("limit", [600, 1024, 4096, 20_000, 1_048_576])
@pytest.mark.parametrize("listeners", [1, 4])
def test_all_shares_together_leave_the_nodes_own_descriptors(limit: int, listeners: int) -> None:
    shares = descriptor_shares(limit, listeners)
    queues = listeners + 1  # and the addresses that are kept waiting
    used = shares.files + shares.clients + shares.waiting * queues
    assert used + ACCEPTED_AT_ONCE + OWN <= limit
    assert shares.clients >= (limit - OWN - ACCEPTED_AT_ONCE) // 2
    assert 0 < shares.files <= OPEN_FILES_MAX
    assert 0 < shares.waiting <= WAITING_MAX


def test_a_limit_that_is_too_low_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        shares = descriptor_shares(256, 1)
    assert min(shares) > 0
    assert "the limit of 256 file descriptors" in caplog.text
    assert "ulimit -n" in caplog.text


def test_a_process_raises_its_soft_limit_to_the_hard_one() -> None:
    code = (
        "import resource; from node.descriptors import raise_limit;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, 777));"
        "print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 777:
        pytest.skip("this process may not have 777 descriptors")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["777", "777", "777"]
