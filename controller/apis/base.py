"""The interface of an API that the controller decides, and the parts of its decision.

The elements of a request are its topics, resources or entries. An API decides each element by a
pure function of request and image. The loop commits the `records` of an element in one multi,
and its `following` records later. The API builds the response. After a failover a broker resends
its request. The API then decides only the elements that were not committed before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar, Final, Protocol, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.acls.authorization import Authorize
from cluster_model.client import Client
from cluster_model.configs.broker_configs import BrokerConfig, CurrentConfig
from cluster_model.delegation_tokens import TokenSecret
from cluster_model.image import MetadataImage
from cluster_model.records import Record
from controller.apis.policy_check import MakePolicyCheck


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one element. Written to ZooKeeper with the element's records, if it has any."""

    error: ErrorCode
    message: str | None = None
    topic_id: bytes | None = None  # 16 bytes, of a created or deleted topic
    # A token's times in the order of the response's fields, or the first producer id of a block.
    numbers: tuple[int, ...] = ()

    @property
    def succeeded(self) -> bool:
        """True if the error is NONE."""
        return self.error is ErrorCode.NONE

    @classmethod
    def of(cls, error: ApiError) -> Outcome:
        """Return the outcome of a rejected element."""
        return cls(error.error, error.message)

    @classmethod
    def with_default_text(cls, error: ErrorCode) -> Outcome:
        """Return an outcome with the default message of its error code."""
        return cls(error, error.default_text)


DONE = Outcome(ErrorCode.NONE)
# The element name that stands for a request that is rejected as a whole.
WHOLE_REQUEST: Final = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of one element, and its records (none if there is nothing to write).

    `element` is unique within the request, for example a topic name or `type:name` of a resource.
    `records` are committed in one multi. `following` are committed later, in one or more multis. If
    this controller fails before it has committed them, the next controller commits them.
    `mutations`: how many partitions are charged to the controller mutation quota; None: no charge.
    `policy_check`: returns the arguments of policies for this element; None: no policy checks it.
    """

    element: str
    outcome: Outcome
    records: tuple[Record, ...] = ()
    following: tuple[Record, ...] = ()
    mutations: int | None = None
    policy_check: MakePolicyCheck | None = field(default=None, compare=False)


class WaitFor(Enum):
    """What a response waits for in the controller's image (docs/kafka/requests.md)."""

    NOTHING = auto()
    LEADERS = auto()  # every partition of each named topic has a leader
    DELETION = auto()  # each topic id is gone
    ELECTION = auto()  # each named partition has a leader


@dataclass(frozen=True, slots=True)
class Wait:
    """`topics` maps an element to the topic or partition that the response waits for.

    A value is a topic name for LEADERS, a topic id for DELETION, and a topic name with a partition
    number for ELECTION.
    """

    condition: WaitFor = WaitFor.NOTHING
    topics: Mapping[str, Any] = field(default_factory=dict)
    timeout_ms: int = 0


class RandomSource(Protocol):
    """A source of random values: `random.Random`. Only tests choose its seed."""

    def randrange(self, start: int, /) -> int:
        """Return a number from 0 up to, not including, `start`."""
        ...

    def randbytes(self, n: int) -> bytes:
        """Return `n` bytes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Everything that a decision depends on besides the request's body and the image."""

    request_id: str
    api_key: int
    api_version: int
    client: Client
    authorize: Authorize  # bound to the client and to the ACLs of the image
    random: RandomSource
    now_ms: int
    resolvable: frozenset[str] = frozenset()  # the host names in the request that resolve
    made_by_broker: bool = False  # the broker's own request, not a client's

    @property
    def is_drafted(self) -> bool:
        """True on listeners with `bridgehead.dialect=drafted`."""
        return self.client.dialect == "drafted"


@dataclass(frozen=True, slots=True)
class Decision:
    """The elements of a request, and what the response waits for.

    `violation`: the error code for a rejection by a policy. Older versions of some APIs do not have
    POLICY_VIOLATION.
    """

    elements: Sequence[Decided]
    wait: Wait = Wait()
    violation: ErrorCode = ErrorCode.POLICY_VIOLATION

    @classmethod
    def of_whole_request(cls, outcome: Outcome) -> Decision:
        """Reject a request as a whole. Not for APIs where an element may have an empty name."""
        return cls([Decided(WHOLE_REQUEST, outcome)])


@dataclass(frozen=True, slots=True)
class Results:
    """All outcomes of a request, and the image that includes its records.

    The elements of `unfinished` were committed, but the condition that the response waits for was
    not met in time. The client gets REQUEST_TIMED_OUT for these elements.
    """

    outcomes: Mapping[str, Outcome]
    image: MetadataImage
    unfinished: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """What the APIs are built from.

    `config` has the static configs; `current` returns the effective configs. `token_secret`
    is None if delegation tokens are disabled. `stores_records`: the value of bridgehead.data.plane.
    """

    config: BrokerConfig
    current: CurrentConfig
    token_secret: TokenSecret | None
    has_authorizer: bool
    stores_records: bool


class AdminApi(ABC):
    """One API that the controller decides, built once, at start; it holds no state of requests."""

    __slots__ = ()

    api_key: ClassVar[ApiKey]

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        """Return the API of a node with these settings."""
        return cls()

    @abstractmethod
    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """Decide every element that is not in `committed`. Pure."""

    def conflict(self, element: str) -> Outcome:
        """Return the outcome of an element whose znodes differ from the image."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    @abstractmethod
    def response(self, context: RequestContext, request: Any, results: Results) -> Any:
        """Return the response message."""

    def error_response(
        self, request: Any, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """Return the response message of a request that fails as a whole."""
        return error_response(self.api_key, request, version, error, message)

    def whole_request_error(
        self, context: RequestContext, request: Any, results: Results
    ) -> Any | None:
        """Return the response if the decision was of_whole_request(), else None."""
        outcome = results.outcomes.get(WHOLE_REQUEST)
        if outcome is None:
            return None
        return self.error_response(request, context.api_version, outcome.error, outcome.message)
