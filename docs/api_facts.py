"""What docs/apis.md says of each API beside its key, versions and route: rights and errors.

Literal, so that it can be read; a test compares it with what the code asks and answers, and with
what a real Kafka was recorded to answer. Errors that every API of a route can give stand once, in
`ALWAYS`, and errors of authorization follow from the rights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker_proxy.routing import Route

Right = tuple[str, str]  # operation, resource type

DENIED: Final[Mapping[str, str]] = {
    "TOPIC": "TOPIC_AUTHORIZATION_FAILED",
    "GROUP": "GROUP_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER": "CLUSTER_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN": "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "USER": "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
}
ALWAYS: Final[Mapping[Route, tuple[str, ...]]] = {
    Route.LOCAL: ("UNKNOWN_SERVER_ERROR",),
    Route.FORWARD: ("UNKNOWN_SERVER_ERROR", "REQUEST_TIMED_OUT", "NOT_CONTROLLER"),
}


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """One API. `rights` are asked of its principal; `denied`: what one without them sees.

    `errors` are Kafka's names, without those of `ALWAYS` and of `denied`.
    """

    rights: tuple[Right, ...]
    denied: str
    errors: tuple[str, ...]


_NOTHING: Final = "nothing is asked"
_OMITTED: Final = "left out of the answer"
_29, _30, _31, _53 = (DENIED[key] for key in ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"))
_NO_TOKENS: Final = ("DELEGATION_TOKEN_AUTH_DISABLED", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
_TOKEN_ERRORS: Final = (
    "DELEGATION_TOKEN_EXPIRED",
    "DELEGATION_TOKEN_NOT_FOUND",
    "DELEGATION_TOKEN_OWNER_MISMATCH",
)
_OWN_TOKENS: Final = "only the owner and the renewers of a token may"
_CONFIGS: Final = (
    "INVALID_CONFIG",
    "INVALID_REQUEST",
    "POLICY_VIOLATION",
    "UNKNOWN_TOPIC_OR_PARTITION",
)

API_FACTS: Final[Mapping[int, ApiFacts]] = {
    2: ApiFacts(
        (("DESCRIBE", "TOPIC"),),
        _29,
        (
            "FENCED_LEADER_EPOCH",
            "INVALID_REQUEST",
            "NOT_LEADER_OR_FOLLOWER",
            "UNKNOWN_LEADER_EPOCH",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "UNSUPPORTED_VERSION",
        ),
    ),
    3: ApiFacts(
        (
            ("CREATE", "CLUSTER"),
            ("CREATE", "TOPIC"),
            ("DESCRIBE", "CLUSTER"),
            ("DESCRIBE", "TOPIC"),
        ),
        f"{_29}; {_OMITTED} when all topics are asked for; CREATE is asked for a missing topic "
        "that would be created, DESCRIBE on the cluster for its authorized operations",
        (
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION",
            "LEADER_NOT_AVAILABLE",
            "LISTENER_NOT_FOUND",
            "REPLICA_NOT_AVAILABLE",
            "UNKNOWN_TOPIC_ID",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    9: ApiFacts(
        (("DESCRIBE", "GROUP"), ("DESCRIBE", "TOPIC")),
        f"{_30}, {_29}; a topic is {_OMITTED} when all are asked for",
        ("NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    10: ApiFacts(
        (("DESCRIBE", "GROUP"), ("DESCRIBE", "TRANSACTIONAL_ID")),
        f"{_30}, {_53}",
        ("COORDINATOR_NOT_AVAILABLE", "INVALID_REQUEST"),
    ),
    15: ApiFacts((("DESCRIBE", "GROUP"),), _30, ("NOT_COORDINATOR",)),
    16: ApiFacts((), _NOTHING, ()),
    17: ApiFacts((), _NOTHING, ("ILLEGAL_SASL_STATE", "UNSUPPORTED_SASL_MECHANISM")),
    18: ApiFacts((), _NOTHING, ("INVALID_REQUEST", "UNSUPPORTED_VERSION")),
    19: ApiFacts(
        (("CREATE", "CLUSTER"), ("CREATE", "TOPIC"), ("DESCRIBE_CONFIGS", "TOPIC")),
        f"{_29}; CREATE on the cluster or on the topic is enough; who may not DESCRIBE_CONFIGS "
        f"is shown neither configs nor id; drafted: {_31}, CREATE on the topic does not count",
        (
            "INVALID_CONFIG",
            "INVALID_PARTITIONS",
            "INVALID_REPLICATION_FACTOR",
            "INVALID_REPLICA_ASSIGNMENT",
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION",
            "POLICY_VIOLATION",
            "THROTTLING_QUOTA_EXCEEDED",
            "TOPIC_ALREADY_EXISTS",
        ),
    ),
    20: ApiFacts(
        (("DELETE", "TOPIC"), ("DESCRIBE", "TOPIC")),
        f"{_29}, whether the topic exists or not; by an id without DESCRIBE its name stays hidden; "
        "drafted: by a name without DESCRIBE as if there were no topic",
        (
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION",
            "POLICY_VIOLATION",
            "THROTTLING_QUOTA_EXCEEDED",
            "TOPIC_DELETION_DISABLED",
            "UNKNOWN_TOPIC_ID",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    21: ApiFacts(
        (("DELETE", "TOPIC"),),
        _29,
        (
            "INVALID_TOPIC_EXCEPTION",
            "NOT_LEADER_OR_FOLLOWER",
            "OFFSET_OUT_OF_RANGE",
            "POLICY_VIOLATION",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    29: ApiFacts((("DESCRIBE", "CLUSTER"),), _31, ("SECURITY_DISABLED",)),
    30: ApiFacts((("ALTER", "CLUSTER"),), _31, ("INVALID_REQUEST", "SECURITY_DISABLED")),
    31: ApiFacts((("ALTER", "CLUSTER"),), _31, ("SECURITY_DISABLED",)),
    32: ApiFacts(
        (("DESCRIBE_CONFIGS", "CLUSTER"), ("DESCRIBE_CONFIGS", "TOPIC")),
        f"{_31} for a broker and its loggers, {_29} for a topic",
        ("INVALID_REQUEST", "INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    33: ApiFacts(
        (("ALTER_CONFIGS", "CLUSTER"), ("ALTER_CONFIGS", "TOPIC")),
        f"{_31} for a broker and its loggers, {_29} for a topic",
        _CONFIGS,
    ),
    34: ApiFacts(
        (("ALTER", "CLUSTER"),),
        _31,
        (
            "INVALID_TOPIC_EXCEPTION",
            "LOG_DIR_NOT_FOUND",
            "REPLICA_NOT_AVAILABLE",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    35: ApiFacts((("DESCRIBE", "CLUSTER"),), _31, ()),
    36: ApiFacts((), _NOTHING, ("ILLEGAL_SASL_STATE", "SASL_AUTHENTICATION_FAILED")),
    37: ApiFacts(
        (("ALTER", "TOPIC"),),
        _29,
        (
            "INVALID_PARTITIONS",
            "INVALID_REPLICATION_FACTOR",
            "INVALID_REPLICA_ASSIGNMENT",
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION",
            "POLICY_VIOLATION",
            "REASSIGNMENT_IN_PROGRESS",
            "THROTTLING_QUOTA_EXCEEDED",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    38: ApiFacts(
        (("CREATE_TOKENS", "USER"),),
        f"{DENIED['USER']}; asked for another owner only",
        (*_NO_TOKENS, "INVALID_PRINCIPAL_TYPE"),
    ),
    39: ApiFacts((), _OWN_TOKENS, (*_NO_TOKENS, *_TOKEN_ERRORS)),
    40: ApiFacts((), _OWN_TOKENS, (*_NO_TOKENS, *_TOKEN_ERRORS)),
    41: ApiFacts(
        (("DESCRIBE", "DELEGATION_TOKEN"), ("DESCRIBE_TOKENS", "USER")),
        f"{_OMITTED}; asked for tokens of others only, and one of the two is enough",
        _NO_TOKENS,
    ),
    42: ApiFacts((("DELETE", "GROUP"),), _30, ("GROUP_ID_NOT_FOUND", "NOT_COORDINATOR")),
    43: ApiFacts(
        (("ALTER", "CLUSTER"),),
        _31,
        (
            "ELECTION_NOT_NEEDED",
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            "INVALID_TOPIC_EXCEPTION",
            "PREFERRED_LEADER_NOT_AVAILABLE",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    44: ApiFacts(
        (("ALTER_CONFIGS", "CLUSTER"), ("ALTER_CONFIGS", "TOPIC")),
        f"{_31} for a broker and its loggers, {_29} for a topic",
        _CONFIGS,
    ),
    45: ApiFacts(
        (("ALTER", "CLUSTER"),),
        _31,
        (
            "INVALID_REPLICA_ASSIGNMENT",
            "NO_REASSIGNMENT_IN_PROGRESS",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ),
    46: ApiFacts((("DESCRIBE", "CLUSTER"),), _31, ()),
    47: ApiFacts(
        (("DELETE", "GROUP"),), _30, ("GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NOT_COORDINATOR")
    ),
    48: ApiFacts(
        (("DESCRIBE_CONFIGS", "CLUSTER"),), _31, ("INVALID_REQUEST", "UNSUPPORTED_VERSION")
    ),
    49: ApiFacts((("ALTER_CONFIGS", "CLUSTER"),), _31, ("INVALID_REQUEST",)),
    50: ApiFacts((("DESCRIBE", "CLUSTER"),), _31, ("DUPLICATE_RESOURCE", "RESOURCE_NOT_FOUND")),
    51: ApiFacts(
        (("ALTER", "CLUSTER"),),
        _31,
        (
            "DUPLICATE_RESOURCE",
            "RESOURCE_NOT_FOUND",
            "UNACCEPTABLE_CREDENTIAL",
            "UNSUPPORTED_SASL_MECHANISM",
        ),
    ),
    57: ApiFacts((("ALTER", "CLUSTER"),), _31, ("FEATURE_UPDATE_FAILED", "INVALID_REQUEST")),
    60: ApiFacts(
        (("DESCRIBE", "CLUSTER"),),
        "nothing but the authorized operations is withheld",
        ("MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
    ),
    61: ApiFacts(
        (("READ", "TOPIC"),),
        _29,
        ("INVALID_TOPIC_EXCEPTION", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    65: ApiFacts(
        (("DESCRIBE", "TRANSACTIONAL_ID"),),
        _53,
        ("INVALID_REQUEST", "NOT_COORDINATOR", "TRANSACTIONAL_ID_NOT_FOUND"),
    ),
    66: ApiFacts((), _NOTHING, ()),
    68: ApiFacts((), _NOTHING, ("UNSUPPORTED_VERSION",)),
    69: ApiFacts((), _NOTHING, ("UNSUPPORTED_VERSION",)),
    58: ApiFacts(
        (("CLUSTER_ACTION", "CLUSTER"),),
        f"{_31}; a closed connection but on the listener between brokers; drafted: {_31} for all",
        (
            "INVALID_REQUEST",
            "NOT_CONTROLLER",
            "PRINCIPAL_DESERIALIZATION_FAILURE",
            "UNSUPPORTED_VERSION",
        ),
    ),
    10001: ApiFacts(
        (("ALTER", "CLUSTER"),),
        _31,
        (
            "INVALID_PARTITIONS",
            "INVALID_REPLICATION_FACTOR",
            "INVALID_REPLICA_ASSIGNMENT",
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION",
            "POLICY_VIOLATION",
            "REASSIGNMENT_IN_PROGRESS",
        ),
    ),
    10002: ApiFacts(
        (),
        f"{_31} without every right on the cluster, but for the asker's own Allow rules",
        (_31, "SECURITY_DISABLED"),
    ),
    10003: ApiFacts(
        (),
        f"{_31} without every right on the cluster",
        (_31, "INVALID_REQUEST", "SECURITY_DISABLED"),
    ),
}
