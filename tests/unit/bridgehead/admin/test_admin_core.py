"""The admin client's core, without I/O and on virtual time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from bridgehead.admin.calls import acls, cluster, configs, groups, records, topics
from bridgehead.admin.calls.topics import (
    CreateTopicsFlags,
    DeleteTopicsFlags,
    NewTopicWithReplication,
)
from bridgehead.admin.errors import (
    AdminError,
    ClientClosedError,
    ConnectionFailedError,
    InvalidCallError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from bridgehead.admin.results import TopicPartition, Try
from bridgehead.kafka_wire.acl_codes import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsResponse,
)
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from bridgehead.kafka_wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from bridgehead.kafka_wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from bridgehead.kafka_wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from bridgehead.kafka_wire.messages.list_groups import ListedGroup, ListGroupsResponse
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from bridgehead.kafka_wire.messages.metadata import (
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from tests.unit.bridgehead.admin.world import World

CREATE = ApiKey.CREATE_TOPICS
NAMES = ("a", "b")

Ranges = dict[int, tuple[int, int]]


ACL = acls.AclBinding(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


def creation(*names: str, flags: CreateTopicsFlags = topics.NO_CREATE_FLAGS) -> Any:
    return topics.create_topics([NewTopicWithReplication(name, 1, 1) for name in names], flags)


def responding(
    code_of: Callable[[str], int] = lambda name: 0, throttle_ms: int = 0, text: str | None = None
) -> Any:
    """Return a handler of CreateTopics. `code_of` maps a topic's name to its error code."""

    def respond(request: Any, version: int) -> CreateTopicsResponse:
        results = [
            CreatableTopicResult(topic.name, error_code=code_of(topic.name), error_message=text)
            for topic in request.topics
        ]
        return CreateTopicsResponse(throttle_ms, results)

    return respond


@pytest.fixture
def world() -> World:
    """Brokers without forwarding: each creates topics only while it is the controller."""
    world = World()
    for broker in world.brokers.values():
        broker.handlers[CREATE] = as_controller(world, broker.id)
    return world


def as_controller(world: World, broker: int) -> Any:
    """Return a handler of CreateTopics that succeeds only while this broker is the controller."""
    return responding(lambda _: 0 if world.controller == broker else ErrorCode.NOT_CONTROLLER)


def test_a_creation_goes_to_the_controller_that_metadata_names(world: World) -> None:
    world.controller = 3
    assert world.run(creation("a")).get() == {"a": None}
    assert world.new_lines() == [
        "0 1 connected",
        "0 1 ApiVersions v3",
        "0 1 Metadata v12",
        "0 3 connected",
        "0 3 ApiVersions v3",
        "0 3 CreateTopics v7",
    ]
    world.run(creation("b")).get()
    assert world.new_lines() == ["0 3 CreateTopics v7"]


def test_after_not_controller_the_client_fetches_metadata_and_resends(world: World) -> None:
    world.run(creation("a")).get()
    world.new_lines()
    world.controller = 2
    assert world.run(creation("b")).get() == {"b": None}
    assert world.new_lines() == [
        "0 1 CreateTopics v7",
        "100 1 Metadata v12",
        "100 2 connected",
        "100 2 ApiVersions v3",
        "100 2 CreateTopics v7",
    ]


def test_only_elements_with_the_error_not_controller_are_sent_again(world: World) -> None:
    """The other topics exist: if they were sent again, they would get TOPIC_ALREADY_EXISTS."""
    responses = iter([responding(lambda name: 41 * (name == "b")), responding(lambda _: 0)])
    sent: list[list[str]] = []

    def respond(request: Any, version: int) -> Any:
        sent.append([topic.name for topic in request.topics])
        return next(responses)(request, version)

    world.everywhere(CREATE, respond)
    assert world.run(creation(*NAMES)).get() == {"a": None, "b": None}
    assert sent == [["a", "b"], ["b"]]


def test_a_closed_connection_makes_the_client_look_for_the_controller(world: World) -> None:
    world.run(creation("a")).get()
    world.new_lines()
    world.brokers[1].handlers[CREATE] = lambda request, version: None
    number = world.start(creation("b"))
    world.brokers[1].is_up, world.controller = False, 2
    world.cut(1)
    while number not in world.outcomes:
        world.advance_to(world.core.wakeup_ms() or 0)
    assert world.outcomes[number].get() == {"b": None}
    assert world.new_lines() == [
        "0 1 CreateTopics v7",
        "100 2 connected",
        "100 2 ApiVersions v3",
        "100 2 Metadata v12",
        "100 2 CreateTopics v7",
    ]


def test_an_error_after_a_lost_response_is_marked_as_resent(world: World) -> None:
    world.run(creation("a")).get()
    world.brokers[1].handlers[CREATE] = lambda request, version: None
    number = world.start(creation("b"))
    world.everywhere(CREATE, responding(lambda _: 36))
    world.cut(1)
    while number not in world.outcomes:
        world.advance_to(world.core.wakeup_ms() or 0)
    error = world.outcomes[number].get()["b"]
    assert isinstance(error, KafkaError)
    assert (error.code, error.resent) == (ErrorCode.TOPIC_ALREADY_EXISTS, True)
    first = world.run(creation("c")).get()["c"]
    assert isinstance(first, KafkaError)
    assert first.resent is False


def test_an_error_after_not_controller_is_not_marked_as_resent(world: World) -> None:
    """NOT_CONTROLLER is a definite response: the earlier attempt had no effect."""
    world.run(creation("a")).get()
    world.controller = 2
    world.brokers[2].handlers[CREATE] = responding(lambda _: ErrorCode.TOPIC_ALREADY_EXISTS)
    error = world.run(creation("b")).get()["b"]
    assert isinstance(error, KafkaError)
    assert (error.code, error.resent) == (ErrorCode.TOPIC_ALREADY_EXISTS, False)


def test_without_a_response_the_request_is_resent_on_another_connection(world: World) -> None:
    """After request.timeout.ms (KIP-117) the client closes the old connection.

    Responses arrive in order, so later responses would wait for the missing one.
    """
    world.run(creation("a")).get()
    world.new_lines()
    responses = iter([None, responding()])

    def respond(request: Any, version: int) -> Any:
        chosen = next(responses)
        return chosen and chosen(request, version)

    world.everywhere(CREATE, respond)
    assert world.run(creation("b")).get() == {"b": None}
    lines = world.new_lines()
    assert lines[:2] == ["0 1 CreateTopics v7", "30000 1 disconnected"]
    assert lines[-1] == "30100 1 CreateTopics v7"
    assert world.open_connections().count(1) == 1


def test_retries_limit_the_attempts() -> None:
    world = World({"retries": 1, "default.api.timeout.ms": 600_000})
    result = world.run(creation("a"))
    assert isinstance(result.error, ConnectionFailedError)
    assert sum("CreateTopics" in line for line in world.new_lines()) == 2


def test_a_call_without_a_response_ends_with_a_timeout_error_for_each_element(world: World) -> None:
    world.everywhere(CREATE, lambda request, version: None)
    errors = world.run(creation(*NAMES)).get()
    assert world.now_ms == 60_000
    for error in errors.values():
        assert isinstance(error, KafkaTimeoutError)
        assert error.sent
        assert "CreateTopics got no response" in str(error)


def test_a_call_that_finds_no_controller_raises_a_timeout(world: World) -> None:
    """KIP-117: a TimeoutException if the client does not learn which node is the controller."""
    world.controller = -1
    result = world.run(creation("a"), timeout_ms=500)
    assert isinstance(result.error, KafkaTimeoutError)
    assert (result.error.sent, world.now_ms) == (False, 500)
    assert "no active controller" in str(result.error)


def test_a_call_waits_for_the_next_controller(world: World) -> None:
    world.controller = -1
    number = world.start(creation("a"))
    while number not in world.outcomes:
        if world.now_ms >= 1_000:
            world.controller = 3
        world.advance_to(world.core.wakeup_ms() or 0)
    assert world.outcomes[number].get() == {"a": None}
    assert 1_000 <= world.now_ms <= 1_200


def test_nothing_is_sent_on_a_connection_during_its_throttle_time(world: World) -> None:
    """KIP-219."""
    world.everywhere(CREATE, responding(throttle_ms=700))
    world.run(creation("a")).get()
    world.new_lines()
    world.run(creation("b")).get()
    assert world.new_lines() == ["700 1 CreateTopics v7"]


def test_elements_over_the_quota_are_resent_after_the_throttle_time(world: World) -> None:
    """KIP-599. Elements with a result are not sent again."""
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    responses = iter([responding(lambda name: over * (name == "b"), 900), responding()])
    world.everywhere(CREATE, lambda request, version: next(responses)(request, version))
    assert world.run(creation(*NAMES)).get() == {"a": None, "b": None}
    assert world.now_ms == 900


def test_without_retries_an_element_over_the_quota_fails_at_once(world: World) -> None:
    """Kafka's tools do not retry (KIP-599)."""
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.everywhere(CREATE, responding(lambda _: over, 900))
    new = NewTopicWithReplication("a", 1, 1)
    error = world.run(topics.create_topics([new], retry_on_quota_violation=False)).get()["a"]
    assert isinstance(error, KafkaError)
    assert (error.code, world.now_ms) == (over, 0)


def test_an_element_without_a_response_keeps_the_results_of_the_others() -> None:
    """The second request, for the element that must be sent again, gets no response.

    The element keeps its error.
    """
    world = World({"retries": 0})
    responses = iter([responding(lambda name: 89 * (name == "b")), lambda *_: None])
    world.everywhere(CREATE, lambda request, version: next(responses)(request, version))
    errors = world.run(creation(*NAMES)).get()
    assert errors["a"] is None
    assert isinstance(errors["b"], KafkaError)
    assert errors["b"].code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_an_element_fails_if_the_throttle_time_exceeds_the_calls_timeout(world: World) -> None:
    over = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.everywhere(CREATE, responding(lambda _: over, 90_000))
    error = world.run(creation("a")).get()["a"]
    assert isinstance(error, KafkaError)
    assert error.code is over
    assert world.now_ms == 60_000


def test_one_failure_does_not_hide_the_other_results(world: World) -> None:
    world.everywhere(CREATE, responding(lambda name: 44 * (name == "b"), text="names begin with x"))
    errors = world.run(creation(*NAMES)).get()
    assert errors["a"] is None
    assert isinstance(errors["b"], KafkaError)
    assert (errors["b"].code.name, str(errors["b"])) == ("POLICY_VIOLATION", "names begin with x")


def test_create_topic_raises_the_error_of_its_topic(world: World) -> None:
    world.everywhere(CREATE, responding(lambda _: 36))
    result = world.run(topics.create_topic(NewTopicWithReplication("a", 1, 1)))
    assert isinstance(result.error, KafkaError)
    assert result.error.code is ErrorCode.TOPIC_ALREADY_EXISTS
    world.everywhere(CREATE, responding())
    assert world.run(topics.create_topic(NewTopicWithReplication("a", 1, 1))).get() is None


def test_nonblocking_treats_the_brokers_timeout_as_success(world: World) -> None:
    """KIP-4 §Create Topics Request 6: a timeout means that a valid creation has begun."""
    timeouts: list[int] = []

    def respond(request: Any, version: int) -> Any:
        timeouts.append(request.timeout_ms)
        return responding(lambda _: ErrorCode.REQUEST_TIMED_OUT)(request, version)

    world.everywhere(CREATE, respond)
    assert world.run(creation("a", flags=CreateTopicsFlags.NONBLOCKING)).get() == {"a": None}
    blocking = world.run(creation("a")).get()["a"]
    assert isinstance(blocking, KafkaError)
    assert blocking.code is ErrorCode.REQUEST_TIMED_OUT
    # 29,000 ms is 1 s less than request.timeout.ms, so that the response comes in time.
    assert timeouts == [0, 29_000]
    world.everywhere(CREATE, responding(lambda _: ErrorCode.POLICY_VIOLATION))
    rejected = world.run(creation("a", flags=CreateTopicsFlags.NONBLOCKING)).get()["a"]
    assert isinstance(rejected, KafkaError)


def test_versions_are_negotiated_with_each_broker(world: World) -> None:
    """KIP-97: broker 1 is older than broker 2."""
    old: Ranges = {ApiKey.API_VERSIONS: (0, 1), ApiKey.METADATA: (0, 5), CREATE: (0, 2)}
    world.brokers[1].ranges = old
    assert world.run(creation("a")).get() == {"a": None}
    world.controller = 2
    assert world.run(creation("b")).get() == {"b": None}
    sent = [
        line.split(" ", 1)[1] for line in world.new_lines() if "Topics" in line or "Meta" in line
    ]
    assert sent == [
        "1 Metadata v5",
        "1 CreateTopics v2",
        "1 CreateTopics v2",
        "1 Metadata v5",
        "2 CreateTopics v7",
    ]


def test_api_versions_is_resent_in_a_version_that_the_broker_has(world: World) -> None:
    """KIP-511: the rejection has the format of version 0 and names the broker's versions."""

    def rejecting(request: Any, version: int) -> ApiVersionsResponse:
        rejected = ApiVersionsResponse(35, [ApiVersion(ApiKey.API_VERSIONS, 0, 1)])
        return rejected if version == 3 else world.brokers[1].versions(request, version)

    world.brokers[1].handlers[ApiKey.API_VERSIONS] = rejecting
    assert world.run(creation("a")).get() == {"a": None}
    assert world.new_lines()[1:3] == ["0 1 ApiVersions v3", "0 1 ApiVersions v1"]


@pytest.mark.parametrize(
    ("ranges", "flags", "text"),
    [
        ({}, topics.NO_CREATE_FLAGS, "broker-1:9092 has no CreateTopics."),
        (
            {CREATE: (0, 0)},
            CreateTopicsFlags.VALIDATE_ONLY,
            "CreateTopics in the versions 0 to 0; VALIDATE_ONLY needs one of 1 to 7.",
        ),
        ({CREATE: (8, 9)}, topics.NO_CREATE_FLAGS, "in the versions 8 to 9; the client needs one"),
    ],
)
def test_the_error_for_an_unsupported_version_names_api_broker_and_range(
    world: World, ranges: dict[int, tuple[int, int]], flags: CreateTopicsFlags, text: str
) -> None:
    basic: Ranges = {ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (0, 12)}
    world.brokers[1].ranges = {**basic, **ranges}
    error = world.run(creation("a", flags=flags)).error
    assert isinstance(error, UnsupportedVersionError)
    assert text in str(error)


@pytest.mark.parametrize(
    "plan",
    [
        lambda: acls.describe_acls(),
        lambda: acls.create_acls([ACL]),
        lambda: acls.delete_acls([acls.EVERY_ACL]),
        lambda: cluster.update_features({"metadata.version": cluster.FeatureUpdate(1)}),
    ],
    ids=["DescribeAcls", "CreateAcls", "DeleteAcls", "UpdateFeatures"],
)
def test_a_missing_api_is_not_explained_with_an_option_that_the_call_does_not_use(
    world: World, plan: Callable[[], Any]
) -> None:
    basic: Ranges = {ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (0, 12)}
    for broker in world.brokers.values():
        broker.ranges = basic
    error = world.run(plan()).error
    assert isinstance(error, UnsupportedVersionError)
    assert "has no" in str(error)
    assert "needs" not in str(error)


def test_a_broker_that_does_not_negotiate_fails_the_call_at_once(world: World) -> None:
    world.everywhere(ApiKey.API_VERSIONS, lambda request, version: ApiVersionsResponse(35))
    error = world.run(creation("a")).error
    assert isinstance(error, UnsupportedVersionError)
    assert world.now_ms == 0


def test_a_dry_run_of_a_deletion_needs_a_drafted_listener(world: World) -> None:
    plan = topics.delete_topics(["a"], DeleteTopicsFlags.VALIDATE_ONLY)
    error = world.run(plan).error
    assert isinstance(error, UnsupportedVersionError)
    assert "DeleteTopics of the dialect drafted, which VALIDATE_ONLY needs" in str(error)


def test_a_pinned_call_is_sent_to_no_other_broker(world: World) -> None:
    """After NOT_CONTROLLER it is resent to the same broker until the call's timeout."""
    errors = world.run(creation("a"), broker=2).get()
    assert isinstance(errors["a"], KafkaTimeoutError | KafkaError)
    assert {line.split()[1] for line in world.new_lines() if "CreateTopics" in line} == {"2"}
    versions = world.run(cluster.get_all_broker_versions(), broker=2).get()
    assert {node.id: version.is_success for node, version in versions.items()} == {
        1: False,
        2: True,
        3: False,
    }
    (error,) = {type(version.error) for version in versions.values() if version.is_failure}
    assert error is InvalidCallError


def test_a_broker_that_is_not_in_the_metadata_is_an_error_at_once(world: World) -> None:
    error = world.run(cluster.describe_cluster(), broker=9).error
    assert isinstance(error, ConnectionFailedError)
    assert "Broker 9 is not in the cluster's metadata" in str(error)
    assert world.now_ms == 0


def fail_over(world: World, *, at_ms: float) -> Callable[[], int]:
    """Broker 2 is dead. From `at_ms` on, metadata lacks broker 2, and broker 3 succeeds it.

    The returned function returns the current leader, which is also the coordinator.
    """
    world.brokers[2].is_up = False

    def leader() -> int:
        successor = world.now_ms >= at_ms
        world.members = (1, 3) if successor else (1, 2, 3)
        return 3 if successor else 2

    def described(request: Any, version: int) -> Any:
        partition = MetadataResponsePartition(0, 0, leader(), -1, [2, 3], [3])
        named = MetadataResponseTopic(0, "t", partitions=[partition])
        response = world.metadata()
        response.topics = [named] if request.topics else []
        return response

    world.everywhere(ApiKey.METADATA, described)
    return leader


def test_offsets_are_listed_at_the_successor_of_a_dead_leader(world: World) -> None:
    fail_over(world, at_ms=6_000)
    partitions = [ListOffsetsPartitionResponse(0, offset=7)]
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", partitions)])
    world.brokers[3].handlers[ApiKey.LIST_OFFSETS] = lambda request, version: response
    partition = TopicPartition("t", 0)
    result = world.run(records.list_offsets({partition: records.LATEST}))
    assert result.get()[partition].get().offset == 7
    assert 6_000 <= world.now_ms < 10_000


def test_a_request_for_a_group_goes_to_the_successor_of_a_dead_coordinator(world: World) -> None:
    leader = fail_over(world, at_ms=6_000)

    def coordinator(request: Any, version: int) -> FindCoordinatorResponse:
        node = leader()
        row = Coordinator("g", node, f"broker-{node}", 9092)
        return FindCoordinatorResponse(coordinators=[row])

    world.everywhere(ApiKey.FIND_COORDINATOR, coordinator)
    offsets = OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g")])
    world.brokers[3].handlers[ApiKey.OFFSET_FETCH] = lambda request, version: offsets
    assert world.run(groups.list_group_offsets("g")).get() == {}
    assert 6_000 <= world.now_ms < 10_000


def test_an_error_of_the_successor_of_a_dead_coordinator_is_marked_as_resent(world: World) -> None:
    """The dead coordinator may have deleted the group."""
    leader = fail_over(world, at_ms=6_000)

    def coordinator(request: Any, version: int) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=[Coordinator("g", leader(), "b", 9092)])

    def delete(request: Any, version: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(0, [DeletableGroupResult("g", 69)])

    world.brokers[2].is_up = True  # It gets the request and does not answer.
    world.everywhere(ApiKey.FIND_COORDINATOR, coordinator)
    world.brokers[3].handlers[ApiKey.DELETE_GROUPS] = delete
    error = world.run(groups.delete_groups(["g"])).get()["g"]
    assert isinstance(error, KafkaError)
    assert (error.code, error.resent) == (ErrorCode.GROUP_ID_NOT_FOUND, True)


def test_without_retries_a_coordinator_that_does_not_respond_fails_the_call() -> None:
    world = World({"retries": 0})
    response = FindCoordinatorResponse(coordinators=[Coordinator("g", 2, "broker-2", 9092)])
    world.everywhere(ApiKey.FIND_COORDINATOR, lambda request, version: response)
    error = world.run(groups.list_group_offsets("g")).error
    assert isinstance(error, ConnectionFailedError)
    assert world.now_ms < 40_000


def test_a_dead_broker_does_not_hide_the_groups_of_the_others(world: World) -> None:
    """KIP-117: the call returns a result for each broker, even if some do not respond."""
    world.everywhere(
        ApiKey.LIST_GROUPS, lambda request, version: ListGroupsResponse(0, 0, [ListedGroup("g")])
    )
    world.brokers[3].is_up = False
    results = world.run(groups.get_all_groups()).get()
    is_listed = {node.id: result.is_success for node, result in results.items()}
    assert is_listed == {1: True, 2: True, 3: False}
    (failed,) = [result.error for result in results.values() if result.is_failure]
    assert "broker-3:9092 cannot be reached" in str(failed)


def test_the_bootstrap_servers_are_used_when_no_known_broker_can_be_reached(world: World) -> None:
    world.run(creation("a")).get()
    world.members = (2, 3)
    world.controller = 2
    world.brokers[1].is_up = False
    world.cut(1)
    assert world.run(creation("b")).get() == {"b": None}


def test_metadata_is_fetched_again_when_it_is_too_old(world: World) -> None:
    world.run(creation("a")).get()
    world.new_lines()
    world.advance_to(299_000)
    world.run(creation("b")).get()
    assert not any("Metadata" in line for line in world.new_lines())
    world.advance_to(300_001)
    world.run(creation("c")).get()
    assert any("Metadata" in line for line in world.new_lines())


def test_idle_connections_are_closed(world: World) -> None:
    world.run(creation("a")).get()
    wakeup_ms = world.core.wakeup_ms()
    assert wakeup_ms == 300_000
    world.advance_to(wakeup_ms)
    assert world.open_connections() == []
    assert world.core.wakeup_ms() is None


def test_close_ends_calls_and_connections(world: World) -> None:
    world.everywhere(CREATE, lambda request, version: None)
    number = world.start(creation("a"))
    world.core.close()
    world.settle()
    assert isinstance(world.outcomes[number].error, ClientClosedError)
    assert world.open_connections() == []
    assert isinstance(world.run(creation("b")).error, ClientClosedError)


def test_a_cancelled_call_sends_nothing_more(world: World) -> None:
    world.controller = -1
    number = world.start(creation("a"))
    world.core.cancel(number)
    world.controller = 1
    world.advance_to(60_000)
    assert not any("CreateTopics" in line for line in world.new_lines())
    assert number not in world.outcomes


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x04\x00\x00\x00\x63", b"\xff\xff\xff\xff"])
def test_a_broker_that_sends_garbage_is_disconnected(world: World, data: bytes) -> None:
    """The garbage is an unknown correlation id or a negative length."""
    world.run(creation("a")).get()
    world.brokers[1].handlers[CREATE] = lambda request, version: None
    number = world.start(creation("b"))
    world.core.received(2 if 1 not in world.core._links._links else 1, data, world.now_ms)
    world.settle()
    world.brokers[1].handlers[CREATE] = responding()
    while number not in world.outcomes:
        world.advance_to(world.core.wakeup_ms() or 0)
    assert world.outcomes[number].get() == {"b": None}


def test_many_calls_share_a_connection_and_all_end(world: World) -> None:
    numbers = [world.start(creation(f"t{number}")) for number in range(200)]
    assert all(world.outcomes[number].is_success for number in numbers)
    assert world.open_connections() == [1]


def test_a_duplicate_name_is_rejected(world: World) -> None:
    error = world.run(creation("a", "a")).error
    assert isinstance(error, InvalidCallError | AdminError)
    assert "twice" in str(error)


def recorded(world: World, key: ApiKey, response: Any) -> list[Any]:
    """Make every broker answer an API; return the list to which its requests are added."""
    requests: list[Any] = []

    def handler(request: Any, version: int) -> Any:
        requests.append(request)
        return response(request, version)

    world.everywhere(key, handler)
    return requests


def test_validate_only_is_in_the_request(world: World) -> None:
    requests = recorded(world, CREATE, responding())
    world.run(creation("a", flags=CreateTopicsFlags.VALIDATE_ONLY)).get()
    world.run(creation("a")).get()
    assert [request.validate_only for request in requests] == [True, False]
    assert [[topic.name for topic in request.topics] for request in requests] == [["a"], ["a"]]
    assert [request.timeout_ms for request in requests] == [29_000, 29_000]


def test_a_new_topic_is_sent_with_counts_or_assignments(world: World) -> None:
    requests = recorded(world, CREATE, responding())
    counted = NewTopicWithReplication("a", 3, 2, {"retention.ms": "5"})
    assigned = topics.NewTopicWithReplicaAssignments("b", {0: [2, 1], 1: [3, 1]})
    world.run(topics.create_topics([counted, assigned])).get()
    first, second = requests[0].topics
    assert (first.num_partitions, first.replication_factor, first.assignments) == (3, 2, [])
    assert [(config.name, config.value) for config in first.configs] == [("retention.ms", "5")]
    assert (second.num_partitions, second.replication_factor) == (-1, -1)
    broker_ids = {
        assignment.partition_index: assignment.broker_ids for assignment in second.assignments
    }
    assert broker_ids == {0: [2, 1], 1: [3, 1]}


def test_topics_are_deleted_with_and_without_waiting(world: World) -> None:
    """KIP-4 §Delete Topics Request 7: with timeout 0, REQUEST_TIMED_OUT means deletion began."""

    def respond(request: Any, version: int) -> DeleteTopicsResponse:
        names = [topic.name for topic in request.topics]
        return DeleteTopicsResponse(0, [DeletableTopicResult(name, error_code=7) for name in names])

    requests = recorded(world, ApiKey.DELETE_TOPICS, respond)
    begun = world.run(topics.delete_topics(["a"], DeleteTopicsFlags.NONBLOCKING)).get()
    assert begun == {"a": None}
    waited = world.run(topics.delete_topics(["a"])).get()["a"]
    assert isinstance(waited, KafkaError)
    assert waited.code is ErrorCode.REQUEST_TIMED_OUT
    assert [request.timeout_ms for request in requests] == [0, 29_000]
    alone = world.run(topics.delete_topic("a"))
    assert alone.is_failure


def test_a_try_is_a_value_or_an_error() -> None:
    value: Try[int] = Try.new_value(3)
    assert (value.get(), value.is_success, value.is_failure) == (3, True, False)
    error = KafkaError(ErrorCode.INVALID_CONFIG)
    failed: Try[int] = Try.new_error(error)
    assert (failed.is_success, failed.is_failure, failed.error) == (False, True, error)
    with pytest.raises(KafkaError) as raised:
        failed.get()
    assert raised.value is error


def described(world: World) -> None:
    """Answer Metadata with an external topic, an internal topic and a forbidden topic."""
    partition = MetadataResponsePartition(0, 0, 2, -1, [2, 9], [2])

    def respond(request: Any, version: int) -> Any:
        message = world.metadata()
        message.topics = [
            MetadataResponseTopic(0, "orders", bytes(15) + b"\1", False, [partition]),
            MetadataResponseTopic(0, "__consumer_offsets", bytes(16), True, []),
            MetadataResponseTopic(29, "secret"),
        ]
        return message

    world.everywhere(ApiKey.METADATA, respond)


def test_internal_topics_are_listed_with_their_flag(world: World) -> None:
    described(world)
    external = world.run(topics.list_topics(topics.ListTopicsFlags(0))).get()
    assert set(external) == {"orders", "secret"}
    assert external.keys() == world.run(topics.list_topics()).get().keys()
    flag = topics.ListTopicsFlags.INCLUDE_INTERNAL
    everything = world.run(topics.list_topics(flag)).get()
    assert set(everything) == {"orders", "secret", "__consumer_offsets"}
    assert not everything["orders"].get().internal
    assert everything["__consumer_offsets"].get().internal
    partition = everything["orders"].get().partitions[0].get()
    assert partition.leader is not None
    assert (partition.leader.host, [replica.id for replica in partition.replicas]) == (
        "broker-2",
        [2, 9],
    )
    assert partition.replicas[1].host == ""  # broker 9 is not in the metadata
    assert everything["orders"].get().topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_topic_that_may_not_be_described_does_not_hide_the_others(world: World) -> None:
    described(world)
    results = world.run(topics.describe_topics(["orders", "secret", "missing"])).get()
    assert results["orders"].is_success
    codes = [
        result.error.code for result in results.values() if isinstance(result.error, KafkaError)
    ]
    assert codes == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_an_error_of_a_listed_topic_does_not_hide_the_others(world: World) -> None:
    """KIP-117 listTopics: the error of a topic is in its Try, with and without internal topics."""
    described(world)
    for flags in (topics.ListTopicsFlags(0), topics.ListTopicsFlags.INCLUDE_INTERNAL):
        results = world.run(topics.list_topics(flags)).get()
        assert results["orders"].is_success
        error = results["secret"].error
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_partition_with_an_error_does_not_hide_the_others(world: World) -> None:
    """KIP-117 TopicInfo: Map<Integer, Try<TopicPartitionInfo>>. One replica is offline."""
    rows = [
        MetadataResponsePartition(9, 1, 2, -1, [2, 3], [2]),
        MetadataResponsePartition(0, 0, 3, -1, [3, 1], [3], [1]),
    ]
    world.everywhere(
        ApiKey.METADATA,
        lambda *_: dataclasses.replace(
            world.metadata(), topics=[MetadataResponseTopic(name="a", partitions=rows)]
        ),
    )
    partitions = world.run(topics.describe_topics(["a"])).get()["a"].get().partitions
    assert list(partitions) == [0, 1]
    error = partitions[1].error
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.REPLICA_NOT_AVAILABLE
    info = partitions[0].get()
    assert info.leader is not None
    assert (info.partition, info.leader.id) == (0, 3)
    nodes = [[node.id for node in group] for group in (info.replicas, info.isr, info.offline)]
    assert nodes == [[3, 1], [3], [1]]


@pytest.mark.parametrize("code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND])
def test_a_partition_without_a_leader_is_described(world: World, code: ErrorCode) -> None:
    partition = MetadataResponsePartition(code, 0, -1, replica_nodes=[1, 2], isr_nodes=[1])
    topic = MetadataResponseTopic(name="a", partitions=[partition])
    world.everywhere(
        ApiKey.METADATA, lambda *_: dataclasses.replace(world.metadata(), topics=[topic])
    )
    described = world.run(topics.describe_topics(["a"])).get()["a"].get().partitions[0].get()
    assert described.leader is None
    assert [node.id for node in described.replicas] == [1, 2]


def test_every_brokers_versions_are_returned(world: World) -> None:
    world.brokers[2].ranges = {ApiKey.API_VERSIONS: (0, 3), CREATE: (2, 99), 9_999: (0, 1)}
    versions = world.run(cluster.get_all_broker_versions()).get()
    by_id = {node.id: result.get().apis for node, result in versions.items()}
    assert CREATE in by_id[1]
    newer = by_id[2][CREATE]
    assert (newer.name, newer.min_version, newer.max_version) == ("CreateTopics", 2, 99)
    assert newer.usable == 7
    assert (by_id[2][9_999].name, by_id[2][9_999].usable) == ("UNKNOWN(9999)", None)


def test_a_group_is_described_by_its_coordinator(world: World) -> None:
    """While the coordinator is not available, the client retries after a pause."""
    responses = iter([15, 0])
    world.everywhere(
        ApiKey.FIND_COORDINATOR,
        lambda *_: FindCoordinatorResponse(
            coordinators=[Coordinator("g", 3, "broker-3", 9092, next(responses))]
        ),
    )
    world.brokers[3].handlers[ApiKey.DESCRIBE_GROUPS] = lambda *_: DescribeGroupsResponse(
        groups=[DescribedGroup(0, "g", "Stable", "consumer")]
    )
    group = world.run(groups.get_group_information("g")).get()
    assert (group.group_id, group.state, group.protocol_type) == ("g", "Stable", "consumer")
    assert [line for line in world.new_lines() if "Group" in line] == ["100 3 DescribeGroups v5"]


def test_a_broker_without_group_apis_gives_an_unsupported_version_error(world: World) -> None:
    world.brokers[1].ranges = {ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (0, 12)}
    error = world.run(groups.get_group_information("g")).error
    assert isinstance(error, UnsupportedVersionError)
    assert "has no FindCoordinator" in str(error)


def test_a_rejected_deletion_returns_the_text_of_the_policy(world: World) -> None:
    """KIP-201: a rejected deletion returns the text with POLICY_VIOLATION."""

    def respond(request: Any, version: int) -> DeleteTopicsResponse:
        result = DeletableTopicResult("a", error_code=44, error_message="a is kept")
        return DeleteTopicsResponse(0, [result])

    world.everywhere(ApiKey.DELETE_TOPICS, respond)
    error = world.run(topics.delete_topics(["a"])).get()["a"]
    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.POLICY_VIOLATION, "a is kept")
    for call in (topics.create_topics, topics.delete_topics, records.delete_records):
        assert "POLICY_VIOLATION" in (call.__doc__ or "")


def test_alter_config_returns_the_configuration_afterwards(world: World) -> None:
    """KIP-4 alterConfig. An error of one entity does not hide the results of the others."""
    stored = {"a": {"x": "1"}}

    def alter(request: Any, version: int) -> IncrementalAlterConfigsResponse:
        results = []
        for resource in request.resources:
            code = 0 if resource.resource_name in stored else 3
            if not code:
                stored[resource.resource_name] |= {it.name: it.value for it in resource.configs}
            results.append(
                AlterConfigsResourceResponse(
                    code, None, resource.resource_type, resource.resource_name
                )
            )
        return IncrementalAlterConfigsResponse(0, results)

    def describe(request: Any, version: int) -> DescribeConfigsResponse:
        (resource,) = request.resources
        entries = [
            DescribeConfigsResourceResult(*it) for it in stored[resource.resource_name].items()
        ]
        result = DescribeConfigsResult(
            0, None, resource.resource_type, resource.resource_name, entries
        )
        return DescribeConfigsResponse(0, [result])

    world.everywhere(ApiKey.INCREMENTAL_ALTER_CONFIGS, alter)
    world.everywhere(ApiKey.DESCRIBE_CONFIGS, describe)
    plan = configs.alter_config("topic", {"a": {"y": "2"}, "missing": {"y": "2"}})
    after = world.run(plan).get()
    assert {key: entry.value for key, entry in after["a"].get().items()} == {"x": "1", "y": "2"}
    assert isinstance(after["missing"].error, KafkaError)


def test_configs_of_a_broker_are_described_by_that_broker(world: World) -> None:
    for scripted in world.brokers.values():
        scripted.handlers[ApiKey.DESCRIBE_CONFIGS] = lambda request, _: DescribeConfigsResponse(
            0, [DescribeConfigsResult(0, None, 4, request.resources[0].resource_name)]
        )
    broker = configs.ConfigResourceType.BROKER
    wanted = [configs.ConfigResource(broker, name) for name in ("2", "3", "")]
    assert list(world.run(configs.describe_configs(wanted)).get()) == wanted
    asked = sorted(line.split()[1] for line in world.new_lines() if "DescribeConfigs" in line)
    assert asked == ["1", "2", "3"]


def test_records_are_deleted_at_the_leader_even_if_leadership_has_moved(world: World) -> None:
    leaders = iter([2, 3])

    def metadata(request: Any, version: int) -> Any:
        message = world.metadata()
        if request.topics:
            partition = MetadataResponsePartition(0, 0, next(leaders), -1, [2, 3], [2, 3])
            message.topics = [MetadataResponseTopic(0, "a", partitions=[partition])]
        return message

    def deleted(code: int) -> DeleteRecordsResponse:
        result = DeleteRecordsPartitionResult(0, 5, code)
        return DeleteRecordsResponse(0, [DeleteRecordsTopicResult("a", [result])])

    world.everywhere(ApiKey.METADATA, metadata)
    world.brokers[2].handlers[ApiKey.DELETE_RECORDS] = lambda *_: deleted(6)
    world.brokers[3].handlers[ApiKey.DELETE_RECORDS] = lambda *_: deleted(0)
    partition = TopicPartition("a", 0)
    assert world.run(records.delete_records({partition: 5})).get()[partition].get() == 5
    asked = [line.split()[1] for line in world.new_lines() if "DeleteRecords" in line]
    assert asked == ["2", "3"]


def test_arguments_of_a_wrong_type_end_the_call_with_an_error(world: World) -> None:
    wrong: Any = ["orders"]
    error = world.run(topics.create_topics(wrong)).error
    assert isinstance(error, InvalidCallError)
    assert "'str' object has no attribute 'name'" in str(error)


def test_configs_of_a_wrong_type_end_the_call_with_an_error(world: World) -> None:
    """The configs are read when the request is built, after the controller has been found."""
    text: Any = "retention.ms"
    wrong = NewTopicWithReplication("orders", 1, 1, configs=text)
    error = world.run(topics.create_topics([wrong])).error
    assert isinstance(error, InvalidCallError)
