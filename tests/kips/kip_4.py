"""KIP-4: admin wire protocol."""

from __future__ import annotations

from tests.kips.changes import (
    argument,
    assigned,
    call,
    condition,
    definition,
    expression,
    iterated,
    operand,
    returned,
    statement,
    swapped,
)
from tests.kips.mutant import Mutant

ROUTING = "broker_proxy.requests.routing"
CREATE_TOPICS = "controller.apis.create_topics"
DELETE_TOPICS = "controller.apis.delete_topics"
ALTER_TOPICS = "controller.apis.alter_topics"
ALTER_ACLS = "controller.apis.alter_acls"
ASSIGNMENTS = "controller.apis.topic_assignments"
LIST_ACLS = "broker_proxy.apis.admin.list_acls"
METADATA = "broker_proxy.apis.admin.metadata"
IMAGE_WAITS = "controller.loop.image_waits"
RESPONSES = "controller.loop.delayed_responses"
CREATE_TOPICS_MESSAGE = "bridgehead.kafka_wire.messages.create_topics"
DELETE_TOPICS_MESSAGE = "bridgehead.kafka_wire.messages.delete_topics"
DRAFTED_ALTER_TOPICS = "bridgehead.kafka_wire.messages.drafted.alter_topics"
DRAFTED_ALTER_ACLS = "bridgehead.kafka_wire.messages.drafted.alter_acls"
DRAFTED_LIST_ACLS = "bridgehead.kafka_wire.messages.drafted.list_acls"

MUTANTS: tuple[Mutant, ...] = (
    # The topics after an invalid one are not created.
    Mutant(
        ("4.1", "4.9", "4.10"),
        CREATE_TOPICS,
        "CreateTopics.decide",
        statement("Outcome.of").followed_by("break"),
    ),
    Mutant(
        ("4.3",),
        CREATE_TOPICS,
        "CreateTopics._plan",
        expression("ErrorCode.TOPIC_ALREADY_EXISTS").becomes("ErrorCode.INVALID_REQUEST"),
    ),
    Mutant(
        ("4.4", "4.39"),
        DELETE_TOPICS,
        "DeleteTopics._outcome",
        condition("$topic is None and $context.is_drafted").never(),
    ),
    Mutant(
        ("4.5",),
        CREATE_TOPICS,
        "CreateTopics._place",
        expression("ErrorCode.INVALID_PARTITIONS").becomes("ErrorCode.NONE"),
    ),
    Mutant(
        ("4.6",),
        CREATE_TOPICS,
        "CreateTopics._place",
        argument("ApiError(..., 'Replication factor must be larger than 0.')", 0).becomes(
            "ErrorCode.INVALID_PARTITIONS"
        ),
    ),
    Mutant(
        ("4.7",),
        "broker_proxy.requests.dispatch",
        "Dispatcher._execute",
        expression("ErrorCode.NOT_CONTROLLER").becomes("ErrorCode.INVALID_REQUEST"),
    ),
    Mutant(
        ("4.8",),
        CREATE_TOPICS,
        "_FOUND_TWICE",
        expression("ErrorCode.INVALID_REQUEST").becomes("ErrorCode.INVALID_TOPIC_EXCEPTION"),
    ),
    Mutant(
        ("4.9",),
        ASSIGNMENTS,
        "invalid_assignment",
        expression("ErrorCode.INVALID_REPLICA_ASSIGNMENT").becomes("ErrorCode.INVALID_REQUEST"),
    ),
    Mutant(
        ("4.10",),
        "controller.apis.topic_config_rules",
        "TopicConfigRules.check",
        expression("ErrorCode.INVALID_CONFIG").becomes("ErrorCode.INVALID_REQUEST"),
    ),
    Mutant(("4.12",), ALTER_TOPICS, "_alter", condition("adding").never()),
    Mutant(
        ("4.13",),
        METADATA,
        "Metadata._build",
        condition("$message.topics is None").becomes("not $message.topics"),
    ),
    Mutant(
        ("4.13",),
        METADATA,
        "Metadata._build",
        condition("$message.topics is None").becomes("$message.topics is None"),
    ),
    Mutant(
        ("4.14",),
        METADATA,
        "Metadata._build",
        call("MetadataResponseBroker").with_arguments(rack="None"),
    ),
    Mutant(
        ("4.15",),
        METADATA,
        "Metadata._build",
        call("MetadataResponse").with_arguments(controller_id="-1"),
    ),
    Mutant(
        ("4.16",),
        METADATA,
        "Metadata._topic",
        call("MetadataResponseTopic").with_arguments(is_internal="False"),
    ),
    Mutant(
        ("4.17",),
        METADATA,
        "Metadata._partition",
        assigned(
            "[$broker for $broker in $replicas if $broker in $brokers]",
            where="len($replicas) < len($state.replicas)",
        ).becomes("list($replicas)"),
    ),
    Mutant(
        ("4.18",),
        METADATA,
        "Metadata._partition",
        condition("$version == 0").becomes("$version <= 1"),
    ),
    Mutant(
        ("4.19",),
        CREATE_TOPICS_MESSAGE,
        "CreatableTopic",
        swapped("num_partitions", "replication_factor"),
    ),
    Mutant(("4.20", "4.37", "4.68"), ROUTING, "choose_route", operand("'drafted'").never()),
    Mutant(("4.21",), CREATE_TOPICS, "_rows", condition("is_drafted").never()),
    Mutant(("4.22",), CREATE_TOPICS, "_rows", condition("is_drafted").always()),
    Mutant(
        ("4.23",), CREATE_TOPICS, "CreateTopics._early_rejection", condition("is_drafted").never()
    ),
    Mutant(
        ("4.24",), CREATE_TOPICS, "CreateTopics._early_rejection", operand("is_drafted").removed()
    ),
    Mutant(
        ("4.25",), CREATE_TOPICS, "CreateTopics._reject_both", condition("num_partitions").never()
    ),
    # All partitions get the replicas of the first.
    Mutant(
        ("4.26",),
        ASSIGNMENTS,
        "usable_assignment",
        returned("$by_number[$number]").becomes(
            "tuple($by_number[0] for $number in range(len($by_number)))"
        ),
    ),
    Mutant(
        ("4.27",),
        CREATE_TOPICS,
        "CreateTopics._place",
        call("assign_replicas").with_arguments(replication_factor="1"),
    ),
    Mutant(("4.28",), CREATE_TOPICS, "CreateTopics._sizes", condition("is_drafted").never()),
    Mutant(("4.29",), CREATE_TOPICS, "CreateTopics._sizes", operand("is_drafted").removed()),
    Mutant(
        ("4.30",),
        "cluster_model.partitions.elections",
        "elect_new",
        argument("PartitionState($isr[0], ...)", 0).becomes("$isr[-1]"),
    ),
    Mutant(("4.31",), IMAGE_WAITS, "_is_met", call("all").renamed("any")),
    Mutant(
        ("4.31",),
        CREATE_TOPICS,
        "CreateTopics.decide",
        assigned("WaitFor.LEADERS").becomes("WaitFor.NOTHING"),
    ),
    Mutant(
        ("4.32", "4.33", "4.45"), IMAGE_WAITS, "ImageWaits.add", condition("timeout_ms").never()
    ),
    # The topics after one without authorization are not created.
    Mutant(
        ("4.34",),
        CREATE_TOPICS,
        "CreateTopics.decide",
        statement("Decided($name, $rejection)", where="$rejection is not None").followed_by(
            "break"
        ),
    ),
    Mutant(
        ("4.35",),
        RESPONSES,
        "DelayedResponses._time_out_image_wait",
        argument("_reply($pending, ...)", 1).becomes("frozenset($pending.outcomes)"),
    ),
    Mutant(
        ("4.35",),
        CREATE_TOPICS,
        "CreateTopics._result",
        statement("ErrorCode.REQUEST_TIMED_OUT").removed(),
    ),
    Mutant(
        ("4.36",),
        DELETE_TOPICS_MESSAGE,
        "DeleteTopicsRequest.timeout_ms",
        argument("wire", 0).becomes("INT16"),
    ),
    Mutant(
        ("4.38",),
        DELETE_TOPICS,
        "DeleteTopics.response",
        iterated("dict.fromkeys($requested)").becomes("$requested"),
    ),
    Mutant(
        ("4.40",),
        DELETE_TOPICS,
        "DeleteTopics._outcome",
        assigned("$image.topics.get($name)").becomes(
            "$old if $name not in $image.deletions else None"
        ),
    ),
    Mutant(
        ("4.41", "4.43"),
        DELETE_TOPICS,
        "DeleteTopics._outcome",
        argument("Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, $known_as)", 0).becomes(
            "ErrorCode.INVALID_TOPIC_EXCEPTION"
        ),
    ),
    Mutant(
        ("4.42",),
        DELETE_TOPICS,
        "DeleteTopics._outcome",
        condition("is_drafted", "authorize").never(),
    ),
    Mutant(
        ("4.44",),
        DELETE_TOPICS,
        "DeleteTopics.decide",
        call("Wait(WaitFor.DELETION, ...)").becomes("Wait()"),
    ),
    Mutant(("4.44",), IMAGE_WAITS, "_is_met", returned("topic_names").negated()),
    Mutant(
        ("4.46",),
        DELETE_TOPICS,
        "DeleteTopics.decide",
        statement("Decided($element, $outcome, ...)").followed_by("""
            if not $outcome.succeeded:
                break
        """),
    ),
    Mutant(
        ("4.47",),
        DELETE_TOPICS_MESSAGE,
        "DeletableTopicResult.error_code",
        argument("wire", 0).becomes("INT32"),
    ),
    Mutant(
        ("4.48",),
        DRAFTED_ALTER_TOPICS,
        "AlterTopic.replication_factor",
        argument("wire", 0).becomes("INT16"),
    ),
    Mutant(
        ("4.49",),
        ALTER_TOPICS,
        "AlterTopics.decide",
        statement("Decision($elements)").becomes("""
            from controller.apis.base import Wait, WaitFor
            names = {decided.element: decided.element for decided in $elements}
            return Decision($elements, Wait(WaitFor.LEADERS, names, 1000))
        """),
    ),
    Mutant(
        ("4.50",),
        ALTER_TOPICS,
        "_new_replicas",
        condition("$requested.replica_assignment").becomes(
            "$old and $requested.partitions == NOT_DEFINED"
        ),
    ),
    Mutant(("4.51",), ALTER_TOPICS, "_decided", condition("assignment").never()),
    Mutant(("4.52",), ALTER_TOPICS, "_decided", assigned("sorted").becomes("[]")),
    Mutant(
        ("4.53",),
        ALTER_TOPICS,
        "_new_replicas",
        assigned("$current if $partitions == NOT_DEFINED else $partitions").becomes("$current"),
    ),
    Mutant(
        ("4.54",),
        ALTER_TOPICS,
        "_new_replicas",
        assigned("$current if $partitions == NOT_DEFINED else $partitions").becomes(
            "$current + 1 if $partitions == NOT_DEFINED else $partitions"
        ),
    ),
    Mutant(("4.55",), ALTER_TOPICS, "_new_replicas", expression("max($current, 1)").becomes("1")),
    Mutant(
        ("4.56",),
        ALTER_TOPICS,
        "_new_replicas",
        argument("_place(..., $partitions - $current, $factor, $image)", 2).becomes("1"),
    ),
    Mutant(
        ("4.57",), ALTER_TOPICS, "AlterTopics.decide", iterated("topics").becomes("reversed($old)")
    ),
    Mutant(
        ("4.58",),
        ALTER_TOPICS,
        "_alter",
        expression("ErrorCode.INVALID_TOPIC_EXCEPTION").becomes(
            "ErrorCode.UNKNOWN_TOPIC_OR_PARTITION"
        ),
    ),
    Mutant(
        ("4.59",), ALTER_TOPICS, "AlterTopics.decide", argument("authorize", 1).becomes("'TOPIC'")
    ),
    Mutant(
        ("4.60",),
        DRAFTED_LIST_ACLS,
        "ListAclsRequest.principal",
        call("wire").without("nullable", "default"),
    ),
    Mutant(("4.60",), DRAFTED_LIST_ACLS, "Acl", swapped("acl_host", "acl_operation")),
    Mutant(
        ("4.61",),
        "bridgehead.kafka_wire.apis",
        "_DRAFTED_ROWS",
        argument("_drafted(K.LIST_ACLS, ...)", 1).becomes("Route.FORWARD"),
    ),
    Mutant(
        ("4.62",),
        LIST_ACLS,
        "ListAcls.handle",
        operand("$message.principal in (None, $entry.principal)").becomes(
            "$message.principal != ''"
        ),
    ),
    Mutant(
        ("4.63",),
        LIST_ACLS,
        "ListAcls.handle",
        assigned("$type == _ANY or $is_same").becomes("$type != _ANY and $is_same"),
    ),
    Mutant(
        ("4.63",),
        LIST_ACLS,
        "ListAcls.handle",
        condition("$pattern.pattern_type != 'LITERAL'").becomes(
            "$pattern.pattern_type != 'LITERAL'"
        ),
    ),
    Mutant(
        ("4.64",),
        LIST_ACLS,
        "ListAcls._may_see_all",
        iterated("CLUSTER_OPERATIONS").becomes("$old[1:]"),
    ),
    Mutant(("4.64",), LIST_ACLS, "ListAcls.handle", operand("'ALLOW'").always()),
    Mutant(("4.64",), LIST_ACLS, "ListAcls.handle", operand("$sender.client.principal").removed()),
    Mutant(
        ("4.65",),
        LIST_ACLS,
        "ListAcls.handle",
        call("ListAclsResponse(..., responses=$responses)").with_arguments(
            error_code="$old if $responses else ErrorCode.INVALID_REQUEST"
        ),
    ),
    Mutant(("4.66",), DRAFTED_ALTER_ACLS, "AlterResourceAcls.actions", definition().removed()),
    Mutant(
        ("4.66",), DRAFTED_ALTER_ACLS, "AclResult.error_code", argument("wire", 0).becomes("INT8")
    ),
    Mutant(("4.69",), ALTER_ACLS, "AlterAcls.decide", condition(guarding="_FOUND_TWICE").never()),
    # The deletions of a request come after its additions.
    Mutant(
        ("4.70",),
        "controller.apis.acl_changes",
        "with_changes",
        assigned(
            "dict.fromkeys((*$kept, *$added))",
            where="[$entry for $entry in $existing if $entry not in $deleted]",
        ).becomes(
            "tuple(each for each in dict.fromkeys((*$existing, *$added)) if each not in $deleted)"
        ),
    ),
    Mutant(
        ("4.71",),
        ALTER_ACLS,
        "_altered",
        statement(
            "$binding is None", where=("$binding.entry", "Decided($element, DONE)")
        ).becomes("""
            if $binding is None:
                return Decided($element, Outcome(ErrorCode.INVALID_REQUEST))
        """),
    ),
    Mutant(
        ("4.72",), ALTER_ACLS, "_has_all_rights", iterated("CLUSTER_OPERATIONS").becomes("$old[:2]")
    ),
    Mutant(
        ("4.72",),
        ALTER_ACLS,
        "AlterAcls.decide",
        expression("ErrorCode.CLUSTER_AUTHORIZATION_FAILED").becomes(
            "ErrorCode.TOPIC_AUTHORIZATION_FAILED"
        ),
    ),
    Mutant(
        ("4.73",),
        ALTER_ACLS,
        "AlterAcls.decide",
        statement("Decision($decided)").becomes("""
            from controller.apis.base import Wait, WaitFor
            names = {element.element: element.element for element in $decided}
            return Decision($decided, Wait(WaitFor.LEADERS, names, 1000))
        """),
    ),
    Mutant(
        ("4.77",),
        ROUTING,
        "choose_route",
        returned(
            "$route if ... else Route.NOT_CONTROLLER", where="$route is not Route.FORWARD"
        ).becomes("Route.NOT_CONTROLLER"),
    ),
    Mutant(
        ("4.78", "590.55"), RESPONSES, "DelayedResponses._reply", condition("have_applied").always()
    ),
    Mutant(
        ("4.79",),
        RESPONSES,
        "DelayedResponses.__init__",
        assigned("AppliedZxids").becomes("AppliedZxids()"),
    ),
    Mutant(("4.80",), ROUTING, "choose_route", operand("Route.FORWARD").removed()),
    Mutant(
        ("4.82",),
        "broker_proxy.apis.admin.api_versions",
        "ApiVersions._ranges",
        condition(guarding="ApiVersion", where="ApiVersion(..., api_key=$key)").becomes(
            "$old and $key < 10000"
        ),
    ),
    Mutant(
        ("4.84",),
        "node.assembly.authorization",
        "load_authorizer",
        assigned("AclAuthorizer").becomes("AclAuthorizer"),
    ),
    Mutant(
        ("4.21", "4.25", "4.69"),
        "controller.requests.responses",
        "ResponseEncoder.encode",
        statement("_log_invalid_elements").removed(),
    ),
    Mutant(
        ("4.88",),
        "controller.loop.loop",
        "ControllerLoop._start_jobs_for",
        statement("delete_topics").removed(),
    ),
    Mutant(
        ("4.89",),
        RESPONSES,
        "DelayedResponses._time_out_image_wait",
        argument("_reply($pending, ...)", 1).becomes("frozenset($pending.outcomes)"),
    ),
    Mutant(("4.90",), IMAGE_WAITS, "ImageWaits.reached", condition(guarding="_forget").always()),
    Mutant(
        ("4.91",),
        METADATA,
        "Metadata._build",
        call("MetadataResponse").with_arguments(
            brokers="$old + [MetadataResponseBroker(node_id=3, host='', port=0)]"
        ),
    ),
    Mutant(
        ("4.81",),
        "controller.term.publish",
        "Publisher.publish",
        argument("changed_parts", 2).becomes("frozenset()"),
    ),
    Mutant(
        ("4.95",),
        ALTER_ACLS,
        "AlterAcls.decide",
        expression("ErrorCode.UNKNOWN_SERVER_ERROR").becomes(
            "ErrorCode.CLUSTER_AUTHORIZATION_FAILED"
        ),
    ),
    Mutant(
        ("4.95",),
        "cluster_model.acls.authorization",
        "bind_authorize.bind.authorize",
        call("_log.exception").renamed("debug"),
    ),
)
