"""Misbehaviour of a real Kafka 3.9 that is not copied unless `bridgehead.quirks` names it.

Three kinds are not copied: a request that is never answered, an answer that leaks, and input that
is accepted and then harms the controller. Whoever must see how a client copes brings them back,
one by one or, as `kafka-3.9`, all. Each has one place in the code, which asks for it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
    """One misbehaviour. `rows` are the names in docs/differences.md of what it brings back."""

    name: str
    apis: str
    rows: tuple[str, ...]
    says: str


QUIRK_LIST: Final[tuple[Quirk, ...]] = (
    Quirk(
        ALTER_CONFIGS_DUPLICATE_HANGS,
        "AlterConfigs",
        ("alter-configs-duplicate",),
        "A request that names a resource twice is never answered.",
    ),
    Quirk(
        DESCRIBE_SCRAM_DENIED_HANGS,
        "DescribeUserScramCredentials",
        ("describe-user-scram-credentials-denied",),
        "Who asks for all users without the right is never answered.",
    ),
    Quirk(
        OFFSET_FETCH_NO_GROUPS_HANGS,
        "OffsetFetch",
        ("offset-fetch-no-groups",),
        "A request for no group at all, from version 8 on, is never answered.",
    ),
    Quirk(
        UNUSABLE_ASSIGNMENT_ACCEPTED,
        "CreateTopics",
        ("create-topics-unusable-assignment",),
        "A topic whose replicas are none, negative or all unknown is created, without a leader, "
        "and Metadata does not know it; unlike Kafka's it can be deleted.",
    ),
    Quirk(
        DENIAL_DUMPS_REQUEST,
        "AlterPartitionReassignments, ListPartitionReassignments, CreateAcls, DeleteAcls, "
        "DescribeAcls",
        ("partition-reassignments-denied", "acls-denied"),
        "Who lacks the right is told the connection, the buffer and the Envelope of the request.",
    ),
    Quirk(
        DELETE_BY_ID_TELLS_EXISTENCE,
        "DeleteTopics",
        ("delete-topics-by-id-denied",),
        "By id, 29 for a topic that may not be described and 100 for none tells which ids exist.",
    ),
)
KNOWN_QUIRKS: Final[Mapping[str, str]] = {
    EVERY_QUIRK: "All of them.",
    **{quirk.name: quirk.says for quirk in QUIRK_LIST},
}
# What belongs to the three kinds and stays away, by its row in docs/differences.md.
NOT_BROUGHT_BACK: Final[Mapping[str, str]] = {
    "policy-failed": "A policy that never returns would hold up this node for good: here it is "
    "one process for everything, and Kafka loses one of many threads.",
    "auto-create-cluster-metadata": "The topic would stand in ZooKeeper under the name of KRaft's "
    "own log, where a migration finds it.",
}
Quirks = frozenset[str]
_DUMPING: Final = (30, 31, 45, 46)
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
NO_QUIRKS: Final[Quirks] = frozenset()


def quirks_of(properties: Mapping[str, str]) -> Quirks:
    """Return the quirks that a broker's properties ask for."""
    named = names_in(properties.get(QUIRKS, ""))
    if EVERY_QUIRK in named:
        return frozenset(quirk.name for quirk in QUIRK_LIST)
    return frozenset(named)


def refuse_unknown(value: str) -> str | None:
    """Return the end of a sentence about names that are no quirks; None when all are."""
    unknown = [name for name in names_in(value) if name not in KNOWN_QUIRKS]
    if not unknown:
        return None
    return f"has no quirk named {', '.join(unknown)}; there are {', '.join(KNOWN_QUIRKS)}"


def names_in(value: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in value.split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class DumpedRequest:
    """What Kafka's Request object shows of itself."""

    connection_id: str
    listener_name: str
    security_protocol: str
    session: str  # its object's hash
    size: int | None  # bytes; None where nothing is kept of them


def denial_text(inner: DumpedRequest, envelope: DumpedRequest | None) -> str:
    """Return what Kafka's ClusterAuthorizationException says: its objects, one in the other."""
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


def tell_denial(api_key: int, answer: Any, text: str) -> None:
    """Put `text` wherever an answer of an API that dumps says CLUSTER_AUTHORIZATION_FAILED."""
    if api_key not in _DUMPING:
        return
    elements = getattr(answer, "results", None) or getattr(answer, "filter_results", None) or ()
    for part in (answer, *elements):
        if getattr(part, "error_code", 0) == _CLUSTER_AUTHORIZATION_FAILED:
            part.error_message = text
