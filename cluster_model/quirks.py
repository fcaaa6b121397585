"""Harmful behaviours of Kafka 3.9 that a broker reproduces only if `bridgehead.quirks` names them.

There are three kinds of quirks: a request never gets a response; a response reveals information; a
broker accepts input that later harms the controller. Enable a quirk to test how a client handles
it. `bridgehead.quirks=kafka-3.9` enables all quirks. The column *difference* names the
sections of docs/differences.md that describe a broker without the quirk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey

QUIRKS: Final = "bridgehead.quirks"
EVERY_QUIRK: Final = "kafka-3.9"

ALTER_CONFIGS_DUPLICATE_HANGS: Final = "alter-configs-duplicate-hangs"
DESCRIBE_SCRAM_DENIED_HANGS: Final = "describe-user-scram-credentials-denied-hangs"
OFFSET_FETCH_NO_GROUPS_HANGS: Final = "offset-fetch-no-groups-hangs"
UNUSABLE_ASSIGNMENT_ACCEPTED: Final = "create-topics-unusable-assignment-accepted"
DENIAL_DUMPS_REQUEST: Final = "denial-dumps-request"
DELETE_BY_ID_TELLS_EXISTENCE: Final = "delete-topics-by-id-tells-existence"


@dataclass(frozen=True, slots=True)
class Quirk:
    """One behaviour. `rows`: sections of docs/differences.md that do not apply with the quirk."""

    name: str
    apis: str
    rows: tuple[str, ...]
    description: str


QUIRK_LIST: Final[tuple[Quirk, ...]] = (
    Quirk(
        ALTER_CONFIGS_DUPLICATE_HANGS,
        "AlterConfigs",
        ("alter-configs-duplicate",),
        "A request that names a resource twice never gets a response.",
    ),
    Quirk(
        DESCRIBE_SCRAM_DENIED_HANGS,
        "DescribeUserScramCredentials",
        ("describe-user-scram-credentials-denied",),
        "If a client without DESCRIBE on Cluster requests all users, it never gets a response.",
    ),
    Quirk(
        OFFSET_FETCH_NO_GROUPS_HANGS,
        "OffsetFetch",
        ("offset-fetch-no-groups",),
        "A request without groups (version 8 or later) never gets a response.",
    ),
    Quirk(
        UNUSABLE_ASSIGNMENT_ACCEPTED,
        "CreateTopics",
        ("create-topics-unusable-assignment",),
        "A topic is created even if the replica list of a partition is empty, has a negative "
        "broker id or has no live broker. A partition without a live replica has no leader and is "
        "missing from Metadata. Unlike in Kafka, the topic can be deleted.",
    ),
    Quirk(
        DENIAL_DUMPS_REQUEST,
        "AlterPartitionReassignments, ListPartitionReassignments, CreateAcls, DeleteAcls, "
        "DescribeAcls",
        ("partition-reassignments-denied", "acls-denied"),
        "The error message for an unauthorized request is a dump of the request object: its "
        "connection, its buffer and its Envelope.",
    ),
    Quirk(
        DELETE_BY_ID_TELLS_EXISTENCE,
        "DeleteTopics",
        ("delete-topics-by-id-denied",),
        "Deletion by id reveals which ids exist. Without DESCRIBE on the topic, the error is "
        "TOPIC_AUTHORIZATION_FAILED if the topic exists, and UNKNOWN_TOPIC_ID if no topic has the "
        "id.",
    ),
)
KNOWN_QUIRKS: Final[Mapping[str, str]] = {
    EVERY_QUIRK: "All quirks.",
    **{quirk.name: quirk.description for quirk in QUIRK_LIST},
}
# Behaviours of these kinds that no quirk enables, by their section in docs/differences.md.
UNSUPPORTED_QUIRKS: Final[Mapping[str, str]] = {
    "produce-null-records": "A fault rule with the action `drop` has the same effect on a client.",
    "join-group-malformed-subscription": "A fault rule with the action `drop` has the same effect "
    "on a client.",
    "policy-failed": "In Kafka, a call of a policy may never return. In Bridgehead, each call has "
    "a time limit (`bridgehead.policy.timeout.ms`), which cannot be switched off.",
    "auto-create-cluster-metadata": "The quirk would create the topic `__cluster_metadata` in "
    "ZooKeeper. KRaft's metadata log has the same name, and a migration to KRaft would find the "
    "topic.",
}
Quirks = frozenset[str]
_DUMPING: Final = (
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
)
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
NO_QUIRKS: Final[Quirks] = frozenset()


def quirks_of(properties: Mapping[str, str]) -> Quirks:
    """Return the quirks that a broker's properties enable."""
    named = names_in(properties.get(QUIRKS, ""))
    if EVERY_QUIRK in named:
        return frozenset(quirk.name for quirk in QUIRK_LIST)
    return frozenset(named)


def unknown_quirks(value: str) -> str | None:
    """Return, as the end of a sentence, which quirks of a value are unknown; None if none is."""
    unknown = [name for name in names_in(value) if name not in KNOWN_QUIRKS]
    if not unknown:
        return None
    return f"names unknown quirks: {', '.join(unknown)}; the quirks are {', '.join(KNOWN_QUIRKS)}"


def names_in(value: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in value.split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class DumpedRequest:
    """The fields of Kafka's Request object that its toString contains."""

    connection_id: str
    listener_name: str
    security_protocol: str
    session: str  # the hash of the object
    size: int | None  # bytes; None when the buffer is not kept


def denial_text(inner: DumpedRequest, envelope: DumpedRequest | None) -> str:
    """Return the text of Kafka's ClusterAuthorizationException, which shows the Request object."""
    outer = "None" if envelope is None else f"Some({_dump(envelope, 'None')})"
    return f"Request {_dump(inner, outer)} is not authorized."


def _dump(request: DumpedRequest, envelope: str) -> str:
    size = request.size
    kept = f"java.nio.HeapByteBuffer[pos={size} lim={size} cap={size}]"
    return (
        f"Request(processor=0, connectionId={request.connection_id}, "
        f"session=org.apache.kafka.network.Session@{request.session}, "
        f"listenerName=ListenerName({request.listener_name}), "
        f"securityProtocol={request.security_protocol}, "
        f"buffer={'null' if size is None else kept}, envelope={envelope})"
    )


def set_denial_message(api_key: int, response: Any, text: str) -> None:
    """Set the text of CLUSTER_AUTHORIZATION_FAILED for an API whose message shows the Request."""
    if api_key not in _DUMPING:
        return
    elements = getattr(response, "results", None) or getattr(response, "filter_results", None) or ()
    for part in (response, *elements):
        if getattr(part, "error_code", 0) == _CLUSTER_AUTHORIZATION_FAILED:
            part.error_message = text
