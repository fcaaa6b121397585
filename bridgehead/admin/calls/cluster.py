"""The cluster, its brokers and their versions (KIP-117 getAllBrokerVersions, KIP-700, KIP-584)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bridgehead.admin.errors import AdminError
from bridgehead.admin.requests import Attempt, Batch, BrokerResponse, Plan, Request, one
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
    response = yield from one(Request(ApiKey.DESCRIBE_CLUSTER, lambda _: request))
    message = response.message
    response.check(message.error_code, message.error_message)
    nodes = [
        Node(broker.broker_id, broker.host, broker.port, broker.rack) for broker in message.brokers
    ]
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
    response = yield from one(_api_versions_request(None))
    return _node_api_versions(response).features


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
                    update.max_version_level,
                    update.upgrade_type,
                    update.upgrade_type is not UpgradeType.UPGRADE,
                )
                for name, update in left.items()
            ]
            return UpdateFeaturesRequest(attempt.timeout_ms, wanted, validate_only)

        least = int(validate_only)
        return Request(
            ApiKey.UPDATE_FEATURES, build, min_version=least, because="a dry run" * least
        )

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        response.check(response.message.error_code, response.message.error_message)
        for result in response.message.results:
            yield result.feature, response.done(result)

    return (yield from Batch(updates, request, results).errors())


def of_every_broker(
    request: Callable[[int | None], Request], value: Callable[[BrokerResponse], T]
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
    response = yield from one(Request(ApiKey.METADATA, lambda _: request, min_version=1))
    brokers = response.message.brokers
    return sorted(Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in brokers)


def _api_versions_request(broker: int | None) -> Request:
    from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest

    return Request(ApiKey.API_VERSIONS, lambda _: ApiVersionsRequest("bridgehead", "1"), broker)


def _node_api_versions(response: BrokerResponse) -> NodeApiVersions:
    from bridgehead.kafka_wire.apis import SPECS

    message: ApiVersionsResponse = response.message
    response.check(message.error_code)
    drafted = any(api_key.api_key == ApiKey.ALTER_TOPICS for api_key in message.api_keys)
    specs = SPECS["drafted" if drafted else "shipped"]
    apis = {}
    for api_key in sorted(message.api_keys, key=lambda api_key: api_key.api_key):
        spec = specs.get(api_key.api_key)
        name = f"UNKNOWN({api_key.api_key})" if spec is None else spec.name
        usable = None if spec is None else min(spec.max_version, api_key.max_version)
        if (
            spec is not None
            and usable is not None
            and usable < max(spec.min_version, api_key.min_version)
        ):
            usable = None
        apis[api_key.api_key] = ApiVersionRange(
            api_key.api_key, name, api_key.min_version, api_key.max_version, usable
        )
    epoch = message.finalized_features_epoch
    return NodeApiVersions(
        apis,
        FeatureMetadata(
            {
                feature.name: (feature.min_version, feature.max_version)
                for feature in message.supported_features
            },
            {
                feature.name: (feature.min_version_level, feature.max_version_level)
                for feature in message.finalized_features
            },
            epoch if epoch >= 0 else None,
        ),
    )
