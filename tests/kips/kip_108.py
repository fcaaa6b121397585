"""KIP-108: create topic policy."""

from __future__ import annotations

from tests.kips.changes import (
    added,
    call,
    caught,
    condition,
    expression,
    iterated,
    statement,
    value,
)
from tests.kips.mutant import Mutant

POLICIES = "node.assembly.policies"
RUNNER = "node.assembly.policy_runner"
EVALUATION = "controller.loop.policy_evaluation"
CREATE_TOPICS = "controller.apis.create_topics"
CREATE_TOPICS_MESSAGE = "bridgehead.kafka_wire.messages.create_topics"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        ("108.1", "108.5"),
        POLICIES,
        "DeprecatedPolicies.validate_create_topic",
        call("self._create.validate").becomes("CreateTopicPolicy.RequestMetadata.__init__ or $old"),
    ),
    Mutant(
        ("108.2",),
        POLICIES,
        "DeprecatedPolicies.close",
        call("self._create.close").becomes("self._create.configure({})"),
    ),
    Mutant(("108.23",), "bridgehead.policy", "", added("import broker_proxy.client_request")),
    Mutant(("108.3",), POLICIES, "_load", expression("dict($properties)").becomes("{}")),
    Mutant(
        ("108.4",),
        POLICIES,
        "_load",
        statement("importlib.import_module").becomes("""
            try:
                $old
            except ModuleNotFoundError:
                return None
        """),
    ),
    Mutant(
        ("108.5",),
        POLICIES,
        "DeprecatedPolicies.validate_create_topic",
        call("RequestMetadata(..., num_partitions=$number if ... else None)").with_arguments(
            num_partitions="$number"
        ),
    ),
    Mutant(
        ("108.6",),
        "bridgehead.kafka_wire.errors",
        "ErrorCode.POLICY_VIOLATION",
        value().becomes("1044"),
    ),
    Mutant(
        ("108.7", "108.11"),
        CREATE_TOPICS,
        "CreateTopics._result",
        call("CreatableTopicResult").with_arguments(error_message="None"),
    ),
    Mutant(
        ("108.7",),
        CREATE_TOPICS_MESSAGE,
        "CreatableTopicResult.error_message",
        call("wire").with_arguments(versions="'2+'"),
    ),
    Mutant(
        ("108.8",),
        CREATE_TOPICS_MESSAGE,
        "CreateTopicsRequest.validate_only",
        call("wire").with_arguments(versions="'2+'"),
    ),
    Mutant(
        ("108.8", "108.12"),
        CREATE_TOPICS,
        "CreateTopics.decide",
        condition("validate_only", guarding="DONE").never(),
    ),
    Mutant(
        ("108.10",),
        CREATE_TOPICS,
        "CreateTopics.decide",
        call("Decided($name, Outcome.of(...))", where="$context.authorize").with_arguments(
            policy_check="partial(creation, $context.client.principal, $name, (), {}, True)"
        ),
    ),
    Mutant(
        ("108.13",),
        EVALUATION,
        "PolicyEvaluation.judge",
        statement("_checks", where="replace(..., elements=$elements)").followed_by("""
            if any(decided.outcome.error == ErrorCode.POLICY_VIOLATION for decided in $elements):
                failed = Outcome(ErrorCode.POLICY_VIOLATION)
                $elements = [Decided(decided.element, failed) for decided in $elements]
        """),
    ),
    Mutant(("108.14",), CREATE_TOPICS, "CreateTopics._plan", condition("deletions").never()),
    Mutant(
        ("108.15",),
        POLICIES,
        "DeprecatedPolicies.validate_configs",
        statement("validate").removed(),
    ),
    Mutant(
        ("108.16",),
        EVALUATION,
        "PolicyEvaluation.judge",
        statement("self._policies is None", where="replace($decision, ...)").becomes("""
            if self._policies is None:
                return replace($decision, elements=[])
        """),
    ),
    Mutant(
        ("108.17",), RUNNER, "PolicyRunner._call", expression("$ms / 1000").becomes("$ms / 100")
    ),
    Mutant(("108.17",), RUNNER, "_raised_by", caught("BaseException").becomes("ValueError")),
    Mutant(
        ("108.21",),
        POLICIES,
        "load_policies",
        condition("$names[ALTER]").becomes("$old != $names[CREATE]"),
    ),
    Mutant(("108.9",), EVALUATION, "_Proposal.calls", iterated("checks").becomes("reversed($old)")),
)
