"""AlterConfigs, IncrementalAlterConfigs and DescribeConfigs: cases that no recording covers."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from bridgehead.kafka_wire.config_codes import AlterConfigOpType
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages import alter_configs as legacy
from bridgehead.kafka_wire.messages import describe_configs as describe
from bridgehead.kafka_wire.messages import incremental_alter_configs as incremental
from broker_proxy.apis.admin.alter_configs_split import (
    AlterConfigsSplit,
    ConfigChecks,
    IncrementalAlterConfigsSplit,
)
from broker_proxy.apis.admin.describe_configs import DescribeConfigs
from broker_proxy.apis.admin.logger_levels import LoggerLevels
from broker_proxy.client_request import ClientRequest, NeverRespondedError
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS
from cluster_model.configs.operations import Operation, apply_operations
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from cluster_model.quirks import ALTER_CONFIGS_DUPLICATE_HANGS
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from controller.apis.policy_check import AlterTopicConfigs
from tests.unit.broker_proxy.client_requests import a_request, authorize_every_client
from tests.unit.comparisons import CountedName
from tests.unit.controller.transcripts import check

SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType


def test_incremental_changes_keep_other_configs_and_replacements_do_not() -> None:
    """The record has all configs of its topic, because the znode is written whole."""
    check("""
    > topic a 1 retention.ms=5
    > set 2:a flush.ms=7
    2:a: NONE
      configs topics/a retention.ms=5 flush.ms=7
    > replace 2:a flush.ms=8
    2:a: NONE
      configs topics/a flush.ms=8
    """)


def test_incremental_changes_report_invalid_paths_before_missing_topics() -> None:
    """Kafka first reads the stored configs, and only then looks for the topic."""
    check("""
    > set 2:.. flush.ms=7 / 2:a𝄞 flush.ms=7 / 2:a/ flush.ms=7
    2:..: INVALID_CONFIG "Invalid config value for resource ConfigResource(type=TOPIC, name='..'): Invalid path string "/config/topics/.." caused by relative paths not allowed @16"
    2:a𝄞: INVALID_CONFIG "Invalid config value for resource ConfigResource(type=TOPIC, name='a𝄞'): Invalid path string "/config/topics/a𝄞" caused by invalid character @16"
    2:a/: INVALID_CONFIG "Invalid config value for resource ConfigResource(type=TOPIC, name='a/'): Path must not end with / character"
    > replace 2:.. flush.ms=7
    2:..: UNKNOWN_TOPIC_OR_PARTITION "The topic '..' does not exist."
    """)


def test_a_dry_run_has_outcomes_but_no_records() -> None:
    check("""
    > topic a 1
    > set 2:a flush.ms=7 / 2:a flush.ms=8 dry
    2:a: INVALID_REQUEST "Each resource must appear at most once."
    > set 2:a flush.ms=7 / 2:missing flush.ms=7 dry
    2:a: NONE
    2:missing: UNKNOWN_TOPIC_OR_PARTITION "The topic 'missing' does not exist."
    """)


def test_resend_decides_only_uncommitted_elements() -> None:
    check("""
    > topic a 1
    > topic b 1
    > set 2:a flush.ms=7 / 2:b flush.ms=7 committed=2:a
    2:b: NONE
      configs topics/b flush.ms=7
    """)


def test_broker_configs_are_stored_by_id_or_default() -> None:
    check("""
    > topic a 1
    > set 2:a flush.ms=7 / 4:02 log.cleaner.threads=2 / 4: log.cleaner.threads=2
    2:a: NONE
      configs topics/a flush.ms=7
    4:02: NONE
      configs brokers/2 log.cleaner.threads=2
    4:: NONE
      configs brokers/<default> log.cleaner.threads=2
    """)


def test_a_broker_with_two_names_keeps_the_changes_of_both() -> None:
    """`1` and `01` are different resources of the same broker."""
    check("""
    > set 4:1 log.cleaner.threads=2 / 4:01 num.io.threads=9
    4:1: NONE
      configs brokers/1 log.cleaner.threads=2
    4:01: NONE
      configs brokers/1 log.cleaner.threads=2 num.io.threads=9
    """)


def test_passwords_are_not_stored_in_clear_text() -> None:
    """Kafka encrypts them if password.encoder.secret is set. This is not implemented here."""
    check("""
    > set 4:1 listener.name.plaintext.ssl.keystore.password=hush
    4:1: INVALID_CONFIG "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Password encoder secret not configured"
    > properties password.encoder.secret=s
    > set 4:1 listener.name.plaintext.ssl.keystore.password=hush
    4:1: INVALID_CONFIG "Invalid config value for resource ConfigResource(type=BROKER, name='1'): listener.name.plaintext.ssl.keystore.password cannot be changed dynamically yet"
    """)


def test_topic_configs_are_checked_with_the_current_defaults() -> None:
    """`min.compaction.lag.ms` must not exceed the inherited `max.compaction.lag.ms`."""
    check("""
    > topic a 1
    > set 2:a min.compaction.lag.ms=9
    2:a: NONE
      configs topics/a min.compaction.lag.ms=9
    > set 4: log.cleaner.max.compaction.lag.ms=5
    4:: NONE
      configs brokers/<default> log.cleaner.max.compaction.lag.ms=5
    > set 2:a min.compaction.lag.ms=9
    2:a: INVALID_CONFIG "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (5)"
    """)


def test_policies_see_valid_changes_even_in_a_dry_run() -> None:
    """A policy gets the requested changes and all configs that result from them."""
    cluster = check("> topic a 1 retention.ms=5")
    (valid,) = cluster.decide("set 2:a flush.ms=7 dry").elements
    (invalid,) = cluster.decide("set 2:a no.such=7 dry").elements
    assert valid.policy_check is not None
    requested = valid.policy_check()
    assert isinstance(requested, AlterTopicConfigs)
    assert (requested.topic, requested.requested) == ("a", {"flush.ms": "7"})
    assert requested.requested_state.configs == {"retention.ms": "5", "flush.ms": "7"}
    assert invalid.policy_check is None


def test_the_error_of_a_whole_request_names_every_resource() -> None:
    api = IncrementalAlterConfigs(BrokerConfig.from_properties({"broker.id": "1"}))
    response = api.error_response(request_to_set("a", "b"), 1, ErrorCode.NOT_CONTROLLER, "moved")
    assert [(r.resource_name, r.error_code, r.error_message) for r in response.responses] == [
        ("a", ErrorCode.NOT_CONTROLLER, "moved"),
        ("b", ErrorCode.NOT_CONTROLLER, "moved"),
    ]


def request_to_set(*topics: str) -> incremental.IncrementalAlterConfigsRequest:
    configs = [incremental.AlterableConfig("flush.ms", SET, "7")]
    resources = [incremental.AlterConfigsResource(2, topic, configs) for topic in topics]
    return incremental.IncrementalAlterConfigsRequest(resources, False)


# The last value of each row is what a live Kafka's znode held after the operation. The config is
# leader.replication.throttled.replicas.
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
def test_lists_change_as_in_a_live_kafkas_znode(
    stored: str | None, operation: int, value: str, after: str
) -> None:
    """Items are not trimmed, and duplicates stay."""
    name = "leader.replication.throttled.replicas"
    before = {} if stored is None else {name: stored}
    change = [Operation(name, operation, value)]
    assert apply_operations(before, change, TOPIC_CONFIGS.get) == {name: after}


@pytest.mark.parametrize(
    ("stored", "value", "after"), [("0:1", ",", "0:1"), (",", "0:1", "0:1"), (",", ",", "")]
)
def test_a_text_of_commas_has_no_items(stored: str, value: str, after: str) -> None:
    """Java's String.split returns no items for such a text, either."""
    name = "leader.replication.throttled.replicas"
    change = [Operation(name, APPEND, value)]
    assert apply_operations({name: stored}, change, TOPIC_CONFIGS.get) == {name: after}


def test_an_append_starts_from_the_default() -> None:
    """The append ignores the value in the properties file."""
    change = [Operation("log.cleanup.policy", APPEND, "compact")]
    after = apply_operations({}, change, BROKER_CONFIGS.get)
    assert after == {"log.cleanup.policy": "delete,compact"}


class Stored:
    """A cluster with topic `a` and without stored configs."""

    async def read_config(
        self, entity_type: str, entity_name: str, invalid: list[str] | None = None
    ) -> Mapping[str, str]:
        return {}

    def has_topic(self, name: str) -> bool:
        return name == "a"


def checks(properties: Mapping[str, str], allowed: bool = True) -> ConfigChecks:
    current = EffectiveBrokerConfig.of(BrokerConfig.from_properties(properties))
    loggers = LoggerLevels(new_root())
    return ConfigChecks(lambda: current, Stored(), loggers, authorize_every_client(allowed))


def new_root() -> logging.Logger:
    """Return a separate root logger, so that tests do not change each other's levels."""
    root = logging.RootLogger(logging.INFO)
    root.manager = logging.Manager(root)
    return root


def client_request(version: int = 1) -> ClientRequest:
    return a_request(44, version)


async def test_responses_are_merged_in_the_order_of_the_request() -> None:
    """A resource that is missing from the controller's response gets an error."""
    split = IncrementalAlterConfigsSplit(checks({"broker.id": "1"}))
    message = request_to_set("a", "b")
    message.resources.insert(1, incremental.AlterConfigsResource(99, "x", []))
    local, left = await split.split(client_request(), message)
    assert left is not None
    assert [resource.resource_name for resource in left.resources] == ["a", "b"]
    row = incremental.AlterConfigsResourceResponse(0, None, 2, "b")
    merged = split.merge(
        client_request(), message, local, incremental.IncrementalAlterConfigsResponse(3, [row])
    )
    assert merged.throttle_time_ms == 3
    assert [(response.resource_name, response.error_code) for response in merged.responses] == [
        ("a", -1),
        ("x", 42),
        ("b", 0),
    ]


async def test_a_logger_level_changes_at_the_receiving_broker() -> None:
    """A dry run does not change the level. BROKER_LOGGER resources are not forwarded."""
    loggers = checks({"broker.id": "1"})
    split = IncrementalAlterConfigsSplit(loggers)
    configs = [incremental.AlterableConfig("kafka.server.KafkaApis", SET, "TRACE")]
    resource = incremental.AlterConfigsResource(8, "1", configs)
    for validate_only, level in ((True, "INFO"), (False, "TRACE")):
        message = incremental.IncrementalAlterConfigsRequest([resource], validate_only)
        local, left = await split.split(client_request(), message)
        assert left is None
        merged = split.merge(client_request(), message, local, None)
        assert [row.error_code for row in merged.responses] == [0]
        assert loggers.loggers.levels()["kafka.server.KafkaApis"] == level
    loggers.loggers.unset("kafka.server.KafkaApis")
    assert loggers.loggers.levels()["kafka.server.KafkaApis"] == "INFO"


async def test_a_drafted_listener_forwards_a_whole_request_except_for_loggers() -> None:
    """On a drafted listener the controller rejects duplicates; a broker changes its own loggers."""
    split = IncrementalAlterConfigsSplit(checks({"broker.id": "1"}))
    message = request_to_set("a", "a")
    message.resources.append(incremental.AlterConfigsResource(4, "2", []))
    local, left = await split.split(client_request(), message, is_wrapped=True)
    assert left is message
    assert local == [None] * 3
    message.resources.insert(1, incremental.AlterConfigsResource(8, "1", []))
    local, left = await split.split(client_request(), message, is_wrapped=True)
    assert [response.error if response else None for response in local] == [
        None,
        ErrorCode.NONE,
        None,
        None,
    ]
    assert left is not None
    assert [resource.resource_name for resource in left.resources] == ["a", "a", "2"]


async def test_changing_a_logger_needs_alter_configs_on_the_cluster() -> None:
    split = IncrementalAlterConfigsSplit(checks({"broker.id": "1"}, allowed=False))
    resource = incremental.AlterConfigsResource(8, "1", [])
    message = incremental.IncrementalAlterConfigsRequest([resource], False)
    local, _ = await split.split(client_request(), message)
    merged = split.merge(client_request(), message, local, None)
    assert merged.responses[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_quirk_leaves_alter_configs_with_a_duplicate_without_a_response() -> None:
    twice = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, "a", [])] * 2, False)
    once = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, "a", [])], False)
    with_quirk = AlterConfigsSplit(
        checks({"broker.id": "1"}), frozenset({ALTER_CONFIGS_DUPLICATE_HANGS})
    )
    await with_quirk.split(client_request(), once)
    with pytest.raises(NeverRespondedError):
        await with_quirk.split(client_request(), twice)
    local, left = await AlterConfigsSplit(checks({"broker.id": "1"})).split(client_request(), twice)
    assert left is None
    assert {response.error for response in local if response} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("name", ["x", "2147483648", "-2147483649", "99999999999"])
async def test_describe_configs_needs_the_id_of_a_broker(name: str) -> None:
    ports = checks({"broker.id": "1"})
    api = DescribeConfigs(
        ports.current, Stored(), Stored(), ports.loggers, authorize_every_client(True)
    )
    resource = describe.DescribeConfigsResource(4, name, None)
    response = await api.handle(
        client_request(), describe.DescribeConfigsRequest([resource], False, False)
    )
    (result,) = response.results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == f"Broker id must be an integer, but it is: {name}"


async def test_describe_configs_checks_rights_for_each_resource() -> None:
    """The error message of a denial is the default text of its error code."""
    ports = checks({"broker.id": "1"})

    def only_topics(operation: str, resource_type: str, name: str) -> bool:
        assert operation == "DESCRIBE_CONFIGS"
        return resource_type == "TOPIC"

    authorize = authorize_every_client(only_topics)
    api = DescribeConfigs(ports.current, Stored(), Stored(), ports.loggers, authorize)
    message = describe.DescribeConfigsRequest(
        [
            describe.DescribeConfigsResource(4, "1", None),
            describe.DescribeConfigsResource(2, "a", ["flush.ms"]),
        ],
        False,
        False,
    )
    response = await api.handle(client_request(), message)
    described, denied = response.results  # As in Kafka, denied resources are last.
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (denied.error_code, denied.error_message) == (error, error.default_text)
    assert [config.name for config in described.configs] == ["flush.ms"]


async def test_describing_loggers_does_not_search_the_list_of_requested_names() -> None:
    """The list may have millions of names."""
    ports = checks({"broker.id": "1"})
    api = DescribeConfigs(
        ports.current, Stored(), Stored(), ports.loggers, authorize_every_client(True)
    )
    wanted: list[str] = [CountedName(f"x{number}") for number in range(1000)]
    resource = describe.DescribeConfigsResource(8, "1", [*wanted, "root"])
    before = CountedName.comparisons
    response = await api.handle(
        client_request(), describe.DescribeConfigsRequest([resource], False, False)
    )
    (result,) = response.results
    assert [config.name for config in result.configs] == ["root"]
    assert CountedName.comparisons - before < 1000
