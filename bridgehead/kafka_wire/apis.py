"""Every API in one table: versions, messages, route, rights and the shape of its errors.

The table has the versions of Kafka 3.9's ZooKeeper broker. Two dialects are derived from it.
`shipped` is the dialect of that broker. `drafted` is what the texts of KIP-4, KIP-201 and KIP-590
specify, implemented or not: other fields in some versions, versions that were never released, and
three APIs of KIP-4 under keys of our own. Each API has a module with its messages, such as
`messages/create_topics.py`. If the drafted messages differ, there is another module, such as
`messages/drafted/create_topics.py`.

Every `ApiKey` needs a row, except those that only KRaft has. If a row is missing, importing this
module raises LookupError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from importlib import import_module
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.error_shapes import (
    ErrorShape,
    Failure,
    altered_topics,
    default_text,
    default_when_not_controller,
    empty_when_not_controller,
    fetched_groups,
    fetched_topics,
    metadata_topics,
    moved_topics,
    no_text,
    not_controller_as_whole,
    not_controller_in_elements,
    per,
    scram_users,
    since,
    unless_no_acks,
    whole,
)
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.api_versions import ApiVersion

Right = tuple[str, str]  # operation and resource type, as in `bridgehead.authorizer`


class Route(Enum):
    """How a broker handles a request."""

    LOCAL = auto()  # this broker answers it
    FORWARD = auto()  # in an Envelope to the active controller
    NOT_CONTROLLER = auto()  # rejected: the client must find the active controller
    DIRECT = auto()  # this broker writes to ZooKeeper: it is below the bridge release
    ON_CONTROLLER = auto()  # FORWARD on the active controller's broker, else NOT_CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSpec:
    """One API in one dialect."""

    key: ApiKey
    name: str  # CreateTopics
    max_version: int
    flexible_from: int | None  # None: no version has compact types and tagged fields
    messages: str  # the package of its messages
    # None for an API that is not served: `unserved_because` says why.
    route: Route | None = None
    unserved_because: str = ""
    # Brokers with bridgehead.data.plane=false do not serve it.
    needs_data_plane: bool = False
    # Only brokers send it. As in Kafka, no quota applies to it, nor to requests of a login.
    between_brokers: bool = False
    is_login: bool = False
    # False: its responses do not depend on metadata, so they never wait for newer metadata.
    reads_metadata: bool = True
    # None: no response can report an error of the whole request.
    error_shape: ErrorShape | None = None
    # Versions up to this one are logged as deprecated (docs/kafka/logs.md).
    deprecated_through: int = -1
    # The rights that the API needs. One of them suffices, unless a request names resources of
    # several types: then each resource needs the right on its own type. `ALL CLUSTER` means every
    # right on the cluster.
    rights: tuple[Right, ...] = ()
    # Rights that only decide what a response shows.
    rights_to_see: tuple[Right, ...] = ()
    # KIP-590 §Protocol Bumps: the drafted dialect forwards only versions below this one. A broker
    # below the bridge release handles the APIs with this limit itself and writes to ZooKeeper.
    forwarded_below: int | None = None
    # The controller mutation quota rejects requests of this version and of newer versions. It
    # only throttles requests of older versions.
    strict_quota_from: int | None = None
    has_drafted_messages: bool = False
    min_version: int = 0
    # Brokers close the connection of a client that sends an older version.
    served_from: int = 0

    @property
    def request(self) -> type[Any]:
        """The class of the request. Imported at first use: a broker uses few of the APIs."""
        return self._message("Request")

    @property
    def response(self) -> type[Any]:
        """The class of the response."""
        return self._message("Response")

    def _message(self, kind: str) -> type[Any]:
        module = import_module(f"{__package__}.{self.messages}.{self.key.name.lower()}")
        message: type[Any] = getattr(module, self.name + kind)
        return message

    @property
    def enum_name(self) -> str:
        """Kafka's name of the key, such as CREATE_TOPICS."""
        return self.key.name

    @property
    def versions(self) -> range:
        """Every version that exists."""
        return range(self.min_version, self.max_version + 1)

    def is_flexible(self, version: int) -> bool:
        """True when `version` has compact types and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        """Return 0, 1 or 2. Only ControlledShutdown v0 has the header without a client id."""
        if self.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return 0 or 1; always 0 for ApiVersions: the broker may answer in another version."""
        return 1 if self.is_flexible(version) and self.key is not ApiKey.API_VERSIONS else 0


def _spec(
    key: ApiKey,
    max_version: int,
    flexible_from: int | None,
    messages: str = "messages",
    *,
    rights: str = "",
    rights_to_see: str = "",
    **facts: Any,
) -> ApiSpec:
    """Build a row. Rights are written as "CREATE CLUSTER, CREATE TOPIC"."""
    return ApiSpec(
        key=key,
        name=key.name.title().replace("_", ""),
        messages=messages,
        max_version=max_version,
        flexible_from=flexible_from,
        rights=_rights(rights),
        rights_to_see=_rights(rights_to_see),
        **facts,
    )


def _rights(text: str) -> tuple[Right, ...]:
    pairs = (part.split() for part in text.split(", ") if part)
    return tuple((operation, resource_type) for operation, resource_type in pairs)


def _local(
    key: ApiKey, last: int, flexible: int | None, shape: ErrorShape, **facts: Any
) -> ApiSpec:
    return _spec(key, last, flexible, route=Route.LOCAL, error_shape=shape, **facts)


def _forward(
    key: ApiKey, last: int, flexible: int | None, shape: ErrorShape, **facts: Any
) -> ApiSpec:
    return _spec(key, last, flexible, route=Route.FORWARD, error_shape=shape, **facts)


def _unserved(
    key: ApiKey,
    last: int,
    flexible: int | None,
    reason: str,
    shape: ErrorShape | None = None,
    **facts: Any,
) -> ApiSpec:
    """Build the row of an API that is not served. `shape` is for requests before a SASL login."""
    return _spec(key, last, flexible, unserved_because=reason, error_shape=shape, **facts)


def _stored(
    key: ApiKey, last: int, flexible: int | None, shape: ErrorShape, rights: str,
    route: Route = Route.LOCAL, **facts: Any,
) -> ApiSpec:  # fmt: skip
    """Build the row of an API that only brokers with a data plane serve."""
    return _spec(
        key, last, flexible, route=route, error_shape=shape, rights=rights, needs_data_plane=True,
        **facts,
    )  # fmt: skip


def _drafted(key: ApiKey, route: Route, shape: ErrorShape, rights: str) -> ApiSpec:
    """Build the row of an API that Kafka never had: one version, not flexible."""
    return _spec(key, 0, None, _DRAFTS, route=route, error_shape=shape, rights=rights)


def _api_versions(response: type[Any], request: Any, failure: Failure) -> Any:
    """Return the response; with UNSUPPORTED_VERSION it lists only the versions of ApiVersions."""
    filled = whole()(response, request, failure)
    if failure.error is ErrorCode.UNSUPPORTED_VERSION:
        spec = API_SPECS[ApiKey.API_VERSIONS]
        filled.api_keys = [ApiVersion(spec.key, spec.min_version, spec.max_version)]
    return filled


_DRAFTS: Final = "messages.drafted"
_NO_TRANSACTIONS: Final = "Bridgehead has no transactions"
_OWN_CHANNEL: Final = (
    "Bridgehead's brokers and controller use gRPC instead; a broker that migrates to KRaft serves "
    "the requests of a KRaft controller"
)
_NOT_CONTROLLED: Final = "Bridgehead's brokers stop without a controlled shutdown"
_KRAFT: Final = "only KRaft serves it; Kafka with ZooKeeper also closes the connection"
_ALTER_CONFIGS: Final = "ALTER_CONFIGS CLUSTER, ALTER_CONFIGS TOPIC"
_PARTITIONS: Final = per("partitions", "partition_index")
_FETCHED_PARTITIONS: Final = per(
    "partitions", "partition_index=partition", high_watermark=-1, records=None
)
_PARTITION_INDEXES: Final = per("partition_indexes", "partition_index", into="partitions")
_OFFSETS: Final = per(
    fetched_topics,
    "name",
    into="topics",
    nested=per("partitions", "partition_index", committed_offset=-1),
)
_COORDINATOR: Final = whole(default_text, node_id=-1, port=-1)
_COORDINATORS: Final = per(
    "coordinator_keys", "key", into="coordinators", text=default_text, node_id=-1, port=-1
)
_RESOURCE: Final = "resource_type resource_name"
_NO_TOKEN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("principal_type", "token_requester_principal_type"), "User"),
    **dict.fromkeys(("principal_name", "token_requester_principal_name"), "ANONYMOUS"),
    **dict.fromkeys(("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"), -1),
}
K = ApiKey

# Each row begins with an API's key, its highest version and its first flexible version. After them
# it has the shape of the API's errors, or the reason why the API is not served.
# fmt: off
_ROWS: Final = (
    _stored(K.PRODUCE, 11, 9,
            unless_no_acks(
                per("topic_data", "name", into="responses",
                    nested=per("partition_data", "index", into="partition_responses",
                               base_offset=-1))),
            "WRITE TOPIC, WRITE TRANSACTIONAL_ID", deprecated_through=2),
    _stored(K.FETCH, 17, 12,
            since(13, whole(), per("topics", "topic", into="responses",
                                   nested=_FETCHED_PARTITIONS)),
            "READ TOPIC, CLUSTER_ACTION CLUSTER", deprecated_through=3),
    _local(K.LIST_OFFSETS, 9, 6, per("topics", "name", nested=_PARTITIONS),
           rights="DESCRIBE TOPIC", deprecated_through=0),
    _local(K.METADATA, 12, 9, per(metadata_topics, "name topic_id", into="topics"),
           rights="DESCRIBE TOPIC",
           rights_to_see="CREATE CLUSTER, CREATE TOPIC, DESCRIBE CLUSTER"),
    _unserved(K.LEADER_AND_ISR, 7, 4, _OWN_CHANNEL, between_brokers=True),
    _unserved(K.STOP_REPLICA, 4, 2, _OWN_CHANNEL, between_brokers=True),
    _unserved(K.UPDATE_METADATA, 8, 6, _OWN_CHANNEL, whole(), between_brokers=True),
    _unserved(K.CONTROLLED_SHUTDOWN, 3, 3, _NOT_CONTROLLED, whole(), between_brokers=True),
    _stored(K.OFFSET_COMMIT, 9, 8, per("topics", "name", nested=_PARTITIONS),
            "READ GROUP, READ TOPIC", deprecated_through=1,
            served_from=1),  # version 0 is for ZooKeeper
    _local(K.OFFSET_FETCH, 9, 6,
           since(8, per(fetched_groups, "group_id", into="groups"), since(2, whole(), _OFFSETS)),
           rights="DESCRIBE GROUP, DESCRIBE TOPIC", deprecated_through=0),
    _local(K.FIND_COORDINATOR, 6, 3, since(4, _COORDINATORS, _COORDINATOR),
           rights="DESCRIBE GROUP, DESCRIBE TRANSACTIONAL_ID"),
    _stored(K.JOIN_GROUP, 9, 6, since(7, whole(protocol_name=None), whole()), "READ GROUP",
            deprecated_through=1),
    _stored(K.HEARTBEAT, 4, 4, whole(), "READ GROUP"),
    _stored(K.LEAVE_GROUP, 5, 4, whole(), "READ GROUP"),
    _stored(K.SYNC_GROUP, 5, 4, whole(), "READ GROUP"),
    _local(K.DESCRIBE_GROUPS, 5, 5, per("groups", "group_id"), rights="DESCRIBE GROUP"),
    _local(K.LIST_GROUPS, 5, 3, whole(), rights_to_see="DESCRIBE CLUSTER, DESCRIBE GROUP"),
    _local(K.SASL_HANDSHAKE, 1, None, whole(), is_login=True, reads_metadata=False),
    _local(K.API_VERSIONS, 4, 3, _api_versions, reads_metadata=False),
    _forward(K.CREATE_TOPICS, 7, 5, per("topics", "name", text=empty_when_not_controller),
             rights="CREATE CLUSTER, CREATE TOPIC", rights_to_see="DESCRIBE_CONFIGS TOPIC",
             strict_quota_from=6, deprecated_through=1, has_drafted_messages=True),
    _forward(K.DELETE_TOPICS, 6, 4,
             since(6, per("topics", "name topic_id", into="responses", text=no_text),
                   per("topic_names", "name", into="responses", text=no_text)),
             rights="DELETE TOPIC", rights_to_see="DESCRIBE TOPIC",
             strict_quota_from=5, deprecated_through=0, has_drafted_messages=True),
    _local(K.DELETE_RECORDS, 2, 2,
           per("topics", "name", text=no_text,
               nested=per("partitions", "partition_index", low_watermark=-1)),
           rights="DELETE TOPIC", has_drafted_messages=True),
    _stored(K.INIT_PRODUCER_ID, 5, 2, whole(producer_id=-1, producer_epoch=-1),
            "IDEMPOTENT_WRITE CLUSTER, WRITE TOPIC, WRITE TRANSACTIONAL_ID"),
    _stored(K.OFFSET_FOR_LEADER_EPOCH, 4, 4,
            per("topics", "topic", nested=per("partitions", "partition"), text=no_text),
            "CLUSTER_ACTION CLUSTER, DESCRIBE TOPIC", deprecated_through=1),
    _unserved(K.ADD_PARTITIONS_TO_TXN, 5, 3, _NO_TRANSACTIONS, since(4, whole())),
    _unserved(K.ADD_OFFSETS_TO_TXN, 4, 3, _NO_TRANSACTIONS, whole()),
    _unserved(K.END_TXN, 4, 3, _NO_TRANSACTIONS, whole()),
    _unserved(K.WRITE_TXN_MARKERS, 1, 1, _NO_TRANSACTIONS),
    _unserved(K.TXN_OFFSET_COMMIT, 4, 3, _NO_TRANSACTIONS),
    _local(K.DESCRIBE_ACLS, 3, 2, whole(), rights="DESCRIBE CLUSTER", deprecated_through=0),
    _forward(K.CREATE_ACLS, 3, 2, per("creations", into="results"),
             rights="ALTER CLUSTER", forwarded_below=3, deprecated_through=0),
    _forward(K.DELETE_ACLS, 3, 2, per("filters", into="filter_results"),
             rights="ALTER CLUSTER", forwarded_below=3, deprecated_through=0),
    _local(K.DESCRIBE_CONFIGS, 4, 4,
           per("resources", _RESOURCE, into="results", text=default_text),
           rights="DESCRIBE_CONFIGS CLUSTER, DESCRIBE_CONFIGS TOPIC", deprecated_through=0),
    _forward(K.ALTER_CONFIGS, 2, 2, per("resources", _RESOURCE, into="responses"),
             rights=_ALTER_CONFIGS, forwarded_below=2),
    _local(K.ALTER_REPLICA_LOG_DIRS, 2, 2,
           per(moved_topics, "topic_name=name", into="results", nested=_PARTITIONS),
           rights="ALTER CLUSTER", deprecated_through=0),
    _local(K.DESCRIBE_LOG_DIRS, 4, 2, whole(), rights="DESCRIBE CLUSTER", deprecated_through=0),
    _local(K.SASL_AUTHENTICATE, 2, 2, whole(), is_login=True, reads_metadata=False),
    _forward(K.CREATE_PARTITIONS, 3, 2, per("topics", "name", into="results"),
             rights="ALTER TOPIC", strict_quota_from=3),
    _forward(K.CREATE_DELEGATION_TOKEN, 3, 2, whole(**_NO_TOKEN),
             rights="CREATE_TOKENS USER", forwarded_below=3, deprecated_through=0,
             has_drafted_messages=True),
    _forward(K.RENEW_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=3, deprecated_through=0),
    _forward(K.EXPIRE_DELEGATION_TOKEN, 2, 2, whole(), forwarded_below=3, deprecated_through=0),
    _local(K.DESCRIBE_DELEGATION_TOKEN, 3, 2, whole(),
           rights="DESCRIBE DELEGATION_TOKEN, DESCRIBE_TOKENS USER", deprecated_through=0),
    _local(K.DELETE_GROUPS, 2, 2, per("groups_names", "group_id", into="results"),
           rights="DELETE GROUP"),
    _forward(K.ELECT_LEADERS, 2, 2,
             not_controller_in_elements(
                 per("topic_partitions", "topic", into="replica_election_results",
                     nested=per("partitions", "partition_id", into="partition_result"))),
             rights="ALTER CLUSTER"),
    _forward(K.INCREMENTAL_ALTER_CONFIGS, 1, 1, per("resources", _RESOURCE, into="responses"),
             rights=_ALTER_CONFIGS, forwarded_below=2),
    _forward(K.ALTER_PARTITION_REASSIGNMENTS, 0, 0,
             not_controller_as_whole(per("topics", "name", into="responses", nested=_PARTITIONS)),
             rights="ALTER CLUSTER"),
    _forward(K.LIST_PARTITION_REASSIGNMENTS, 0, 0,
             not_controller_as_whole(per("topics", "name", nested=_PARTITION_INDEXES)),
             rights="DESCRIBE CLUSTER"),
    _local(K.OFFSET_DELETE, 0, None, whole(), rights="DELETE GROUP, READ TOPIC"),
    _local(K.DESCRIBE_CLIENT_QUOTAS, 1, 1, whole(entries=None), rights="DESCRIBE_CONFIGS CLUSTER"),
    _forward(K.ALTER_CLIENT_QUOTAS, 1, 1,
             per("entries", nested=per("entity", "entity_type entity_name"), text=default_text),
             rights="ALTER_CONFIGS CLUSTER", forwarded_below=1),
    # If the list of users is null, Kafka fails to build this error response, and never answers.
    _local(K.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, per("users", into="results"),
           rights="DESCRIBE CLUSTER"),
    _forward(K.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, per(scram_users, "user", into="results"),
             rights="ALTER CLUSTER"),
    _stored(K.ALTER_PARTITION, 3, 0, whole(), "CLUSTER_ACTION CLUSTER", Route.ON_CONTROLLER,
            between_brokers=True),
    _forward(K.UPDATE_FEATURES, 1, 0, whole(default_when_not_controller), rights="ALTER CLUSTER"),
    _local(K.ENVELOPE, 0, 0, whole(), rights="CLUSTER_ACTION CLUSTER", between_brokers=True,
           has_drafted_messages=True),
    _local(K.DESCRIBE_CLUSTER, 1, 0, whole(), rights_to_see="DESCRIBE CLUSTER"),
    _local(K.DESCRIBE_PRODUCERS, 0, 0,
           per("topics", "name", nested=_PARTITION_INDEXES, text=no_text), rights="READ TOPIC"),
    _local(K.DESCRIBE_TRANSACTIONS, 0, 0,
           per("transactional_ids", "transactional_id", into="transaction_states"),
           rights="DESCRIBE TRANSACTIONAL_ID"),
    _local(K.LIST_TRANSACTIONS, 1, 0, whole()),
    _stored(K.ALLOCATE_PRODUCER_IDS, 0, 0, whole(), "CLUSTER_ACTION CLUSTER", Route.ON_CONTROLLER,
            between_brokers=True),
    _local(K.CONSUMER_GROUP_HEARTBEAT, 0, 0, whole(no_text)),
    _local(K.CONSUMER_GROUP_DESCRIBE, 0, 0,
           per("group_ids", "group_id", into="groups", text=no_text)),
)
_DRAFTED_ROWS: Final = (
    _drafted(K.ALTER_TOPICS, Route.FORWARD, per(altered_topics, "topic", into="topics"),
             "ALTER CLUSTER"),
    _drafted(K.LIST_ACLS, Route.LOCAL, whole(), "ALL CLUSTER"),
    _drafted(K.ALTER_ACLS, Route.FORWARD,
             per("requests", _RESOURCE, into="responses",
                 nested=per("actions", "action acl", into="results")),
             "ALL CLUSTER"),
)
# A migrating broker sends these to the KRaft controller. No broker serves them.
_QUORUM_ROWS: Final = (
    _unserved(K.DESCRIBE_QUORUM, 2, 0, _KRAFT, whole()),
    _unserved(K.BROKER_REGISTRATION, 4, 0, _KRAFT, whole(), between_brokers=True),
    _unserved(K.BROKER_HEARTBEAT, 1, 0, _KRAFT, whole(), between_brokers=True),
)
_KRAFT_ONLY: Final = (
    K.VOTE, K.BEGIN_QUORUM_EPOCH, K.END_QUORUM_EPOCH, K.DESCRIBE_QUORUM, K.FETCH_SNAPSHOT,
    K.BROKER_REGISTRATION, K.BROKER_HEARTBEAT, K.UNREGISTER_BROKER, K.CONTROLLER_REGISTRATION,
    K.GET_TELEMETRY_SUBSCRIPTIONS, K.PUSH_TELEMETRY, K.ASSIGN_REPLICAS_TO_DIRS,
    K.LIST_CLIENT_METRICS_RESOURCES, K.DESCRIBE_TOPIC_PARTITIONS, K.SHARE_GROUP_HEARTBEAT,
    K.SHARE_GROUP_DESCRIBE, K.SHARE_FETCH, K.SHARE_ACKNOWLEDGE, K.ADD_RAFT_VOTER,
    K.REMOVE_RAFT_VOTER, K.UPDATE_RAFT_VOTER, K.INITIALIZE_SHARE_GROUP_STATE,
    K.READ_SHARE_GROUP_STATE, K.WRITE_SHARE_GROUP_STATE, K.DELETE_SHARE_GROUP_STATE,
    K.READ_SHARE_GROUP_STATE_SUMMARY,
)
# fmt: on


def _as_drafted(spec: ApiSpec) -> ApiSpec:
    """Return the row as drafted: KIP-590 adds a version with the same fields to some APIs."""
    return replace(
        spec,
        max_version=max(spec.max_version, spec.forwarded_below or 0),
        messages=_DRAFTS if spec.has_drafted_messages else spec.messages,
    )


API_SPECS: Final[Mapping[int, ApiSpec]] = {spec.key: spec for spec in _ROWS}
DRAFTED_SPECS: Final[Mapping[int, ApiSpec]] = {
    spec.key: spec for spec in (*map(_as_drafted, _ROWS), *_DRAFTED_ROWS)
}
QUORUM_SPECS: Final[Mapping[int, ApiSpec]] = {spec.key: spec for spec in _QUORUM_ROWS}
SPECS: Final[Mapping[str, Mapping[int, ApiSpec]]] = {"shipped": API_SPECS, "drafted": DRAFTED_SPECS}
DIALECTS: Final = tuple(SPECS)
UNSERVED: Final[Mapping[ApiKey, str]] = {
    **{spec.key: spec.unserved_because for spec in _ROWS if spec.route is None},
    **dict.fromkeys(_KRAFT_ONLY, _KRAFT),
}
if _missing := set(ApiKey) - set(DRAFTED_SPECS) - set(_KRAFT_ONLY):
    raise LookupError(f"no row for {', '.join(sorted(key.name for key in _missing))}")


def error_response(
    api_key: int, request: Any, version: int, error: ErrorCode, message: str | None = None
) -> Any:
    """Return the response that reports `error` for everything in `request`.

    Return None if no response of this version can report it. This occurs only for APIs that are
    not served, and for Produce with acks=0.
    """
    spec = DRAFTED_SPECS[api_key]  # these messages have every field of both dialects
    if spec.error_shape is None:
        return None
    return spec.error_shape(spec.response, request, Failure(version, error, message))
