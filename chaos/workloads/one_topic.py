"""A client at each broker creates the same topic at the same moment; one of them succeeds."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_topics import CreatableTopicConfig
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.workload import UNKNOWN_OUTCOMES, Place, Workload
from chaos.workloads.topics import addresses, creation

_NONE: Final = 0
_EXISTS: Final = 36
_TOPIC: Final = 2


class OneTopic:
    """The load.

    Each client sets a different `retention.ms`, which shows whose request created the topic.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._addresses = addresses(place)
        self._stopped = False
        self._created: dict[str, str] = {}  # by topic: the retention of the client that succeeded
        self._surprises: list[str] = []

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        clients = {
            broker: ClusterClient(self._addresses, f"c{broker}") for broker in self._place.brokers
        }
        for number in itertools.takewhile(lambda _: not self._stopped, itertools.count()):
            name = f"contested-{number}"
            with self._place.history.operation(ApiKey.CREATE_TOPICS, [name]) as operation:
                codes = await asyncio.gather(
                    *(self._create(client, at, name) for at, client in clients.items())
                )
                if _NONE in codes:  # One client succeeded; the errors of the others do not count.
                    operation.completed({name: _NONE})
            self._judge(name, codes)
        for client in clients.values():
            client.close()

    async def _create(self, client: ClusterClient, broker: int, name: str) -> int:
        config = CreatableTopicConfig(name="retention.ms", value=str(broker * 1000))
        try:
            response = await client.call(
                broker, ApiKey.CREATE_TOPICS, 4, creation([name], [config])
            )
        except (OSError, EOFError):
            await asyncio.sleep(0.05)
            return -1
        return int(response.topics[0].error_code)

    def _judge(self, name: str, codes: list[int]) -> None:
        winners = [
            broker for broker, code in zip(self._place.brokers, codes, strict=True) if not code
        ]
        if len(winners) > 1:
            self._surprises.append(f"{len(winners)} clients created {name}")
        if not winners and not UNKNOWN_OUTCOMES & set(codes):
            self._surprises.append(f"no client created {name}: {codes}")
        if set(codes) - {_NONE, _EXISTS} - UNKNOWN_OUTCOMES:
            self._surprises.append(f"the creations of {name} ended with {codes}")
        for winner in winners:
            self._created[name] = str(winner * 1000)
            self._place.progress.add()

    async def wrong(self) -> list[str]:
        resources = [
            DescribeConfigsResource(_TOPIC, name, ["retention.ms"]) for name in self._created
        ]
        broker = self._place.brokers[0]
        client = ClusterClient(self._addresses, "final-read")
        response = await client.call(
            broker, ApiKey.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest(resources)
        )
        client.close()
        configs = {result.resource_name: result.configs for result in response.results}
        return self._surprises + [
            f"{name} has the configuration of a client that was rejected"
            for name, retention in self._created.items()
            if not configs[name] or configs[name][0].value != retention
        ]


ONE_TOPIC = Workload(
    name="one_topic",
    does="A client at each broker creates the same topic, each client with a different "
    "configuration.",
    start=OneTopic,
)
