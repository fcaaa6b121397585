"""Every API of records and groups with an authorizer: users with one right, with none, with all.

The name of each resource ends with the right that `alice` has on it, such as `topic-read`. `bob`
has no rights at first. `admin` is a super user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from tests.fidelity.data_plane_cases.committed_offsets import commit, fetched
from tests.fidelity.data_plane_cases.fetch import fetch, part
from tests.fidelity.data_plane_cases.members import heartbeat, join, leave, sync
from tests.fidelity.data_plane_cases.produce import produce
from tests.fidelity.data_plane_cases.record_bytes import batch, changed
from tests.fidelity.data_plane_cases.steps import Case, Step, request, topic, topics

K = ApiKey
_OPERATIONS: Final = {
    "read": 3, "write": 4, "create": 5, "delete": 6, "alter": 7, "describe": 8,
}  # fmt: skip
_CLUSTER_ACTION, _IDEMPOTENT_WRITE = 9, 12
_TOPIC, _GROUP, _CLUSTER = 2, 3, 4
_TOPICS: Final = tuple(f"topic-{right}" for right in (*_OPERATIONS, "nothing"))
_GROUPS: Final = tuple(f"group-{right}" for right in ("read", "describe", "delete", "nothing"))
_USERS: Final = ("alice", "bob", "admin")
_SETTLE_S: Final = 5.0


def rights_cases() -> Iterator[Case]:
    """Yield the cases. The first one creates the resources and gives `alice` her rights."""
    yield {"case": "rights: resources", "steps": list(_resources())}
    yield {"case": "rights to topics", "steps": list(_to_topics())}
    yield {"case": "rights to groups", "steps": list(_to_groups())}
    yield {"case": "rights to topics of groups", "steps": list(_to_topics_of_groups())}
    yield {"case": "rights to write idempotently", "steps": list(_to_write_idempotently())}
    yield {"case": "rights of followers", "steps": list(_of_followers())}


def _resources() -> Iterator[Step]:
    created = topics(*(topic(name) for name in (*_TOPICS, "topic-bob")))
    yield {**created, "user": "admin"}
    requested = [
        (_TOPIC if name.startswith("topic") else _GROUP, name, "alice", _OPERATIONS[right])
        for name in (*_TOPICS, *_GROUPS)
        if (right := name.rpartition("-")[2]) in _OPERATIONS
    ]
    yield from _give(*requested)
    for name in _TOPICS:
        yield produce(9, name, batch(b"v"), user="admin")


def _give(*rights: tuple[int, str, str, int]) -> Iterator[Step]:
    """Add rights: type and name of the resource, user, operation."""
    creations = [
        {
            "resourceType": kind,
            "resourceName": name,
            "resourcePatternType": 3,
            "principal": f"User:{user}",
            "host": "*",
            "operation": operation,
            "permissionType": 3,
        }
        for kind, name, user, operation in rights
    ]
    yield request(K.CREATE_ACLS, 3, {"creations": creations}, user="admin")
    every = {
        "resourceTypeFilter": 1, "resourceNameFilter": None, "patternTypeFilter": 1,
        "principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": 1,
    }  # fmt: skip
    unordered = ["resources", "resources.*.acls"]
    yield request(
        K.DESCRIBE_ACLS, 3, every, user="admin", unordered=unordered, settle_before=_SETTLE_S
    )


def _to_topics() -> Iterator[Step]:
    for name in (*_TOPICS, "missing"):
        for user in _USERS:
            for version in (2, 9, 11):
                yield produce(version, name, batch(b"v"), user=user)
            as_user = {"user": user}
            for version in (4, 11, 13, 17):
                yield fetch(version, {name: [part(999)]}, step=as_user)
            at_end = {"partitionIndex": 0, "timestamp": -1}
            wanted = {"replicaId": -1, "topics": [{"name": name, "partitions": [at_end]}]}
            for version in (0, 4, 9):
                yield request(K.LIST_OFFSETS, version, wanted, user=user)
            epoch = [{"topic": name, "partitions": [{"partition": 0, "leaderEpoch": 5}]}]
            for version in (0, 4):
                fields = {"replicaId": -1, "topics": epoch}
                yield request(K.OFFSET_FOR_LEADER_EPOCH, version, fields, user=user)
            deleted = [{"name": name, "partitions": [{"partitionIndex": 0, "offset": 0}]}]
            for version in (0, 2):
                fields = {"topics": deleted, "timeoutMs": 1000}
                yield request(K.DELETE_RECORDS, version, fields, user=user)
    several = {"topic-read": [part(999)], "topic-nothing": [part(999)], "missing": [part(0)]}
    for user in _USERS:
        for version in (11, 12, 17):
            yield fetch(version, several, step={"user": user})


def _to_groups() -> Iterator[Step]:
    for name in _GROUPS:
        for user in _USERS:
            as_user: dict[str, Any] = {"user": user}
            for version in (0, 3, 9):
                yield join(version, name, "unknown", step=as_user)
                yield fetched(version, name, [("topic-describe", [0])], step=as_user)
            for version in (0, 5):
                yield sync(version, name, "unknown", 1, step=as_user, protocolName="range",
                           protocolType="consumer")  # fmt: skip
                yield {**leave(version, name, "unknown"), **as_user}
                described = {"groups": [name], "includeAuthorizedOperations": version > 0}
                yield request(K.DESCRIBE_GROUPS, version, described, user=user)
            for version in (0, 4):
                yield {**heartbeat(version, name, "unknown", 1), **as_user}
            for version in (1, 9):
                yield commit(version, name, name="topic-read", step=as_user)
                yield commit(version, name, name="topic-nothing", step=as_user)
            yield request(K.FIND_COORDINATOR, 2, {"key": name}, user=user)
            yield request(K.FIND_COORDINATOR, 4, {"coordinatorKeys": [name]}, user=user)
            yield request(K.OFFSET_DELETE, 0, {"groupId": name}, user=user)
    for user in _USERS:
        yield request(K.LIST_GROUPS, 4, {}, user=user, unordered=["groups"])
    for name in _GROUPS:
        for user in _USERS:
            yield request(K.DELETE_GROUPS, 2, {"groupsNames": [name]}, user=user)


def _to_topics_of_groups() -> Iterator[Step]:
    unordered = ["topics", "topics.*.partitions"]
    every = [{"name": name, "partitions": [{"partitionIndex": 0}]} for name in _TOPICS]
    for user in _USERS:
        for name in (*_TOPICS, "missing"):
            for version in (1, 9):
                yield commit(version, "group-read", name=name, step={"user": user})
    for user in _USERS:
        as_user = {"user": user}
        for version in (1, 5, 7):
            wanted = [(name, [0]) for name in (*_TOPICS, "missing")]
            yield fetched(version, "group-describe", wanted, step=as_user)
        yield fetched(7, "group-read", None, step=as_user)
        yield fetched(9, "group-read", None, step=as_user)
        fields = {"groupId": "group-delete", "topics": every}
        yield request(K.OFFSET_DELETE, 0, fields, unordered=unordered, user=user)


def _to_write_idempotently() -> Iterator[Step]:
    idempotent = batch(b"v", producer_id=900, producer_epoch=0, base_sequence=0)
    transactional = changed(batch(b"v"), attributes=0x10)

    def ask(user: str, version: int) -> Step:
        fields = {"transactionalId": None, "transactionTimeoutMs": 1000}
        step = request(K.INIT_PRODUCER_ID, version, fields, user=user)
        return {**step, "capture": {"id": "producerId"}}

    for user in _USERS:
        for version in (0, 5):
            yield ask(user, version)
        yield produce(9, "topic-write", idempotent, user=user)
        yield produce(9, "topic-write", transactional, user=user, transactional_id=None)
    for right in (
        (_CLUSTER, "kafka-cluster", "bob", _IDEMPOTENT_WRITE),
        (_TOPIC, "topic-bob", "bob", _OPERATIONS["write"]),
    ):
        yield from _give(right)
        yield ask("bob", 5)
        yield produce(9, "topic-write", idempotent, user="bob")
        yield produce(9, "topic-bob", idempotent, user="bob")


def _of_followers() -> Iterator[Step]:
    def as_follower(user: str) -> Iterator[Step]:
        for name in ("topic-read", "topic-describe", "topic-nothing"):
            yield fetch(11, {name: [part(0)]}, step={"user": user}, replicaId=2)
            epoch = [{"topic": name, "partitions": [{"partition": 0, "leaderEpoch": 0}]}]
            fields = {"replicaId": 2, "topics": epoch}
            yield request(K.OFFSET_FOR_LEADER_EPOCH, 4, fields, user=user)
            at_end = {"partitionIndex": 0, "timestamp": -1}
            fields = {"replicaId": 2, "topics": [{"name": name, "partitions": [at_end]}]}
            yield request(K.LIST_OFFSETS, 7, fields, user=user)

    for user in ("alice", "bob"):
        yield from as_follower(user)
    yield from _give((_CLUSTER, "kafka-cluster", "bob", _CLUSTER_ACTION))
    yield from as_follower("bob")
