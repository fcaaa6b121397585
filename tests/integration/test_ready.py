"""The contract of a ready cluster, over the wire (docs/container.md#when-is-a-cluster-ready)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.blocking import call_once

QUICK = {"zookeeper.session.timeout.ms": "2000"}
METADATA: dict[str, Any] = {
    "topics": [],
    "allowAutoTopicCreation": False,
    "includeTopicAuthorizedOperations": False,
}


def check_contract(bootstrap_servers: str, brokers: int) -> None:
    """Ask each listed broker once, without a pause or a second try."""
    servers = bootstrap_servers.split(",")
    responses = [call_once(server, ApiKey.METADATA, 12, METADATA) for server in servers]
    listed = [
        {f"{broker['host']}:{broker['port']}" for broker in response["brokers"]}
        for response in responses
    ]
    assert listed == [set(servers)] * brokers
    controllers = {response["controllerId"] for response in responses}
    assert len(controllers) == 1
    assert controllers <= {broker["nodeId"] for broker in responses[0]["brokers"]}


def test_contract_holds_when_the_command_returns(
    tmp_path: Path, new_chroot: Callable[[], str]
) -> None:
    """`up --detach` is what scripts call, also with addresses of their own."""
    bridgehead = (sys.executable, "-m", "bridgehead.cli.main")
    folder = ("--data-dir", str(tmp_path))
    up = ("up", "--detach", "--ports", "auto", "--zookeeper", new_chroot(), "--json")
    done = subprocess.run(
        [*bridgehead, *up, *folder, "--brokers", "4", "--advertised", "localhost"],
        check=True,
        capture_output=True,
    )
    try:
        servers = json.loads(done.stdout)["bootstrap_servers"]
        assert servers.count("localhost:") == 4
        check_contract(servers, 4)
    finally:
        subprocess.run([*bridgehead, "down", *folder], check=True, capture_output=True)


@pytest.mark.parametrize("attempt", range(3))
def test_contract_holds_when_a_fixture_returns(attempt: int, new_chroot: Callable[[], str]) -> None:
    """The fixtures start clusters with `Cluster`, and reset them."""
    with Cluster(3, zookeeper=new_chroot(), properties=QUICK) as cluster:
        check_contract(cluster.bootstrap_servers, 3)
        cluster.kill_controller()
        cluster.reset()
        check_contract(cluster.bootstrap_servers, 3)
