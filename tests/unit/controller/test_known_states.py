"""A new controller takes partition states from its broker's metadata instead of from ZooKeeper.

The metadata must include the last commit. Later the new controller compares the states with those
in ZooKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast
from unittest.mock import Mock

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_request
from broker_proxy.metadata.cache import MetadataCache
from chaos.bugs import migration
from chaos.bugs.bug import Composition
from cluster_model.image import BrokerRegistration, Endpoint, Topic
from cluster_model.records import PartitionState
from cluster_model.update_metadata import full_parts
from cluster_model.znodes.layout import BrokerIdZnode, PartitionZnode, TopicZnode
from controller.controller import Controller
from controller.services import Services, Settings
from controller.store.load import first_difference, load
from controller.store.port import Fence
from envelope.messages import MetadataUpdate
from node.collaborators import PRODUCTION
from zookeeper_client.wire import ReadChildren, ReadData, ReadResult, Stat, ZnodeData

NAME, ID = "t", bytes(15) + b"\1"
LAST_COMMIT = 70
REPLICAS = (1, 2, 3)
STORED = PartitionState(1, 4, REPLICAS, 6, 9)
# Differs from STORED, so that tests see which of the two was used.
KNOWN = STORED._replace(leader_epoch=3, partition_epoch=8)


def _registration(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 1, (Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092),))


class Znodes:
    """ZooKeeper with brokers 1 to 3 and topic `t`, whose partitions have these states."""

    def __init__(self, *states: PartitionState) -> None:
        self.paths_read: list[str] = []
        self.znodes = {
            BrokerIdZnode.path(broker): (BrokerIdZnode.encode(_registration(broker), 0), 0)
            for broker in REPLICAS
        }
        content = TopicZnode.encode([REPLICAS] * len(states), ID, {}, {})
        self.znodes[TopicZnode.path(NAME)] = (content, 0)
        self.znodes["/feature"] = (b"", 0)
        for partition, state in enumerate(states):
            self.set(partition, state)

    def set(self, partition: int, state: PartitionState) -> None:
        content = PartitionZnode.encode(state)
        self.znodes[PartitionZnode.path(NAME, partition)] = (content, state.partition_epoch)

    async def read(self, reads: Any) -> list[ReadResult]:
        return [
            self._children(wanted.path) if isinstance(wanted, ReadChildren) else self._data(wanted)
            for wanted in reads
        ]

    def _children(self, path: str) -> list[str]:
        below = [znode.removeprefix(f"{path}/") for znode in self.znodes if znode.startswith(path)]
        return [entry for entry in below if "/" not in entry]

    def _data(self, read: ReadData) -> ZnodeData | None:
        self.paths_read.append(read.path)
        if read.path not in self.znodes:
            return None
        data, version = self.znodes[read.path]
        return ZnodeData(data, Stat(1, 1, 0, 0, version, 0, 0, 0, len(data), 0, 1).pack())

    def states_read(self) -> list[int]:
        """Return the partitions whose states were read."""
        states = (path.split("/") for path in self.paths_read if path.endswith("/state"))
        return [int(parts[-2]) for parts in states]


class Known:
    """States that a broker knows."""

    controller_is_kraft = False

    def __init__(self, states: Mapping[int, PartitionState], zxid: int = LAST_COMMIT) -> None:
        self.states = states
        self.zxid = zxid

    def partition_states(self, topic_id: bytes) -> Mapping[int, PartitionState]:
        return self.states if topic_id == ID else {}


async def test_only_unknown_states_are_read() -> None:
    zookeeper = Znodes(STORED, STORED, STORED)
    loaded = await load(zookeeper.read, 7, Known({0: KNOWN, 2: KNOWN}))
    assert loaded.image.topics[NAME].states == (KNOWN, STORED, KNOWN)
    assert zookeeper.states_read() == [1]
    assert not loaded.states_are_read


async def test_all_states_are_read_if_none_are_known() -> None:
    zookeeper = Znodes(STORED, STORED)
    loaded = await load(zookeeper.read, 7)
    assert loaded.image.topics[NAME].states == (STORED, STORED)
    assert loaded.states_are_read


async def test_states_of_an_earlier_topic_with_the_same_name_are_not_used() -> None:
    zookeeper = Znodes(STORED)
    content = TopicZnode.encode([REPLICAS], bytes(15) + b"\2", {}, {})
    zookeeper.znodes[TopicZnode.path(NAME)] = (content, 0)
    loaded = await load(zookeeper.read, 7, Known({0: KNOWN}))
    assert loaded.image.topics[NAME].states == (STORED,)


@pytest.mark.parametrize(
    "changed",
    [
        STORED._replace(partition_epoch=10),
        STORED._replace(leader=2),
        STORED._replace(recovering=True),
    ],
)
async def test_a_state_that_another_program_wrote_is_found(changed: PartitionState) -> None:
    zookeeper = Znodes(STORED, STORED)
    topic = Topic(NAME, ID, (REPLICAS, REPLICAS), (STORED, STORED), {}, {})
    assert await first_difference(zookeeper.read, [topic, topic]) is None
    zookeeper.set(1, changed)
    assert await first_difference(zookeeper.read, [topic]) == PartitionZnode.path(NAME, 1)


async def test_a_state_that_another_program_deleted_is_found() -> None:
    zookeeper = Znodes(STORED)
    del zookeeper.znodes[PartitionZnode.path(NAME, 0)]
    topic = Topic(NAME, ID, (REPLICAS,), (STORED,), {}, {})
    assert await first_difference(zookeeper.read, [topic]) == PartitionZnode.path(NAME, 0)


def cache_with(*states: PartitionState) -> MetadataCache:
    image = Mock(controller_epoch=7, brokers={}, unreadable=())
    image.topics = {NAME: Topic(NAME, ID, (REPLICAS,) * len(states), states, {}, {})}
    (message,) = full_parts(image, 1)
    body = encode_request(ApiKey.UPDATE_METADATA, 8, message)
    cache = MetadataCache(lambda: None)
    assert cache.apply(MetadataUpdate(1, 7, 5, body, starts_full_image=True, complete=True))
    return cache


def test_a_broker_knows_the_states_that_the_controller_published() -> None:
    cache = cache_with(STORED, KNOWN)
    assert cache.partition_states(ID) == {0: STORED, 1: KNOWN}
    assert cache.partition_states(bytes(16)) == {}


def test_a_broker_does_not_know_whether_a_leader_alone_in_the_isr_is_recovering() -> None:
    alone = STORED._replace(isr=(1,), recovering=True)
    assert cache_with(STORED, alone).partition_states(ID) == {0: STORED}


class Store:
    """Wins the election and reads from Znodes. The term must not commit anything."""

    def __init__(self, zookeeper: Znodes) -> None:
        self.read = zookeeper.read

    async def open(self, _timeout_s: float) -> None: ...
    async def close(self) -> None: ...

    async def elect(self, _broker_id: int, _now_ms: int) -> Fence:
        return Fence(epoch=7, zk_version=7, zxid=80, last_commit_zxid=LAST_COMMIT)

    async def children(self, *_: Any) -> list[str]:
        return []

    def lease_holds(self) -> bool:
        return True


async def states_of_new_controller(
    zookeeper: Znodes,
    known_states: Known,
    new_controller: Callable[[Settings, Services], Controller] = Controller,
) -> list[Any]:
    """Elect a controller. Return the partition states of its images until it is idle.

    The states are in the order of the images. States in several images are listed once.
    """
    used: dict[str, Any] = {
        "new_store": lambda _: Store(zookeeper),
        "known_states": known_states,
        "policies": None,
        "quirks": frozenset(),
        "apis": {},
        "now_s": lambda: 0.0,
        "now_ms": lambda: 0,
    }
    services = Services(**{field.name: Mock() for field in fields(Services)} | used)
    controller = new_controller(Settings(1, 1000, 1000, 1000), services)
    assert await controller.elect()
    states: list[Any] = []
    for _ in range(300):  # turns of the event loop, not time
        await asyncio.sleep(0)
        if image := controller.image:
            loaded = image.topics[NAME].states
            states += [loaded] if loaded not in states else []
    await controller.resign("")
    return states


async def test_a_new_controller_uses_the_states_that_its_broker_knows() -> None:
    zookeeper = Znodes(STORED)
    assert await states_of_new_controller(zookeeper, Known({0: STORED})) == [(STORED,)]
    assert zookeeper.states_read() == [0], "once, to compare it"


async def test_a_new_controller_does_not_use_states_without_the_last_commit() -> None:
    """The earlier controller may have failed after the commit, before it published the state."""
    known_states = Known({0: KNOWN}, zxid=LAST_COMMIT - 1)
    assert await states_of_new_controller(Znodes(STORED), known_states) == [(STORED,)]


async def test_states_of_a_kraft_controller_are_read_again() -> None:
    """A KRaft controller makes no commits, so the zxid does not show how old the states are."""
    known_states = Known({0: KNOWN})
    known_states.controller_is_kraft = True
    assert await states_of_new_controller(Znodes(STORED), known_states) == [(STORED,)]
    (bug,) = (bug for bug in migration.BUGS if bug.name == "trusts_krafts_states")
    composition = bug.apply(Composition(cast(Any, None), PRODUCTION))
    faulty = composition.collaborators.controller
    states = await states_of_new_controller(Znodes(STORED), known_states, faulty)
    assert states == [(KNOWN,), (STORED,)], "the bug is found"


async def test_a_new_controller_loads_everything_if_a_known_state_differs() -> None:
    """For example, an operator edits the state and then deletes /controller."""
    known_states = Known({0: KNOWN})
    assert await states_of_new_controller(Znodes(STORED), known_states) == [(KNOWN,), (STORED,)]
