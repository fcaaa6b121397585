"""Topics that brokers below the bridge release, or tools, create in a simulated cluster."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from bridgehead.cluster import RunSettings
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.simulated.network import NetworkLoop
from chaos.simulated.sealed_run import SealedRun
from chaos.simulated.virtual_time import virtual_host
from chaos.simulated.zookeeper_session import SimulatedSession
from cluster_model.znodes.operations import Create, Delete, Operation
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge
from zookeeper_client.wire import MultiResult

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
BELOW: Final = {
    "inter.broker.protocol.version": "3.3",
    "auto.create.topics.enable": "true",
    "num.partitions": "4",
    "default.replication.factor": "2",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "2",
}
WITHIN_S: Final = 30.0


class Played:
    """A cluster of three brokers while `play` runs; its sealed evidence afterwards."""

    def __init__(self, folder: Path, seed: int = 1, **properties: str) -> None:
        self.folder = folder
        self.loop = NetworkLoop(seed)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self._seed = seed
        with virtual_host(self.loop, seed):
            self.run = SealedRun(
                self.loop,
                seed,
                folder,
                lambda _sentence: None,
                brokers=3,
                properties={**BELOW, **named},
                settings=RunSettings(),
            )
        self.cluster = self.run.cluster
        addresses = {broker: self.cluster.address(broker) for broker in self.cluster.nodes}
        self.client = ClusterClient(addresses, "test")

    def play(self, play: Callable[[Played], Awaitable[None]]) -> Played:
        async def whole() -> None:
            async with self.run.sealed():
                await self.cluster.start()
                await self.run.until_complete()
                await play(self)
                self.client.close()

        with virtual_host(self.loop, self._seed):
            self.loop.run_until_complete(whole())
        return self

    @property
    def controller(self) -> int:
        controller = self.cluster.controller()
        assert controller is not None
        return controller

    @property
    def others(self) -> list[int]:
        return [broker for broker in self.cluster.nodes if broker != self.controller]

    async def fail_over(self) -> None:
        """End the controller's session; wait for the next controller."""
        node = self.cluster.nodes[self.controller]
        assert node.node is not None
        before = node.node.status()["controller_epoch"]
        await node.expire_controller()

        def is_over() -> bool:
            controller = self.cluster.controller()
            now = self.cluster.nodes[controller].node if controller else None
            return now is not None and now.status()["controller_epoch"] > before

        await self.until(is_over)

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline_s = self.loop.time() + WITHIN_S
        while not condition():
            assert self.loop.time() < deadline_s, "the condition does not become true"
            await asyncio.sleep(0.02)

    async def coordinators(self, broker: int, key_type: int, *keys: str) -> list[Any]:
        message = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        response = await self.client.call(broker, ApiKey.FIND_COORDINATOR, 4, message)
        return list(response.coordinators)

    async def until_found(self, broker: int, key_type: int, *keys: str) -> list[Any]:
        deadline_s = self.loop.time() + WITHIN_S
        while True:
            coordinators = await self.coordinators(broker, key_type, *keys)
            if {coordinator.error_code for coordinator in coordinators} == {0}:
                return coordinators
            assert self.loop.time() < deadline_s, coordinators
            await asyncio.sleep(0.1)

    async def topics(self, broker: int, *names: str, create: bool = False) -> dict[str, Any]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        message = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        response = await self.client.call(broker, ApiKey.METADATA, 12, message)
        return {topic.name: topic for topic in response.topics}

    async def until_everywhere(self, *names: str) -> dict[str, Any]:
        """Wait until each broker has all partitions of these topics; return one broker's view."""
        deadline_s = self.loop.time() + WITHIN_S
        for broker in self.cluster.nodes:
            while True:
                topics = await self.topics(broker, *names)
                parts = [p for topic in topics.values() for p in topic.partitions]
                errors = {topic.error_code for topic in topics.values()}
                if errors == {0} and {partition.error_code for partition in parts} == {0}:
                    break
                assert self.loop.time() < deadline_s, (broker, topics)
                await asyncio.sleep(0.05)
        return topics

    async def create(self, name: str) -> int:
        """Create a topic with two partitions at the controller, as a client does."""
        request = CreateTopicsRequest([CreatableTopic(name, 2, 3)], 5_000)
        response = await self.client.call(self.controller, ApiKey.CREATE_TOPICS, 5, request)
        return int(response.topics[0].error_code)

    # --- Afterwards ------------------------------------------------------------------------------

    def events(self, kind: str) -> list[dict[str, Any]]:
        paths = sorted(self.run.record.folder.glob("node=*/**/*.jsonl"))
        lines = [line for path in paths for line in path.read_text().splitlines()]
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def created(self, prefix: str) -> Counter[str]:
        """Return how many times each znode below `prefix` was created."""
        return Counter(
            operation.path
            for transaction in self.run.service.model.log
            for operation in transaction.operations
            if not transaction.failed
            and operation.kind == "create"
            and operation.path.startswith(prefix)
        )


class Tool:
    """Another program's session, such as that of a tool of Kafka."""

    def __init__(self, played: Played) -> None:
        self._session = SimulatedSession(
            played.run.service, session_timeout_ms=60_000, on_state=lambda _state: None
        )

    async def __aenter__(self) -> Tool:
        await self._session.open(60)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def write(self, *operations: Operation) -> MultiResult:
        return await self._session.multi([self._session.encode(o) for o in operations])


def topic_znode(name: str, *replicas: Sequence[int], topic_id: str | None = None) -> Create:
    """Return the creation of a topic's znode as tools of Kafka write it: without an id."""
    value: dict[str, Any] = {"version": 1, "partitions": dict(enumerate(map(list, replicas)))}
    if topic_id is not None:
        value |= {"version": 2, "topic_id": topic_id}
    return Create(f"/brokers/topics/{name}", json.dumps(value).encode())


def test_a_broker_below_the_bridge_creates_internal_and_missing_topics(tmp_path: Path) -> None:
    """No Envelope leaves it, the topics survive a failover, and every judge accepts the run."""

    async def play(played: Played) -> None:
        for broker, key_type, topic in (
            (played.others[0], 0, OFFSETS),
            (played.controller, 1, TRANSACTIONS),
        ):
            (first,) = await played.coordinators(broker, key_type, "g")
            assert first.error_code == 15
            await played.until_found(broker, key_type, "g")
            await played.until_everywhere(topic)
        new = await played.topics(played.others[-1], "new", "in/valid", create=True)
        assert {name: topic.error_code for name, topic in new.items()} == {"new": 5, "in/valid": 17}
        again = await played.topics(played.others[0], "new", create=True)
        assert again["new"].error_code in (0, 5)
        await played.until_everywhere("new")
        await played.fail_over()
        topics = await played.until_everywhere(OFFSETS, TRANSACTIONS, "new")
        shapes = {
            name: [len(partition.replica_nodes) for partition in topic.partitions]
            for name, topic in topics.items()
        }
        assert shapes == {OFFSETS: [3] * 5, TRANSACTIONS: [2] * 3, "new": [2] * 4}
        assert len({topic.topic_id for topic in topics.values()} - {bytes(16)}) == 3
        for broker in (1, 2, 3):
            await played.until_found(broker, 0, "g")
        assert await played.create("new") == 36
        assert await played.create("other") == 0

    played = Played(tmp_path).play(play)
    created = {name for event in played.events("topics_auto_created") for name in event["topics"]}
    assert created == {OFFSETS, TRANSACTIONS, "new"}
    sent = [e for e in played.events("forward_sent") if not e["local"]]
    assert sent == []
    assert set(played.created("/brokers/topics/").values()) == {1}
    configs = [
        json.loads(operation.data or b"")["config"]
        for transaction in played.run.service.model.log
        for operation in transaction.operations
        if operation.path == f"/config/topics/{OFFSETS}"
    ]
    assert [config["cleanup.policy"] for config in configs] == ["compact"]
    history = History(read_run(tmp_path))
    wrong = [j.row for j in judge(history) if j.row.verdict is Verdict.FAIL]
    assert wrong == []
    verdicts = {j.row.property: j.row.verdict for j in judge(history)}
    assert {verdicts[name] for name in ("W1", "W2", "W6", "D10")} == {Verdict.PASS}


def test_brokers_that_create_the_same_topics_at_once_create_each_once(tmp_path: Path) -> None:
    """One of them is the controller's own broker, which also creates topics for clients."""
    names = [f"storm-{number}" for number in range(20)]
    codes: list[int] = []

    async def play(played: Played) -> None:
        async def by_metadata(broker: int) -> None:
            topics = await played.topics(broker, *names, create=True)
            codes.extend(topic.error_code for topic in topics.values())
            codes.extend([c.error_code for c in await played.coordinators(broker, 0, "g")])

        async def by_client(name: str) -> None:
            codes.append(await played.create(name))

        works = [by_metadata(broker) for broker in (1, 2, 3)]
        await asyncio.gather(*works, *map(by_client, names[::3]))
        topics = await played.until_everywhere(OFFSETS, *names)
        assert len({topic.topic_id for topic in topics.values()}) == 21

    played = Played(tmp_path).play(play)
    assert set(codes) <= {0, 5, 15, 36}
    assert set(played.created("/brokers/topics/").values()) == {1}
    assert len(played.events("became_active")) == 1
    assert [e for e in played.events("forward_sent") if not e["local"]] == []
    wrong = [j.row for j in judge(History(read_run(tmp_path))) if j.row.verdict is Verdict.FAIL]
    assert wrong == []


async def until_led(played: Played, *names: str) -> dict[str, Any]:
    topics = await played.until_everywhere(*names)
    for topic in topics.values():
        assert topic.topic_id != bytes(16), topic
    return topics


def test_a_tools_topic_gets_an_id_and_leaders(tmp_path: Path) -> None:
    """Its replicas are those of the znode, and its configs are read."""

    async def play(played: Played) -> None:
        config = b'{"version":1,"config":{"retention.ms":"4321"}}'
        async with Tool(played) as tool:
            await tool.write(Create("/config/topics/foreign", config))
            await tool.write(topic_znode("foreign", [3, 1], [2, 3], [1, 2]))
            # An unknown broker never leads, and a topic without a live replica waits for one.
            await tool.write(topic_znode("partly", [9, 2]), topic_znode("away", [9]))
        topics = await until_led(played, "foreign", "partly")
        foreign = {p.partition_index: p for p in topics["foreign"].partitions}
        assert [foreign[p].replica_nodes for p in range(3)] == [[3, 1], [2, 3], [1, 2]]
        assert [foreign[p].leader_id for p in range(3)] == [3, 2, 1]
        assert [p.leader_id for p in topics["partly"].partitions] == [2]
        assert await played.create("foreign") == await played.create("away") == 36
        controller = played.cluster.nodes[played.controller].node
        assert controller is not None
        image = controller._parts.controller._term.loop.image  # type: ignore[union-attr]
        assert image.config("topics", "foreign") == {"retention.ms": "4321"}
        assert image.topic_names[image.topics["foreign"].topic_id] == "foreign"

    played = Played(tmp_path).play(play)
    assert set(played.created("/brokers/topics/").values()) == {1}


def test_an_invalid_topic_is_skipped_until_its_znode_is_repaired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(played: Played) -> None:
        async with Tool(played) as tool:
            await tool.write(Create("/brokers/topics/odd", b'{"partitions":{"0":["x"]}}'))
            await tool.write(Create("/brokers/topics/bad name", b"{}"), topic_znode("good", [2]))
            await until_led(played, "good")
            controller = played.cluster.nodes[played.controller].node
            assert controller is not None
            first = controller.status()["skipped_znodes"]["first"]
            assert [error.partition(": ")[0] for error in sorted(first)] == [
                "/brokers/topics/bad name",
                "/brokers/topics/odd",
            ]
            await tool.write(Delete("/brokers/topics/odd"), Delete("/brokers/topics/bad name"))
            await tool.write(topic_znode("odd", [3], [1]))
            await until_led(played, "odd")
            assert controller.status()["skipped_znodes"]["count"] == 0

    with caplog.at_level(logging.WARNING):
        played = Played(tmp_path).play(play)
    assert len(played.events("became_active")) == 1
    assert "Traceback" not in caplog.text


def test_topics_that_are_deleted_at_once_end_no_term(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is deleted at another moment: before, while and after the controller takes it.

    The topics of the same batch get their ids and leaders nevertheless.
    """

    async def play(played: Played) -> None:
        async with Tool(played) as tool:
            for number in range(60):
                names = f"a-{number}", f"gone-{number}", f"z-{number}"
                await tool.write(*(topic_znode(name, [1, 2], [2]) for name in names))
                await asyncio.sleep(number / 4_000)
                await tool.write(Delete(f"/brokers/topics/gone-{number}"))
                await asyncio.sleep(0.3 * (number % 2))  # the controller rests after a look
            await tool.write(topic_znode("last", [2], [3]))
        await until_led(played, "last")
        await until_led(played, *(f"{letter}-{number}" for letter in "az" for number in range(60)))
        assert await played.create("new") == 0

    with caplog.at_level(logging.WARNING):
        played = Played(tmp_path).play(play)
    assert len(played.events("became_active")) == 1
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_name_is_created_once_by_a_client_or_by_a_tool(tmp_path: Path, seed: int) -> None:
    """The controller's multi fails if the tool was first: the answer is TOPIC_ALREADY_EXISTS."""
    codes: dict[str, int] = {}
    tools: dict[str, MultiResult] = {}

    async def play(played: Played) -> None:
        async def by_client(name: str) -> None:
            codes[name] = await played.create(name)

        async with Tool(played) as tool:
            for number in range(20):
                name = f"t-{number}"
                creation = asyncio.create_task(by_client(name))
                await asyncio.sleep(number / 1_000)
                tools[name] = await tool.write(topic_znode(name, [3], [1]))
                await creation
        await until_led(played, *codes)

    played = Played(tmp_path, seed).play(play)
    assert set(codes.values()) == {0, 36}
    for name, code in codes.items():
        assert (code == 0) == (tools[name].failed_index is not None), name
    assert set(played.created("/brokers/topics/").values()) == {1}
    assert len(played.events("became_active")) == 1


@pytest.mark.parametrize("milliseconds", [0, 1, 2, 3, 4, 6, 8, 12, 300, 301, 303, 306])
def test_a_controller_change_loses_and_repeats_no_topic(tmp_path: Path, milliseconds: int) -> None:
    """The session ends before, while and after the controller takes the topics."""
    names = [f"t-{number}" for number in range(8)]

    async def play(played: Played) -> None:
        async with Tool(played) as tool:
            await tool.write(topic_znode("first", [2], [1]))
            for name in names:
                await tool.write(topic_znode(name, [1, 2], [2, 3], [3, 1]))
            await asyncio.sleep(milliseconds / 1000)
            await played.fail_over()
            await tool.write(topic_znode("last", [1]))
        topics = await until_led(played, "first", *names, "last")
        assert len({topic.topic_id for topic in topics.values()}) == len(names) + 2

    played = Played(tmp_path).play(play)
    assert len(played.events("became_active")) == 2
    assert set(played.created("/brokers/topics/").values()) == {1}


def test_a_reconnect_of_the_controller_misses_no_topic(tmp_path: Path) -> None:
    """Watches do not survive a reconnect."""

    async def play(played: Played) -> None:
        await played.create("before")
        node = played.controller
        session = next(e for e in played.run.service.model.sessions.values() if e.child_watches)
        session.forget_watches()  # as when the connection breaks
        async with Tool(played) as tool:
            await tool.write(topic_znode("missed", [1], [3]))
        controller = played.cluster.nodes[node].node
        assert controller is not None
        await asyncio.sleep(1)
        assert (await played.topics(node, "missed"))["missed"].error_code == 3
        term = controller._parts.controller._term
        assert term is not None
        term.set_watches()
        await until_led(played, "missed")

    Played(tmp_path).play(play)
