"""Twenty users whose requests have known results.

Every user has all rights on the topics whose names begin with the user's name, but only from the
user's own address. The user may not create the topic `<user>-denied`, and has no other rights. So
each result shows which principal the controller used.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bridgehead.cluster import ClientHistory
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import ClusterClient, PlainLogin
from chaos.recorded_client import RecordedClient
from chaos.workload import Place, Progress, Workload
from chaos.workloads.topics import addresses

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

    progress: Progress  # counts the requests that were allowed
    denied: int = 0
    unfinished: int = 0  # the broker died, or there was no controller in time
    wrong: list[str] = field(default_factory=list)  # results that the user must not get


@dataclass(frozen=True, slots=True)
class Trial:
    """A request, and the error codes that its user must get."""

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
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *USERS))
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_MODULE} {users};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{ADMIN};User:broker",
    }


def _create(*names: str) -> Any:
    topics = [CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000)


def _alter(topic: str, number: int) -> Any:
    config = AlterableConfig("retention.ms", 0, str(1_000 + number))
    return IncrementalAlterConfigsRequest([AlterConfigsResource(_TOPIC, topic, [config])])


def _delete(topic: str) -> Any:
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=30_000)


def _codes(key: int, response: Any) -> tuple[int, ...]:
    elements = response.topics if key in (METADATA, CREATE_TOPICS) else response.responses
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
        own_name, stolen = f"{name}-{number}", f"{other}-{number}-{name}"
        if len(self._topics) > _KEPT_TOPICS:
            return Trial(DELETE_TOPICS, 6, _delete(self._topics.popleft()), (NONE,))
        kinds = (
            Trial(CREATE_TOPICS, 7, _create(own_name), (NONE,)),
            Trial(CREATE_TOPICS, 7, _create(own_name, stolen), (NONE, DENIED)),
            Trial(CREATE_TOPICS, 7, _create(stolen), (DENIED,)),
            Trial(CREATE_TOPICS, 7, _create(f"{name}-denied"), (DENIED,)),
            Trial(ALTER_CONFIGS, 1, _alter(f"{name}-base", number), (NONE,)),
            Trial(ALTER_CONFIGS, 1, _alter(f"{other}-base", number), (DENIED,)),
            Trial(DELETE_TOPICS, 6, _delete(f"{other}-base"), (DENIED,)),
        )
        return self._source.choice(kinds)

    async def work(self, turns: Iterator[int], counts: Counts) -> None:
        """Send one request in each turn."""
        for _ in turns:
            trial, broker = self.next_trial(), self._source.choice(self._brokers)
            try:
                response = await self.client.call(broker, trial.key, trial.version, trial.message)
            except (OSError, EOFError):
                counts.unfinished += 1
                await asyncio.sleep(_RETRY_S)  # The broker may be gone for a while.
                continue
            codes = _codes(trial.key, response)
            if TIMED_OUT in codes:
                counts.unfinished += 1
            elif codes != trial.expected:
                counts.wrong.append(f"{self.name} at broker {broker}: {trial}: {codes}")
            elif DENIED in codes:
                counts.denied += 1
            else:
                counts.progress.add()
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
    codes = {result.error_code for result in (*granted.results, *base.topics)}
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


class ForwardedPrincipals:
    """The load."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._counts = Counts(place.progress)
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        at = addresses(self._place, LISTENER)
        await set_up(at)
        turns = itertools.takewhile(lambda _: not self._stopped, itertools.count())
        clients = [User(name, at, random.Random(self._place.source.random())) for name in USERS]
        for client in clients:
            client.record(self._place.history)
        await asyncio.gather(*(client.work(turns, self._counts) for client in clients))

    async def wrong(self) -> list[str]:
        return self._counts.wrong


FORWARDED_PRINCIPALS = Workload(
    name="forwarded_principals",
    does="Twenty users send requests whose results show the principal that was checked.",
    start=ForwardedPrincipals,
    properties=properties(),
)
