"""A new controller loads its state from valid, incomplete and invalid znodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from kazoo.client import KazooClient

from bench.large_state import write
from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import (
    NO_STATE,
    AclRecord,
    ConfigRecord,
    ConfigResource,
    PartitionState,
    Record,
    TokenRecord,
    TokenRemovalRecord,
)
from cluster_model.znodes.acls import ACL_PATHS, UNREADABLE, AclZnode
from cluster_model.znodes.layout import BRIDGEHEAD_PATHS, START_UP_PATHS, encode_uuid
from cluster_model.znodes.operations import SetData
from cluster_model.znodes.tokens import TOKEN_PATHS
from controller.store.load import Loaded, load
from controller.store.plan import plan_operations
from controller.store.zookeeper import ZooKeeperStore
from tests.integration.store_peers import commit, new_store
from tests.integration.zookeeper_peers import kazoo_client
from zookeeper_client.token_reading import StoredTokens, read_tokens

ID, OTHER_ID = bytes([7]) * 16, bytes([8]) * 16


@pytest.fixture
def zk(zookeeper: Any) -> Iterator[KazooClient]:
    with kazoo_client(zookeeper.connect) as client:
        for path in (*START_UP_PATHS, *BRIDGEHEAD_PATHS):
            client.ensure_path(path)
        yield client


@pytest.fixture
async def store(zookeeper: Any) -> AsyncIterator[ZooKeeperStore]:
    opened = new_store(zookeeper.connect)
    await opened.open(10)
    yield opened
    await opened.close()


def put(client: KazooClient, path: str, value: Any = None) -> int:
    """Create a znode; return its czxid."""
    data = b"" if value is None else json.dumps(value).encode()
    _, stat = client.create(path, data, makepath=True, include_data=True)
    return int(stat.czxid)


def put_topic(client: KazooClient, name: str, *replicas: list[int], **fields: Any) -> None:
    partitions = {str(number): replica for number, replica in enumerate(replicas)}
    put(client, f"/brokers/topics/{name}", {"version": 3, "partitions": partitions, **fields})


def put_state(client: KazooClient, name: str, partition: int, **fields: Any) -> None:
    state = {"controller_epoch": 4, "leader": 1, "version": 1, "leader_epoch": 2, "isr": [1, 2]}
    put(client, f"/brokers/topics/{name}/partitions/{partition}/state", state | fields)


async def loaded(store: ZooKeeperStore) -> Loaded:
    return await load(store.read, controller_epoch=9)


async def test_topics_configs_and_deletions_are_loaded(
    zk: KazooClient, store: ZooKeeperStore
) -> None:
    put_topic(zk, "orders", [1, 2], [2, 1], topic_id=encode_uuid(ID))
    put_state(zk, "orders", 0)
    put_state(zk, "orders", 1, leader=-1, isr=[2], leader_recovery_state=1)
    state = "/brokers/topics/orders/partitions/0/state"
    zk.set(state, zk.get(state)[0])
    moving = {"adding_replicas": {"0": [3]}, "removing_replicas": {"0": [1]}}
    put_topic(zk, "moving", [3, 1], topic_id=encode_uuid(OTHER_ID), **moving)
    put_state(zk, "moving", 0)
    configs = {
        "topics/orders": "a",
        "brokers/<default>": "b",
        "clients/app": "c",
        "ips/1.1.1.1": "d",
    }
    configs |= {"users/alice": "e", "users/alice/clients/app": "f"}
    for path, value in configs.items():
        put(zk, f"/config/{path}", {"version": 1, "config": {"key": value}})
    put(zk, "/admin/delete_topics/moving")
    put(zk, "/admin/delete_topics/gone")
    read = await loaded(store)
    orders, image = read.image.topics["orders"], read.image
    assert (orders.topic_id, orders.assignment) == (ID, ((1, 2), (2, 1)))
    assert orders.states[0] == PartitionState(1, 2, (1, 2), 4, partition_epoch=1)
    assert orders.states[1] == PartitionState(-1, 2, (2,), 4, 0, recovering=True)
    assert (image.topics["moving"].adding, image.topics["moving"].removing) == (
        {0: (3,)},
        {0: (1,)},
    )
    assert dict(image.topic_names) == {ID: "orders", OTHER_ID: "moving"}
    assert {
        f"{r.entity_type}/{r.entity_name}": c["key"] for r, c in image.configs.items()
    } == configs
    assert dict(image.user_clients) == {"alice": frozenset({"app"})}
    assert (image.deletions, read.orphan_markers) == (frozenset({"moving"}), ("gone",))
    assert (image.controller_epoch, read.invalid, read.without_id) == (9, (), ())


async def test_incomplete_topics_are_loaded(zk: KazooClient, store: ZooKeeperStore) -> None:
    """Each topic lacks something: partition states, children of `partitions`, or the topic id."""
    put_topic(zk, "half", [1], [1], [1], topic_id=encode_uuid(ID))
    put_state(zk, "half", 0)
    put(zk, "/brokers/topics/half/partitions/1")
    put_topic(zk, "begun", [1], topic_id=encode_uuid(OTHER_ID))
    put(zk, "/brokers/topics/begun/partitions")
    put_topic(zk, "old", [1])
    read = await loaded(store)
    half, begun, old = (read.image.topics[name] for name in ("half", "begun", "old"))
    assert half.states[1:] == (NO_STATE, NO_STATE)
    assert (half.has_partitions_znode, half.bare_partition_znodes) == (True, frozenset({1}))
    assert (begun.has_partitions_znode, begun.bare_partition_znodes) == (True, frozenset())
    assert (old.has_partitions_znode, old.topic_id) == (False, b"")
    assert read.without_id == ("old",)


async def test_brokers_and_their_incarnations_are_loaded(
    zk: KazooClient, store: ZooKeeperStore
) -> None:
    """A broker's epoch is its znode's czxid; a Kafka broker has no incarnation."""
    ours = {"version": 5, "endpoints": ["L://h:9"], "listener_security_protocol_map": {"L": "SSL"}}
    epoch = put(zk, "/brokers/ids/1", ours | {"rack": "r"})
    put(zk, "/bridgehead/nodes/1", {"grpc": "h:1", "incarnation": "abc"})
    put(zk, "/brokers/ids/2", {"version": 1, "host": "old", "port": 92})
    brokers = (await loaded(store)).image.brokers
    (endpoint,) = brokers[1].endpoints
    assert (brokers[1].epoch, brokers[1].rack, brokers[1].incarnation) == (epoch, "r", "abc")
    assert (endpoint.listener_name, endpoint.security_protocol, endpoint.port) == ("L", "SSL", 9)
    (plain,) = brokers[2].endpoints
    assert (brokers[2].incarnation, plain.host, plain.port) == ("", "old", 92)


async def test_outcomes_and_floors_are_loaded(zk: KazooClient, store: ZooKeeperStore) -> None:
    elements = [["orders", 0, None, encode_uuid(ID)], ["bad", 17, "no", None]]
    entry = {"id": [1, "abc", 8], "request": "r", "elements": elements}
    put(zk, "/bridgehead/outcomes/0000000012", {"epoch": 8, "outcomes": [entry]})
    zk.create("/bridgehead/floors/1-abc", b"6")
    outcomes = (await loaded(store)).outcomes
    ((identity, committed),) = outcomes.committed.items()
    assert tuple(identity) == (1, "abc", 8)
    assert (committed["orders"].topic_id, committed["bad"].message) == (ID, "no")
    assert list(outcomes.commits) == [12]
    assert outcomes.floors == outcomes.stored_floors == {(1, "abc"): 6}


TOPIC = "/brokers/topics/junk"
NODE, BROKER, OUTCOME = "/bridgehead/nodes/1", "/brokers/ids/1", "/bridgehead/outcomes/0000000001"
PARTITIONS = b'{"partitions":{"0":[1]}'
JUNK = [
    (TOPIC, b""),
    (TOPIC, b"not JSON"),
    (TOPIC, b"[]"),
    (TOPIC, b'{"partitions":[[1]]}'),
    (TOPIC, b'{"partitions":{"0":[1],"2":[1]}}'),
    (TOPIC, b'{"partitions":{"0":["x"]}}'),
    (TOPIC, PARTITIONS + b',"topic_id":5}'),
    (TOPIC, PARTITIONS + b',"topic_id":"short"}'),
    (TOPIC, PARTITIONS + b',"adding_replicas":[3]}'),
    (TOPIC, PARTITIONS + b',"adding_replicas":{"4":[3]}}'),
    ("/config/topics/junk", b"\xff"),
    ("/config/users/junk", b'{"config":[1]}'),
    ("/config/users/junk/clients/junk", b"{"),
    (BROKER, b'{"endpoints":5}'),
    (BROKER, b'{"endpoints":[5]}'),
    (BROKER, b'{"endpoints":["L://h:--1"]}'),
    (BROKER, b'{"endpoints":["L://h:1"],"listener_security_protocol_map":[1]}'),
    (NODE, b"not JSON"),
    ("/bridgehead/outcomes/junk", b""),
    (OUTCOME, b"[]"),
    (OUTCOME, b'{"outcomes":[{"id":[1,"a",2],"request":"r","elements":[["t",99999,null,null]]}]}'),
    (OUTCOME, b'{"outcomes":[{"id":[[1],"a",2],"request":"r","elements":[]}]}'),
    ("/bridgehead/floors/junk", b"5"),
    ("/bridgehead/floors/1-abc", b"x"),
]


async def test_invalid_znodes_are_reported_and_skipped(
    zk: KazooClient, store: ZooKeeperStore
) -> None:
    put_topic(zk, "fine", [1], topic_id=encode_uuid(ID))
    put_state(zk, "fine", 0)
    put(zk, "/brokers/ids/--1", {})
    for path, data in JUNK:
        zk.create(path, data, makepath=True)
        read = await loaded(store)
        assert list(read.image.topics) == ["fine"], (path, data)
        assert any(path in text for text in read.invalid), (path, data, read.invalid)
        zk.delete(path)


async def test_the_deletion_marker_of_an_invalid_topic_is_not_an_orphan(
    zk: KazooClient, store: ZooKeeperStore
) -> None:
    zk.create(TOPIC, b"not JSON")
    put(zk, "/admin/delete_topics/junk")
    assert (await loaded(store)).orphan_markers == ()


@pytest.mark.parametrize(
    "state", [b"", b"[]", b"{}", b'{"leader":"x","leader_epoch":0,"isr":[1],"controller_epoch":1}']
)
async def test_a_partition_with_an_invalid_state_has_no_leader(
    zk: KazooClient, store: ZooKeeperStore, state: bytes
) -> None:
    """The loaded partition has the version of its state znode, so that the next write succeeds."""
    put_topic(zk, "fine", [1], topic_id=encode_uuid(ID))
    zk.create("/brokers/topics/fine/partitions/0/state", state, makepath=True)
    read = await loaded(store)
    assert len(read.invalid) == 1
    assert read.image.topics["fine"].states == (NO_STATE._replace(partition_epoch=0),)
    assert read.image.config("topics", "fine") == {}
    assert ConfigResource("topics", "fine") not in read.image.configs


@pytest.mark.long
async def test_a_large_state_is_loaded_as_it_was_written(
    store: ZooKeeperStore,
) -> None:
    """The state has topics, configs, ACLs, quotas, tokens, reassignments and deletions."""
    await store.ensure_start_up_paths("cluster", (*TOKEN_PATHS, *ACL_PATHS))
    fence = await store.elect(1, 0)
    assert fence is not None
    written = await write(store, fence, 10_000)
    read = await load(store.read, fence.epoch)
    assert (read.invalid, read.orphan_markers, read.without_id) == ((), (), ())
    assert len(read.image.topics) == 10_000
    assert len(read.image.configs) > 13_000
    assert len(read.image.acls) == 10_000
    assert set(read.image.acl_versions.values()) == {0, 1}
    assert (len(read.image.tokens), len(read.image.deletions)) == (1_000, 10)
    assert read.image.mutation_rates
    kinds = Counter(resource.entity_type for resource in read.image.configs)
    assert min(kinds[kind] for kind in ("topics", "users", "clients", "ips")) >= 1_000
    assert kinds["brokers"] == 2
    held = Counter(name for configs in read.image.configs.values() for name in configs)
    assert (held["SCRAM-SHA-256"], held["SCRAM-SHA-512"]) == (1_000, 500)
    assert held["consumer_byte_rate"] == held["connection_creation_rate"] == 1_000
    # Compare field by field, so that a failure shows a short difference.
    for field in fields(written):
        assert getattr(read.image, field.name) == getattr(written, field.name), field.name
    assert sum(bool(topic.adding and topic.removing) for topic in read.image.topics.values()) == 10
    topic, other = read.image.topics["topic_000000"], read.image.topics["topic.000001"]
    assert (topic.states[1].leader, other.states[2].leader_epoch) == (2, 1)
    changed = written.replay([ConfigRecord(ConfigResource("users", "user-1"), {})])
    assert changed != read.image


async def test_ten_thousand_tokens_are_loaded_as_they_were_written(
    store: ZooKeeperStore,
) -> None:
    await store.ensure_start_up_paths("cluster", TOKEN_PATHS)
    fence = await store.elect(1, 0)
    assert fence is not None
    issued: list[Record] = [TokenRecord(token(number)) for number in range(10_000)]
    changed: list[Record] = [
        TokenRecord(replace(token(number), expiry_ms=9)) for number in range(0, 10_000, 3)
    ]
    changed += [TokenRemovalRecord(token(number).token_id) for number in range(1, 10_000, 3)]
    image = MetadataImage()
    for records in (issued, changed):
        for start in range(0, len(records), 200):
            some = records[start : start + 200]
            operations = [store.encode(operation) for operation in plan_operations(some, image)]
            await commit(store, fence, operations)
            image = image.replay(some)
    read = await load(store.read, fence.epoch)
    assert len(read.image.tokens) == 6_667
    assert read.image.tokens == image.tokens
    assert await read_tokens(store.read) == StoredTokens(dict(image.tokens), ())


def token(number: int) -> DelegationToken:
    """Return one of many different tokens."""
    names = (f"user {number % 7}", f"CN={number % 11},O=x", "a+b*c~:d/e")
    owner, requester, renewer = (KafkaPrincipal("User", name) for name in names)
    renewers = (renewer, owner)[: number % 3]
    return DelegationToken(f"token-{number:016d}", owner, requester, renewers, 1, 2 + number, 3)


async def test_invalid_acls_deny_everything_until_they_are_overwritten(
    zk: KazooClient, store: ZooKeeperStore
) -> None:
    """Otherwise an access that an unreadable ACL denies could be allowed."""
    junk, fine = (ResourcePattern("TOPIC", "LITERAL", name) for name in ("junk", "fine"))
    zk.create(AclZnode.path(junk), b'{"version":1,"acls":[{}]}', makepath=True)
    rule = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
    zk.create(AclZnode.path(fine), AclZnode.encode((rule,)), makepath=True)
    read = await loaded(store)
    (invalid,) = read.invalid
    assert "/kafka-acl/Topic/junk" in invalid
    assert read.image.acls.entries(fine) == (rule,)
    assert read.image.acls.entries(junk) == UNREADABLE
    (operation, _) = plan_operations([AclRecord(junk, (rule,))], read.image)
    assert operation == SetData(AclZnode.path(junk), AclZnode.encode((rule,)), 0)
