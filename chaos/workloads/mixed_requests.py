"""Requests with valid and invalid topics: each topic gets its own result."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.raw_client.asynchronous import ClusterClient
from chaos.workload import UNKNOWN_OUTCOMES, Place, Workload
from chaos.workloads.topics import addresses, creation, deletion, differences

_CLIENTS: Final = 6
_RETRY_S: Final = 0.05


class MixedRequests:
    """The load. Each request creates two topics, and names others that cannot be created."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._addresses = addresses(place)
        self._numbers = itertools.count()
        self._stopped = False
        # By topic: contains True if the topic may exist at the end, and False if it may be absent.
        self._expected: dict[str, set[bool]] = {}
        self._surprises: list[str] = []

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(_CLIENTS)))

    async def _work(self) -> None:
        client = ClusterClient(self._addresses, "mixed")
        existing = None
        while not self._stopped:
            number = next(self._numbers)
            first, last = f"first-{number}", f"last-{number}"
            codes = {
                first: ErrorCode.NONE,
                f"not valid {number}": ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"twice-{number}": ErrorCode.INVALID_REQUEST,
                last: ErrorCode.NONE,
            }
            if existing is not None:
                codes = {existing: ErrorCode.TOPIC_ALREADY_EXISTS, **codes}
            broker = self._place.source.choice(self._place.brokers)
            codes_of_topics = await self._create(client, broker, [*codes, f"twice-{number}"])
            self._judge(codes, codes_of_topics)
            if codes_of_topics.get(first) == ErrorCode.NONE:
                await self._delete(client, broker, first)
            if codes_of_topics.get(last) == ErrorCode.NONE:
                existing = last
        client.close()

    async def _create(
        self, client: ClusterClient, broker: int, names: list[str]
    ) -> Mapping[str, int]:
        """Send one request; return the error code of each topic, or {} without a response."""
        codes: Mapping[str, int] = {}
        with self._place.history.operation(ApiKey.CREATE_TOPICS, sorted({*names})) as operation:
            try:
                response = await client.call(broker, ApiKey.CREATE_TOPICS, 4, creation(names))
                codes = {str(topic.name): int(topic.error_code) for topic in response.topics}
                operation.completed(codes)
            except (OSError, EOFError):  # The broker is gone, and the outcome is unknown.
                await asyncio.sleep(_RETRY_S)
        return codes

    async def _delete(self, client: ClusterClient, broker: int, name: str) -> None:
        """Delete a topic. Only deletions count for T1: every creation has invalid topics."""
        code = -1
        with self._place.history.operation(ApiKey.DELETE_TOPICS, [name]) as operation:
            try:
                response = await client.call(broker, ApiKey.DELETE_TOPICS, 6, deletion([name]))
                code = int(response.responses[0].error_code)
                operation.completed({name: code})
            except (OSError, EOFError):
                await asyncio.sleep(_RETRY_S)
        self._expected[name] = {True, False} if code in UNKNOWN_OUTCOMES else {False}
        if code not in (ErrorCode.NONE, *UNKNOWN_OUTCOMES):
            self._surprises.append(f"the deletion of {name} was rejected with {code}")

    def _judge(self, expected: Mapping[str, int], responded: Mapping[str, int]) -> None:
        for name, code in expected.items():
            got, succeeds = responded.get(name, -1), code == ErrorCode.NONE
            if code != ErrorCode.TOPIC_ALREADY_EXISTS:
                self._expected[name] = {False, succeeds} if got in UNKNOWN_OUTCOMES else {succeeds}
            if got not in (code, *UNKNOWN_OUTCOMES):
                self._surprises.append(f"the creation of {name} got {got} instead of {int(code)}")
        self._place.progress.add(bool(responded) and not UNKNOWN_OUTCOMES & {*responded.values()})

    async def wrong(self) -> list[str]:
        wrong_responses = await asyncio.gather(
            *(
                differences(broker, self._addresses, self._expected)
                for broker in self._place.brokers
            )
        )
        return [*self._surprises, *itertools.chain.from_iterable(wrong_responses)]


MIXED_REQUESTS = Workload(
    name="mixed_requests",
    does="Six clients send requests with valid, invalid, duplicate and existing topics.",
    start=MixedRequests,
)
