"""Client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from bridgehead.admin.errors import AdminError
from bridgehead.admin.requests import Batch, BrokerResponse, Plan, Request, one
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey

# Sorted pairs of a type ("user", "client-id", "ip") and a name; None names the default entity.
ClientQuotaEntity = tuple[tuple[str, str | None], ...]


class QuotaMatch(IntEnum):
    """EXACT selects the entity with the name, DEFAULT the default entity, ANY all entities."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class ClientQuotaFilterComponent(NamedTuple):
    """A condition on one type of entity. Only EXACT uses `name`."""

    entity_type: str
    match: QuotaMatch = QuotaMatch.ANY
    name: str | None = None


def quota_entity(names: Mapping[str, str | None]) -> ClientQuotaEntity:
    """Return the quota entity with these names by type; None is the default entity of the type.

    >>> quota_entity({"user": "alice", "client-id": None})
    (('client-id', None), ('user', 'alice'))
    """
    return tuple(sorted(names.items()))


def describe_client_quotas(
    components: Sequence[ClientQuotaFilterComponent] = (), strict: bool = False
) -> Plan[dict[ClientQuotaEntity, dict[str, float]]]:
    """Return the quotas of the entities that match all components.

    With `strict`, an entity matches only if there is a component for each of its types.
    """
    from bridgehead.kafka_wire.messages.describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasRequest,
    )

    message = DescribeClientQuotasRequest(
        [ComponentData(*component) for component in components], strict
    )
    response = yield from one(Request(ApiKey.DESCRIBE_CLIENT_QUOTAS, lambda _: message))
    response.check(response.message.error_code, response.message.error_message)
    return {
        _entity(entry): {value.key: value.value for value in entry.values}
        for entry in response.message.entries or ()
    }


def alter_client_quotas(
    changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], validate_only: bool = False
) -> Plan[dict[ClientQuotaEntity, AdminError | None]]:
    """Set quotas; a value of None removes a quota. Return the error of each entity."""
    from bridgehead.kafka_wire.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        EntityData,
        EntryData,
        OpData,
    )

    def request(left: Mapping[ClientQuotaEntity, Mapping[str, float | None]]) -> Request:
        message = AlterClientQuotasRequest(
            [
                EntryData(
                    [EntityData(*pair) for pair in entity],
                    [OpData(key, value or 0.0, value is None) for key, value in values.items()],
                )
                for entity, values in left.items()
            ],
            validate_only,
        )
        return Request(ApiKey.ALTER_CLIENT_QUOTAS, lambda _: message)

    def results(response: BrokerResponse) -> Iterator[tuple[ClientQuotaEntity, Try[None]]]:
        for entry in response.message.entries:
            yield _entity(entry), response.done(entry)

    by_entity = {quota_entity(dict(entity)): values for entity, values in changes.items()}
    return (yield from Batch(by_entity, request, results).errors())


def _entity(entry: Any) -> ClientQuotaEntity:
    return quota_entity(
        {component.entity_type: component.entity_name for component in entry.entity}
    )
