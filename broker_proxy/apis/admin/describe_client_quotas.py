"""DescribeClientQuotas, key 48: answered by every broker from ZooKeeper (docs/kafka/quotas.md).

A filter has at most one component for each entity type. An entity matches if it matches every
component. If the filter is strict, each type of the entity must also have a component. The same
znodes store SCRAM credentials; these are not returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.config_ports import EntityReader
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.client_quotas import CLIENT_ID, IP, USER, QuotaEntity, quotas_of
from cluster_model.configs.steps import user_and_client
from cluster_model.configs.types import ConfigException
from cluster_model.records import ConfigResource
from cluster_model.znode_names import path_error
from cluster_model.znodes.entity_names import desanitize, sanitize

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
# Error messages say `client` for the type `client-id`.
_TEXT_NAMES: Final = {USER: "user", CLIENT_ID: "client", IP: "ip"}


@dataclass(frozen=True, slots=True)
class DescribeClientQuotas:
    """Answers DescribeClientQuotas requests."""

    reader: EntityReader
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLIENT_QUOTAS

    async def handle(self, request: ClientRequest, message: DescribeClientQuotasRequest) -> Any:
        """Return the matching entities; raises ApiError for an invalid filter."""
        allowed = self.authorize_for(request)("DESCRIBE_CONFIGS", "CLUSTER", "kafka-cluster")
        if not allowed:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted = _read_filter(message.components)
        if any(path_error(path) for path in _single_znode(wanted, message.strict)):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an IllegalArgumentException in Kafka
        entries = []
        for entity_type in _entity_types(wanted, message.strict):
            entities = await self.reader.read_entities(entity_type)
            rows = sliced(_entries(entities, wanted, message.strict))
            entries += [entry async for entry in rows]
        return DescribeClientQuotasResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message="", entries=entries
        )


def _read_filter(components: Iterable[ComponentData]) -> dict[str, ComponentData]:
    """Return the components by entity type; raises ApiError with Kafka's text."""
    wanted: dict[str, ComponentData] = {}
    components = list(components)
    for component in components:
        is_exact = component.match_type == _EXACT
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if is_exact and component.match is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    for component in components:
        kind = component.entity_type
        if kind in wanted:
            text = f"Duplicate {_TEXT_NAMES[kind]} filter component entity type"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if not kind:
            text = "Unexpected empty filter component entity type"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if kind not in _TEXT_NAMES:
            text = f"Custom entity type '{kind}' not supported"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
        wanted[kind] = component
    if IP in wanted and len(wanted) > 1:
        text = (
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    return wanted


def _single_znode(wanted: Mapping[str, ComponentData], strict: bool) -> list[str]:
    """Return the path of the znode if Kafka reads only one for this filter, else an empty list."""
    named = {
        kind: sanitize(component.match if component.match_type == _EXACT else None)
        for kind, component in wanted.items()
        if component.match_type != _ANY
    }
    if IP in named:
        return [f"/config/ips/{named[IP]}"]
    if USER in named and CLIENT_ID in named:
        return [f"/config/users/{named[USER]}/clients/{named[CLIENT_ID]}"]
    if strict and len(wanted) == 1:
        roots = {USER: "/config/users", CLIENT_ID: "/config/clients"}
        return [f"{roots[kind]}/{name}" for kind, name in named.items()]
    return []


def _entity_types(wanted: Mapping[str, ComponentData], strict: bool) -> list[str]:
    """Return the entity types to read, as ZooKeeper names them."""
    if not wanted:
        return [] if strict else ["users", "clients", "ips"]
    if IP in wanted:
        return ["ips"]
    if USER not in wanted:
        return ["clients"] if strict else ["users", "clients"]
    return ["users"]


def _entries(
    configs_of_entity: Mapping[ConfigResource, Mapping[str, str]],
    wanted: Mapping[str, ComponentData],
    strict: bool,
) -> Iterable[EntryData]:
    for resource, configs in configs_of_entity.items():
        entity = _entity(resource)
        if not _matches(entity, wanted, strict):
            continue
        try:
            quotas = quotas_of(resource, configs)
        except ConfigException:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        if quotas:
            yield EntryData(
                entity=[EntityData(*part) for part in entity.items()],
                values=[ValueData(*quota) for quota in quotas.items()],
            )


def _entity(resource: ConfigResource) -> QuotaEntity:
    if resource.entity_type == "ips":
        return {IP: desanitize(resource.entity_name)}
    if resource.entity_type == "clients":
        return {CLIENT_ID: desanitize(resource.entity_name)}
    user, client = user_and_client(resource)
    if client is None:
        return {USER: desanitize(user)}
    return {USER: desanitize(user), CLIENT_ID: desanitize(client)}


def _matches(entity: QuotaEntity, wanted: Mapping[str, ComponentData], strict: bool) -> bool:
    if strict and len(entity) > len(wanted):
        return False
    for kind, component in wanted.items():
        if kind not in entity:
            return False
        if component.match_type == _EXACT and entity[kind] != component.match:
            return False
        if component.match_type == _DEFAULT and entity[kind] is not None:
            return False
    return True
