"""Policies are loaded by dotted path and configured once; errors are one sentence."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.policy import (
    AlterConfigPolicy,
    ConfigResource,
    CreateTopicPolicy,
    FixedClusterState,
    PolicyViolationException,
    RequestedTopicState,
)
from cluster_model.principal import ANONYMOUS
from controller.apis.policy_check import (
    AlterBrokerConfigs,
    AlterTopicConfigs,
    PolicyCheck,
    creation,
)
from node.assembly.policies import (
    ALTER,
    CREATE,
    MANAGEMENT,
    DeprecatedPolicies,
    NodePolicies,
    load_policies,
    load_record_policies,
)
from node.config import NodeConfigError

HERE = __name__
ROOT = Path(__file__).parents[3]


async def evaluated(policies: NodePolicies, check: PolicyCheck) -> Any:
    (result,) = await policies.evaluate([(check, FixedClusterState())], [])
    return result


class Recorder(CreateTopicPolicy):
    """Records its requests."""

    configured: ClassVar[Mapping[str, str]] = {}
    seen: ClassVar[list[Any]] = []
    closed: ClassVar[int] = 0

    def configure(self, configs: Mapping[str, str]) -> None:
        Recorder.configured = configs
        Recorder.seen = []

    def validate(self, request_metadata: CreateTopicPolicy.RequestMetadata) -> None:
        self.seen.append(request_metadata)

    def close(self) -> None:
        Recorder.closed += 1


class ConfigRecorder(AlterConfigPolicy):
    seen: ClassVar[list[Any]] = []
    closed: ClassVar[int] = 0

    def validate(self, request_metadata: AlterConfigPolicy.RequestMetadata) -> None:
        self.seen.append(request_metadata)
        if "retention.ms" in request_metadata.configs:
            raise PolicyViolationException("not the retention")

    def close(self) -> None:
        ConfigRecorder.closed += 1


class CannotBeConfigured(Recorder):
    def configure(self, configs: Mapping[str, str]) -> None:
        raise SystemExit("no licence")


class NeedsArguments(Recorder):
    def __init__(self, much: int) -> None: ...


class HalfAPolicy:
    def validate_create_topic(self) -> None: ...


def load(**names: str) -> Any:
    keys = {"create": CREATE, "alter": ALTER, "management": MANAGEMENT}
    return load_policies({keys[kind]: f"{HERE}.{name}" for kind, name in names.items()}, 1000)


def test_empty_name_configures_no_policy() -> None:
    assert load_policies({CREATE: " "}, 1000) is None


def test_policy_receives_immutable_properties() -> None:
    load_policies({CREATE: f"{HERE}.Recorder", "broker.id": "7"}, 1000)
    assert Recorder.configured["broker.id"] == "7"
    with pytest.raises(TypeError):
        Recorder.configured["broker.id"] = "8"  # type: ignore[index]


@pytest.mark.parametrize(
    ("key", "name", "message"),
    [
        (CREATE, "Policy", "is not a dotted path: write package.module.Class"),
        (CREATE, "no.such.Policy", "cannot be imported .* put the folder of its package on PYTH"),
        (CREATE, f"{HERE}.NoSuchClass", "is missing: .* has no such class"),
        (CREATE, f"{HERE}.HERE", "is missing: .* has no such class"),
        (
            MANAGEMENT,
            f"{HERE}.HalfAPolicy",
            "is not a policy: it lacks configure, validate_alt",
        ),
        (MANAGEMENT, f"{HERE}.Recorder", "is not a policy: it lacks validate_create_topic"),
        (CREATE, f"{HERE}.CannotBeConfigured", "cannot be configured: SystemExit: no licence"),
        (CREATE, f"{HERE}.NeedsArguments", "cannot be configured: TypeError"),
    ],
)
def test_invalid_policy_class_is_rejected(key: str, name: str, message: str) -> None:
    with pytest.raises(NodeConfigError, match=message) as caught:
        load_policies({key: name}, 1000)
    assert str(caught.value).startswith(f"{key}={name} ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("older", [CREATE, ALTER])
def test_new_and_older_policies_exclude_each_other(older: str) -> None:
    """KIP-201: both together are a configuration error. Neither class is loaded."""
    with pytest.raises(NodeConfigError, match=f"{older} and {MANAGEMENT} are both set"):
        load_policies({older: "no.such.Policy", MANAGEMENT: "no.such.Policy"}, 1000)


def test_older_policies_log_a_deprecation_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KIP-201 deprecates them."""
    with caplog.at_level(logging.WARNING):
        load(create="Recorder", alter="ConfigRecorder")
        warned = [record.getMessage() for record in caplog.records]
        load_policies({MANAGEMENT: "bridgehead.policy.limits.TopicLimits"}, 1000)
    assert warned == [
        f"{CREATE} is deprecated: use {MANAGEMENT} (KIP-201).",
        f"{ALTER} is deprecated: use {MANAGEMENT} (KIP-201).",
    ]
    assert len(caplog.records) == 2


async def test_create_policy_receives_counts_or_assignments() -> None:
    """KIP-108."""
    policies = load(create="Recorder")
    placed, assigned = (
        creation(ANONYMOUS, "t", ((1, 2), (2, 3), (3, 1)), {"retention.ms": "5"}, generated)
        for generated in (True, False)
    )
    for check in (placed, assigned):
        assert await evaluated(policies, check) is None
    configs = {"retention.ms": "5"}
    assert Recorder.seen == [
        CreateTopicPolicy.RequestMetadata("t", 3, 2, None, configs),
        CreateTopicPolicy.RequestMetadata(
            "t", None, None, {0: (1, 2), 1: (2, 3), 2: (3, 1)}, configs
        ),
    ]


async def test_config_policy_receives_the_entries_of_the_request() -> None:
    """It does not receive the merged configs."""
    policies = load(alter="ConfigRecorder")
    merged = RequestedTopicState(1, 1, configs={"retention.ms": "5", "flush.ms": "7"})
    ConfigRecorder.seen = []
    changed = {"flush.ms": "7", "segment.ms": None}
    assert await evaluated(policies, AlterTopicConfigs("t", None, merged, changed)) is None
    error = await evaluated(policies, AlterBrokerConfigs("1", {"retention.ms": "5"}))
    assert (error.error, error.message) == (ErrorCode.POLICY_VIOLATION, "not the retention")
    assert ConfigRecorder.seen == [
        AlterConfigPolicy.RequestMetadata(ConfigResource("TOPIC", "t"), changed),
        AlterConfigPolicy.RequestMetadata(ConfigResource("BROKER", "1"), {"retention.ms": "5"}),
    ]


class ForTopicsAndConfigs(CreateTopicPolicy, AlterConfigPolicy):  # type: ignore[misc]
    """One class that implements both older interfaces."""

    instances: ClassVar[int] = 0

    def __init__(self) -> None:
        ForTopicsAndConfigs.instances += 1

    def validate(self, request_metadata: Any) -> None:
        if isinstance(request_metadata, CreateTopicPolicy.RequestMetadata):
            raise PolicyViolationException(f"topic {request_metadata.topic}")
        assert isinstance(request_metadata, AlterConfigPolicy.RequestMetadata)
        raise PolicyViolationException(f"configs of {request_metadata.resource.name}")


async def test_one_class_can_implement_both_older_policies() -> None:
    """KIP-108: both properties must still be set. Each property creates its own instance."""
    policies = load(create="ForTopicsAndConfigs", alter="ForTopicsAndConfigs")
    assert ForTopicsAndConfigs.instances == 2
    created = await evaluated(policies, creation(ANONYMOUS, "t", ((1, 2),), {}, True))
    altered = await evaluated(policies, AlterBrokerConfigs("1", {"retention.ms": "5"}))
    assert (created.message, altered.message) == ("topic t", "configs of 1")


@pytest.mark.parametrize(
    ("older", "seen"),
    [({"create": "Recorder"}, ["topic"]), ({"alter": "ConfigRecorder"}, ["configs"])],
)
async def test_an_older_policy_alone_checks_only_what_it_has_a_method_for(
    older: dict[str, str], seen: list[str]
) -> None:
    policies, called = load(**older), []
    Recorder.seen, ConfigRecorder.seen = [], []
    merged = RequestedTopicState(1, 1, configs={})
    for check in (
        creation(ANONYMOUS, "t", ((1, 2),), {}, True),
        AlterTopicConfigs("t", None, merged, {"flush.ms": "7"}),
    ):
        assert await evaluated(policies, check) is None
    called += ["topic"] * len(Recorder.seen) + ["configs"] * len(ConfigRecorder.seen)
    assert called == seen


async def test_new_policy_ignores_broker_configs() -> None:
    """KIP-201's policy checks only topics."""
    policies = load_policies({MANAGEMENT: "bridgehead.policy.limits.TopicLimits"}, 1000)
    assert policies is not None
    assert await evaluated(policies, AlterBrokerConfigs("1", {"x": "1"})) is None


def test_only_the_new_policy_checks_delete_records() -> None:
    """A second instance of the policy checks the partitions that the node leads."""
    assert load_record_policies({CREATE: f"{HERE}.Recorder"}, 1000) is None
    name = "bridgehead.policy.limits.TopicLimits"
    assert load_record_policies({MANAGEMENT: name}, 1000) is not None


async def test_policy_is_closed_once() -> None:
    """KIP-108: a policy is closed during broker shutdown. Both older policies are."""
    policies, before = load(create="Recorder", alter="ConfigRecorder"), Recorder.closed
    ConfigRecorder.closed = 0
    await policies.close()
    assert (Recorder.closed, ConfigRecorder.closed) == (before + 1, 1)


def test_the_interfaces_can_be_imported_without_a_broker() -> None:
    """KIP-108: the interface is a part of the clients' library."""
    code = (
        "import sys, bridgehead.policy as p\n"
        "p.CreateTopicPolicy.RequestMetadata('t', 3, 2, None, {'a': '1'})\n"
        "p.TopicManagementPolicy, p.AlterConfigPolicy, p.PolicyViolationException\n"
        "parts = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not parts & {'node', 'controller', 'broker_proxy', 'grpc', 'zookeeper_client'}\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_second_older_policy_is_closed_even_if_closing_the_first_fails() -> None:

    class Fails(Recorder):
        def close(self) -> None:
            raise OSError("busy")

    closed: list[str] = []

    class Closes(ConfigRecorder):
        def close(self) -> None:
            closed.append("alter")

    with pytest.raises(OSError, match="busy"):
        DeprecatedPolicies(Fails(), Closes()).close()
    assert closed == ["alter"]
