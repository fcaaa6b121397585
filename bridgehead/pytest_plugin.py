"""Fixtures for other people's test suites: a real cluster for a session of tests.

Read first: `pip install 'bridgehead[embedded]'` is all it takes; pytest finds the plug-in itself.
The cluster starts when the first test asks for it and ends with the session. To shape it, override
`bridgehead_cluster_options` in a conftest.py: the arguments of `bridgehead.cluster.Cluster`.

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
    """The arguments of `Cluster`; override it for another number of brokers or other properties."""
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
