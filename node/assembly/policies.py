"""Loads, configures, calls and closes the policies that a node's properties name.

The controller has a TopicManagementPolicy (KIP-201), or an adapter for the two older policies:
KIP-108's CreateTopicPolicy and KIP-133's AlterConfigPolicy. A TopicManagementPolicy has a second
instance, for the partitions that the node leads.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from bridgehead.kafka_wire.errors import ApiError
from bridgehead.policy import (
    AlterConfigPolicy,
    AlterTopicRequest,
    ClusterState,
    ConfigResource,
    CreateTopicPolicy,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    TopicManagementPolicy,
)
from controller.apis.policy_check import AlterBrokerConfigs, AlterTopicConfigs, PolicyCheck
from controller.loop.policy_evaluation import PolicyCall, Results
from node.assembly.policy_runner import Call, PolicyRunner
from node.config import NodeConfigError

_log = logging.getLogger(__name__)
CREATE: Final = "create.topic.policy.class.name"
ALTER: Final = "alter.config.policy.class.name"
MANAGEMENT: Final = "topic.management.policy.class.name"
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    CREATE: ("configure", "validate", "close"),
    ALTER: ("configure", "validate", "close"),
    MANAGEMENT: (
        "configure",
        "validate_create_topic",
        "validate_alter_topic",
        "validate_delete_topic",
        "validate_delete_records",
        "close",
    ),
}


class DeprecatedPolicies(TopicManagementPolicy):
    """KIP-201's adapter for the two older policies."""

    def __init__(self, create: CreateTopicPolicy | None, alter: AlterConfigPolicy | None) -> None:
        self._create = create
        self._alter = alter

    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Call KIP-108's policy.

        It gets the client's assignments, or else the partition count and replication factor.
        """
        if self._create is None:
            return
        state = request_metadata.requested_state
        generated = state.generated_replica_assignments
        self._create.validate(
            CreateTopicPolicy.RequestMetadata(
                topic=request_metadata.topic,
                num_partitions=state.num_partitions if generated else None,
                replication_factor=state.replication_factor if generated else None,
                replicas_assignments=None if generated else state.replicas_assignments,
                configs=state.configs,
            )
        )

    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Pass only config changes to KIP-133's policy, with the entries of the request."""
        if isinstance(request_metadata, AlterTopicConfigs):
            resource = ConfigResource("TOPIC", request_metadata.topic)
            self.validate_configs(resource, request_metadata.requested)

    def validate_configs(
        self, resource: ConfigResource, requested: Mapping[str, str | None]
    ) -> None:
        """Call KIP-133's policy for a topic or a broker."""
        if self._alter is not None:
            self._alter.validate(AlterConfigPolicy.RequestMetadata(resource, requested))

    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        """The older policies do not check deletions."""

    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        """The older policies do not check deletions of records."""

    def close(self) -> None:
        """Close both policies, even if closing the first one fails."""
        try:
            if self._create is not None:
                self._create.close()
        finally:
            if self._alter is not None:
                self._alter.close()


class NodePolicies:
    """The policies of a controller or of a partition leader.

    They are called in threads. See controller.loop.policy_evaluation.Policies.
    """

    def __init__(self, policy: TopicManagementPolicy, runner: PolicyRunner) -> None:
        self._policy = policy
        self._runner = runner

    async def evaluate(self, calls: Sequence[PolicyCall], results: Results) -> Results:
        bound = [self._bind(*call) for call in calls]
        return await self._runner.run_in_order(bound, results)

    def _bind(self, check: PolicyCheck, cluster: ClusterState) -> Call:
        policy = self._policy
        match check:
            case CreateTopicRequest():
                return partial(policy.validate_create_topic, check, cluster)
            case AlterTopicRequest():
                return partial(policy.validate_alter_topic, check, cluster)
            case DeleteTopicRequest():
                return partial(policy.validate_delete_topic, check, cluster)
            case AlterBrokerConfigs(name, requested):
                if not isinstance(policy, DeprecatedPolicies):
                    return lambda: None  # KIP-201's policy checks only topics.
                return partial(policy.validate_configs, ConfigResource("BROKER", name), requested)

    async def check_record_deletion(
        self, request: DeleteRecordsRequest, cluster: ClusterState
    ) -> ApiError | None:
        """Check DeleteRecords, on the leader of the partitions; return the error, if any."""
        return await self._runner.run(
            partial(self._policy.validate_delete_records, request, cluster)
        )

    async def close(self) -> None:
        """Close the policy; log a failure."""
        await self._runner.close(self._policy.close)


def load_policies(properties: Mapping[str, str], timeout_ms: int) -> NodePolicies | None:
    """Create the configured policies; return None if no policy is configured.

    Raises:
        NodeConfigError: a class is missing, is not a policy or cannot be configured; or both the
            new policy and an older one are set. These exclude each other (KIP-201).
    """
    names = {key: properties.get(key, "").strip() for key in _METHODS}
    for older in (CREATE, ALTER):
        if names[older] and names[MANAGEMENT]:
            raise NodeConfigError(f"{older} and {MANAGEMENT} are both set: remove {older}.")
    named = ", ".join(name for name in names.values() if name)
    if not named:
        return None
    policy: TopicManagementPolicy
    if names[MANAGEMENT]:
        policy = _load(MANAGEMENT, names[MANAGEMENT], properties)
    else:
        for key in (CREATE, ALTER):
            if names[key]:
                _log.warning("%s is deprecated: use %s (KIP-201).", key, MANAGEMENT)
        policy = DeprecatedPolicies(
            _load(CREATE, names[CREATE], properties) if names[CREATE] else None,
            _load(ALTER, names[ALTER], properties) if names[ALTER] else None,
        )
    return NodePolicies(policy, PolicyRunner(named, timeout_ms))


def load_record_policies(properties: Mapping[str, str], timeout_ms: int) -> NodePolicies | None:
    """Create the policy for partitions that this node leads; None without KIP-201's policy."""
    if not properties.get(MANAGEMENT, "").strip():
        return None
    return load_policies(properties, timeout_ms)


def _load(key: str, name: str, properties: Mapping[str, str]) -> Any:
    module_name, _, class_name = name.rpartition(".")
    if not module_name:
        raise NodeConfigError(f"{key}={name} is not a dotted path: write package.module.Class.")
    try:
        loaded = getattr(importlib.import_module(module_name), class_name, None)
    except (Exception, SystemExit) as error:
        raise NodeConfigError(
            f"{key}={name} cannot be imported ({_shown(error)}): put the folder "
            "of its package on PYTHONPATH."
        ) from error
    if not isinstance(loaded, type):
        raise NodeConfigError(f"{key}={name} is missing: {module_name} has no such class.")
    lacking = [method for method in _METHODS[key] if not callable(getattr(loaded, method, None))]
    if lacking:
        raise NodeConfigError(f"{key}={name} is not a policy: it lacks {', '.join(lacking)}.")
    try:
        policy = loaded()
        policy.configure(MappingProxyType(dict(properties)))
    except (Exception, SystemExit) as error:
        raise NodeConfigError(f"{key}={name} cannot be configured: {_shown(error)}.") from error
    return policy


def _shown(wrong: BaseException) -> str:
    """Format an exception in one line."""
    return f"{type(wrong).__name__}: {' '.join(str(wrong).split())}"
