"""The same requests leave the same znodes as in a live Kafka 3.9.1.

Values that differ between clusters (ids, times, ports, replicas) are masked, and znodes that match
NOT_COMPARED are left out. All other values are compared, and the order of JSON keys, but not
the order of configs.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from bridgehead.cluster import Cluster
from tests.fidelity.replay import load_cases, replay
from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster
from tests.integration.zookeeper_peers import kazoo_client

RECORDINGS = Path(__file__).parent.parent / "recordings"
OURS_ALONE = re.compile(r"/(bridgehead|zookeeper)(/.*)?")
NOT_COMPARED = re.compile(
    r"/config/(users|clients|ips)/.*"
    r"|/config/changes/.*"  # sequential: tested below
    r"|/controller_epoch"  # tested below
    r"|/config/brokers/<default>"  # its version counts requests outside the recording
    r"|/(brokers|config)/topics/(reassign|elect-leaders|delete-records|__x).*"
    r"|/(brokers|config)/topics/create-topics-v\d-(nobroker|neg|emptyrep)(/.*)?"  # rejected by us
)
MASKED = {
    "topic_id",
    "timestamp",
    "id",
    "port",
    "endpoints",
    "leader",
    "controller_epoch",
    "brokerid",
    "host",
}

Znode = dict[str, Any]
WALKS_MAX = 20


def masked(value: Any, key: str = "") -> Any:
    """Return a znode's JSON in its key order; mask values that differ between clusters."""
    if key in MASKED:
        return type(value).__name__
    if key == "config":
        return dict(sorted(value.items()))  # Kafka writes the keys in the order of a hash table
    if key == "isr" or key.isdecimal():
        return len(value)
    if isinstance(value, dict):
        return {name: masked(inner, name) for name, inner in value.items()}
    return value


def comparable(znode: Znode) -> tuple[Any, ...]:
    """Return a znode's data, version and ACLs, and whether it is ephemeral."""
    data = znode["data"]
    if data and data.startswith("{"):
        data = json.dumps(masked(json.loads(data)))
    return data, znode["ephemeral"], znode["version"], znode["acl"]


def recorded(kind: str) -> dict[str, Znode]:
    with gzip.open(RECORDINGS / f"znodes-{kind}-open.jsonl.gz", "rt") as lines:
        return {znode["path"]: znode for znode in map(json.loads, lines)}


def walk(client: KazooClient, path: str = "/") -> Iterator[Znode]:
    data, stat = client.get(path)
    acls = client.get_acls(path)[0]
    yield {
        "path": path,
        "data": None if data is None else data.decode(),
        "ephemeral": bool(stat.ephemeralOwner),
        "version": stat.version,
        "acl": [[acl.perms, acl.id.scheme, acl.id.id] for acl in acls],
    }
    for child in client.get_children(path):
        yield from walk(client, f"{path.rstrip('/')}/{child}")


def whole_walk(client: KazooClient) -> dict[str, Znode] | None:
    """Return all znodes by path, or None if a znode was deleted during the walk."""
    try:
        return {znode["path"]: znode for znode in walk(client)}
    except NoNodeError:
        return None


def tree_of(cluster: Cluster) -> dict[str, Znode]:
    """Walk the tree; repeat the walk if the controller deleted a znode meanwhile."""
    with kazoo_client(cluster.zookeeper_connect) as client:
        for _ in range(WALKS_MAX):
            if (tree := whole_walk(client)) is not None:
                return tree
        raise AssertionError(f"znodes were deleted during each of {WALKS_MAX} walks")


def kept(tree: dict[str, Znode], named: set[str]) -> dict[str, tuple[Any, ...]]:
    """Return the znodes to compare. Topics that no recorded request names are left out."""
    compared = {}
    for path, znode in tree.items():
        topic = re.match(r"/(?:brokers|config)/topics/([^/]+)", path)
        skipped = OURS_ALONE.fullmatch(path) or NOT_COMPARED.fullmatch(path)
        if not skipped and (topic is None or topic[1] in named):
            compared[path] = comparable(znode)
    return compared


def names_in(recording: Path) -> set[str]:
    """Return every string in the bodies of the recorded requests."""
    bodies = [step.get("body") for case in load_cases(recording) for step in case["steps"]]
    return set(re.findall(r'"([^"]*)"', json.dumps(bodies)))


@pytest.mark.long
def test_same_requests_leave_the_same_znodes(start_cluster: StartCluster) -> None:
    """Paths, data, ACLs and versions are equal, and the same znodes are ephemeral."""
    cluster = start_cluster(controller=1)
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    recording = RECORDINGS / "forwarded-open.jsonl.gz"
    replay(recording, brokers, to="other")
    tree = tree_of(cluster)
    named = names_in(recording)
    want, got = kept(recorded("forwarded"), named), kept(tree, named)
    assert sorted(set(want) ^ set(got)) == []
    assert {path: got[path] for path in want if got[path] != want[path]} == {}
    assert len(want) > 900  # the comparison is not empty


def test_partition_states_have_the_controller_epoch_and_notifications_are_numbered(
    start_cluster: StartCluster,
) -> None:
    """The controller epoch equals the version of its znode. A notification names its entity."""
    cluster = start_cluster()
    admin = ConfluentAdmin(cluster.bootstrap_servers)
    admin.create("first", 1, 3, {})
    admin.alter("first", {"retention.ms": "1000"}, legacy=False)
    cluster.move_controller(cluster.wait_for_controller() % 3 + 1)
    admin.create("second", 1, 3, {})
    admin.alter("second", {"retention.ms": "1000"}, legacy=False)
    admin.close()
    tree = tree_of(cluster)
    epoch = tree["/controller_epoch"]
    assert int(epoch["data"]) == epoch["version"]
    states = [tree[f"/brokers/topics/{name}/partitions/0/state"] for name in ("first", "second")]
    epochs = [json.loads(state["data"])["controller_epoch"] for state in states]
    assert epochs == [epoch["version"] - 1, epoch["version"]]
    changes = {path: znode["data"] for path, znode in tree.items() if "/config_change_" in path}
    assert changes == {
        f"/config/changes/config_change_000000000{number}": (
            f'{{"version":2,"entity_path":"topics/{name}"}}'
        )
        for number, name in enumerate(("first", "second"))
    }
