"""The controller is killed, moved and expired under load: nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from bench.frames import Connection, create_topics_frame, decode_answer, request_frame
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from cluster_model.znodes import decode_uuid

SESSION_TIMEOUT_S = 2.0
PROPERTIES = {"zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000))}
KILLS = 20


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, properties=PROPERTIES) as running:
        yield running


class Writers:
    """Clients that create topics, one after another, through brokers that are not controller."""

    def __init__(self, addresses: list[str], count: int, prefix: str) -> None:
        self._addresses = addresses
        self._count = count
        self._names = (f"{prefix}-{number}" for number in itertools.count())
        self.answers: dict[str, int] = {}
        self.longest_s = 0.0
        self._stopped = False

    async def run(self) -> None:
        await asyncio.gather(*(self._write(number) for number in range(self._count)))

    def stop(self) -> None:
        self._stopped = True

    async def _write(self, number: int) -> None:
        connection = await Connection.open(self._addresses[number % len(self._addresses)])
        while not self._stopped:
            name = next(self._names)
            began = time.monotonic()
            # Two replicas: a topic that was on the killed broker alone has no leader until that
            # is back, and its creation waits for one, as Kafka's does.
            answer = await connection.ask(create_topics_frame([name], replication_factor=2))
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            (topic,) = decode_answer(19, 4, answer).topics
            self.answers[name] = topic.error_code
        await connection.close()


def topics_in_zookeeper(connect: str) -> set[str]:
    client = KazooClient(hosts=connect)
    client.start()
    try:
        return set(client.get_children("/brokers/topics"))
    finally:
        client.stop()
        client.close()


def others(cluster: Cluster) -> list[str]:
    controller = cluster.wait_for_controller()
    return [cluster.bootstrap_server(each) for each in cluster.brokers if each != controller]


async def until_known_to_all(cluster: Cluster) -> int:
    """Wait until every broker is registered and names the same controller."""
    while True:
        status = await asyncio.to_thread(cluster.status)
        states = [broker["state"] for broker in status["brokers"]]
        if all(states) and status["controller_id"] is not None:
            ids = {state["controller_id"] for state in states}
            if ids == {status["controller_id"]} and all(len(s["brokers"]) == 3 for s in states):
                return int(status["controller_id"])
        await asyncio.sleep(0.05)


@pytest.mark.timeout(420)
async def test_a_controller_killed_twenty_times_loses_nothing_and_doubles_nothing(
    cluster: Cluster,
) -> None:
    """
    No client waits longer than the session timeout and 3 s, every acknowledged topic is there,
    and nobody is told TOPIC_ALREADY_EXISTS about its own create.
    """
    answers: dict[str, int] = {}
    for kill in range(KILLS):
        controller = await until_known_to_all(cluster)
        writers = Writers(others(cluster), count=8, prefix=f"kill-{kill}")
        load = asyncio.create_task(writers.run())
        while len(writers.answers) < 20:
            await asyncio.sleep(0.01)
        before = len(writers.answers)
        await asyncio.to_thread(cluster.kill_node, controller)
        # The load has come through when each writer has been answered by the next controller.
        while len(writers.answers) < before + 40:
            await asyncio.sleep(0.01)
        writers.stop()
        await load
        await asyncio.to_thread(cluster.start_node, controller)
        assert writers.longest_s < SESSION_TIMEOUT_S + 3, f"kill {kill}: {writers.longest_s:.2f} s"
        answers |= writers.answers
    assert set(answers.values()) == {ErrorCode.NONE}
    assert set(answers) <= topics_in_zookeeper(cluster.zookeeper_connect)


async def test_a_thousand_topics_survive_the_controller_killed_in_the_middle(
    cluster: Cluster,
) -> None:
    """
    One CreateTopics of 1,000 topics ends as exactly 1,000 topics, each answered NONE.
    """
    controller = await until_known_to_all(cluster)
    names = [f"thousand-{number}" for number in range(1000)]
    connection = await Connection.open(others(cluster)[0])
    asked = asyncio.create_task(
        connection.ask(create_topics_frame(names, version=7, replication_factor=2))
    )
    client = KazooClient(hosts=cluster.zookeeper_connect)
    await asyncio.to_thread(client.start)
    # In the middle: some are written, not all. ZooKeeper tells, no clock.
    while not (written := len(await asyncio.to_thread(client.get_children, "/brokers/topics"))):
        assert not asked.done()
    await asyncio.to_thread(cluster.kill_node, controller)
    at_kill = len(await asyncio.to_thread(client.get_children, "/brokers/topics"))
    response = decode_answer(19, 7, await asked)
    there = set(await asyncio.to_thread(client.get_children, "/brokers/topics"))
    ids = {topic.name: topic.topic_id for topic in response.topics}
    data = await asyncio.to_thread(client.get, f"/brokers/topics/{names[0]}")
    client.stop()
    client.close()
    assert 0 < written <= at_kill
    assert [topic.error_code for topic in response.topics] == [ErrorCode.NONE] * 1000
    assert there == set(names)
    assert len(set(ids.values())) == 1000
    assert ids[names[0]] == decode_uuid(data[0].decode().split('"topic_id":"')[1][:22])


async def test_a_moved_controller_is_followed_without_an_error(cluster: Cluster) -> None:
    """
    Clients notice nothing but a pause when office is handed over in an orderly way.
    """
    controller = await until_known_to_all(cluster)
    successor = next(each for each in cluster.brokers if each != controller)
    addresses = [cluster.bootstrap_server(each) for each in cluster.brokers]
    writers = Writers(addresses, count=6, prefix="moved")
    load = asyncio.create_task(writers.run())
    while len(writers.answers) < 20:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(cluster.move_controller, successor)
    before = len(writers.answers)
    while len(writers.answers) < before + 20:
        await asyncio.sleep(0.01)
    writers.stop()
    await load
    assert await until_known_to_all(cluster) == successor
    assert set(writers.answers.values()) == {ErrorCode.NONE}


async def test_an_expired_controller_session_loses_nothing(cluster: Cluster) -> None:
    """
    The process lives on, its session does not: it resigns, somebody takes over, nothing is lost.
    """
    await until_known_to_all(cluster)
    addresses = [cluster.bootstrap_server(each) for each in cluster.brokers]
    writers = Writers(addresses, count=6, prefix="expired")
    load = asyncio.create_task(writers.run())
    for _ in range(3):
        before = len(writers.answers)
        while len(writers.answers) < before + 20:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(cluster.expire_controller)
    before = len(writers.answers)
    while len(writers.answers) < before + 20:
        await asyncio.sleep(0.01)
    writers.stop()
    await load
    assert set(writers.answers.values()) == {ErrorCode.NONE}
    assert set(writers.answers) == topics_in_zookeeper(cluster.zookeeper_connect)


async def test_leaders_leave_a_dead_broker_and_its_replicas_come_back(cluster: Cluster) -> None:
    """
    Without the killed broker every partition has a leader; when it is back it is in sync again.
    """
    controller = await until_known_to_all(cluster)
    address = others(cluster)[0]
    connection = await Connection.open(address)
    await connection.ask(
        create_topics_frame(["led"], partitions=12, replication_factor=3, version=4)
    )

    async def partitions() -> list[tuple[int, set[int]]]:
        frame = request_frame(3, 12, 1, MetadataRequest(topics=None))
        (topic,) = decode_answer(3, 12, await connection.ask(frame)).topics
        return [(each.leader_id, set(each.isr_nodes)) for each in topic.partitions]

    await asyncio.to_thread(cluster.kill_node, controller)
    while any(
        leader in (-1, controller) or controller in isr for leader, isr in await partitions()
    ):
        await asyncio.sleep(0.05)
    await asyncio.to_thread(cluster.start_node, controller)
    while any(isr != {1, 2, 3} for _, isr in await partitions()):
        await asyncio.sleep(0.05)
