"""KIP-201: topic management policy."""

from __future__ import annotations

from tests.kips.changes import (
    argument,
    assigned,
    call,
    condition,
    expression,
    iterated,
    returned,
    statement,
    value,
)
from tests.kips.mutant import Mutant

POLICIES = "node.assembly.policies"
CHECK = "controller.apis.policy_check"
POLICY_STATE = "cluster_model.policy_state"
EVALUATION = "controller.loop.policy_evaluation"
CREATE_PARTITIONS = "controller.apis.create_partitions"
CONFIG_CHANGES = "controller.apis.config_changes"
DELETE_TOPICS = "controller.apis.delete_topics"
DELETE_RECORDS = "broker_proxy.apis.records.delete_records"
RECORDS_POLICY = "broker_proxy.apis.records.records_policy"
DRAFTED_DELETE_TOPICS = "bridgehead.kafka_wire.messages.drafted.delete_topics"
DRAFTED_DELETE_RECORDS = "bridgehead.kafka_wire.messages.drafted.delete_records"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        ("201.1", "201.2"),
        POLICIES,
        "MANAGEMENT",
        value().becomes("'topics.management.policy.class.name'"),
    ),
    Mutant(("201.3",), POLICIES, "_load", assigned("$found()").becomes("$found.__new__($found)")),
    Mutant(
        ("201.4",),
        POLICIES,
        "_load",
        expression("MappingProxyType($properties)").becomes("$properties"),
    ),
    Mutant(
        ("201.5",),
        POLICIES,
        "NodePolicies.close",
        argument("self._runner.close", 0).becomes("lambda: None"),
    ),
    Mutant(
        ("201.6",),
        POLICY_STATE,
        "topic_state",
        call("TopicState").with_arguments(num_partitions="1"),
    ),
    Mutant(
        ("201.7",),
        POLICY_STATE,
        "topic_state",
        call("TopicState(..., num_partitions=len($assignment))").with_arguments(
            replication_factor="max(map(len, $assignment), default=0)"
        ),
    ),
    # The same fault in the requested state.
    Mutant(
        ("201.7",),
        CHECK,
        "_requested",
        call("RequestedTopicState(..., num_partitions=len($assignment))").with_arguments(
            replication_factor="max(map(len, $assignment), default=0)"
        ),
    ),
    Mutant(
        ("201.8",),
        POLICY_STATE,
        "topic_state",
        call("TopicState").with_arguments(replicas_assignments="{}"),
    ),
    Mutant(
        ("201.9",), POLICY_STATE, "topic_state", call("TopicState").with_arguments(configs="{}")
    ),
    Mutant(
        ("201.10",),
        CHECK,
        "ImageClusterState.topic_state",
        call("topic_state").with_arguments(marked="False"),
    ),
    Mutant(
        ("201.11",),
        POLICY_STATE,
        "topic_state",
        call("TopicState").with_arguments(internal="False"),
    ),
    Mutant(
        ("201.12",),
        POLICY_STATE,
        "targets",
        returned("PartitionAssignment.of($topic, ...)").becomes("list($topic.assignment)"),
    ),
    Mutant(
        ("201.12",),
        RECORDS_POLICY,
        "_StoredClusterState._topic_state",
        argument("topic_state", 0).becomes("Topic($old.name, b'', $old.assignment, ())"),
    ),
    Mutant(
        ("201.14",),
        EVALUATION,
        "_Proposal.calls",
        argument("ImageClusterState", 0).becomes("MetadataImage()"),
    ),
    Mutant(
        ("201.13",), CREATE_PARTITIONS, "CreatePartitions.decide", assigned("assignments").always()
    ),
    Mutant(
        ("201.15",),
        CHECK,
        "ImageClusterState.topic_state",
        returned("None").becomes("TopicState(0, 0)"),
    ),
    Mutant(("201.16",), CHECK, "ImageClusterState.topics", statement("deletions").removed()),
    Mutant(
        ("201.16",),
        CHECK,
        "ImageClusterState.topics",
        assigned("$none if $included else INTERNAL_TOPICS").becomes(
            "INTERNAL_TOPICS if $included else $none"
        ),
    ),
    Mutant(
        ("201.17",), CHECK, "ImageClusterState.cluster_size", returned().becomes("max(1, $old)")
    ),
    Mutant(
        ("201.18",), CHECK, "creation", argument("CreateTopicRequest", 0).becomes("$old.upper()")
    ),
    Mutant(("201.19",), POLICY_STATE, "policy_principal", statement("ANONYMOUS").removed()),
    Mutant(
        ("201.19",),
        RECORDS_POLICY,
        "RecordsPolicy.rejection",
        assigned("policy_principal").becomes("$old or 'User:ANONYMOUS'"),
    ),
    Mutant(
        ("201.20",),
        "controller.apis.create_topics",
        "CreateTopics.decide",
        assigned("_policy_check").becomes("None"),
    ),
    Mutant(
        ("201.21",),
        CREATE_PARTITIONS,
        "CreatePartitions.decide",
        expression("$topic.assignment + $added").becomes("$topic.assignment"),
    ),
    Mutant(
        ("201.21",),
        CHECK,
        "topic_configs",
        statement(
            "_requested($name, $replicas, $configs, True, $name in $image.deletions)"
        ).preceded_by("$configs = $image.config('topics', $name)"),
    ),
    Mutant(
        ("201.22", "201.32"),
        DELETE_TOPICS,
        "DeleteTopics.decide",
        condition("succeeded", guarding="deletion").never(),
    ),
    Mutant(
        ("201.23", "201.33"),
        DELETE_RECORDS,
        "DeleteRecords._rejection",
        assigned("self.policy.rejection").becomes("None"),
    ),
    Mutant(
        ("201.24",),
        DELETE_RECORDS,
        "DeleteRecords._rejection",
        condition("ErrorCode.NONE").removed(),
    ),
    Mutant(
        ("201.24",),
        DELETE_RECORDS,
        "DeleteRecords._rejection",
        expression("$watermark if $offset == _HIGH_WATERMARK else $offset").becomes("$offset"),
    ),
    Mutant(
        ("201.25",),
        "node.assembly.policy_runner",
        "PolicyRunner._result",
        argument("ApiError(ErrorCode.POLICY_VIOLATION, ...)", 1).becomes("None"),
    ),
    Mutant(
        ("201.26",),
        EVALUATION,
        "PolicyEvaluation.judge",
        statement("_checks", where="replace(..., elements=$elements)").followed_by("""
            if any(decided.outcome.error == ErrorCode.POLICY_VIOLATION for decided in $elements):
                failed = Outcome(ErrorCode.POLICY_VIOLATION)
                $elements = [Decided(decided.element, failed) for decided in $elements]
        """),
    ),
    Mutant(
        ("201.27",),
        POLICIES,
        "NodePolicies._bind",
        returned("validate_create_topic").becomes("lambda: None"),
    ),
    Mutant(
        ("201.28",),
        CONFIG_CHANGES,
        "_policy_check",
        condition(
            "TOPIC", where="partial(topic_configs, ..., $record.configs, $change.requested)"
        ).becomes("$old and len($record.configs) > 1"),
    ),
    Mutant(
        ("201.28",),
        CONFIG_CHANGES,
        "ConfigApi.decide",
        call("Decided($element, DONE, ($record,), policy_check=...)").without("policy_check"),
    ),
    Mutant(
        ("201.29",),
        CREATE_PARTITIONS,
        "CreatePartitions.decide",
        call("replace").without("policy_check"),
    ),
    Mutant(
        ("201.30",),
        "controller.apis.alter_partition_reassignments",
        "_begin",
        call("Decided(..., policy_check=...)").without("policy_check"),
    ),
    Mutant(
        ("201.31",),
        "controller.apis.alter_topics",
        "_alter",
        expression("$targets | dict($new)").becomes("$targets"),
    ),
    Mutant(
        ("201.34",), POLICIES, "DeprecatedPolicies.validate_configs", condition("_alter").negated()
    ),
    Mutant(
        ("201.34", "201.38"),
        POLICIES,
        "DeprecatedPolicies.validate_create_topic",
        condition("_create").always(),
    ),
    Mutant(("201.35",), POLICIES, "load_policies", call("_log.warning").renamed("info")),
    Mutant(
        ("201.36",),
        POLICIES,
        "load_policies",
        iterated("CREATE", "ALTER", guarding="NodeConfigError").becomes("(ALTER,)"),
    ),
    Mutant(
        ("201.37",),
        POLICIES,
        "load_policies",
        iterated("CREATE", "ALTER", guarding="NodeConfigError").becomes("(CREATE,)"),
    ),
    Mutant(("201.39",), POLICIES, "NodePolicies._bind", condition("DeprecatedPolicies").never()),
    Mutant(
        ("201.40",),
        DRAFTED_DELETE_TOPICS,
        "DeleteTopicsRequest.validate_only",
        call("wire").with_arguments(versions="'3'"),
    ),
    Mutant(
        ("201.40",),
        DRAFTED_DELETE_TOPICS,
        "DeleteTopicsRequest.validate_only_tagged",
        call("wire").with_arguments(versions="'5+'"),
    ),
    Mutant(
        ("201.41",),
        DELETE_TOPICS,
        "DeleteTopics.decide",
        expression("() if $dry else $records").becomes("$records"),
    ),
    Mutant(
        ("201.41",),
        DELETE_TOPICS,
        "DeleteTopics.decide",
        condition(
            "$outcome.succeeded and $name in $image.topics",
            guarding="deletion",
            where="Wait() if $dry else ...",
        ).becomes("$outcome.succeeded and $name in $image.topics and not $dry"),
    ),
    Mutant(
        ("201.42",),
        DRAFTED_DELETE_TOPICS,
        "DeletableTopicResult.error_message",
        call("wire").with_arguments(versions="'3,5+'", nullable="'3,5+'"),
    ),
    Mutant(
        ("201.43",),
        DRAFTED_DELETE_RECORDS,
        "DeleteRecordsRequest.validate_only",
        call("wire").with_arguments(versions="'2'"),
    ),
    Mutant(
        ("201.45",),
        DRAFTED_DELETE_RECORDS,
        "DeleteRecordsPartitionResult.error_message",
        call("wire").with_arguments(versions="'2'", nullable="'2'"),
    ),
    Mutant(("201.48",), EVALUATION, "_rejected", call("_log.info").renamed("debug")),
    Mutant(
        ("201.49",), DELETE_RECORDS, "DeleteRecords._rejection", call("_log.info").renamed("debug")
    ),
    Mutant(
        ("201.49",),
        DELETE_RECORDS,
        "DeleteRecords._rejection",
        returned(
            "ErrorCode.UNKNOWN_SERVER_ERROR", where="$rejection.error is ErrorCode.POLICY_VIOLATION"
        ).becomes("$rejection"),
    ),
    Mutant(
        ("201.48",),
        DELETE_TOPICS,
        "_is_kip_201",
        expression("$version >= _KIP_201_FROM").becomes("$version == _KIP_201_FROM"),
    ),
    Mutant(("201.50",), DELETE_TOPICS, "_POLICY_VIOLATION_FROM", value().becomes("4")),
    Mutant(
        ("201.53",),
        POLICIES,
        "DeprecatedPolicies.validate_create_topic",
        call("RequestMetadata").without("configs"),
    ),
    Mutant(
        ("201.44",),
        DELETE_RECORDS,
        "DeleteRecords.handle",
        assigned("self._rejection", where="None if $dry else ...").becomes(
            "None if $dry else $old"
        ),
    ),
)
