"""AlterClientQuotas, key 49: sets and removes quotas of users, client ids and ips.

An entry can fail while others succeed. Except in a dry run, each entry sees the changes of the
entries before it (docs/kafka/quotas.md#client-quota-apis). An ip may be a host name. It must
resolve, and is stored as written.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.kafka_wire.messages.alter_client_quotas import (
    AlterClientQuotasEntryData,
    AlterClientQuotasEntryDataEntityData,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.client_quotas import (
    check_stored,
    host_name,
    in_hash_order,
    quota_resource,
    set_quota,
)
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(AdminApi):
    """Decides AlterClientQuotas requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CLIENT_QUOTAS

    def decide(
        self,
        context: RequestContext,
        request: AlterClientQuotasRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A dry run writes nothing and skips check_stored()."""
        allowed = context.authorize("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME)
        decided: list[Decided] = []
        for number, entry in enumerate(request.entries):
            element = _element(number, entry)
            if element in committed:
                continue
            if not allowed:
                denied = Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                decided.append(Decided(element, denied))
                continue
            try:
                record = _altered(entry, image, context.resolvable)
                if request.validate_only:
                    decided.append(Decided(element, DONE))
                    continue
                check_stored(record.resource, record.configs)
            except ApiError as error:
                message = api_message(error.error, error.message)
                decided.append(Decided(element, Outcome(error.error, message)))
                continue
            image = image.replay((record,))
            decided.append(Decided(element, DONE, (record,)))
        return Decision(decided)

    def response(
        self, context: RequestContext, request: AlterClientQuotasRequest, results: Results
    ) -> Any:
        """See AdminApi.response. A duplicate entity is listed once, with its last result."""
        rows: dict[frozenset[tuple[str, str | None]], AlterClientQuotasEntryData] = {}
        for number, entry in enumerate(request.entries):
            outcome = results.outcomes[_element(number, entry)]
            parts = _parts(entry)
            rows[frozenset(parts)] = AlterClientQuotasEntryData(
                error_code=outcome.error,
                error_message=outcome.message,
                entity=[AlterClientQuotasEntryDataEntityData(*part) for part in parts],
            )
        return AlterClientQuotasResponse(throttle_time_ms=0, entries=list(rows.values()))


def _parts(entry: EntryData) -> list[tuple[str, str | None]]:
    """Return an entity's parts in Kafka's order. If a type occurs twice, the last one counts."""
    entity = {part.entity_type: part.entity_name for part in entry.entity}
    return in_hash_order(entity, len(entry.entity))


def _element(number: int, entry: EntryData) -> str:
    """Return the element name of an entry. The number distinguishes entries of the same entity."""
    return f"{number}:{','.join(f'{kind}={name}' for kind, name in _parts(entry))}"


def host_names(request: AlterClientQuotasRequest) -> list[str]:
    """Return the host names of a request (values of `ip` that are not addresses)."""
    names = (host_name(_parts(entry)) for entry in request.entries)
    return [name for name in names if name is not None]


def _altered(entry: EntryData, image: MetadataImage, resolvable: Container[str]) -> ConfigRecord:
    """Return the entity's configs with the operations applied in order; raises ApiError."""
    resource = quota_resource(_parts(entry), resolvable)
    configs = dict(image.configs.get(resource, {}))
    for operation in entry.ops:
        if operation.remove:
            configs.pop(operation.key, None)
        else:
            configs[operation.key] = set_quota(resource, operation.key, operation.value)
    return ConfigRecord(resource, configs)
