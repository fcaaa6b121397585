"""Clients that create topics, and delete half of them; each request is sent once."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.recorded_client import RecordedClient
from chaos.workload import UNKNOWN_OUTCOMES, Place, Workload, pauses

_CLIENTS: Final = 8
_AGREED_WITHIN_S: Final = 60.0
_RETRY_S: Final = 0.05
_NONE: Final = 0


def addresses(place: Place, listener: str | None = None) -> dict[int, str]:
    """Return the address of each broker."""
    return {broker: place.address(broker, listener) for broker in place.brokers}


class Topics:
    """The load. Each request creates `topics_each` topics.

    With `controllers_broker`, all clients use the broker that is the active controller at the
    start. If `period_s` is not 0, each client waits before each creation until the monotonic clock
    reaches a multiple of `period_s`, so that all clients send at the same time. After each
    acknowledged creation, the client reads the topics' metadata `reads` times, each time from a
    random broker; only the property R3 judges these responses.
    """

    def __init__(
        self,
        place: Place,
        *,
        clients: int = _CLIENTS,
        topics_each: int = 1,
        period_s: float = 0,
        controllers_broker: bool = False,
        reads: int = 0,
    ) -> None:
        self._place = place
        self._brokers = place.brokers
        self._controllers_broker = controllers_broker
        self._addresses = addresses(place)
        self._clients = clients
        self._each = topics_each
        self._period_s = period_s
        self._reads = reads
        self._numbers = itertools.count()
        self._stopped = False
        # By topic: contains True if the topic may exist at the end, and False if it may be absent.
        self._expected: dict[str, set[bool]] = {}
        self._surprises: list[str] = []

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        if self._controllers_broker:
            self._brokers = (await self._controller(),)
        seeds = [self._place.source.random() for _ in range(self._clients)]
        await asyncio.gather(*(self._work(random.Random(seed)) for seed in seeds))

    async def _controller(self) -> int:
        client = ClusterClient(self._addresses, "topics")
        response = await client.call(
            self._brokers[0], ApiKey.METADATA, 4, MetadataRequest(topics=[])
        )
        client.close()
        assert isinstance(response, MetadataResponse)
        return response.controller_id

    async def _work(self, source: random.Random) -> None:
        plain = ClusterClient(self._addresses, "topics")
        client = RecordedClient(plain, self._place.history)
        while True:
            if self._period_s:
                now_s = time.monotonic()
                await asyncio.sleep(self._period_s - now_s % self._period_s)
            if self._stopped:
                break
            numbers = [next(self._numbers) for _ in range(self._each)]
            names = [f"topic-{number}" for number in numbers]
            broker = source.choice(self._brokers)
            is_created = await self._send(client, broker, ApiKey.CREATE_TOPICS, names)
            if not is_created:
                continue
            for _ in itertools.takewhile(lambda _: not self._stopped, range(self._reads)):
                await self._read(plain, source.choice(self._brokers), names)
            if source.random() < 0.5:
                await self._send(client, source.choice(self._brokers), ApiKey.DELETE_TOPICS, names)
        client.close()

    async def _read(self, client: ClusterClient, broker: int, names: Sequence[str]) -> None:
        topics = [MetadataRequestTopic(name=name) for name in names]
        try:
            await client.call(broker, ApiKey.METADATA, 4, MetadataRequest(topics=topics))
        except (OSError, EOFError):  # The broker is gone.
            await asyncio.sleep(_RETRY_S)
        else:
            self._place.progress.add()

    async def _send(
        self, client: RecordedClient, broker: int, key: ApiKey, names: Sequence[str]
    ) -> bool:
        """Send one request; return whether all its topics were acknowledged."""
        creates = key is ApiKey.CREATE_TOPICS
        codes: Mapping[str, int] = dict.fromkeys(names, -1)
        try:
            if creates:
                response = await client.call(broker, key, 4, creation(names))
                codes = {topic.name: topic.error_code for topic in response.topics}
            else:
                response = await client.call(broker, key, 6, deletion(names))
                codes = {responded.name: responded.error_code for responded in response.responses}
        except (OSError, EOFError):  # The broker is gone, and the outcome is unknown.
            await asyncio.sleep(_RETRY_S)
        for name, code in codes.items():
            self._note(name, code, creates=creates)
        done = all(code == _NONE for code in codes.values())
        self._place.progress.add(done)
        return done

    def _note(self, name: str, code: int, *, creates: bool) -> None:
        possible = self._expected.setdefault(name, {False})
        if code == _NONE:
            self._expected[name] = {creates}
        elif code in UNKNOWN_OUTCOMES:
            possible.add(creates)
        else:
            verb = "creation" if creates else "deletion"
            self._surprises.append(f"the {verb} of {name} was rejected with {code}")

    async def wrong(self) -> list[str]:
        different = await asyncio.gather(
            *(
                differences(broker, self._addresses, self._expected)
                for broker in self._place.brokers
            )
        )
        return [*self._surprises, *itertools.chain.from_iterable(different)]


def creation(names: Iterable[str], configs: Any = ()) -> CreateTopicsRequest:
    """Return a request that creates topics with one partition and two replicas."""
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=2, configs=list(configs))
        for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000)


def deletion(names: Iterable[str]) -> DeleteTopicsRequest:
    """Return a request that deletes topics."""
    topics = [DeleteTopicState(name=name) for name in names]
    return DeleteTopicsRequest(topics=topics, timeout_ms=30_000)


async def differences(
    broker: int, at: Mapping[int, str], expected: Mapping[str, set[bool]]
) -> list[str]:
    """Wait until a broker knows all brokers and the expected topics.

    Returns what still differs, in sentences.
    """
    client = ClusterClient(at, "final-read")
    deadline = time.monotonic() + _AGREED_WITHIN_S
    pause = pauses()
    try:
        while True:
            response = await client.call(broker, ApiKey.METADATA, 4, MetadataRequest(topics=None))
            topic_names = {topic.name for topic in response.topics}
            wrong = [
                f"broker {broker} {'knows' if name in topic_names else 'does not know'} {name}"
                for name, possible in expected.items()
                if (name in topic_names) not in possible
            ]
            known_brokers = {node.node_id for node in response.brokers}
            wrong += [
                f"broker {broker} does not know broker {node}" for node in at.keys() - known_brokers
            ]
            if not wrong or time.monotonic() > deadline:
                return wrong
            await asyncio.sleep(next(pause))
    finally:
        client.close()


TOPICS = Workload(
    name="topics",
    does="Eight clients create topics through all brokers and delete half of them.",
    start=Topics,
)

# Clients that send at the same moments and then pause: few requests during a long fault.
BURSTS = Workload(
    name="bursts",
    does="Every 1.5 s six clients create a topic each, read it three times at random brokers, and "
    "delete half of these topics.",
    start=partial(Topics, clients=6, period_s=1.5, reads=3),
)

# Clients that use only the controller's broker, so no other broker resends their requests.
CONTROLLERS_BROKER = Workload(
    name="controllers_broker",
    does="Sixty-four clients create topics through the broker that is the controller at the start, "
    "and delete half of them.",
    start=partial(Topics, clients=64, controllers_broker=True),
)

LARGE_REQUESTS = Workload(
    name="large_requests",
    does="Two clients create 250 topics with each request, and delete the topics of half of them.",
    start=partial(Topics, clients=2, topics_each=250),
)

# More clients than a controller can serve at once.
MANY_TOPICS = Workload(
    name="many_topics",
    does="Sixty-four clients create topics through all brokers and delete half of them.",
    start=partial(Topics, clients=64),
)
