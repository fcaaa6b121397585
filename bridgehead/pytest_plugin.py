"""Fixtures for users' test suites: a real cluster for a test session.

Requires `pip install 'bridgehead[embedded]'`; pytest finds the plug-in itself. The cluster starts
with the first test that uses it and stops with the session. To configure it, override
`bridgehead_cluster_options` in a conftest.py.

    def test_my_tool_survives_a_failover(bridgehead_cluster):
        tool = MyTool(bridgehead_cluster.bootstrap_servers)
        bridgehead_cluster.kill_controller()
        ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bridgehead.cluster import Cluster


@pytest.fixture(scope="session")
def bridgehead_cluster_options() -> dict[str, Any]:
    """Return the arguments of `bridgehead.cluster.Cluster`; override it to change them."""
    return {"brokers": 3}


@pytest.fixture(scope="session")
def bridgehead_cluster(
    bridgehead_cluster_options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A running cluster on free ports, shared by the session's tests."""
    from bridgehead.cluster import Cluster

    options = {"data_dir": tmp_path_factory.mktemp("bridgehead"), **bridgehead_cluster_options}
    with Cluster(**options) as cluster:
        yield cluster
