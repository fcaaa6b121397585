"""Twenty users ask any broker while controllers fail: does each decision stand for who asked?

Read first: every user may do everything with topics under its own name, from its own address, and
nothing else; one of its own topics is denied. So each answer tells whom the controller took the
asker for. The evidence is then judged, and counted once more here: whom the broker authenticated,
who the client says to be (its client id), and for whom the controller decided must be one.

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

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from chaos import judge
from chaos.evidence.finding import read_run
from chaos.history import History
from chaos.wire_client import PlainLogin, WireClient

USERS: Final = tuple(f"u{number:02}" for number in range(1, 21))
LISTENER: Final = "SASL_PLAINTEXT"
ADMIN: Final = "admin"
METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_ACLS, ALTER_CONFIGS = 3, 19, 20, 30, 44
NONE, TIMED_OUT, DENIED = 0, 7, 29
_TOPIC, _LITERAL, _PREFIXED, _ALL, _CREATE, _DENY, _ALLOW = 2, 3, 4, 2, 5, 2, 3
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_KEPT_TOPICS: Final = 3  # of each user: what is older is deleted
_LEARN_WITHIN_S: Final = 60.0
_RETRY_S: Final = 0.05


class NeverLearnedError(Exception):
    """A broker did not learn in time what a user may do."""


@dataclass(slots=True)
class Counts:
    """What the users were told."""

    allowed: int = 0
    denied: int = 0
    unanswered: int = 0  # the broker died, or no controller was there in time
    wrong: list[str] = field(default_factory=list)  # an answer that stands for somebody else
    failovers: int = 0
    seconds: float = 0.0

    @property
    def answered(self) -> int:
        """Requests with an answer."""
        return self.allowed + self.denied + len(self.wrong)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the evidence says of all decisions."""

    executions: int  # decisions of a controller, with their request
    forwarded: int  # of those, for another broker's client
    users: int  # how many of `USERS` they were for
    elections: int
    strangers: tuple[str, ...]  # decisions for somebody else than who was authenticated


@dataclass(frozen=True, slots=True)
class Question:
    """A request, and the codes of its elements when its asker is taken for who it is."""

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
    """One user's work: questions whose answers it knows."""

    def __init__(self, name: str, addresses: Mapping[int, str], source: random.Random) -> None:
        self.name = name
        self.client = WireClient(
            addresses,
            name,
            login=PlainLogin(name, password_of(name)),
            from_host=host_of(name),
        )
        self._brokers = sorted(addresses)
        self._source = source
        self._numbers = itertools.count()
        self._topics: deque[str] = deque()

    def question(self) -> Question:
        """Return the next one."""
        number, name = next(self._numbers), self.name
        other = self._source.choice([user for user in USERS if user != name])
        own, stolen = f"{name}-{number}", f"{other}-{number}-{name}"
        if len(self._topics) > _KEPT_TOPICS:
            return Question(DELETE_TOPICS, 6, _delete(self._topics.popleft()), (NONE,))
        kinds = (
            Question(CREATE_TOPICS, 7, _create(own), (NONE,)),
            Question(CREATE_TOPICS, 7, _create(own, stolen), (NONE, DENIED)),
            Question(CREATE_TOPICS, 7, _create(stolen), (DENIED,)),
            Question(CREATE_TOPICS, 7, _create(f"{name}-denied"), (DENIED,)),
            Question(ALTER_CONFIGS, 1, _alter(f"{name}-base", number), (NONE,)),
            Question(ALTER_CONFIGS, 1, _alter(f"{other}-base", number), (DENIED,)),
            Question(DELETE_TOPICS, 6, _delete(f"{other}-base"), (DENIED,)),
        )
        return self._source.choice(kinds)

    async def work(self, turns: Iterator[int], counts: Counts) -> None:
        """Ask until there are no turns left."""
        for _ in turns:
            asked, broker = self.question(), self._source.choice(self._brokers)
            try:
                answer = await self.client.ask(broker, asked.key, asked.version, asked.message)
            except (OSError, EOFError):
                counts.unanswered += 1
                await asyncio.sleep(_RETRY_S)  # The broker may be gone for a while.
                continue
            told = _codes(asked.key, answer)
            if TIMED_OUT in told:
                counts.unanswered += 1
            elif told != asked.expected:
                counts.wrong.append(f"{self.name} at broker {broker}: {asked}: {told}")
            elif DENIED in told:
                counts.denied += 1
            else:
                counts.allowed += 1
            if asked.key == CREATE_TOPICS and told[0] == NONE:
                self._topics.append(asked.message.topics[0].name)
        self.client.close()


async def set_up(addresses: Mapping[int, str], learn_within_s: float = _LEARN_WITHIN_S) -> None:
    """Make every user's rights and first topic; return when every broker knows of both.

    Raises:
        NeverLearnedError: one did not in time.
    """
    admin = WireClient(addresses, ADMIN, login=PlainLogin(ADMIN, password_of(ADMIN)))
    broker = min(addresses)
    rules = [rule for user in USERS for rule in _rules(user)]
    granted = await admin.ask(broker, CREATE_ACLS, 2, CreateAclsRequest(rules))
    made = await admin.ask(broker, CREATE_TOPICS, 7, _create(*(f"{user}-base" for user in USERS)))
    codes = {each.error_code for each in (*granted.results, *made.topics)}
    assert codes == {NONE}, codes
    admin.close()
    deadline = time.monotonic() + learn_within_s
    for user, broker in itertools.product(USERS, addresses):
        client = WireClient(
            {broker: addresses[broker]},
            user,
            login=PlainLogin(user, password_of(user)),
            from_host=host_of(user),
        )
        topics = [MetadataRequestTopic(name=f"{user}-base")]
        wanted = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        while _codes(METADATA, await client.ask(broker, METADATA, 9, wanted)) != (NONE,):
            if time.monotonic() > deadline:
                raise NeverLearnedError(f"broker {broker} does not know what {user} may do")
            await asyncio.sleep(_RETRY_S)
        client.close()


def _rules(user: str) -> tuple[AclCreation, AclCreation]:
    principal = f"User:{user}"
    return (
        AclCreation(_TOPIC, f"{user}-", _PREFIXED, principal, host_of(user), _ALL, _ALLOW),
        AclCreation(_TOPIC, f"{user}-denied", _LITERAL, principal, "*", _CREATE, _DENY),
    )


def _fail_over(cluster: Cluster, number: int) -> None:
    """Have another controller: one is killed, one loses its session, one hands over."""
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
    """Have `count` requests answered, with that many failovers between them.

    Raises:
        NeverLearnedError: see `set_up`.
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


def examine(history: History) -> Seen:
    """Count whom the controllers decided for, against the logins of the same connections."""
    known = {e["connection"]: e["principal"] for e in history.of_kind["authenticated"]}
    executions, strangers, users = 0, [], Counter[str]()
    forwarded = 0
    for event in history.of_kind["execution_started"]:
        received = history.received.get(event["request_id"])
        if received is None or received["listener"] != LISTENER:
            continue
        executions += 1
        forwarded += received["node"] != event["node"]
        users[event["client_id"]] += 1
        who = {known.get(received["connection"]), received["principal"], event["principal"]}
        if who != {f"User:{event['client_id']}"}:
            strangers.append(f"{event['request_id']}: {sorted(map(str, who))}")
    seen = sum(users[user] > 0 for user in USERS)
    return Seen(executions, forwarded, seen, len(history.terms), tuple(strangers))


def _summary(counts: Counts, seen: Seen) -> str:
    return (
        f"{counts.answered} requests of {seen.users} users in {counts.seconds:.1f} s: "
        f"{counts.allowed} allowed, {counts.denied} denied, {len(counts.wrong)} answered for "
        f"somebody else; {counts.unanswered} without an answer; {counts.failovers} failovers, "
        f"{seen.elections} terms; {seen.executions} decisions, {seen.forwarded} of them forwarded, "
        f"{len(seen.strangers)} for somebody else"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, print; 0 when every promise held and everybody was seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--failovers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, help="where evidence stays; else it is removed")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-") as temporary:
        folder = given.data_dir or Path(temporary)
        with Cluster(properties=properties(), data_dir=folder) as cluster:
            counts = asyncio.run(
                run(cluster, given.requests, failovers=given.failovers, seed=given.seed)
            )
        status = judge.main([str(folder)])
        seen = examine(History(read_run(folder)))
    lines = [*counts.wrong[:5], *seen.strangers[:5], _summary(counts, seen)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    vacuous = seen.users < len(USERS) or seen.forwarded < given.requests // 3
    short = counts.failovers < given.failovers or seen.elections <= given.failovers
    return status or int(bool(counts.wrong or seen.strangers or vacuous or short))


if __name__ == "__main__":
    sys.exit(main())
