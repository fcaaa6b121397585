"""An admin load during a rehearsal: every write API, through the brokers, one request at a time.

The load notes in the evidence what each request shall change, as items of the metadata, and its
response. `judge.properties.migrated_write_is_kept` says what must hold then.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bridgehead.admin import (
    AclBinding,
    AclBindingFilter,
    AdminClient,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    DelegationToken,
    ElectionType,
    NewPartitions,
    NewTopicWithReplication,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    TopicPartition,
    quota_entity,
)
from bridgehead.admin.errors import AdminError, KafkaError
from bridgehead.kafka_wire.acl_codes import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from bridgehead.kafka_wire.errors import ErrorCode
from rehearse import metadata
from rehearse.evidence import ACKNOWLEDGED, ANY, SENT, Evidence, Facts
from rehearse.metadata import Item, Items, Kind

USER: Final = "rehearsal"  # the load's, who owns the tokens that it creates
PREFIX: Final = "rehearsal-"
_PRINCIPAL: Final = f"User:{USER}"
_REQUEST_TIMEOUT_MS: Final = 10_000
_CALL_TIMEOUT_MS: Final = 30_000
_PAUSE_S: Final = 0.02
_LAST_REQUEST_S: Final = 2.0
_TOKEN_LIFETIME_MS: Final = 86_400_000  # longer than any rehearsal
_ELECTION_NOT_NEEDED: Final = ErrorCode.ELECTION_NOT_NEEDED


class Write(NamedTuple):
    """One request: the API's name, the call, and what holds once it is acknowledged."""

    api: str
    call: Callable[[AdminClient], object]
    facts: Facts
    learn: Callable[[Any], Facts] = lambda _: {}
    """What only the response says, such as the id of a token."""


class Attempt(NamedTuple):
    """One finished request, in seconds since 1970. `error` is empty if it was acknowledged."""

    api: str
    began_s: float
    ended_s: float
    error: str


@dataclass(slots=True)
class PhaseLoad:
    """What clients saw in one phase."""

    phase: str
    acknowledged: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    """The longest time without an acknowledged write, which may have begun in an earlier phase."""
    longest_request_s: float = 0.0


class AdminLoad:
    """Sends writes in a thread until it is stopped."""

    def __init__(self, properties: Mapping[str, object], brokers: int, evidence: Evidence) -> None:
        """`properties`: how to connect, as an authenticated user."""
        self._evidence = evidence
        self._properties = {
            **properties,
            "client.id": "rehearsal-load",
            "request.timeout.ms": _REQUEST_TIMEOUT_MS,
            "default.api.timeout.ms": _CALL_TIMEOUT_MS,
        }
        self._replication = min(3, brokers)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rehearsal-load", daemon=True)
        self.tokens: set[str] = set()
        """The ids of the delegation tokens that it has created."""
        self.attempts: list[Attempt] = []
        self.phases: list[PhaseLoad] = [PhaseLoad("zookeeper")]
        self._last_ack_s: float | None = None
        self._number_of_tokens = 0

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End. A request that is in flight then has no definite response. May be called twice."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_REQUEST_S)

    def pause(self) -> None:
        """Return when no request is in flight; none is sent until `resume`."""
        with self._lock:
            if self._last_ack_s is not None:  # the wait goes on
                phase = self.phases[-1]
                phase.longest_gap_s = max(phase.longest_gap_s, time.time() - self._last_ack_s)
        self._idle.clear()
        self._paused.set()
        if self._thread.is_alive():
            self._idle.wait(_CALL_TIMEOUT_MS / 1000 + 5)

    def resume(self) -> None:
        """Go on after `pause`. The pause counts in no gap."""
        with self._lock:
            self._last_ack_s = None
        self._paused.clear()

    def begin_phase(self, name: str) -> None:
        """Count what follows for another phase."""
        with self._lock:
            self.phases.append(PhaseLoad(name))

    @property
    def acknowledged(self) -> int:
        """The number of acknowledged writes."""
        with self._lock:
            return sum(phase.acknowledged for phase in self.phases)

    def _run(self) -> None:
        with AdminClient(self._properties) as client:
            for write in itertools.chain.from_iterable(map(self._writes, itertools.count(1))):
                while self._paused.is_set() and not self._stopping.is_set():
                    self._idle.set()
                    self._stopping.wait(_PAUSE_S)
                if self._stopping.wait(_PAUSE_S):
                    return
                self._send(client, write)

    def _send(self, client: AdminClient, write: Write) -> None:
        began_s, result = time.time(), None
        self._evidence.write(write.api, SENT, write.facts)
        try:
            result = write.call(client)
            error = _first_error(result)
        except AdminError as raised:
            error = raised
        ended_s = time.time()
        is_acknowledged = error is None or _is_done(error)
        name = "" if is_acknowledged else _name(error)
        facts = {**write.facts, **(write.learn(result) if result else {})}
        self._evidence.write(write.api, name or ACKNOWLEDGED, facts)
        with self._lock:
            self.attempts.append(Attempt(write.api, began_s, ended_s, name))
            phase = self.phases[-1]
            phase.longest_request_s = max(phase.longest_request_s, ended_s - began_s)
            if is_acknowledged:
                phase.acknowledged += 1
                if self._last_ack_s is not None:
                    phase.longest_gap_s = max(phase.longest_gap_s, ended_s - self._last_ack_s)
                self._last_ack_s = ended_s
                self.tokens |= {item.name for item in facts if item.kind is Kind.TOKEN}
            else:
                phase.errors[name] = phase.errors.get(name, 0) + 1

    def _writes(self, number: int) -> Iterator[Write]:
        """Yield the writes of one object: its creation, its changes, and its predecessor's end."""
        name = f"{PREFIX}{number}"
        yield from self._creations(name, number)
        if number > 2 and number % 2:
            yield from self._deletions(f"{PREFIX}{number - 2}")

    def _creations(self, name: str, number: int) -> Iterator[Write]:
        retention, rate, iterations = str(10_000 + number), float(1000 + number), 4096 + number
        topic = ConfigResource(ConfigResourceType.TOPIC, name)
        partitions = [Item(Kind.PARTITION, f"{name}-{index}") for index in range(3)]
        yield Write(
            "CreateTopics",
            lambda c: c.create_topics([NewTopicWithReplication(name, 2, self._replication)]),
            {Item(Kind.TOPIC, name): ANY, partitions[0]: ANY, partitions[1]: ANY},
        )
        yield Write(
            "IncrementalAlterConfigs",
            lambda c: c.incremental_alter_configs(
                {topic: [AlterConfigOp("retention.ms", retention)]}
            ),
            dict([metadata.config("topic", name, "retention.ms", retention)]),
        )
        yield Write(
            "CreatePartitions",
            lambda c: c.create_partitions({name: NewPartitions(3)}),
            {partitions[2]: ANY},
        )
        yield Write("CreateAcls", lambda c: c.create_acls([_acl(name)]), dict([_acl_item(name)]))
        yield Write(
            "AlterClientQuotas",
            lambda c: c.alter_client_quotas(
                {quota_entity({"user": name}): {"producer_byte_rate": rate}}
            ),
            dict([metadata.quota([("user", name)], "producer_byte_rate", rate)]),
        )
        yield Write(
            "AlterUserScramCredentials",
            lambda c: c.alter_user_scram_credentials(
                [ScramUpsertion(name, ScramMechanism.SCRAM_SHA_256, f"not-{name}", iterations)]
            ),
            {Item(Kind.SCRAM, f"{name} SCRAM-SHA-256"): f"*, {iterations} iterations"},
        )
        yield from self._token()
        yield Write(
            "ElectLeaders",
            lambda c: c.elect_leaders(ElectionType.PREFERRED, [TopicPartition(name, 1)]),
            {},
        )

    def _token(self) -> Iterator[Write]:
        tokens: list[DelegationToken] = []

        def create(client: AdminClient) -> object:
            tokens.append(client.create_delegation_token(max_lifetime_ms=_TOKEN_LIFETIME_MS))
            return tokens[0]

        def item(_: object) -> Facts:
            return {Item(Kind.TOKEN, tokens[0].token_id): ANY}

        yield Write("CreateDelegationToken", create, {}, item)
        if tokens:
            self._number_of_tokens += 1
            hmac, token_id = tokens[0].hmac, tokens[0].token_id
            yield Write("RenewDelegationToken", lambda c: c.renew_delegation_token(hmac), {})
            if self._number_of_tokens % 2:
                yield Write(
                    "ExpireDelegationToken",
                    lambda c: c.expire_delegation_token(hmac),
                    {Item(Kind.TOKEN, token_id): None},
                )

    def _deletions(self, name: str) -> Iterator[Write]:
        config, _ = metadata.config("topic", name, "retention.ms", "")
        gone = {Item(Kind.TOPIC, name): None, config: None}
        gone |= {Item(Kind.PARTITION, f"{name}-{index}"): None for index in range(3)}
        acl, _ = _acl_item(name)
        quota, _ = metadata.quota([("user", name)], "producer_byte_rate", 0.0)
        yield Write("DeleteAcls", lambda c: c.delete_acls([_acl_filter(name)]), {acl: None})
        yield Write(
            "AlterClientQuotas",
            lambda c: c.alter_client_quotas(
                {quota_entity({"user": name}): {"producer_byte_rate": None}}
            ),
            {quota: None},
        )
        yield Write(
            "AlterUserScramCredentials",
            lambda c: c.alter_user_scram_credentials(
                [ScramDeletion(name, ScramMechanism.SCRAM_SHA_256)]
            ),
            {Item(Kind.SCRAM, f"{name} SCRAM-SHA-256"): None},
        )
        yield Write("DeleteTopics", lambda c: c.delete_topics([name]), gone)


def resurrected(item: Item, items: Items) -> str:
    """Explain the config of a topic that does not exist."""
    words = item.name.split(" ")
    is_of_a_topic = item.kind is Kind.CONFIG and words[0] == "topic"
    if is_of_a_topic and Item(Kind.TOPIC, words[1]) not in items:
        return "configs of deleted topics come back when the controller restarts (a bug of Kafka)"
    return ""


def is_of_the_load(item: Item, value: str) -> bool:
    """Return whether the load wrote an item."""
    return PREFIX in item.name or (item.kind is Kind.TOKEN and f"requester {_PRINCIPAL}," in value)


def _acl(name: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        name,
        PatternType.LITERAL,
        f"User:{name}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def _acl_filter(name: str) -> AclBindingFilter:
    return AclBindingFilter(ResourceType.TOPIC, name, PatternType.LITERAL)


def _acl_item(name: str) -> tuple[Item, str]:
    return metadata.acl("Topic", name, "literal", (f"User:{name}", "*", "Read", "Allow"))


def _first_error(result: object) -> AdminError | None:
    """Return the first error of a call's result, which may be nested."""
    values = list(result.values()) if isinstance(result, dict) else [result]
    return next((value for value in values if isinstance(value, AdminError)), None)


def _is_done(error: AdminError) -> bool:
    """Return whether the write has its effect all the same."""
    if not isinstance(error, KafkaError):
        return False
    # Forwarding to KRaft is at-least-once: a resent creation finds its own topic.
    done = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return error.code is _ELECTION_NOT_NEEDED or (error.resent and error.code in done)


def _name(error: AdminError | None) -> str:
    return error.code.name if isinstance(error, KafkaError) else type(error).__name__
