"""Checks during failovers that each request of twenty users is decided for its own principal.

Every user has all rights on the topics whose names begin with the user's name, but only from its
own address. It has no other rights, and one of these topics is denied. So each result shows which
principal the controller used. Then the evidence is judged, and this program checks it again: the
authenticated principal, the client id and the principal of the decision must be the same user.

    python -m chaos.forwarded_principals [--requests N] [--failovers N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import judge.__main__ as judge_command
from bridgehead.cluster import ClientHistory, Cluster
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from chaos.recorded_client import RecordedClient
from judge.evidence.run_lookup import read_run
from judge.history import History
from raw_client.asynchronous import ClusterClient, PlainLogin

USERS: Final = tuple(f"u{number:02}" for number in range(1, 21))
LISTENER: Final = "SASL_PLAINTEXT"
ADMIN: Final = "admin"
METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_ACLS, ALTER_CONFIGS = 3, 19, 20, 30, 44
NONE, TIMED_OUT, DENIED = 0, 7, 29
_TOPIC, _LITERAL, _PREFIXED, _ALL, _CREATE, _DENY, _ALLOW = 2, 3, 4, 2, 5, 2, 3
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_KEPT_TOPICS: Final = 3  # per user; older ones are deleted
_PROPAGATED_WITHIN_S: Final = 60.0
_RETRY_S: Final = 0.05


class NotPropagatedError(Exception):
    """A broker did not apply a user's ACLs in time."""


@dataclass(slots=True)
class Counts:
    """The results of the users' requests."""

    allowed: int = 0
    denied: int = 0
    unanswered: int = 0  # the broker died, or there was no controller in time
    wrong: list[str] = field(default_factory=list)  # results for another principal
    failovers: int = 0
    seconds: float = 0.0

    @property
    def answered(self) -> int:
        """Requests with a response."""
        return self.allowed + self.denied + len(self.wrong)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions in the evidence."""

    executions: int  # by a controller
    forwarded: int  # of those, for clients of another broker
    users: int  # distinct users
    elections: int
    mismatches: tuple[str, ...]  # decisions for a principal other than the authenticated one


@dataclass(frozen=True, slots=True)
class Trial:
    """A request and the error codes expected for the right principal."""

    key: int
    version: int
    message: Any
    expected: tuple[int, ...]


def host_of(user: str) -> str:
    """Return a user's own address."""
    return f"127.0.1.{USERS.index(user) + 1}"


def password_of(user: str) -> str:
    """Return a user's password."""
    return f"{user}-secret"


def properties() -> dict[str, str]:
    """Return the properties of every broker."""
    known = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *USERS))
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_MODULE} {known};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{ADMIN};User:broker",
        "zookeeper.session.timeout.ms": "2000",
        "auto.create.topics.enable": "false",
    }


def _create(*names: str) -> Any:
    topics = [CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000)


def _alter(topic: str, number: int) -> Any:
    config = AlterableConfig("retention.ms", 0, str(1_000 + number))
    return IncrementalAlterConfigsRequest([AlterConfigsResource(_TOPIC, topic, [config])])


def _delete(topic: str) -> Any:
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=30_000)


def _codes(key: int, answer: Any) -> tuple[int, ...]:
    elements = answer.topics if key in (METADATA, CREATE_TOPICS) else answer.responses
    return tuple(int(element.error_code) for element in elements)


class User:
    """A user that sends requests with known results."""

    def __init__(self, name: str, addresses: Mapping[int, str], source: random.Random) -> None:
        self.name = name
        self.client: ClusterClient | RecordedClient = ClusterClient(
            addresses,
            name,
            login=PlainLogin(name, password_of(name)),
            from_host=host_of(name),
        )
        self._brokers = sorted(addresses)
        self._source = source
        self._numbers = itertools.count()
        self._topics: deque[str] = deque()

    def record(self, history: ClientHistory) -> None:
        """Record the creations and deletions of topics from now on."""
        assert isinstance(self.client, ClusterClient)
        self.client = RecordedClient(self.client, history)

    def next_trial(self) -> Trial:
        """Return the next request."""
        number, name = next(self._numbers), self.name
        other = self._source.choice([user for user in USERS if user != name])
        own, stolen = f"{name}-{number}", f"{other}-{number}-{name}"
        if len(self._topics) > _KEPT_TOPICS:
            return Trial(DELETE_TOPICS, 6, _delete(self._topics.popleft()), (NONE,))
        kinds = (
            Trial(CREATE_TOPICS, 7, _create(own), (NONE,)),
            Trial(CREATE_TOPICS, 7, _create(own, stolen), (NONE, DENIED)),
            Trial(CREATE_TOPICS, 7, _create(stolen), (DENIED,)),
            Trial(CREATE_TOPICS, 7, _create(f"{name}-denied"), (DENIED,)),
            Trial(ALTER_CONFIGS, 1, _alter(f"{name}-base", number), (NONE,)),
            Trial(ALTER_CONFIGS, 1, _alter(f"{other}-base", number), (DENIED,)),
            Trial(DELETE_TOPICS, 6, _delete(f"{other}-base"), (DENIED,)),
        )
        return self._source.choice(kinds)

    async def work(self, turns: Iterator[int], counts: Counts) -> None:
        """Send requests until there are no turns left."""
        for _ in turns:
            trial, broker = self.next_trial(), self._source.choice(self._brokers)
            try:
                answer = await self.client.call(broker, trial.key, trial.version, trial.message)
            except (OSError, EOFError):
                counts.unanswered += 1
                await asyncio.sleep(_RETRY_S)  # The broker may be gone for a while.
                continue
            codes = _codes(trial.key, answer)
            if TIMED_OUT in codes:
                counts.unanswered += 1
            elif codes != trial.expected:
                counts.wrong.append(f"{self.name} at broker {broker}: {trial}: {codes}")
            elif DENIED in codes:
                counts.denied += 1
            else:
                counts.allowed += 1
            if trial.key == CREATE_TOPICS and codes[0] == NONE:
                self._topics.append(trial.message.topics[0].name)
        self.client.close()


async def set_up(
    addresses: Mapping[int, str], propagated_within_s: float = _PROPAGATED_WITHIN_S
) -> None:
    """Create every user's ACLs and first topic; wait until every broker has both.

    Raises:
        NotPropagatedError: a broker did not have the ACLs and topics in time.
    """
    admin = ClusterClient(addresses, ADMIN, login=PlainLogin(ADMIN, password_of(ADMIN)))
    broker = min(addresses)
    rules = [rule for user in USERS for rule in _rules(user)]
    granted = await admin.call(broker, CREATE_ACLS, 2, CreateAclsRequest(rules))
    base = await admin.call(broker, CREATE_TOPICS, 7, _create(*(f"{user}-base" for user in USERS)))
    codes = {each.error_code for each in (*granted.results, *base.topics)}
    assert codes == {NONE}, codes
    admin.close()
    deadline = time.monotonic() + propagated_within_s
    for user, broker in itertools.product(USERS, addresses):
        client = ClusterClient(
            {broker: addresses[broker]},
            user,
            login=PlainLogin(user, password_of(user)),
            from_host=host_of(user),
        )
        topics = [MetadataRequestTopic(name=f"{user}-base")]
        wanted = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        while _codes(METADATA, await client.call(broker, METADATA, 9, wanted)) != (NONE,):
            if time.monotonic() > deadline:
                raise NotPropagatedError(f"broker {broker} does not have the ACLs of {user}")
            await asyncio.sleep(_RETRY_S)
        client.close()


def _rules(user: str) -> tuple[AclCreation, AclCreation]:
    principal = f"User:{user}"
    return (
        AclCreation(_TOPIC, f"{user}-", _PREFIXED, principal, host_of(user), _ALL, _ALLOW),
        AclCreation(_TOPIC, f"{user}-denied", _LITERAL, principal, "*", _CREATE, _DENY),
    )


def _fail_over(cluster: Cluster, number: int) -> None:
    """Change the controller. `number` selects how: kill it, expire its session, or move it."""
    before = cluster.wait_for_controller()
    match number % 3:
        case 0:
            killed = cluster.kill_controller()
            cluster.start_node(killed)
        case 1:
            cluster.expire_controller()
        case _:
            cluster.move_controller(before % len(cluster.brokers) + 1)
    cluster.wait_for_controller()


async def run(cluster: Cluster, count: int, *, failovers: int, seed: int = 1) -> Counts:
    """Send requests until `count` are answered, with failovers in between.

    Raises:
        NotPropagatedError: see `set_up`.
    """
    addresses = {broker: cluster.bootstrap_server(broker, LISTENER) for broker in cluster.brokers}
    await set_up(addresses)
    counts, source, began_s = Counts(), random.Random(seed), time.monotonic()
    turns = itertools.takewhile(lambda _: counts.answered < count, itertools.count())
    users = [User(name, addresses, random.Random(source.random())) for name in USERS]
    workers = [asyncio.create_task(user.work(turns, counts)) for user in users]
    for number in range(failovers):
        due = count * (number + 1) // (failovers + 1)
        while counts.answered < due and not all(w.done() for w in workers):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await asyncio.to_thread(_fail_over, cluster, number)
        counts.failovers += 1
    await asyncio.gather(*workers)
    counts.seconds = time.monotonic() - began_s
    return counts


def examine(history: History) -> Decisions:
    """Compare the principals of decisions with the logins of their connections."""
    known = {e["connection"]: e["principal"] for e in history.of_kind["authenticated"]}
    executions, mismatches, users = 0, [], Counter[str]()
    forwarded = 0
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or received["listener"] != LISTENER:
            continue
        executions += 1
        forwarded += received["node"] != event["node"]
        users[event["client_id"]] += 1
        principals = {known.get(received["connection"]), received["principal"], event["principal"]}
        if principals != {f"User:{event['client_id']}"}:
            mismatches.append(f"{event['request_id']}: {sorted(map(str, principals))}")
    seen = sum(users[user] > 0 for user in USERS)
    return Decisions(executions, forwarded, seen, len(history.terms), tuple(mismatches))


def _summary(counts: Counts, seen: Decisions) -> str:
    return (
        f"{counts.answered} requests of {seen.users} users in {counts.seconds:.1f} s: "
        f"{counts.allowed} allowed, {counts.denied} denied, {len(counts.wrong)} decided for "
        f"another principal; {counts.unanswered} without a response; {counts.failovers} failovers, "
        f"{seen.elections} epochs; {seen.executions} decisions, {seen.forwarded} forwarded, "
        f"{len(seen.mismatches)} for another principal"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, print; return 0 if all properties hold and every user took part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--failovers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, help="keep the evidence there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-") as temporary:
        folder = given.data_dir or Path(temporary)
        with Cluster(properties=properties(), data_dir=folder) as cluster:
            counts = asyncio.run(
                run(cluster, given.requests, failovers=given.failovers, seed=given.seed)
            )
        status = judge_command.main([str(folder)])
        seen = examine(History(read_run(folder)))
    lines = [*counts.wrong[:5], *seen.mismatches[:5], _summary(counts, seen)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    vacuous = seen.users < len(USERS) or seen.forwarded < given.requests // 3
    short = counts.failovers < given.failovers or seen.elections <= given.failovers
    return status or int(bool(counts.wrong or seen.mismatches or vacuous or short))


if __name__ == "__main__":
    sys.exit(main())
