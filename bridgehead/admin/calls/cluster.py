"""The cluster, its brokers and their versions (KIP-117 getAllBrokerVersions, KIP-700, KIP-584)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bridgehead.admin.errors import AdminError
from bridgehead.admin.requests import Answer, Attempt, Batch, Plan, Request, one
from bridgehead.admin.results import Node, Try
from bridgehead.kafka_wire.acl_codes import AclOperation, operations_of
from bridgehead.kafka_wire.api_key import ApiKey

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.api_versions import ApiVersionsResponse
    from bridgehead.kafka_wire.messages.update_features import UpdateFeaturesRequest

T = TypeVar("T")


class ClusterDescription(NamedTuple):
    """The cluster. `controller` is None while there is no active controller."""

    cluster_id: str | None
    controller: Node | None
    nodes: list[Node]
    authorized_operations: frozenset[AclOperation] | None = None


class ApiVersionRange(NamedTuple):
    """The versions of an API on a broker.

    `usable` is the newest version that the client also supports; None if there is none.
    """

    api_key: int
    name: str
    min_version: int
    max_version: int
    usable: int | None


class FeatureMetadata(NamedTuple):
    """The supported and the finalized features, each with its lowest and highest level.

    `supported` has the levels that the broker supports. `finalized` has the levels that are in
    effect in the cluster. `epoch` is None if the broker sends none.
    """

    supported: dict[str, tuple[int, int]]
    finalized: dict[str, tuple[int, int]]
    epoch: int | None


class NodeApiVersions(NamedTuple):
    """The contents of a broker's ApiVersions response. The keys of `apis` are API keys."""

    apis: dict[int, ApiVersionRange]
    features: FeatureMetadata


class UpgradeType(IntEnum):
    """How a feature level may change (KIP-584)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A new level of a feature; level 0 removes the feature from the finalized ones."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


def describe_cluster(include_authorized_operations: bool = False) -> Plan[ClusterDescription]:
    """Return the cluster's id, controller and live brokers (KIP-700)."""
    from bridgehead.kafka_wire.messages.describe_cluster import DescribeClusterRequest

    request = DescribeClusterRequest(include_authorized_operations)
    answer = yield from one(Request(ApiKey.DESCRIBE_CLUSTER, lambda _: request))
    message = answer.message
    answer.check(message.error_code, message.error_message)
    nodes = [Node(each.broker_id, each.host, each.port, each.rack) for each in message.brokers]
    return ClusterDescription(
        message.cluster_id,
        next((node for node in nodes if node.id == message.controller_id), None),
        sorted(nodes),
        operations_of(message.cluster_authorized_operations),
    )


def get_all_broker_versions() -> Plan[dict[Node, Try[NodeApiVersions]]]:
    """Return the API versions of every broker (KIP-117 getAllBrokerVersions).

    For a broker that does not answer, the `Try` has the error.
    """
    return (yield from of_every_broker(_api_versions_request, _node_api_versions))


def describe_features() -> Plan[FeatureMetadata]:
    """Return the supported and finalized features, as one of the brokers reports them (KIP-584)."""
    answer = yield from one(_api_versions_request(None))
    return _node_api_versions(answer).features


def update_features(
    updates: Mapping[str, FeatureUpdate], validate_only: bool = False
) -> Plan[dict[str, AdminError | None]]:
    """Change finalized feature levels; return the error of each feature (KIP-584)."""
    from bridgehead.kafka_wire.messages.update_features import (
        FeatureUpdateKey,
        UpdateFeaturesRequest,
    )

    def request(left: Mapping[str, FeatureUpdate]) -> Request:
        def build(attempt: Attempt) -> UpdateFeaturesRequest:
            wanted = [
                FeatureUpdateKey(
                    name,
                    each.max_version_level,
                    each.upgrade_type,
                    each.upgrade_type is not UpgradeType.UPGRADE,
                )
                for name, each in left.items()
            ]
            return UpdateFeaturesRequest(attempt.timeout_ms, wanted, validate_only)

        least = int(validate_only)
        return Request(
            ApiKey.UPDATE_FEATURES, build, min_version=least, because="a dry run" * least
        )

    def results(answer: Answer) -> Iterator[tuple[str, Try[None]]]:
        answer.check(answer.message.error_code, answer.message.error_message)
        for each in answer.message.results:
            yield each.feature, answer.done(each)

    return (yield from Batch(updates, request, results).errors())


def of_every_broker(
    request: Callable[[int | None], Request], value: Callable[[Answer], T]
) -> Plan[dict[Node, Try[T]]]:
    """Send a request to every live broker at the same time; return each result or error."""
    nodes = yield from live_nodes()
    outcomes = yield tuple(request(node.id) for node in nodes)
    results = {}
    for node, outcome in zip(nodes, outcomes, strict=True):
        try:
            results[node] = Try.new_value(value(outcome.get()))
        except AdminError as error:
            results[node] = Try.new_error(error)
    return results


def live_nodes() -> Plan[list[Node]]:
    """Return the live brokers, sorted by id."""
    from bridgehead.kafka_wire.messages.metadata import MetadataRequest

    request = MetadataRequest([], allow_auto_topic_creation=False)
    answer = yield from one(Request(ApiKey.METADATA, lambda _: request, min_version=1))
    brokers = answer.message.brokers
    return sorted(Node(each.node_id, each.host, each.port, each.rack) for each in brokers)


def _api_versions_request(broker: int | None) -> Request:
    from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest

    return Request(ApiKey.API_VERSIONS, lambda _: ApiVersionsRequest("bridgehead", "1"), broker)


def _node_api_versions(answer: Answer) -> NodeApiVersions:
    from bridgehead.kafka_wire.apis import SPECS

    message: ApiVersionsResponse = answer.message
    answer.check(message.error_code)
    drafted = any(each.api_key == ApiKey.ALTER_TOPICS for each in message.api_keys)
    specs = SPECS["drafted" if drafted else "shipped"]
    apis = {}
    for each in sorted(message.api_keys, key=lambda each: each.api_key):
        spec = specs.get(each.api_key)
        name = f"UNKNOWN({each.api_key})" if spec is None else spec.name
        usable = None if spec is None else min(spec.max_version, each.max_version)
        if (
            spec is not None
            and usable is not None
            and usable < max(spec.min_version, each.min_version)
        ):
            usable = None
        apis[each.api_key] = ApiVersionRange(
            each.api_key, name, each.min_version, each.max_version, usable
        )
    epoch = message.finalized_features_epoch
    return NodeApiVersions(
        apis,
        FeatureMetadata(
            {
                each.name: (each.min_version, each.max_version)
                for each in message.supported_features
            },
            {
                each.name: (each.min_version_level, each.max_version_level)
                for each in message.finalized_features
            },
            epoch if epoch >= 0 else None,
        ),
    )
