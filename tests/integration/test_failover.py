"""Under load, no write is lost or executed twice when the controller moves or fails."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, decode_message
from cluster_model.znodes.layout import decode_uuid
from tests.integration.zookeeper_peers import kazoo_client

SESSION_TIMEOUT_S = 2.0
PROPERTIES = {"zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000))}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, properties=PROPERTIES) as running:
        yield running


class Writers:
    """Clients that each create one topic after another."""

    def __init__(self, addresses: list[str], count: int, prefix: str) -> None:
        self._addresses = addresses
        self._count = count
        self._names = (f"{prefix}-{number}" for number in itertools.count())
        self.responses: dict[str, int] = {}
        self.longest_s = 0.0
        self._stopped = False

    async def run(self) -> None:
        await asyncio.gather(*(self._write(number) for number in range(self._count)))

    async def wait_for_more(self, count: int) -> None:
        wanted = len(self.responses) + count
        while len(self.responses) < wanted:
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._stopped = True

    async def _write(self, number: int) -> None:
        connection = await AsyncConnection.open(self._addresses[number % len(self._addresses)])
        while not self._stopped:
            name = next(self._names)
            began = time.monotonic()
            # Each topic has two replicas. A topic on the killed broker alone would have no leader,
            # and its creation would wait for a leader, as in Kafka.
            response = await connection.exchange(create_topics([name], replication_factor=2))
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            (topic,) = decode_message(19, 4, response).topics
            self.responses[name] = topic.error_code
        connection.close()


def topics_in_zookeeper(connect: str) -> set[str]:
    with kazoo_client(connect) as client:
        return set(client.get_children("/brokers/topics"))


async def topics_known_to(address: str) -> set[str]:
    connection = await AsyncConnection.open(address)
    topics = (await connection.call(3, 12, MetadataRequest(topics=None))).topics
    connection.close()
    return {topic.name for topic in topics}


def others(cluster: Cluster) -> list[str]:
    controller = cluster.wait_for_controller()
    return [cluster.bootstrap_server(broker) for broker in cluster.brokers if broker != controller]


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


@pytest.mark.long
@pytest.mark.timeout(420)
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
async def test_controller_kills_under_load_neither_lose_nor_repeat_a_creation(
    cluster: Cluster, kills: int
) -> None:
    """No client waits longer than the session timeout plus 3 s."""
    responses: dict[str, int] = {}
    for kill in range(kills):
        controller = await until_known_to_all(cluster)
        writers = Writers(others(cluster), count=8, prefix=f"kill-{kill}")
        load = asyncio.create_task(writers.run())
        await writers.wait_for_more(20)
        await asyncio.to_thread(cluster.kill_node, controller)
        await writers.wait_for_more(40)  # Most of these responses come from the next controller.
        writers.stop()
        await load
        await asyncio.to_thread(cluster.start_node, controller)
        assert writers.longest_s < SESSION_TIMEOUT_S + 3, f"kill {kill}: {writers.longest_s:.2f} s"
        responses |= writers.responses
    assert set(responses.values()) == {ErrorCode.NONE}
    assert set(responses) <= topics_in_zookeeper(cluster.zookeeper_connect)
    await until_known_to_all(cluster)
    for broker in cluster.brokers:  # A broker may learn of the last topics a moment later.
        async with asyncio.timeout(20):
            while not set(responses) <= await topics_known_to(cluster.bootstrap_server(broker)):
                await asyncio.sleep(0.05)


async def test_a_request_of_a_thousand_topics_survives_the_kill_of_the_controller(
    cluster: Cluster,
) -> None:
    controller = await until_known_to_all(cluster)
    names = [f"thousand-{number}" for number in range(1000)]
    connection = await AsyncConnection.open(others(cluster)[0])
    response = asyncio.create_task(
        connection.exchange(create_topics(names, version=7, partitions=16, replication_factor=2))
    )
    client = KazooClient(hosts=cluster.zookeeper_connect)
    await asyncio.to_thread(client.start)
    # With 16 partitions each, the topics take about a second to write.
    while not await asyncio.to_thread(client.get_children, "/brokers/topics"):
        assert not response.done()
    await asyncio.to_thread(cluster.kill_node, controller)
    at_kill = len(await asyncio.to_thread(client.get_children, "/brokers/topics"))
    topics = decode_message(19, 7, await response).topics
    there = set(await asyncio.to_thread(client.get_children, "/brokers/topics"))
    ids = {topic.name: topic.topic_id for topic in topics}
    data = await asyncio.to_thread(client.get, f"/brokers/topics/{names[0]}")
    client.stop()
    client.close()
    assert 0 < at_kill < 1000, "the kill was not in the middle of the request"
    assert [topic.error_code for topic in topics] == [ErrorCode.NONE] * 1000
    assert there == set(names)
    assert len(set(ids.values())) == 1000
    assert ids[names[0]] == decode_uuid(data[0].decode().split('"topic_id":"')[1][:22])


async def test_moving_the_controller_causes_no_errors(cluster: Cluster) -> None:
    controller = await until_known_to_all(cluster)
    successor = next(broker for broker in cluster.brokers if broker != controller)
    addresses = [cluster.bootstrap_server(broker) for broker in cluster.brokers]
    writers = Writers(addresses, count=6, prefix="moved")
    load = asyncio.create_task(writers.run())
    await writers.wait_for_more(20)
    await asyncio.to_thread(cluster.move_controller, successor)
    await writers.wait_for_more(20)
    writers.stop()
    await load
    assert await until_known_to_all(cluster) == successor
    assert set(writers.responses.values()) == {ErrorCode.NONE}


async def test_expired_controller_sessions_lose_no_topic(cluster: Cluster) -> None:
    await until_known_to_all(cluster)
    addresses = [cluster.bootstrap_server(broker) for broker in cluster.brokers]
    writers = Writers(addresses, count=6, prefix="expired")
    load = asyncio.create_task(writers.run())
    for _ in range(3):
        await writers.wait_for_more(20)
        await asyncio.to_thread(cluster.expire_controller)
    await writers.wait_for_more(20)
    writers.stop()
    await load
    assert set(writers.responses.values()) == {ErrorCode.NONE}
    assert set(writers.responses) == topics_in_zookeeper(cluster.zookeeper_connect)


async def test_leaders_move_away_from_a_dead_broker_and_its_replicas_rejoin(
    cluster: Cluster,
) -> None:
    controller = await until_known_to_all(cluster)
    address = others(cluster)[0]
    connection = await AsyncConnection.open(address)
    await connection.exchange(
        create_topics(["led"], partitions=12, replication_factor=3, version=4)
    )

    async def partitions() -> list[tuple[int, set[int]]]:
        (topic,) = (await connection.call(3, 12, MetadataRequest(topics=None))).topics
        return [(partition.leader_id, set(partition.isr_nodes)) for partition in topic.partitions]

    await asyncio.to_thread(cluster.kill_node, controller)
    while any(
        leader in (-1, controller) or controller in isr for leader, isr in await partitions()
    ):
        await asyncio.sleep(0.05)
    await asyncio.to_thread(cluster.start_node, controller)
    while any(isr != {1, 2, 3} for _, isr in await partitions()):
        await asyncio.sleep(0.05)
