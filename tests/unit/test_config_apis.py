"""What the recordings do not show of the config APIs: rights, policies, dry runs, quirks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages import alter_configs as legacy
from bridgehead.kafka_wire.messages import describe_configs as describe
from bridgehead.kafka_wire.messages import incremental_alter_configs as incremental
from broker_proxy.apis.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest, NeverAnsweredError
from broker_proxy.apis.describe_configs import DescribeConfigs
from broker_proxy.logger_levels import LoggerLevels
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.broker_configs.table import BROKER_CONFIGS
from cluster_model.config_operations import Operation, OperationType, apply_operations
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.quirks import ALTER_CONFIGS_DUPLICATE_HANGS
from cluster_model.records import ConfigRecord, ConfigResource, TopicRecord
from cluster_model.topic_configs import TOPIC_CONFIGS
from controller.apis.alter_configs import AlterConfigs
from controller.apis.base import DONE, Outcome, RequestContext
from controller.apis.config_changes import ConfigChanges
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from tests.unit.authorizing import saying_to_everybody
from tests.unit.request_contexts import a_context

STATIC = BrokerConfig.from_properties({"broker.id": "1"})
IMAGE = MetadataImage().replay(
    [TopicRecord(name, name.encode(), ((1,),), {"retention.ms": "5"}) for name in ("a", "b")]
)
SET, DELETE, APPEND, SUBTRACT = OperationType


def request_to_set(*topics: str, validate_only: bool = False, name: str = "flush.ms") -> Any:
    resources = [
        incremental.AlterConfigsResource(2, topic, [incremental.AlterableConfig(name, SET, "7")])
        for topic in topics
    ]
    return incremental.IncrementalAlterConfigsRequest(resources, validate_only)


def context(denied: frozenset[str] = frozenset()) -> RequestContext:
    def authorize(operation: str, resource_type: str, name: str) -> bool:
        assert operation == "ALTER_CONFIGS"
        return f"{resource_type}:{name}" not in denied

    return a_context(44, 1, authorize)


def decide(request: Any, settled: Mapping[str, Outcome] | None = None, **more: Any) -> Any:
    api = IncrementalAlterConfigs(ConfigChanges(STATIC))
    return api.decide(more.get("context", context()), request, IMAGE, settled or {}).elements


def test_an_incremental_change_keeps_what_it_does_not_name() -> None:
    """One record holds the whole new set, because the znode is written whole."""
    (decided,) = decide(request_to_set("a"))
    assert (decided.element, decided.outcome) == ("2:a", DONE)
    assert decided.records == (
        ConfigRecord(ConfigResource("topics", "a"), {"retention.ms": "5", "flush.ms": "7"}),
    )


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("..", 'Invalid path string "/config/topics/.." caused by relative paths not allowed @16'),
        ("a𝄞", 'Invalid path string "/config/topics/a𝄞" caused by invalid character @16'),
        ("a/", "Path must not end with / character"),
    ],
)
def test_an_incremental_change_of_what_zookeeper_cannot_name_is_refused_in_its_words(
    name: str, fault: str
) -> None:
    """Kafka asks for the stored set before it looks whether the topic is there."""
    (decided,) = decide(request_to_set(name))
    resource = f"ConfigResource(type=TOPIC, name='{name}')"
    text = f"Invalid config value for resource {resource}: {fault}"
    assert decided.outcome == Outcome(ErrorCode.INVALID_CONFIG, text)
    request = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, name, [])], False)
    api = AlterConfigs(ConfigChanges(STATIC))
    (other,) = api.decide(context(), request, IMAGE, {}).elements
    assert other.outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_replacement_forgets_what_it_does_not_name() -> None:
    """AlterConfigs is the whole set."""
    configs = [legacy.AlterableConfig("flush.ms", "7")]
    request = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, "a", configs)], False)
    api = AlterConfigs(ConfigChanges(STATIC))
    (decided,) = api.decide(context(), request, IMAGE, {}).elements
    assert decided.records == (ConfigRecord(ConfigResource("topics", "a"), {"flush.ms": "7"}),)


def test_a_dry_run_decides_the_same_and_writes_nothing() -> None:
    """validate_only has the outcomes without the records."""
    good, bad = decide(request_to_set("a", "missing", validate_only=True))
    assert (good.outcome, good.records) == (DONE, ())
    assert bad.outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settled_elements_are_not_decided_again() -> None:
    """A resent request executes only what has no outcome yet."""
    assert [each.element for each in decide(request_to_set("a", "b"), {"2:a": DONE})] == ["2:b"]


def test_one_refusal_never_stops_the_others() -> None:
    """Rights are asked per resource, and the denial has no text."""
    denied = context(frozenset({"TOPIC:a"}))
    first, second = decide(request_to_set("a", "b"), context=denied)
    assert first.outcome == Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert (first.records, second.outcome) == ((), DONE)


def test_a_broker_change_needs_the_right_on_the_cluster() -> None:
    """It is stored below its id, or below <default>."""
    configs = [incremental.AlterableConfig("log.cleaner.threads", SET, "2")]
    request = incremental.IncrementalAlterConfigsRequest(
        [
            incremental.AlterConfigsResource(4, "02", configs),
            incremental.AlterConfigsResource(4, "", configs),
        ],
        False,
    )
    denied = decide(request, context=context(frozenset({"CLUSTER:kafka-cluster"})))
    assert {each.outcome.error for each in denied} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    names = [each.records[0].resource.entity_name for each in decide(request)]
    assert names == ["2", "<default>"]


@pytest.mark.parametrize("secret", [None, "s"])
def test_a_password_is_never_stored_in_clear(secret: str | None) -> None:
    """Without a secret Kafka's text; with one we say that it is not there yet."""
    said = {"broker.id": "1"} | ({"password.encoder.secret": secret} if secret else {})
    name = "listener.name.plaintext.ssl.keystore.password"
    configs = [incremental.AlterableConfig(name, SET, "hush")]
    request = incremental.IncrementalAlterConfigsRequest(
        [incremental.AlterConfigsResource(4, "1", configs)], False
    )
    api = IncrementalAlterConfigs(ConfigChanges(BrokerConfig.from_properties(said)))
    (decided,) = api.decide(context(), request, IMAGE, {}).elements
    assert decided.records == ()
    assert decided.outcome.error is ErrorCode.INVALID_CONFIG
    assert decided.outcome.message is not None
    prefix = "Invalid config value for resource ConfigResource(type=BROKER, name='1'): "
    reason = "Password encoder secret not configured" if secret is None else "cannot be changed"
    assert decided.outcome.message.startswith(prefix)
    assert reason in decided.outcome.message


def test_a_policy_is_asked_after_validation_and_also_in_a_dry_run() -> None:
    """With the whole new state for the one kind of policy, the request's entries for the other."""
    (decided,) = decide(request_to_set("a", validate_only=True))
    question = decided.question()
    assert (question.topic, question.asked) == ("a", {"flush.ms": "7"})
    assert question.requested_state.configs == {"retention.ms": "5", "flush.ms": "7"}
    (refused,) = decide(request_to_set("a", name="no.such"))
    assert refused.question is None


def test_a_whole_refusal_names_every_resource() -> None:
    """Code and message are the same for all."""
    api = IncrementalAlterConfigs(ConfigChanges(STATIC))
    answer = api.refuse(request_to_set("a", "b"), 1, ErrorCode.NOT_CONTROLLER, "moved")
    assert [(row.resource_name, row.error_code, row.error_message) for row in answer.responses] == [
        ("a", ErrorCode.NOT_CONTROLLER, "moved"),
        ("b", ErrorCode.NOT_CONTROLLER, "moved"),
    ]


# What a live Kafka's znode held after each operation on leader.replication.throttled.replicas.
LIST_STEPS = [
    (None, APPEND, " 0:1 , 0:2", " 0:1 , 0:2"),
    (" 0:1 , 0:2", SUBTRACT, "0:1", " 0:1 , 0:2"),
    (" 0:1 , 0:2", SUBTRACT, " 0:2, 0:1 ", ""),
    ("", APPEND, "0:1,0:1,0:2", "0:1,0:1,0:2"),
    ("0:1,0:1,0:2", APPEND, "0:1,,0:3,", "0:1,0:1,0:2,,0:3"),
    ("0:1,0:1,0:2,,0:3", SUBTRACT, ",0:1", "0:1,0:2,0:3"),
    ("0:1,0:2,0:3", SUBTRACT, "", "0:1,0:2,0:3"),
    ("0:1,0:2,0:1", SUBTRACT, "0:1", "0:2,0:1"),
    ("0:2,0:1", APPEND, "", "0:2,0:1,"),
]


@pytest.mark.parametrize(("stored", "operation", "value", "after"), LIST_STEPS)
def test_lists_change_as_a_live_kafkas_znode_did(
    stored: str | None, operation: int, value: str, after: str
) -> None:
    """Items are not trimmed, and a repetition stays where it was."""
    name = "leader.replication.throttled.replicas"
    before = {} if stored is None else {name: stored}
    change = [Operation(name, operation, value)]
    assert apply_operations(before, change, TOPIC_CONFIGS.get) == {name: after}


def test_an_append_begins_at_the_default() -> None:
    """Where nothing is stored, the table's default is the base; not the file's value."""
    change = [Operation("log.cleanup.policy", APPEND, "compact")]
    after = apply_operations({}, change, BROKER_CONFIGS.get)
    assert after == {"log.cleanup.policy": "delete,compact"}


class Stored:
    """Nothing is stored, and topic `a` exists."""

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return {}

    def has_topic(self, name: str) -> bool:
        return name == "a"


def checks(properties: Mapping[str, str], allowed: bool = True) -> ConfigChecks:
    current = EffectiveBrokerConfig.of(BrokerConfig.from_properties(properties))
    loggers = LoggerLevels(new_root())
    return ConfigChecks(lambda: current, Stored(), loggers, saying_to_everybody(allowed))


def new_root() -> logging.Logger:
    """Return a root logger of its own, so that no test changes another's levels."""
    root = logging.RootLogger(logging.INFO)
    root.manager = logging.Manager(root)
    return root


def client_request(version: int = 1) -> ClientRequest:
    connection = ClientConnectionInfo(
        "c", "PLAINTEXT", "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
    )
    return ClientRequest("r", RequestHeader(44, version, 1, "t"), b"", b"", connection, 0)


async def test_what_the_controller_left_out_is_an_error_of_ours() -> None:
    """Answers are joined in the order of the request."""
    split = IncrementalAlterConfigsSplit(checks({"broker.id": "1"}))
    message = request_to_set("a", "b")
    message.resources.insert(1, incremental.AlterConfigsResource(99, "x", []))
    local, left = await split.split(client_request(), message)
    assert left is not None
    assert [resource.resource_name for resource in left.resources] == ["a", "b"]
    row = incremental.AlterConfigsResourceResponse(0, None, 2, "b")
    told = split.merge(
        client_request(), message, local, incremental.IncrementalAlterConfigsResponse(3, [row])
    )
    assert told.throttle_time_ms == 3
    assert [(each.resource_name, each.error_code) for each in told.responses] == [
        ("a", -1),
        ("x", 42),
        ("b", 0),
    ]


async def test_a_logger_changes_at_once_and_is_described() -> None:
    """BROKER_LOGGER resources never reach the controller; a dry run changes nothing."""
    loggers = checks({"broker.id": "1"})
    split = IncrementalAlterConfigsSplit(loggers)
    configs = [incremental.AlterableConfig("kafka.server.KafkaApis", SET, "TRACE")]
    resource = incremental.AlterConfigsResource(8, "1", configs)
    for validate_only, level in ((True, "INFO"), (False, "TRACE")):
        message = incremental.IncrementalAlterConfigsRequest([resource], validate_only)
        local, left = await split.split(client_request(), message)
        assert left is None
        told = split.merge(client_request(), message, local, None)
        assert [row.error_code for row in told.responses] == [0]
        assert loggers.loggers.levels()["kafka.server.KafkaApis"] == level
    loggers.loggers.unset("kafka.server.KafkaApis")
    assert loggers.loggers.levels()["kafka.server.KafkaApis"] == "INFO"


async def test_a_logger_needs_the_right_on_the_cluster() -> None:
    """The right is asked before anything else is said about loggers."""
    split = IncrementalAlterConfigsSplit(checks({"broker.id": "1"}, allowed=False))
    resource = incremental.AlterConfigsResource(8, "1", [])
    message = incremental.IncrementalAlterConfigsRequest([resource], False)
    local, _ = await split.split(client_request(), message)
    told = split.merge(client_request(), message, local, None)
    assert told.responses[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_the_quirk_brings_the_unanswered_alter_configs_back() -> None:
    """Only AlterConfigs that names a resource twice, and only when asked for."""
    twice = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, "a", [])] * 2, False)
    once = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, "a", [])], False)
    odd = AlterConfigsSplit(checks({"broker.id": "1"}), frozenset({ALTER_CONFIGS_DUPLICATE_HANGS}))
    await odd.split(client_request(), once)
    with pytest.raises(NeverAnsweredError):
        await odd.split(client_request(), twice)
    local, left = await AlterConfigsSplit(checks({"broker.id": "1"})).split(client_request(), twice)
    assert left is None
    assert {answer.error for answer in local if answer} == {ErrorCode.INVALID_REQUEST}


async def test_a_denied_description_says_the_codes_own_text() -> None:
    """TOPIC and CLUSTER rights differ; one denial leaves the others alone."""
    ports = checks({"broker.id": "1"})

    def only_topics(operation: str, resource_type: str, name: str) -> bool:
        assert operation == "DESCRIBE_CONFIGS"
        return resource_type == "TOPIC"

    who = saying_to_everybody(only_topics)
    api = DescribeConfigs(ports.current, Stored(), Stored(), ports.loggers, who)
    message = describe.DescribeConfigsRequest(
        [
            describe.DescribeConfigsResource(4, "1", None),
            describe.DescribeConfigsResource(2, "a", ["flush.ms"]),
        ],
        False,
        False,
    )
    answer = await api.answer(client_request(), message)
    denied, shown = answer.results
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (denied.error_code, denied.error_message) == (error, error.default_text)
    assert [config.name for config in shown.configs] == ["flush.ms"]
