"""What every admin write API looks like to the controller, and what a decision is made of.

An API decides element by element: a pure function of (request, image) to outcomes and records.
The loop commits the records, each element whole or not at all, and asks the API for the answer
afterwards. After a failover the same request may come again: then `settled` holds the outcomes of
the elements that were committed before, and the API decides only the others (design 5.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar, Protocol

from bridgehead.authorizer import Asker
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.authorization import Authorize
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import Record
from controller.policy_questions import MakeQuestion


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one element. Written to ZooKeeper in the multi of its effects."""

    error: ErrorCode
    message: str | None = None
    topic_id: bytes | None = None  # 16 bytes, for the elements that name a topic
    times_ms: tuple[int, ...] = ()  # what an answer tells of a delegation token's life

    @property
    def succeeded(self) -> bool:
        """True for NONE."""
        return self.error is ErrorCode.NONE


DONE = Outcome(ErrorCode.NONE)


@dataclass(frozen=True, slots=True)
class Decided:
    """One element's outcome and the records that make it true (none when refused or a dry run).

    `element` names the element within its request: a topic name, or `type:name` of a resource.
    The records of one element are committed in one multi; those of `following` come after it, in
    multis of their own where they do not fit, and any later controller completes them.
    `mutations`: partitions that the controller mutation quota is charged; None: it is not asked.
    All this holds unless a policy says no to `question`, where there is one.
    """

    element: str
    outcome: Outcome
    records: tuple[Record, ...] = ()
    following: tuple[Record, ...] = ()
    mutations: int | None = None
    question: MakeQuestion | None = field(default=None, compare=False)


class WaitFor(Enum):
    """What an answer waits for in the controller's own metadata cache (kafka-semantics 3.22)."""

    NOTHING = auto()
    LEADERS = auto()  # every partition of each named topic has a leader
    DELETION = auto()  # each topic id is gone
    ELECTION = auto()  # each named partition has a leader


@dataclass(frozen=True, slots=True)
class Wait:
    """`topics` maps element to what is waited for.

    LEADERS: a topic's name; DELETION: a topic id; ELECTION: a topic's name and a partition.
    """

    what: WaitFor = WaitFor.NOTHING
    topics: Mapping[str, Any] = field(default_factory=dict)
    timeout_ms: int = 0


class RandomSource(Protocol):
    """Randomness as a value: `random.Random` in production, seeded in tests."""

    def randrange(self, start: int, /) -> int: ...
    def randbytes(self, n: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Everything about a forwarded request that its body does not say."""

    request_id: str
    api_key: int
    api_version: int
    dialect: str
    principal: KafkaPrincipal
    client_host: str  # textual address of the client, not of the broker
    client_id: str | None
    listener_name: str
    security_protocol: str
    authorize: Authorize  # bound by the loop to the ACLs of the image that it decides on
    random: RandomSource
    now_ms: int
    resolvable: frozenset[str] = frozenset()  # host names of the request that have an address
    made_by_broker: bool = False  # its broker's own request, not a client's

    @property
    def is_drafted(self) -> bool:
        """True on listeners that speak as the KIPs drafted it."""
        return self.dialect == "drafted"

    @property
    def asker(self) -> Asker:
        """Who an authorizer is asked about: the client, never the broker that forwarded."""
        return Asker(
            principal=self.principal,
            host=self.client_host,
            api_key=self.api_key,
            api_version=self.api_version,
            client_id=self.client_id,
            listener_name=self.listener_name,
            security_protocol=self.security_protocol,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """All elements of a request, and what the answer waits for.

    `violation` is what a policy's refusal is told as: older versions do not know of policies.
    """

    elements: Sequence[Decided]
    wait: Wait = Wait()
    violation: ErrorCode = ErrorCode.POLICY_VIOLATION


class AdminApi(Protocol):
    """One admin write API. Instances are built once, at start; they hold no state of requests."""

    api_key: ClassVar[int]

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """Judge every element not in `settled`. Pure: the same arguments, the same decision."""
        ...

    def conflict(self, element: str) -> Outcome:
        """The outcome when ZooKeeper held something else than the image said (a foreign write)."""
        ...

    def answer(
        self,
        context: RequestContext,
        request: Any,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """Build the response message. `unfinished` elements succeeded but their wait ran out.

        They are told REQUEST_TIMED_OUT; `outcomes` still says NONE for them.
        """
        ...

    def refuse(self, request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
        """Build the response when the whole request fails (kafka-semantics 3.2)."""
        ...
