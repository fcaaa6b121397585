"""After the same requests, ZooKeeper holds what a live Kafka 3.9.1 left there, byte for byte.

What a cluster may choose is masked: ids, times, ports, which brokers hold a partition. Key order
counts, because Kafka's readers are not the only ones.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from bridgehead.cluster import Cluster
from chaos.fidelity import load_cases, replay
from tests.integration.admin_clients import ConfluentHand

StartCluster = Callable[..., Cluster]
RECORDINGS = Path(__file__).parent.parent / "recordings"
OURS_ALONE = re.compile(r"/(bridgehead|zookeeper)(/.*)?")
# Requests of these are in the recording; a cluster that does not serve them has none of it.
NOT_COMPARED = re.compile(
    r"/config/(users|clients|ips)/.*"
    r"|/config/changes/.*"  # numbered through: a test of their own, below
    r"|/controller_epoch"  # the same
    r"|/config/brokers/<default>"  # its version counts requests that are not in the recording
    r"|/(brokers|config)/topics/(reassign|elect-leaders|delete-records|__x).*"
    r"|/(brokers|config)/topics/create-topics-v\d-(nobroker|neg|emptyrep)(/.*)?"  # refused here
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
    """A znode's JSON without what a cluster may choose, in its own key order."""
    if key in MASKED:
        return type(value).__name__
    if key == "config":
        return dict(sorted(value.items()))  # Kafka's is in the order of a hash table
    if key == "isr" or key.isdecimal():
        return len(value)
    if isinstance(value, dict):
        return {each: masked(inner, each) for each, inner in value.items()}
    return value


def comparable(znode: Znode) -> tuple[Any, ...]:
    """Data, kind, rights and, where requests alone decide it, the version."""
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
        "acl": [[each.perms, each.id.scheme, each.id.id] for each in acls],
    }
    for child in client.get_children(path):
        yield from walk(client, f"{path.rstrip('/')}/{child}")


def whole_walk(client: KazooClient) -> dict[str, Znode] | None:
    """None if a znode went while we walked."""
    try:
        return {znode["path"]: znode for znode in walk(client)}
    except NoNodeError:
        return None


def tree_of(cluster: Cluster) -> dict[str, Znode]:
    """The tree at rest: a controller may still be ending a deletion or an election."""
    client = KazooClient(cluster.zookeeper_connect)
    client.start()
    try:
        for _ in range(WALKS_MAX):
            if (tree := whole_walk(client)) is not None:
                return tree
        raise AssertionError(f"znodes went during each of {WALKS_MAX} walks")
    finally:
        client.stop()
        client.close()


def kept(tree: dict[str, Znode], named: set[str]) -> dict[str, tuple[Any, ...]]:
    """What is compared; of topics those that a recorded request names: Kafka was asked more."""
    compared = {}
    for path, znode in tree.items():
        topic = re.match(r"/(?:brokers|config)/topics/([^/]+)", path)
        left_out = OURS_ALONE.fullmatch(path) or NOT_COMPARED.fullmatch(path)
        if not left_out and (topic is None or topic[1] in named):
            compared[path] = comparable(znode)
    return compared


def names_in(recording: Path) -> set[str]:
    """Every text in the bodies of the recorded requests."""
    bodies = [step.get("body") for case in load_cases(recording) for step in case["steps"]]
    return set(re.findall(r'"([^"]*)"', json.dumps(bodies)))


def test_the_same_requests_leave_the_same_znodes(start_cluster: StartCluster) -> None:
    """Same paths; same JSON in the same key order; same rights, versions and ephemeral ones."""
    cluster = start_cluster(controller=1)
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    recording = RECORDINGS / "forwarded-open.jsonl.gz"
    replay(recording, brokers, to="other")
    tree = tree_of(cluster)
    named = names_in(recording)
    want, got = kept(recorded("forwarded"), named), kept(tree, named)
    assert sorted(set(want) ^ set(got)) == []
    assert {path: got[path] for path in want if got[path] != want[path]} == {}
    assert len(want) > 900  # a comparison of next to nothing would pass as well


def test_states_carry_the_controllers_epoch_and_changes_are_numbered_through(
    start_cluster: StartCluster,
) -> None:
    """The epoch counts elections as its znode's version does; a change names what changed."""
    cluster = start_cluster()
    hand = ConfluentHand(cluster.bootstrap_servers)
    hand.create("first", 1, 3, {})
    hand.alter("first", {"retention.ms": "1000"}, legacy=False)
    cluster.move_controller(cluster.controller_id() % 3 + 1)
    hand.create("second", 1, 3, {})
    hand.alter("second", {"retention.ms": "1000"}, legacy=False)
    hand.close()
    tree = tree_of(cluster)
    epoch = tree["/controller_epoch"]
    assert int(epoch["data"]) == epoch["version"]
    states = [tree[f"/brokers/topics/{name}/partitions/0/state"] for name in ("first", "second")]
    epochs = [json.loads(state["data"])["controller_epoch"] for state in states]
    assert epochs == [epoch["version"] - 1, epoch["version"]]
    changes = {path: each["data"] for path, each in tree.items() if "/config_change_" in path}
    assert changes == {
        f"/config/changes/config_change_000000000{number}": (
            f'{{"version":2,"entity_path":"topics/{name}"}}'
        )
        for number, name in enumerate(("first", "second"))
    }
