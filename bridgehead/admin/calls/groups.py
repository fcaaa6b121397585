"""Groups (KIP-117 getAllGroups and getGroupInformation)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bridgehead.admin.calls.cluster import of_every_broker
from bridgehead.admin.errors import AdminError, BrokerGoneError, KafkaError
from bridgehead.admin.requests import Attempt, BrokerResponse, Plan, Request, Wait, one
from bridgehead.admin.results import Node, TopicPartition, Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest

T = TypeVar("T")

_TRANSIENT = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_PAUSE_MS = 100
_NULL_TOPICS_FROM = 2  # OffsetFetch: from this version on, null topics mean all topics
_COORDINATOR_FROM = 1  # OffsetCommit: older versions store offsets in ZooKeeper


class GroupOverview(NamedTuple):
    """A group. `state` and `group_type` are empty if the broker is too old to send them.

    `get_group_information` leaves `group_type` empty.
    """

    group_id: str
    protocol_type: str
    state: str = ""
    group_type: str = ""


class GroupMember(NamedTuple):
    """A member of a group. Metadata and assignment are in the format of the group's protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class CommittedOffset(NamedTuple):
    """A committed offset with the client's metadata; `leader_epoch` is -1 if it is unknown."""

    offset: int
    metadata: str
    leader_epoch: int


class GroupDescription(NamedTuple):
    """A group with its members, and the broker that coordinates it."""

    group_id: str
    protocol_type: str
    state: str
    protocol_data: str
    members: list[GroupMember]
    coordinator: int


def get_all_groups() -> Plan[dict[Node, Try[list[GroupOverview]]]]:
    """Return the groups of every broker (KIP-117 getAllGroups).

    For a broker that fails, or whose groups are still loading, the `Try` has the error.
    """
    from bridgehead.kafka_wire.messages.list_groups import ListGroupsRequest

    def groups(response: BrokerResponse) -> list[GroupOverview]:
        response.check(response.message.error_code)
        return [
            GroupOverview(group.group_id, group.protocol_type, group.group_state, group.group_type)
            for group in response.message.groups
        ]

    return (
        yield from of_every_broker(
            lambda broker: Request(ApiKey.LIST_GROUPS, lambda _: ListGroupsRequest(), broker),
            groups,
        )
    )


def get_group_information(group_name: str) -> Plan[GroupOverview]:
    """Return one group (KIP-117 getGroupInformation). A group that does not exist is `Dead`.

    Raises:
        KafkaError: the coordinator rejects the request.
        UnsupportedVersionError: the broker does not serve groups.
    """
    group = yield from _describe(group_name)
    return GroupOverview(group.group_id, group.protocol_type, group.state)


def describe_groups(groups: Collection[str]) -> Plan[dict[str, Try[GroupDescription]]]:
    """Return groups with their members, each as its coordinator describes it."""
    described = {}
    for name in groups:
        try:
            described[name] = Try.new_value((yield from _describe(name)))
        except AdminError as error:
            described[name] = Try.new_error(error)
    return described


def delete_groups(groups: Collection[str]) -> Plan[dict[str, AdminError | None]]:
    """Delete groups that have no members; return the error of each group."""
    from bridgehead.kafka_wire.messages.delete_groups import DeleteGroupsRequest

    errors: dict[str, AdminError | None] = {}
    for name in groups:
        try:
            yield from _at_coordinator(
                name, ApiKey.DELETE_GROUPS, DeleteGroupsRequest([name]), lambda it: it.results
            )
            errors[name] = None
        except AdminError as error:
            errors[name] = error
    return errors


def list_group_offsets(group_name: str) -> Plan[dict[TopicPartition, CommittedOffset]]:
    """Return the committed offsets of a group. If there is no such group, the result is empty.

    Raises:
        KafkaError: GROUP_AUTHORIZATION_FAILED.
    """
    from bridgehead.kafka_wire.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
    )

    def build(attempt: Attempt) -> OffsetFetchRequest:
        groups = [OffsetFetchRequestGroup(group_name, topics=None)]
        return OffsetFetchRequest(groups, group_name, None)

    def read(response: BrokerResponse) -> dict[TopicPartition, CommittedOffset]:
        (group,) = response.message.groups or [response.message]
        response.check(group.error_code)
        offsets = {}
        for topic in group.topics:
            for partition in topic.partitions:
                response.check(partition.error_code)
                offsets[TopicPartition(topic.name, partition.partition_index)] = CommittedOffset(
                    partition.committed_offset,
                    partition.metadata or "",
                    partition.committed_leader_epoch,
                )
        return offsets

    reply = yield from _ask_coordinator(
        group_name, ApiKey.OFFSET_FETCH, build, read, _NULL_TOPICS_FROM
    )
    return reply[1]


def alter_group_offsets(
    group_name: str, offsets: Mapping[TopicPartition, int]
) -> Plan[dict[TopicPartition, AdminError | None]]:
    """Commit offsets for a group without members; return the error of each partition.

    A group with members gets UNKNOWN_MEMBER_ID.
    """
    from bridgehead.kafka_wire.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    topics: dict[str, OffsetCommitRequestTopic] = {}
    for key, offset in offsets.items():
        topic = topics.setdefault(key.topic, OffsetCommitRequestTopic(key.topic, []))
        topic.partitions.append(
            OffsetCommitRequestPartition(key.partition, offset, committed_metadata="")
        )
    request = OffsetCommitRequest(group_name, topics=list(topics.values()))
    reply = yield from _ask_coordinator(
        group_name, ApiKey.OFFSET_COMMIT, lambda _: request, _partition_errors, _COORDINATOR_FROM
    )
    return reply[1]


def delete_group_offsets(
    group_name: str, partitions: Collection[TopicPartition]
) -> Plan[dict[TopicPartition, AdminError | None]]:
    """Delete committed offsets (KIP-496); return the error of each partition.

    Topics that a member of the group consumes get GROUP_SUBSCRIBED_TO_TOPIC.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, GROUP_AUTHORIZATION_FAILED.
    """
    from bridgehead.kafka_wire.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for key in partitions:
        topic = topics.setdefault(key.topic, OffsetDeleteRequestTopic(key.topic, []))
        topic.partitions.append(OffsetDeleteRequestPartition(key.partition))
    request = OffsetDeleteRequest(group_name, list(topics.values()))

    def read(response: BrokerResponse) -> dict[TopicPartition, AdminError | None]:
        response.check(response.message.error_code)
        return _partition_errors(response)

    reply = yield from _ask_coordinator(group_name, ApiKey.OFFSET_DELETE, lambda _: request, read)
    return reply[1]


def _partition_errors(response: BrokerResponse) -> dict[TopicPartition, AdminError | None]:
    """Return the error of each partition. Raise a transient error, so that the call retries."""
    errors: dict[TopicPartition, AdminError | None] = {}
    for topic in response.message.topics:
        for partition in topic.partitions:
            error = response.error(partition.error_code)
            if error is not None and error.code in _TRANSIENT:
                raise error
            errors[TopicPartition(topic.name, partition.partition_index)] = error
    return errors


def _describe(name: str) -> Plan[GroupDescription]:
    from bridgehead.kafka_wire.messages.describe_groups import DescribeGroupsRequest

    broker, group = yield from _at_coordinator(
        name, ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([name]), lambda it: it.groups
    )
    members = [
        GroupMember(
            group_member.member_id,
            group_member.group_instance_id,
            group_member.client_id,
            group_member.client_host,
            group_member.member_metadata,
            group_member.member_assignment,
        )
        for group_member in group.members
    ]
    return GroupDescription(
        group.group_id, group.protocol_type, group.group_state, group.protocol_data, members, broker
    )


def _at_coordinator(name: str, key: ApiKey, request: Any, elements: Any) -> Plan[tuple[int, Any]]:
    """Send a request about one group to its coordinator.

    Return the coordinator's id, and the element of the response that describes the group.
    """

    def read(response: BrokerResponse) -> Any:
        (element,) = elements(response.message)
        response.check(element.error_code)
        return element

    return (yield from _ask_coordinator(name, key, lambda _: request, read))


def _ask_coordinator(
    name: str,
    key: ApiKey,
    build: Callable[[Attempt], Any],
    read: Callable[[BrokerResponse], T],
    min_version: int = 0,
) -> Plan[tuple[int, T]]:
    """Send a request to a group's coordinator; return the coordinator and the result of `read`.

    While the coordinator moves or loads, or has left the cluster, the request is resent until the
    call times out.
    """
    resent = False
    while True:
        broker = None
        try:
            broker = yield from _coordinator(name)
            request = Request(key, build, broker, min_version, resent=resent)
            response = yield from one(request)
            return broker, read(response)
        except KafkaError as error:
            if error.code not in _TRANSIENT:
                raise
        except BrokerGoneError as gone:
            if broker is None:  # The client is pinned to a broker that has left the cluster.
                raise
            resent = resent or gone.sent
        yield Wait(_PAUSE_MS)


def _coordinator(name: str) -> Plan[int]:
    from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest

    def build(attempt: Attempt) -> FindCoordinatorRequest:
        if attempt.version < 4:
            return FindCoordinatorRequest(key=name)
        return FindCoordinatorRequest(coordinator_keys=[name])

    response = yield from one(Request(ApiKey.FIND_COORDINATOR, build))
    row = response.message if response.version < 4 else response.message.coordinators[0]
    response.check(row.error_code, row.error_message)
    broker: int = row.node_id
    return broker
