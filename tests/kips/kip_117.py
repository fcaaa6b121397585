"""Mutants for the rows of KIP-117 in docs/kips.md, and for other KIPs' rows about AdminClient."""

from __future__ import annotations

from tests.kips.changes import (
    added,
    argument,
    assigned,
    call,
    condition,
    expression,
    iterated,
    operand,
    returned,
    statement,
    value,
)
from tests.kips.mutant import Mutant

ADMIN = "bridgehead.admin"
CONFIG = "bridgehead.admin.config"
CORE = "bridgehead.admin.core"
REQUESTS = "bridgehead.admin.requests"
TOPICS = "bridgehead.admin.calls.topics"
CLUSTER = "bridgehead.admin.calls.cluster"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(("590.18",), CORE, "_Exchange.__post_init__", assigned("Route.FORWARD").never()),
    Mutant(
        ("201.51",), REQUESTS, "BrokerResponse._error_of", argument("self.error", 1).becomes("None")
    ),
    Mutant(
        ("4.86",),
        "bridgehead.admin.calls.configs",
        "alter_config",
        expression("(yield from describe_configs($left))").becomes(
            "{resource: Try.new_value({}) for resource in $left}"
        ),
    ),
    Mutant(
        ("4.86",),
        "bridgehead.admin.calls.configs",
        "_raise_if_all_failed",
        condition("len").never(),
    ),
    Mutant(
        ("590.18",),
        "bridgehead.admin.core",
        "AdminCore._route",
        expression("$cluster.dialect == 'drafted'").becomes("False"),
    ),
    Mutant(
        ("590.18",),
        "bridgehead.admin.calls.configs",
        "_alter.request",
        call("Request").without("drafted_goes_to_controller"),
    ),
    Mutant(
        ("4.96",),
        CORE,
        "AdminCore._current_cluster",
        condition("fetched_ms").never(),
    ),
    Mutant(
        ("4.97",),
        "bridgehead.admin.calls.partitions",
        "wait_for_reassignments",
        statement("Wait").becomes("return"),
    ),
    Mutant(
        ("4.97",),
        "bridgehead.admin.calls.partitions",
        "wait_for_reassignments",
        argument("KafkaTimeoutError", 0).becomes("''"),
    ),
    Mutant(
        ("4.98",),
        "bridgehead.admin.builders",
        "NewTopicsBuilder.add",
        statement("_check_assignment").removed(),
    ),
    Mutant(
        ("4.98",),
        "bridgehead.admin.builders",
        "AlterConfigRequestBuilder._add",
        condition("$config in $changes").never(),
    ),
    Mutant(("4.100",), REQUESTS, "BrokerResponse._error_of", argument("getattr", 1).becomes("''")),
    Mutant(
        ("117.28",),
        "bridgehead.admin.links",
        "Links._open",
        argument("BrokerConnection", 1).becomes("''"),
    ),
    Mutant(
        ("117.29",),
        CORE,
        "AdminCore._current_cluster",
        assigned("'metadata.max.age.ms'").becomes("300_000"),
    ),
    Mutant(("117.30",), "bridgehead.admin.driver", "_BUFFERS", value().becomes("()")),
    Mutant(
        ("117.31",),
        "bridgehead.admin.links",
        "Links._note",
        expression("self._numbers['reconnect.backoff.ms']").becomes("50"),
    ),
    Mutant(("117.32",), "bridgehead.admin.links", "Links._idle_ms", returned().becomes("300_000")),
    Mutant(("117.33",), CONFIG, "AdminConfig.uses_tls", returned("endswith").becomes("False")),
    Mutant(
        ("117.34",),
        "bridgehead.admin.shared_loop",
        "SharedLoop.run",
        statement("_step_back").removed(),
    ),
    Mutant(
        ("117.1",), "bridgehead.admin.links", "Links.close", assigned("Disconnect").becomes("[]")
    ),
    Mutant(
        ("117.2",),
        CORE,
        "AdminCore._candidates",
        returned("bootstrap").becomes("[self._config.bootstrap[0]]"),
    ),
    Mutant(("117.25",), CONFIG, "_ALIASES", value().becomes("{}")),
    Mutant(
        ("117.3",),
        "bridgehead.admin.shared_loop",
        "SharedLoop.run",
        operand("self._runner is None").removed(),
    ),
    Mutant(("117.4",), CONFIG, "", added("import kazoo")),
    Mutant(
        ("117.5", "117.26"),
        ADMIN,
        "",
        added("""
            from bridgehead.kafka_wire.messages.create_topics import CreateTopicsRequest
            __all__ += ["CreateTopicsRequest"]
        """),
    ),
    Mutant(
        ("117.6",),
        REQUESTS,
        "BrokerResponse.result",
        statement("Try.new_error($error) if ... else $result").becomes("""
            if $error is not None:
                raise $error
            return $result
        """),
    ),
    Mutant(
        ("117.7", "117.17"),
        CLUSTER,
        "of_every_broker",
        statement("Try.new_error($error)").becomes("raise $error"),
    ),
    Mutant(("117.8",), REQUESTS, "only", condition().never()),
    Mutant(("117.8",), CORE, "_Exchange.__post_init__", assigned("Route.FORWARD").never()),
    Mutant(("117.9", "117.12"), TOPICS, "_started", operand("not $blocking").negated()),
    Mutant(
        ("117.10",),
        TOPICS,
        "create_topics.request.build",
        argument("CreateTopicsRequest", 2).becomes("False"),
    ),
    Mutant(
        ("117.11",),
        TOPICS,
        "_creatable",
        argument("CreatableReplicaAssignment", 1).becomes("$old[:1]"),
    ),
    Mutant(
        ("117.13",),
        "bridgehead.admin.results",
        "Try.get",
        statement("self.error").becomes("raise AdminError(str(self.error))"),
    ),
    Mutant(("117.14",), TOPICS, "list_topics", operand("internal").negated()),
    Mutant(
        ("117.15",),
        TOPICS,
        "topics_of",
        call("result($topic, $info)").becomes("Try.new_value($info($topic))"),
    ),
    Mutant(
        ("117.16",),
        CLUSTER,
        "_node_api_versions",
        expression("min($spec.max_version, $served.max_version)").becomes("$served.max_version"),
    ),
    Mutant(
        ("117.17",),
        "bridgehead.admin.calls.groups",
        "_ask_coordinator",
        argument("Request", 2).becomes("None"),
    ),
    Mutant(
        ("117.18",),
        "bridgehead.admin.connection",
        "BrokerConnection.version_of",
        assigned("min($most, $served[1])").becomes("$most"),
    ),
    Mutant(("117.19",), REQUESTS, "Batch.run", operand("sent").negated()),
    Mutant(("117.20",), TOPICS, "delete_topic", argument("delete_topics", 0).becomes("[]")),
    Mutant(
        ("117.22",),
        "bridgehead.admin.calls.acls",
        "create_acls.request",
        expression("[AclCreation(*$each) for $each in $left]").becomes(
            "[AclCreation(*$each) for $each in list($left)[:1]]"
        ),
    ),
    Mutant(
        ("117.22",),
        "bridgehead.admin.calls.drafted",
        "alter_topics.request",
        expression("-1 if $topic.partitions is None else $topic.partitions").becomes("-1"),
    ),
    Mutant(
        ("117.23",),
        REQUESTS,
        "BrokerResponse.done",
        returned(where="_error_of($element)").becomes(
            "Try.new_error(KafkaError(error_code($element.error_code)))"
        ),
    ),
    Mutant(("117.24",), CORE, "AdminCore._again", condition("'retries'").never()),
    Mutant(("117.24",), CORE, "AdminCore.tick", iterated("self._links.tick").becomes("[]")),
    Mutant(
        ("117.24",),
        CORE,
        "AdminCore._again",
        assigned("'retry.backoff.ms'").becomes("self._now_ms"),
    ),
)
