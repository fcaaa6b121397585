"""Every kind of event. Each kind is a dataclass; its fields are the fields of the JSON line.

The writer adds these fields to every event: `run_id`, `node`, `boot`, `seq`, `mono_ns`, `wall_ms`,
`host_boot_id`, `kind` and `schema_version`. A boot is the life of one process. `seq` starts at 0 in
each boot and has no gaps.

`identity` is (broker id, incarnation, sequence number) of a request; a resend has the same
identity. Error codes are Kafka's. ZooKeeper sessions are hexadecimal, as in ZooKeeper's transaction
log. A field with a default in the code may be missing in a line.
"""

# Events that every request creates are not frozen: a frozen one takes twice as long to create.

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

SCHEMA_VERSION: Final = 1

Identity = tuple[int, str, int]
EVENT_KINDS: Final[dict[str, type[Any]]] = {}


class Event:
    """The base of all events; `kind` is the name of the class in snake case."""

    __slots__ = ()
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        EVENT_KINDS[cls.kind] = cls


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A process started."""

    incarnation: str
    version: str
    pid: int


@dataclass(frozen=True, slots=True)
class ProtocolLevel(Event):
    """The Kafka release that this process simulates."""

    level: str  # the full inter.broker.protocol.version, for example 3.3-IV3
    envelope_supported: bool


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """A process stopped cleanly. A boot without this event was killed or failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Connected(Event):
    """A client opened a connection."""

    connection: str
    listener: str
    security_protocol: str
    client_host: str
    principal: str


@dataclass(frozen=True, slots=True)
class Disconnected(Event):
    """A client's connection closed."""

    connection: str


@dataclass(frozen=True, slots=True)
class Authenticated(Event):
    """A client authenticated or reauthenticated."""

    connection: str
    mechanism: str  # the SASL mechanism, or SSL
    principal: str
    token_authenticated: bool
    renewed: bool  # true for a reauthentication
    ends_at_ms: int | None = None  # wall-clock time at which the login expires; null: never


@dataclass(frozen=True, slots=True)
class AuthenticationFailed(Event):
    """A client failed to authenticate or to reauthenticate."""

    connection: str
    listener: str
    client_host: str
    mechanism: str | None
    reason: str  # contains no secret
    renewed: bool  # true for a reauthentication


@dataclass(frozen=True, slots=True)
class ChannelRejected(Event):
    """A node closed a gRPC stream: the certificate does not prove the claimed broker id."""

    broker_id: int  # the id that the peer claimed
    principal: str | None  # the principal in the certificate
    reason: str


@dataclass(frozen=True, slots=True)
class SessionExpired(Event):
    """A client sent a request after its SASL session expired. The broker closed the connection."""

    connection: str


@dataclass(slots=True)
class RequestReceived(Event):
    """A broker read a request. Fetch requests of followers are not recorded."""

    request_id: str
    connection: str
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    principal: str
    token_authenticated: bool
    client_host: str
    listener: str
    security_protocol: str
    dialect: str
    route: str  # LOCAL, FORWARD, DIRECT (a direct write), NOT_CONTROLLER or CLOSE
    body_sha256: str | None  # only if the route is FORWARD or DIRECT and the API has no secrets
    client_software_name: str
    client_software_version: str


@dataclass(frozen=True, slots=True)
class TopicsAutoCreated(Event):
    """A broker sent a CreateTopics request because a client used topics that do not exist.

    The `request_decided` event with the same `request_id` has the outcomes. The response to the
    client's own request does not show them: it has no error message, and not always an error code.
    """

    request_id: str
    cause: str  # the request id of the client's request
    principal: str
    topics: list[str]


@dataclass(slots=True)
class ForwardSent(Event):
    """A broker sent an Envelope to the controller."""

    request_id: str
    identity: Identity
    attempt: int
    controller_id: int
    local: bool  # true if the controller is in the same process


@dataclass(slots=True)
class ForwardReplied(Event):
    """One attempt to forward a request ended."""

    request_id: str
    attempt: int
    error: int | None  # the error of the response to the Envelope; null: no response
    zxid: int  # of the commit, or of the image without a commit; usually 0 if the attempt failed
    response_sha256: str | None  # of the embedded response; null if it is absent or has secrets


@dataclass(slots=True)
class EnvelopeReceived(Event):
    """A controller received an Envelope."""

    request_id: str
    identity: Identity
    attempt: int
    sender: str  # the principal of the broker that sent the Envelope


@dataclass(frozen=True, slots=True)
class EnvelopeRejected(Event):
    """An Envelope failed a check. Nothing was executed."""

    request_id: str
    identity: Identity
    error: int
    reason: str


@dataclass(slots=True)
class ExecutionStarted(Event):
    """The controller started to decide a request, on the image with `image_zxid`.

    A broker below the bridge release writes this event for its direct writes. `epoch` is then 0.
    `image_zxid` is then the zxid of the broker's ACLs, or -1 if the ACLs changed while the broker
    read them.
    """

    request_id: str
    identity: Identity
    epoch: int
    image_zxid: int
    api_key: int
    api_version: int
    client_id: str | None
    principal: str
    token_authenticated: bool
    client_host: str
    listener: str
    security_protocol: str
    body_sha256: str | None  # as in request_received


@dataclass(slots=True)
class RequestDecided(Event):
    """The controller decided a request. The event has the error code of each element.

    A broker below the bridge release writes this event for its direct writes. `epoch` is 0 for
    direct writes, and for a request that failed as a whole.
    """

    request_id: str
    identity: Identity
    api_key: int
    principal: str
    epoch: int
    image_zxid: int
    zxid: int  # of the commit, or of the image if nothing was committed; 0 if `error` is set
    elements: list[tuple[str, int]]  # name and error code of each element
    unchanged: list[str]  # names of the elements that needed no write
    error: int  # set if the request failed as a whole (`elements` is then empty), else 0
    validate_only: bool
    response_sha256: str | None  # as in forward_replied


@dataclass(frozen=True, slots=True)
class CommitSent(Event):
    """A fenced multi was sent to ZooKeeper."""

    number: int  # the value of the commit counter after this multi
    epoch: int
    operations: int  # the number of operations in the multi
    bytes: int  # the size of the multi


@dataclass(frozen=True, slots=True)
class CommitAcknowledged(Event):
    """ZooKeeper committed a multi at `zxid`."""

    number: int  # as in commit_sent
    zxid: int
    session: str


@dataclass(frozen=True, slots=True)
class CommitUnknown(Event):
    """The connection broke before the reply to a multi arrived."""

    number: int  # as in commit_sent
    epoch: int


@dataclass(frozen=True, slots=True)
class FaultRuleActed(Event):
    """A user's fault rule acted on a request or its Envelope."""

    rule: str  # the name of the rule
    action: str
    side: str  # client or envelope
    phase: str  # request or response
    request_id: str
    api_key: int


@dataclass(slots=True)
class Responded(Event):
    """A broker sent a response, closed the connection, or ended a request without a response."""

    request_id: str
    api_key: int
    api_version: int
    route: str
    error: int | None  # set if this broker failed the whole request; otherwise null
    closed: bool  # true if the broker closed the connection instead of responding
    zxid: int  # the metadata zxid of the response


@dataclass(frozen=True, slots=True)
class ImageAdvanced(Event):
    """A node replaced an image by one with the same zxid or a newer one."""

    zxid: int
    side: str  # broker or controller
    epoch: int  # the epoch of the controller that published the image


@dataclass(frozen=True, slots=True)
class SessionOpened(Event):
    """A ZooKeeper session was opened."""

    role: str  # broker, controller, or direct (the session of direct writes)
    session: str


@dataclass(frozen=True, slots=True)
class SessionLost(Event):
    """A ZooKeeper session ended, but the node did not close it: it expired or was rejected."""

    role: str  # as in session_opened
    session: str


@dataclass(frozen=True, slots=True)
class ClaimSent(Event):
    """A candidate is about to send the multi that claims this controller epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class BecameActive(Event):
    """A controller was elected and has loaded its image."""

    epoch: int
    epoch_zk_version: int
    zxid: int  # the zxid of the election
    elected_ms: float  # the time from the start of the candidacy to the election
    loaded_ms: float  # the time from the election until the image was loaded


@dataclass(frozen=True, slots=True)
class Resigned(Event):
    """An elected controller resigned, possibly before it became active."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered(Event):
    """A broker registered in /brokers/ids."""

    broker_epoch: int  # the czxid of the broker's znode
    incarnation: str
    session: str


@dataclass(slots=True)
class RecordsAcknowledged(Event):
    """A leader acknowledges records that were produced with acks=all.

    `crc` is the CRC in the header of the first batch. It is -1 for a retry of an earlier request.
    """

    topic: str
    topic_id: str  # as Kafka writes it
    partition_index: int
    leader_epoch: int
    base_offset: int
    record_count: int
    crc: int


@dataclass(frozen=True, slots=True)
class LogHeld(Event):
    """A leader that stops cleanly reports a partition's log. A long log needs several events."""

    topic: str
    topic_id: str  # as Kafka writes it
    partition_index: int
    leader_epoch: int
    start_offset: int
    end_offset: int
    batches: list[str]  # first offset and CRC of each batch, such as 17:2868135151


@dataclass(slots=True)
class OffsetsCommitted(Event):
    """A coordinator acknowledges an OffsetCommit.

    `partition_index` is a partition of `__consumer_offsets`.
    """

    group_id: str
    topic_id: str  # of __consumer_offsets, as Kafka writes it
    partition_index: int
    leader_epoch: int
    log_offset: int  # of the first record of the commit
    offsets: list[str]  # topic, partition and committed offset, such as orders:0:17


@dataclass(frozen=True, slots=True)
class OffsetsRemoved(Event):
    """A coordinator deletes or expires committed offsets.

    The event is flushed before the coordinator appends the tombstones.
    """

    group_id: str
    topic_id: str  # of __consumer_offsets, as Kafka writes it
    partition_index: int
    leader_epoch: int
    offsets: list[str]  # topic and partition, such as orders:0


@dataclass(frozen=True, slots=True)
class OffsetsHeld(Event):
    """A coordinator reports the committed offsets in a partition of `__consumer_offsets`.

    It does so after it has loaded the partition, and before it stops. A long report needs several
    events.
    """

    topic_id: str  # of __consumer_offsets, as Kafka writes it
    partition_index: int
    leader_epoch: int  # the report has the commits up to this leader epoch
    offsets: list[str]  # as in offsets_committed, then log offset and group: orders:0:17:205:g
    is_last: bool  # true for the last event of the report


@dataclass(frozen=True, slots=True)
class MetricsSnapshot(Event):
    """The values of the counters, and of the gauges without labels, at the time of the event."""

    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class FaultInjected(Event):
    """The harness injected a fault."""

    action: str  # kill, pause, expire, cut_from_peers, slow_peers, …
    target: str  # a node id, or another target


@dataclass(frozen=True, slots=True)
class NodeEnded(Event):
    """The harness saw a node's process end. A killed boot has this event and no `stopped`."""

    ended_node: str
    ended_boot: str  # its incarnation
    status: int  # the exit status; negative for a signal


@dataclass(frozen=True, slots=True)
class FaultHealed(Event):
    """The harness removed a fault."""

    action: str
    target: str


@dataclass(frozen=True, slots=True)
class RunEnding(Event):
    """The harness begins to stop the nodes."""

    running: int  # how many nodes still run


@dataclass(frozen=True, slots=True)
class ClientInvoked(Event):
    """A workload client invoked an operation on `elements`.

    Elements have the same names as in `request_decided`. If a run has exactly one operation with
    this API and element, the judges attribute the element's effect in ZooKeeper to that operation.
    """

    op_id: str
    api_key: int
    elements: list[str]


@dataclass(frozen=True, slots=True)
class ClientCompleted(Event):
    """An operation of a workload client completed, with the error code of each element."""

    op_id: str
    outcome: str  # ok, fail (a definite error) or info (the outcome is unknown)
    elements: list[tuple[str, int]]  # name and error code of each element


@dataclass(frozen=True, slots=True)
class MetadataWrite(Event):
    """The load of a rehearsal sends an admin request, or gets its response.

    `present` and `absent` say what must hold once the request is acknowledged. What only the
    response names, such as the id of a token, is missing in the event of the sending.
    """

    phase_number: int  # 0 before the migration; the phases of a run and of its rollback count on
    api_key: int
    outcome: str  # sent, acknowledged, or the name of the error
    present: list[str]  # item, tab, value: topic orders<tab>*; a value begins with * if any fits
    absent: list[str]  # items


@dataclass(frozen=True, slots=True)
class MetadataHeld(Event):
    """What a witness has of the load's metadata after a phase of a rehearsal.

    No request of the load is in progress then. A long report needs several events.
    """

    phase_number: int  # as in metadata_write
    name: str  # of the phase: hybrid, dual-write, finalize, rollback from hybrid, …
    witness: str  # kraft (the controller's metadata log) or zookeeper
    items: list[str]  # item, tab, value; a secret is a digest
    is_last: bool  # true for the last event of the report
