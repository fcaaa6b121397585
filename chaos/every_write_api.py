"""Checks that each acknowledged write of every API is executed once while controllers are killed.

Workers create one object after another. An object is a topic with an ACL, a quota, a SCRAM
credential and a delegation token. The topic is configured, gets more partitions, is reassigned and
elects a leader. The token is renewed. Half of all objects are deleted again. Each request is sent
once. At the end the clients' own history is compared with what the brokers describe, and the
evidence is judged. UpdateFeatures is left out: with ZooKeeper it never writes.

    python -m chaos.every_write_api [--objects N] [--kills N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import judge.__main__ as judge_command
from bridgehead.cluster import ClientHistory, Cluster, RunSettings
from bridgehead.kafka_wire.api_key import ApiKey
from raw_client.asynchronous import AsyncConnection, PlainLogin
from raw_client.codec import Body, create_topic_body, decode_json, encode_json

LISTENER: Final = "SASL_PLAINTEXT"
LOGIN: Final = PlainLogin("admin", "admin-secret")
WORKERS: Final = 6
# The outcome is unknown after UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT and NOT_CONTROLLER.
_OPEN: Final = frozenset({-1, 7, 41})
_ELECTION_NOT_NEEDED: Final = 84
# The errors of requests that need a broker which is not registered at the moment:
# INVALID_REPLICA_ASSIGNMENT and PREFERRED_LEADER_NOT_AVAILABLE.
_BROKER_IS_GONE: Final = {ApiKey.ALTER_PARTITION_REASSIGNMENTS: 39, ApiKey.ELECT_LEADERS: 80}
_TOPIC, _LITERAL, _READ, _ALLOW, _SHA_256 = 2, 3, 3, 3, 1
_RESPONSE_WITHIN_S: Final = 40.0
_AGREED_WITHIN_S: Final = 60.0
_OPERATIONS_MIN: Final = 5
_TOKEN_LIFETIME_MS: Final = 600_000
_ALL_TOPICS: Final = {
    "topics": None,
    "allowAutoTopicCreation": False,
    "includeClusterAuthorizedOperations": False,
    "includeTopicAuthorizedOperations": False,
}
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # the topic id in a request that has the topic's name


class Write(NamedTuple):
    """One request about one object, and the fact that brokers must report once it has succeeded.

    A fact is, for example, a number of partitions or a quota.
    """

    kind: str  # of the fact: `topic`, `config`, `acl`, …
    key: ApiKey
    version: int
    body: Body
    code: Callable[[Body], int]  # the error code in the response
    value: object  # the fact after a success; None: the fact no longer exists
    # The request's elements, named as in the event `request_decided` (docs/events.md), for the
    # clients' history.
    elements: tuple[str, ...] = ()


@dataclass(slots=True)
class Expectation:
    """The values that one fact of one object may have at the end."""

    values: set[object] = field(default_factory=lambda: {None})

    def note(self, value: object, outcome: str) -> None:
        """Record an outcome: `ok` leaves only this value, `info` adds it, `fail` has no effect."""
        if outcome == "ok":
            self.values = {value}
        elif outcome == "info":
            self.values.add(value)

    def allows(self, kind: str, found: object) -> bool:
        """Return whether the value is possible. Before a reassignment any replicas are possible."""
        return found in self.values or (kind == "replicas" and None in self.values)


@dataclass(slots=True)
class Report:
    """The outcomes that the clients saw. `wrong` has a sentence for each difference."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (API, outcome)
    facts: dict[tuple[str, str], Expectation] = field(
        default_factory=lambda: defaultdict(Expectation)
    )
    wrong: list[str] = field(default_factory=list)
    restarting: set[int] = field(default_factory=set)
    """Killed brokers that are not back in every ISR."""
    kills: int = 0
    longest_s: float = 0.0

    @property
    def acknowledged(self) -> int:
        """Requests that were answered with success."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome == "ok")

    def lines(self) -> Iterator[str]:
        """Yield the counts: one line for each API, then the totals."""
        for api in sorted({api for api, _ in self.outcomes}):
            ok, info, fail = (self.outcomes[api, each] for each in ("ok", "info", "fail"))
            yield f"{api:28} {ok:6} acknowledged {info:4} unknown {fail:4} rejected"
        yield (
            f"{self.acknowledged} acknowledged writes, {self.kills} kills, {len(self.facts)} facts "
            f"compared, {len(self.wrong)} wrong; the longest request took {self.longest_s:.1f} s"
        )


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
        "super.users": f"User:{LOGIN.user};User:broker",
        "delegation.token.secret.key": "chaos-token-key",
        "delegation.token.expiry.time.ms": str(_TOKEN_LIFETIME_MS // 2),  # until it is renewed
        "zookeeper.session.timeout.ms": "2000",
        "auto.create.topics.enable": "false",
    }


def _first(*path: str) -> Callable[[Body], int]:
    """Return a function that reads a response's error code.

    It follows the named lists, taking the first element of each, and stops early at a non-zero
    code.
    """

    def code(body: Body) -> int:
        for name in path:
            if body.get("errorCode"):
                return int(body["errorCode"])
            body = body[name][0]
        return int(body["errorCode"])

    return code


def _elected(body: Body) -> int:
    code = _first("replicaElectionResults", "partitionResult")(body)
    return 0 if code == _ELECTION_NOT_NEEDED else code


def _config(name: str, value: str, **operation: int) -> Body:
    entry = {"name": "retention.ms", "value": value, **operation}
    resource = {"resourceType": _TOPIC, "resourceName": name, "configs": [entry]}
    return {"resources": [resource], "validateOnly": False}


def _acl(name: str) -> Body:
    return {
        "resourceType": _TOPIC,
        "resourceName": name,
        "resourcePatternType": _LITERAL,
        "principal": f"User:{name}",
        "host": "*",
        "operation": _READ,
        "permissionType": _ALLOW,
    }


def _acl_filter(name: str | None) -> Body:
    return {
        "resourceTypeFilter": _TOPIC,
        "resourceNameFilter": name,
        "patternTypeFilter": _LITERAL,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }


def _quota(name: str, value: float | None) -> Body:
    op = {"key": "producer_byte_rate", "value": value or 0.0, "remove": value is None}
    entry = {"entity": [{"entityType": "user", "entityName": name}], "ops": [op]}
    return {"entries": [entry], "validateOnly": False}


def _scram(name: str, iterations: int) -> Body:
    upsertion = {
        "name": name,
        "mechanism": _SHA_256,
        "iterations": iterations,
        "salt": base64.b64encode(name.encode()).decode(),
        "saltedPassword": base64.b64encode(bytes(32)).decode(),
    }
    return {"deletions": [], "upsertions": [upsertion]}


def creations(name: str, number: int, replica: int) -> Iterator[Write]:
    """Yield the requests that create an object; its first partition moves to `replica`."""
    topic, config = (name,), (f"{_TOPIC}:{name}",)
    partition = {"partitionIndex": 0, "replicas": [replica]}
    reassignment = {"timeoutMs": 30_000, "topics": [{"name": name, "partitions": [partition]}]}
    new_partitions = {
        "topics": [{"name": name, "count": 3, "assignments": None}],
        "timeoutMs": 30_000,
        "validateOnly": False,
    }
    election = {
        "electionType": 0,
        "topicPartitions": [{"topic": name, "partitions": [1]}],
        "timeoutMs": 30_000,
    }
    renewer = {"principalType": "User", "principalName": name}
    token = {
        "ownerPrincipalType": None,
        "ownerPrincipalName": None,
        "renewers": [renewer],
        "maxLifetimeMs": _TOKEN_LIFETIME_MS,
    }
    responses, results, code = _first("responses"), _first("results"), _first()
    body = {**create_topic_body(name, 2, 2), "timeoutMs": 30_000}
    retention, rate, rounds = str(10_000 + number), float(1000 + number), 4096 + number
    yield Write("partitions", ApiKey.CREATE_TOPICS, 7, body, _first("topics"), 2, topic)
    yield Write(
        "config",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        _config(name, retention, configOperation=0),
        responses,
        retention,
        config,
    )
    longer = f"{retention}0"
    old = _config(name, longer)
    yield Write("config", ApiKey.ALTER_CONFIGS, 2, old, responses, longer, config)
    yield Write("partitions", ApiKey.CREATE_PARTITIONS, 3, new_partitions, results, 3, topic)
    yield Write(
        "replicas",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        reassignment,
        _first("responses", "partitions"),
        (replica,),
    )
    yield Write("leader", ApiKey.ELECT_LEADERS, 2, election, _elected, None)
    yield Write("acl", ApiKey.CREATE_ACLS, 3, {"creations": [_acl(name)]}, results, 1)
    yield Write("quota", ApiKey.ALTER_CLIENT_QUOTAS, 1, _quota(name, rate), _first("entries"), rate)
    yield Write(
        "scram", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, _scram(name, rounds), results, rounds
    )
    yield Write("token", ApiKey.CREATE_DELEGATION_TOKEN, 3, token, code, 1)


def renewal(hmac: str) -> Write:
    """Return the request that renews a token for its whole remaining lifetime."""
    body = {"hmac": hmac, "renewPeriodMs": 10 * _TOKEN_LIFETIME_MS}
    return Write("renewed", ApiKey.RENEW_DELEGATION_TOKEN, 2, body, _first(), True)


def deletions(name: str, hmac: str | None) -> Iterator[Write]:
    """Yield the requests that delete an object; `hmac` is its token's, None if unknown."""
    credential = {"name": name, "mechanism": _SHA_256}
    scram = {"deletions": [credential], "upsertions": []}
    delete = {"topics": [{"name": name, "topicId": _NO_ID}], "timeoutMs": 30_000}
    results = _first("results")
    acls = {"filters": [_acl_filter(name)]}
    quota, user = _quota(name, None), ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    yield Write("acl", ApiKey.DELETE_ACLS, 3, acls, _first("filterResults"), None)
    yield Write("quota", ApiKey.ALTER_CLIENT_QUOTAS, 1, quota, _first("entries"), None)
    yield Write("scram", user, 0, scram, results, None)
    if hmac is not None:
        expiry = {"hmac": hmac, "expiryTimePeriodMs": -1}
        yield Write("token", ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry, _first(), None)
    yield Write("partitions", ApiKey.DELETE_TOPICS, 6, delete, _first("responses"), None, (name,))


class Client:
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
        clients: Mapping[int, Client],
        history: ClientHistory,
        report: Report,
        source: random.Random,
    ) -> None:
        self._clients = clients
        self._history = history
        self._report = report
        self._source = source

    async def work(self, numbers: Iterator[int]) -> None:
        """Work until there are no numbers left."""
        for number in numbers:
            name, hmac = f"object-{number}", None
            replica = self._source.choice(sorted(self._clients))
            for write in creations(name, number, replica):
                response = await self._send(name, write)
                if write.kind == "token" and response is not None:
                    hmac = response["hmac"]
                    await self._send(name, renewal(hmac))
            if number % 2:
                for write in deletions(name, hmac):
                    await self._send(name, write)
                    if write.key is ApiKey.DELETE_TOPICS:
                        self._forget(name, "partitions", ("config", "replicas"))
                    elif write.key is ApiKey.EXPIRE_DELEGATION_TOKEN:
                        self._forget(name, "token", ("renewed",))

    async def _send(self, name: str, write: Write) -> Body | None:
        """Send one request to a broker; return the response if it was a success."""
        client = await self._connected()
        began, code, response = time.monotonic(), -1, None
        elements, restarting = write.elements, set(self._report.restarting)
        with self._history.operation(write.key, elements) as operation:
            try:
                response = await client.call(write.key, write.version, write.body)
                code = write.code(response)
                operation.completed(dict.fromkeys(elements, code))
            except (OSError, EOFError):  # The broker is gone, and the outcome is unknown.
                await asyncio.sleep(0.05)
        report = self._report
        report.longest_s = max(report.longest_s, time.monotonic() - began)
        outcome = "ok" if code == 0 else "info" if code in _OPEN else "fail"
        report.outcomes[write.key.name, outcome] += 1
        fact = report.facts[write.kind, name]
        restarting |= report.restarting
        is_gone = bool(restarting) and code == _BROKER_IS_GONE.get(write.key)
        if outcome == "fail" and not is_gone and not self._may_fail(name):
            report.wrong.append(f"{write.key.name} of {name} was rejected with {code}")
        fact.note(write.value, outcome)
        return response if outcome == "ok" else None

    async def _connected(self) -> Client:
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


async def _kill(
    cluster: Cluster,
    connect: Callable[[], Mapping[int, Client]],
    kills: int,
    report: Report,
    done: Callable[[], bool],
) -> None:
    """Kill the controller when enough writes were acknowledged since the last kill."""
    for _ in range(kills):
        due = report.acknowledged + 40
        while report.acknowledged < due and not done():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if done():
            return
        killed = await asyncio.to_thread(cluster.kill_controller)
        report.restarting.add(killed)
        await asyncio.to_thread(cluster.start_node, killed)
        await asyncio.to_thread(cluster.wait_for_controller)
        await _until_back(connect(), killed)
        report.restarting.discard(killed)
        report.kills += 1


async def _until_back(clients: Mapping[int, Client], broker_id: int) -> None:
    """Wait until every broker lists a broker, in the ISR of each of its partitions too."""
    async with asyncio.timeout(_AGREED_WITHIN_S):
        for client in clients.values():
            while not await _is_back(client, broker_id):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            client.close()


async def _is_back(client: Client, broker_id: int) -> bool:
    metadata = await client.call(ApiKey.METADATA, 9, _ALL_TOPICS)
    isrs = [
        partition["isrNodes"]
        for topic in metadata["topics"]
        for partition in topic["partitions"]
        if broker_id in partition["replicaNodes"]
    ]
    return any(broker["nodeId"] == broker_id for broker in metadata["brokers"]) and all(
        broker_id in isr for isr in isrs
    )


async def _described(client: Client, names: list[str]) -> dict[tuple[str, str], object]:
    """Return every fact that a broker describes."""
    found: dict[tuple[str, str], Any] = {}
    for topic in (await client.call(ApiKey.METADATA, 9, _ALL_TOPICS))["topics"]:
        found["partitions", topic["name"]] = len(topic["partitions"])
        first = min(topic["partitions"], key=lambda each: int(each["partitionIndex"]))
        found["replicas", topic["name"]] = tuple(first["replicaNodes"])
    existing = [name for name in names if ("partitions", name) in found]
    keys = {"configurationKeys": ["retention.ms"], "resourceType": _TOPIC}
    wanted = {"resources": [{**keys, "resourceName": name} for name in existing]}
    configs = {**wanted, "includeSynonyms": False, "includeDocumentation": False}
    for each in (await client.call(ApiKey.DESCRIBE_CONFIGS, 4, configs))["results"]:
        (config,) = each["configs"]
        if config["configSource"] == 1:  # the topic's own config
            found["config", each["resourceName"]] = config["value"]
    acls = await client.call(ApiKey.DESCRIBE_ACLS, 3, _acl_filter(None))
    for resource in acls["resources"]:
        found["acl", resource["resourceName"]] = len(resource["acls"])
    quotas = await client.call(
        ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False}
    )
    for entry in quotas["entries"]:
        found["quota", entry["entity"][0]["entityName"]] = entry["values"][0]["value"]
    users = await client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
    for user in users["results"]:
        found["scram", user["user"]] = user["credentialInfos"][0]["iterations"]
    tokens = await client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})
    for token in tokens["tokens"]:
        name = token["renewers"][0]["principalName"]
        found["token", name] = found.get(("token", name), 0) + 1
        if token["expiryTimestamp"] == token["maxTimestamp"]:
            found["renewed", name] = True
    return found


def differences(report: Report, found: Mapping[tuple[str, str], object], broker: int) -> list[str]:
    """Compare what a broker describes with the clients' history; return the differences."""
    return [
        f"broker {broker}: {kind} of {name} is {found.get((kind, name))}, not one of {fact.values}"
        for (kind, name), fact in report.facts.items()
        if kind != "leader" and not fact.allows(kind, found.get((kind, name)))
    ]


async def run(cluster: Cluster, objects: int, kills: int, seed: int = 1) -> Report:
    """Kill controllers while clients work with `objects` objects, or with more until the last kill.

    At the end, compare what the brokers describe.
    """
    addresses = {broker: cluster.bootstrap_server(broker, LISTENER) for broker in cluster.brokers}
    report, source = Report(), random.Random(seed)
    begun = 0

    def connect() -> dict[int, Client]:
        return {broker: Client(address) for broker, address in addresses.items()}

    def begins(number: int) -> bool:
        nonlocal begun
        begun = number if number >= objects and report.kills >= kills else number + 1
        return begun > number

    numbers = itertools.takewhile(begins, itertools.count())
    with ClientHistory(cluster.evidence_dir, "every-write-api") as history:
        tasks = []
        for _ in range(WORKERS):
            worker = Worker(connect(), history, report, random.Random(source.random()))
            tasks.append(asyncio.create_task(worker.work(numbers)))
        await _kill(cluster, connect, kills, report, lambda: any(task.done() for task in tasks))
        await asyncio.gather(*tasks)
    await compare(addresses, begun, report)
    return report


async def compare(addresses: Mapping[int, str], objects: int, report: Report) -> None:
    """Add to `report.wrong` what brokers describe differently from the clients' history."""
    names = [f"object-{number}" for number in range(objects)]
    for broker, address in addresses.items():
        client, deadline = Client(address), time.monotonic() + _AGREED_WITHIN_S
        # A reassignment ends, and brokers are notified, shortly after the response.
        for _ in itertools.count():
            wrong = differences(report, await _described(client, names), broker)
            if not wrong or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        report.wrong += wrong
        client.close()


def settings(seed: int) -> RunSettings:
    """Return the scenario of the run, for the judges."""
    return RunSettings(scenario="every-write-api", seed=seed, operations_min=_OPERATIONS_MIN)


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, print; return 0 if every fact is as expected and all properties hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--objects", type=int, default=200, help="the fewest objects")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, help="keep the evidence there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-") as temporary:
        folder = given.data_dir or Path(temporary)
        with Cluster(properties=properties(), data_dir=folder, run=settings(given.seed)) as cluster:
            report = asyncio.run(run(cluster, given.objects, given.kills, given.seed))
        status = judge_command.main([str(folder)])
    sys.stdout.write("".join(f"{line}\n" for line in (*report.wrong[:10], *report.lines())))
    return status or int(bool(report.wrong) or report.kills < given.kills)


if __name__ == "__main__":
    sys.exit(main())
