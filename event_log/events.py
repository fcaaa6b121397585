"""Every kind of event: one dataclass each; its fields are the columns of the evidence.

Those of clients' connections are in `connections`.

The writer adds what all events have: run_id, node, boot, seq (dense from 0 in each boot),
mono_ns, wall_ms, host_boot_id, kind and schema_version. `identity` is (broker id, incarnation,
sequence): the same on every resend. Codes are Kafka's error codes; sessions are hexadecimal, as
ZooKeeper's transaction log shows them.

Those that every request has are not frozen: a frozen one takes more than twice as long to build,
and they are written down as soon as they are built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from event_log.connections import (
    Authenticated,
    AuthenticationFailed,
    ChannelRefused,
    Connected,
    Disconnected,
    SessionExpired,
)

SCHEMA_VERSION: Final = 1

Identity = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Started:
    """A process began its work."""

    kind: ClassVar[str] = "started"
    incarnation: str
    version: str
    pid: int


@dataclass(frozen=True, slots=True)
class ProtocolLevel:
    """Which release this boot plays: `level` is its inter.broker.protocol.version in full."""

    kind: ClassVar[str] = "protocol_level"
    level: str
    envelope_supported: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """A process ended in an orderly way; a boot without this was killed."""

    kind: ClassVar[str] = "stopped"
    reason: str


@dataclass(slots=True)
class RequestReceived:
    """A broker read a request's header. `body_sha256`: of what is forwarded, if without secrets."""

    kind: ClassVar[str] = "request_received"
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
    route: str  # LOCAL, FORWARD, DIRECT, NOT_CONTROLLER, CLOSE
    body_sha256: str | None
    client_software_name: str
    client_software_version: str


@dataclass(frozen=True, slots=True)
class TopicsAutoCreated:
    """A broker asks for topics because a client named them; `cause` is that client's request.

    What came of them is in the `request_decided` of `request_id`; no client is told.
    """

    kind: ClassVar[str] = "topics_auto_created"
    request_id: str
    cause: str
    principal: str
    topics: list[str]


@dataclass(slots=True)
class ForwardSent:
    """A broker handed an Envelope to the link to the controller; `local`: in its own process."""

    kind: ClassVar[str] = "forward_sent"
    request_id: str
    identity: Identity
    attempt: int
    controller_id: int
    local: bool


@dataclass(slots=True)
class ForwardAnswered:
    """The end of one attempt. `error` is the Envelope's outer code; None: the channel broke.

    `answer_sha256` is there when an inner answer came, and holds no secret.
    """

    kind: ClassVar[str] = "forward_answered"
    request_id: str
    attempt: int
    error: int | None
    zxid: int
    answer_sha256: str | None


@dataclass(slots=True)
class EnvelopeReceived:
    """A controller candidate got an Envelope; `sender` is the broker's principal."""

    kind: ClassVar[str] = "envelope_received"
    request_id: str
    identity: Identity
    attempt: int
    sender: str


@dataclass(frozen=True, slots=True)
class EnvelopeRefused:
    """A check on the Envelope failed; nothing was executed."""

    kind: ClassVar[str] = "envelope_refused"
    request_id: str
    identity: Identity
    error: int
    reason: str


@dataclass(slots=True)
class ExecutionStarted:
    """The controller decides a request on the image as of `image_zxid`, and for whom.

    So does, with epoch 0, a broker below the bridge release; `image_zxid` is then as of when it
    knows the ACLs by which it decides (-1: of no one moment, they change too fast).
    """

    kind: ClassVar[str] = "execution_started"
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
class RequestDecided:
    """The controller's answer: each element with its code. `zxid` is the commit it stands for."""

    kind: ClassVar[str] = "request_decided"
    request_id: str
    identity: Identity
    api_key: int
    principal: str
    epoch: int
    image_zxid: int
    zxid: int
    elements: list[tuple[str, int]]
    unchanged: list[str]  # elements for which nothing was to be written
    error: int  # of the request as a whole, where it failed as a whole; then without elements
    validate_only: bool
    answer_sha256: str | None  # as in forward_answered


@dataclass(frozen=True, slots=True)
class CommitSent:
    """A fenced multi goes to ZooKeeper; `number` is the value its commit counter will have."""

    kind: ClassVar[str] = "commit_sent"
    number: int
    epoch: int
    operations: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CommitAnswered:
    """A multi was applied at `zxid`."""

    kind: ClassVar[str] = "commit_answered"
    number: int
    zxid: int
    session: str


@dataclass(frozen=True, slots=True)
class CommitUnknown:
    """The reply to a multi was lost."""

    kind: ClassVar[str] = "commit_unknown"
    number: int
    epoch: int


@dataclass(slots=True)
class Answered:
    """A broker answered a client (or closed its connection). `zxid` is what the answer stands for.

    `error` is the code of the whole request where this broker made the answer itself; the codes
    of a relayed answer's elements are in the controller's `request_decided`.
    """

    kind: ClassVar[str] = "answered"
    request_id: str
    api_key: int
    api_version: int
    route: str
    error: int | None
    closed: bool
    zxid: int


@dataclass(frozen=True, slots=True)
class ImageAdvanced:
    """An image stands at a newer zxid. `side`: broker or controller."""

    kind: ClassVar[str] = "image_advanced"
    zxid: int
    side: str
    epoch: int  # the controller's that the image comes from


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A ZooKeeper session began. `role`: broker, controller, or direct (a broker that writes)."""

    kind: ClassVar[str] = "session_opened"
    role: str
    session: str


@dataclass(frozen=True, slots=True)
class SessionLost:
    """A ZooKeeper session is gone: expired, refused or closed."""

    kind: ClassVar[str] = "session_lost"
    role: str
    session: str


@dataclass(frozen=True, slots=True)
class ClaimSent:
    """A candidate sent its election multi for this epoch."""

    kind: ClassVar[str] = "claim_sent"
    epoch: int


@dataclass(frozen=True, slots=True)
class BecameActive:
    """A controller has loaded everything and begins to work. `zxid` is its election's."""

    kind: ClassVar[str] = "became_active"
    epoch: int
    epoch_zk_version: int
    zxid: int
    elected_ms: float  # from the wish to stand to the won election
    loaded_ms: float  # from there to the loaded image


@dataclass(frozen=True, slots=True)
class Resigned:
    """A controller's term is over."""

    kind: ClassVar[str] = "resigned"
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker is in /brokers/ids; its epoch is the czxid."""

    kind: ClassVar[str] = "broker_registered"
    broker_epoch: int
    incarnation: str
    session: str


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """All counters and gauges at one moment of the log."""

    kind: ClassVar[str] = "metrics_snapshot"
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class FaultInjected:
    """The harness broke something on purpose."""

    kind: ClassVar[str] = "fault_injected"
    action: str  # kill, freeze, expire, partition, slow, …
    target: str  # a node's id, or what else it was done to


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """The harness saw a node's process end; a boot that was killed has this and no `stopped`."""

    kind: ClassVar[str] = "node_ended"
    ended_node: str
    ended_boot: str  # its incarnation
    status: int  # of its exit; a signal's number as a negative one


@dataclass(frozen=True, slots=True)
class FaultHealed:
    """The harness mended it."""

    kind: ClassVar[str] = "fault_healed"
    action: str
    target: str


@dataclass(frozen=True, slots=True)
class ClientInvoked:
    """A workload's client asked; `op_id` names the operation, `elements` what it is about.

    Elements are named as in `request_decided`. A workload uses each name once for each API in a
    run, so that an effect in ZooKeeper can be told to be the operation's.
    """

    kind: ClassVar[str] = "client_invoked"
    op_id: str
    api_key: int
    elements: list[str]


@dataclass(frozen=True, slots=True)
class ClientCompleted:
    """...and was told: ok, fail (definitely not) or info (who knows), with each element's code."""

    kind: ClassVar[str] = "client_completed"
    op_id: str
    outcome: str
    elements: list[tuple[str, int]]


Event = (
    Started
    | ProtocolLevel
    | Stopped
    | Connected
    | Disconnected
    | Authenticated
    | AuthenticationFailed
    | ChannelRefused
    | SessionExpired
    | RequestReceived
    | TopicsAutoCreated
    | ForwardSent
    | ForwardAnswered
    | EnvelopeReceived
    | EnvelopeRefused
    | ExecutionStarted
    | RequestDecided
    | CommitSent
    | CommitAnswered
    | CommitUnknown
    | Answered
    | ImageAdvanced
    | SessionOpened
    | SessionLost
    | ClaimSent
    | BecameActive
    | Resigned
    | BrokerRegistered
    | MetricsSnapshot
    | FaultInjected
    | NodeEnded
    | FaultHealed
    | ClientInvoked
    | ClientCompleted
)
