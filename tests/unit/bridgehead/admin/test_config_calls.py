"""Calls that change and describe configs: which broker gets them, and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.admin.calls import configs
from bridgehead.admin.errors import KafkaError
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.unit.bridgehead.admin.world import World

MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def altered(request: Any, version: int) -> IncrementalAlterConfigsResponse:
    """Respond that every resource but those named `missing` was changed."""
    return IncrementalAlterConfigsResponse(
        0,
        [
            AlterConfigsResourceResponse(
                int(MISSING) * resource.resource_name.startswith("missing"),
                resource.resource_name,
                resource.resource_type,
                resource.resource_name,
            )
            for resource in request.resources
        ],
    )


def describe(request: Any, version: int) -> DescribeConfigsResponse:
    """Respond with no configs, or an error for a resource named `missing` or `hidden`."""
    return DescribeConfigsResponse(
        0,
        [
            DescribeConfigsResult(
                int(MISSING) * resource.resource_name.startswith(("missing", "hidden")),
                resource.resource_name,
                resource.resource_type,
                resource.resource_name,
            )
            for resource in request.resources
        ],
    )


def test_if_no_entity_can_be_described_or_altered_the_call_raises() -> None:
    """KIP-4 alterConfig and describeConfig throw an ApiException then."""
    world = World()
    world.everywhere(ApiKey.INCREMENTAL_ALTER_CONFIGS, altered)
    world.everywhere(ApiKey.DESCRIBE_CONFIGS, describe)
    change = {"y": "2"}
    for plan in (
        configs.describe_config("topic", ["missing-1", "missing-2"]),
        configs.alter_config("topic", {"missing-1": change, "missing-2": change}),
    ):
        error = world.run(plan).error
        assert isinstance(error, KafkaError)
        assert (error.code, error.message) == (MISSING, "missing-1")
    some = world.run(configs.describe_config("topic", ["missing-1", "there"])).get()
    assert [(name, result.is_success) for name, result in some.items()] == [
        ("missing-1", False),
        ("there", True),
    ]
    assert world.run(configs.describe_config("topic", [])).get() == {}
    # It was changed, although it cannot be described.
    hidden = world.run(configs.alter_config("topic", {"hidden": change})).get()
    assert isinstance(hidden["hidden"].error, KafkaError)


BROKER, LOGGER = configs.ConfigResourceType.BROKER, configs.ConfigResourceType.BROKER_LOGGER
CHANGES: dict[configs.ConfigResource, Any] = {
    configs.ConfigResource(configs.ConfigResourceType.TOPIC, "orders"): [],
    configs.ConfigResource(BROKER, "2"): [],
    configs.ConfigResource(BROKER, ""): [],
    configs.ConfigResource(LOGGER, "2"): [],
}


@pytest.mark.parametrize(
    ("dialect", "sent"),
    [("shipped", ["2 v1", "2 v1", "3 v1"]), ("drafted", ["2 v1", "3 v2", "3 v2"])],
)
def test_on_a_drafted_listener_configs_go_to_the_controller_and_loggers_to_their_broker(
    dialect: str, sent: list[str]
) -> None:
    """KIP-590 §Change AlterConfig Request Routing. Broker 3 is the controller."""
    world = World()
    world.controller = 3
    for broker in world.brokers.values():
        broker.dialect = dialect
        broker.handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = altered
    assert world.run(configs.incremental_alter_configs(CHANGES)).get() == dict.fromkeys(CHANGES)
    lines = [line.split() for line in world.new_lines() if "AlterConfigs" in line]
    assert sorted(f"{to} {version}" for _, to, _, version in lines) == sent


@pytest.mark.parametrize(("dialect", "sent"), [("shipped", "2 v2"), ("drafted", "3 v2")])
def test_alter_configs_of_a_broker_goes_to_the_controller_of_a_drafted_listener(
    dialect: str, sent: str
) -> None:
    world = World()
    world.controller = 3
    for broker in world.brokers.values():
        broker.dialect = dialect
        broker.handlers[ApiKey.ALTER_CONFIGS] = altered
    change = {configs.ConfigResource(BROKER, "2"): {"log.cleaner.threads": "2"}}
    assert world.run(configs.alter_configs(change)).get() == dict.fromkeys(change)
    (line,) = [line.split() for line in world.new_lines() if "AlterConfigs" in line]
    assert f"{line[1]} {line[3]}" == sent


def test_a_change_of_a_brokers_configs_follows_the_controller_on_a_drafted_listener() -> None:
    world = World()

    def moved(request: Any, version: int) -> IncrementalAlterConfigsResponse:
        response = altered(request, version)
        for row in response.responses:
            row.error_code = ErrorCode.NOT_CONTROLLER
        world.controller = 3
        return response

    for broker in world.brokers.values():
        broker.dialect = "drafted"
        broker.handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = altered if broker.id == 3 else moved
    change: dict[configs.ConfigResource, Any] = {configs.ConfigResource(BROKER, "2"): []}
    assert world.run(configs.incremental_alter_configs(change)).get() == dict.fromkeys(change)
    sent = [line.split()[1] for line in world.new_lines() if "AlterConfigs" in line]
    assert sent == ["1", "3"]


def test_a_pinned_client_changes_a_brokers_configs_at_that_broker() -> None:
    """It sends a version that the broker forwards."""
    world = World()
    for broker in world.brokers.values():
        broker.dialect = "drafted"
        broker.handlers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = altered
    change: dict[configs.ConfigResource, Any] = {configs.ConfigResource(BROKER, "2"): []}
    errors = world.run(configs.incremental_alter_configs(change), broker=2).get()
    assert errors == dict.fromkeys(change)
    (line,) = [line for line in world.new_lines() if "AlterConfigs" in line]
    assert line.split()[1:] == ["2", "IncrementalAlterConfigs", "v1"]
