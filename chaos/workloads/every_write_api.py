"""Every write API, on one object after another.

Workers create objects (chaos/write_requests.py), and delete most of them again, so that a long run
does not slow down. Each request is sent once. At the end the clients' own history is compared with
what the brokers describe.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.cluster import ClientHistory
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.asynchronous import AsyncConnection, PlainLogin
from bridgehead.raw_client.codec import Body, decode_json, encode_json
from chaos.workload import UNKNOWN_OUTCOMES, Disturbances, Place, Progress, Workload, pauses
from chaos.workloads.topics import addresses
from chaos.write_requests import (
    TOKEN_LIFETIME_MS,
    TOPIC,
    VALIDATED,
    Write,
    acl_filter,
    creations,
    deletions,
    renewal,
)

LISTENER: Final = "SASL_PLAINTEXT"
LOGIN: Final = PlainLogin("admin", "admin-secret")
WORKERS: Final = 6
# The error of each API if a broker that the request needs is not registered or not in sync:
# INVALID_REPLICA_ASSIGNMENT and PREFERRED_LEADER_NOT_AVAILABLE.
_BROKER_IS_GONE: Final = {ApiKey.ALTER_PARTITION_REASSIGNMENTS: 39, ApiKey.ELECT_LEADERS: 80}
_RESPONSE_WITHIN_S: Final = 40.0
_AGREED_WITHIN_S: Final = 60.0
_RETURN_POLL_S: Final = 0.2
_KEPT_EVERY: Final = 8
_ALL_TOPICS: Final = {
    "topics": None,
    "allowAutoTopicCreation": False,
    "includeClusterAuthorizedOperations": False,
    "includeTopicAuthorizedOperations": False,
}


@dataclass(slots=True)
class AllowedValues:
    """The values that one fact of one object may have at the end."""

    values: set[object] = field(default_factory=lambda: {None})

    def note(self, value: object, outcome: str) -> None:
        """Record an outcome: `ok` leaves only this value, `info` adds it, `fail` has no effect."""
        if outcome == "ok":
            self.values = {value}
        elif outcome == "info":
            self.values.add(value)

    def allows(self, kind: str, value: object) -> bool:
        """Return whether the value is possible.

        Until a reassignment is acknowledged, any replicas are possible.
        """
        return value in self.values or (kind == "replicas" and None in self.values)


@dataclass(slots=True)
class Report:
    """The outcomes that the clients saw. `wrong` has a sentence for each difference."""

    progress: Progress = field(default_factory=Progress)  # counts the requests with success
    facts: dict[tuple[str, str], AllowedValues] = field(
        default_factory=lambda: defaultdict(AllowedValues)
    )
    wrong: list[str] = field(default_factory=list)


def properties() -> dict[str, str]:
    """Return the properties of every broker."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{module} user_{LOGIN.user}="{LOGIN.password}";'
        ),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        # ANONYMOUS: simulated brokers are not authenticated to each other.
        "super.users": f"User:{LOGIN.user};User:broker;User:ANONYMOUS",
        "delegation.token.secret.key": "chaos-token-key",
        "delegation.token.expiry.time.ms": str(TOKEN_LIFETIME_MS // 2),  # until renewed
    }


class BrokerConnection:
    """One connection to one broker, opened again after a failure."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: AsyncConnection | None = None

    async def connect(self) -> None:
        """Connect and log in, unless connected. Raises OSError or EOFError."""
        if self._connection is None:
            connection = await AsyncConnection.open(self._address)
            await connection.log_in(LOGIN)
            self._connection = connection

    async def call(self, key: int, version: int, body: Body) -> Body:
        """Return the response's body. Raises OSError or EOFError if there was no response."""
        try:
            async with asyncio.timeout(_RESPONSE_WITHIN_S):
                await self.connect()
                assert self._connection is not None
                response = await self._connection.exchange(encode_json(key, version, body))
        except (OSError, EOFError):  # A timeout is an OSError.
            self.close()
            raise
        return decode_json(key, version, response)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Worker:
    """Creates, changes and deletes one object after another, at random brokers."""

    def __init__(
        self,
        clients: Mapping[int, BrokerConnection],
        history: ClientHistory,
        report: Report,
        source: random.Random,
        disturbances: Disturbances,
    ) -> None:
        self._clients = clients
        self._history = history
        self._report = report
        self._source = source
        self._disturbances = disturbances

    async def work(self, numbers: Iterator[int]) -> None:
        """Handle one object for each number."""
        for number in numbers:
            name, hmac = f"object-{number}", None
            replica = self._source.choice(sorted(self._clients))
            for write in creations(name, number, replica):
                response = await self.send(name, write)
                if write.kind == "token" and response is not None:
                    hmac = response["hmac"]
                    await self.send(name, renewal(hmac))
            if number % _KEPT_EVERY:
                for write in deletions(name, hmac):
                    await self.send(name, write)
                    if write.key is ApiKey.DELETE_TOPICS:
                        self._forget(name, "partitions", ("config", "replicas"))
                    elif write.key is ApiKey.EXPIRE_DELEGATION_TOKEN:
                        self._forget(name, "token", ("renewed",))

    async def send(self, name: str, write: Write) -> Body | None:
        """Send one request to a broker; return the response if it was a success."""
        client = await self._connected()
        code, response, elements = -1, None, write.elements
        was_calm, injected = self._disturbances.is_calm, self._disturbances.injected
        with self._history.operation(write.key, elements) as operation:
            try:
                response = await client.call(write.key, write.version, write.body)
                code = write.code(response)
                operation.completed(dict.fromkeys(elements, code), error=code)
            except (OSError, EOFError):  # The broker is gone, and the outcome is unknown.
                await asyncio.sleep(0.05)
        report = self._report
        outcome = "ok" if code == 0 else "info" if code in UNKNOWN_OUTCOMES else "fail"
        report.progress.add(outcome == "ok")
        fact = report.facts[write.kind, name]
        is_disturbed = not was_calm or self._disturbances.injected > injected
        is_gone = is_disturbed and code == _BROKER_IS_GONE.get(write.key)
        if outcome == "fail" and not is_gone and not self._may_fail(name):
            report.wrong.append(f"{write.key.name} of {name} was rejected with {code}")
        fact.note(write.value, outcome)
        return response if outcome == "ok" else None

    async def _connected(self) -> BrokerConnection:
        """Return a client that is connected to a random broker. Killed brokers are skipped."""
        async with asyncio.timeout(_RESPONSE_WITHIN_S):
            while True:
                client = self._clients[self._source.choice(sorted(self._clients))]
                try:
                    await client.connect()
                except (OSError, EOFError):
                    await asyncio.sleep(0.05)
                else:
                    return client

    def _may_fail(self, name: str) -> bool:
        """Return whether the outcome of an earlier request for this object is unknown."""
        kinds = ("partitions", "replicas", "acl", "quota", "scram", "token")
        return any(len(self._report.facts[kind, name].values) > 1 for kind in kinds)

    def _forget(self, name: str, deleted: str, kinds: tuple[str, ...]) -> None:
        """After a deletion, expect the facts of these kinds to be gone.

        If the deletion's outcome is unknown, also accept their previous values.
        """
        values = self._report.facts[deleted, name].values
        for kind in kinds:
            fact = self._report.facts[kind, name]
            fact.values = {None} if values == {None} else fact.values | values & {None}


async def _is_complete(client: BrokerConnection, brokers: int) -> bool:
    """Return whether a broker lists all brokers, and every replica as in sync."""
    metadata = await client.call(ApiKey.METADATA, 9, _ALL_TOPICS)
    partitions = (partition for topic in metadata["topics"] for partition in topic["partitions"])
    return len(metadata["brokers"]) == brokers and all(
        len(partition["isrNodes"]) == len(partition["replicaNodes"]) for partition in partitions
    )


async def _described(client: BrokerConnection, names: list[str]) -> dict[tuple[str, str], object]:
    """Return every fact that a broker describes."""
    facts: dict[tuple[str, str], Any] = {}
    for topic in (await client.call(ApiKey.METADATA, 9, _ALL_TOPICS))["topics"]:
        facts["partitions", topic["name"]] = len(topic["partitions"])
        first = min(topic["partitions"], key=lambda partition: int(partition["partitionIndex"]))
        facts["replicas", topic["name"]] = tuple(first["replicaNodes"])
        if topic["name"].endswith(VALIDATED):
            facts["validated", topic["name"].removesuffix(VALIDATED)] = True
    existing = [name for name in names if ("partitions", name) in facts]
    keys = {"configurationKeys": ["retention.ms"], "resourceType": TOPIC}
    wanted = {"resources": [{**keys, "resourceName": name} for name in existing]}
    configs = {**wanted, "includeSynonyms": False, "includeDocumentation": False}
    for result in (await client.call(ApiKey.DESCRIBE_CONFIGS, 4, configs))["results"]:
        # A topic whose deletion ends between the two requests has no configs.
        for config in result["configs"]:
            if config["configSource"] == 1:  # the topic's own config
                facts["config", result["resourceName"]] = config["value"]
    acls = await client.call(ApiKey.DESCRIBE_ACLS, 3, acl_filter(None))
    for resource in acls["resources"]:
        facts["acl", resource["resourceName"]] = len(resource["acls"])
    quotas = await client.call(
        ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False}
    )
    for entry in quotas["entries"]:
        facts["quota", entry["entity"][0]["entityName"]] = entry["values"][0]["value"]
    users = await client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
    for user in users["results"]:
        facts["scram", user["user"]] = user["credentialInfos"][0]["iterations"]
    tokens = await client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})
    for token in tokens["tokens"]:
        name = token["renewers"][0]["principalName"]
        facts["token", name] = facts.get(("token", name), 0) + 1
        if token["expiryTimestamp"] == token["maxTimestamp"]:
            facts["renewed", name] = True
    return facts


def differences(report: Report, seen: Mapping[tuple[str, str], object], broker: int) -> list[str]:
    """Compare what a broker describes with the clients' history; return the differences."""
    return [
        f"broker {broker}: {kind} of {name} is {seen.get((kind, name))}, not one of {fact.values}"
        for (kind, name), fact in report.facts.items()
        if kind != "leader" and not fact.allows(kind, seen.get((kind, name)))
    ]


async def compare(addresses: Mapping[int, str], objects: int, report: Report) -> None:
    """Add to `report.wrong` what brokers describe differently from the clients' history."""
    names = [f"object-{number}" for number in range(objects)]
    for broker, address in addresses.items():
        client, deadline = BrokerConnection(address), time.monotonic() + _AGREED_WITHIN_S
        # A difference may be temporary: after the response, it takes a moment until a reassignment
        # ends and brokers are notified.
        for pause_s in pauses():
            wrong = differences(report, await _described(client, names), broker)
            if not wrong or time.monotonic() > deadline:
                break
            await asyncio.sleep(pause_s)
        report.wrong += wrong
        client.close()


class EveryWriteApi:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._addresses = addresses(place, LISTENER)
        self._report = Report(place.progress)
        self._stopped = False
        self._begun = 0

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        recoveries = asyncio.create_task(self._note_recoveries())
        numbers = itertools.takewhile(self._begins, itertools.count())
        place = self._place
        workers = [
            Worker(
                self._connect(),
                place.history,
                self._report,
                random.Random(place.source.random()),
                place.disturbances,
            )
            for _ in range(WORKERS)
        ]
        try:
            await asyncio.gather(*(worker.work(numbers) for worker in workers))
        finally:
            recoveries.cancel()

    def _connect(self) -> dict[int, BrokerConnection]:
        return {broker: BrokerConnection(address) for broker, address in self._addresses.items()}

    def _begins(self, number: int) -> bool:
        self._begun = number + (not self._stopped)
        return not self._stopped

    async def _note_recoveries(self) -> None:
        """After each fault, wait until every broker lists all brokers and all replicas in sync."""
        disturbances, clients = self._place.disturbances, self._connect()
        while True:
            await asyncio.sleep(_RETURN_POLL_S)
            injected = disturbances.injected
            if disturbances.is_calm or disturbances.healed < injected:
                continue
            try:
                complete = [
                    await _is_complete(any_client, len(clients)) for any_client in clients.values()
                ]
            except (OSError, EOFError):
                continue
            if all(complete) and disturbances.injected == injected:
                disturbances.recovered = injected

    async def wrong(self) -> list[str]:
        await compare(self._addresses, self._begun, self._report)
        return self._report.wrong


EVERY_WRITE_API = Workload(
    name="every_write_api",
    does="Six clients work on one object after another, and use every write API on each object.",
    start=EveryWriteApi,
    properties=properties(),
)
