"""AlterClientQuotas, key 49: quotas of users, client ids and ips are set and removed.

Each entry is judged on its own and on what the entries before it made (kafka-semantics 3.9). An
ip may be a host name that has an address: it is looked up before, and stored as it was written.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from bridgehead.kafka_wire.messages.alter_client_quotas import (
    AlterClientQuotasEntryData,
    AlterClientQuotasEntryDataEntityData,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
)
from cluster_model.client_quotas import (
    check_stored,
    host_name,
    in_hash_order,
    quota_resource,
    set_quota,
)
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext

_CLUSTER_NAME: Final = "kafka-cluster"


@dataclass(frozen=True, slots=True)
class AlterClientQuotas:
    """Sets and removes quotas, each entry on its own."""

    api_key: ClassVar[int] = 49

    def decide(
        self,
        context: RequestContext,
        request: AlterClientQuotasRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A dry run has the same outcomes but for what writing checks."""
        allowed = context.authorize("ALTER_CONFIGS", "CLUSTER", _CLUSTER_NAME)
        decided: list[Decided] = []
        for number, entry in enumerate(request.entries):
            element = _element(number, entry)
            if element in settled:
                continue
            if not allowed:
                error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                decided.append(Decided(element, Outcome(error, error.default_text)))
                continue
            try:
                record = _altered(entry, image, context.resolvable)
                if request.validate_only:
                    decided.append(Decided(element, DONE))
                    continue
                check_stored(record.resource, record.configs)
            except ApiError as refusal:
                message = api_message(refusal.error, refusal.message)
                decided.append(Decided(element, Outcome(refusal.error, message)))
                continue
            image = image.replay((record,))
            decided.append(Decided(element, DONE, (record,)))
        return Decision(decided)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: AlterClientQuotasRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer. An entity that came twice is answered once, by its last entry."""
        rows: dict[frozenset[tuple[str, str | None]], AlterClientQuotasEntryData] = {}
        for number, entry in enumerate(request.entries):
            outcome = outcomes[_element(number, entry)]
            parts = _parts(entry)
            rows[frozenset(parts)] = AlterClientQuotasEntryData(
                error_code=outcome.error,
                error_message=outcome.message,
                entity=[AlterClientQuotasEntryDataEntityData(*part) for part in parts],
            )
        return AlterClientQuotasResponse(throttle_time_ms=0, entries=list(rows.values()))

    def refuse(
        self,
        request: AlterClientQuotasRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse: every entry with the code and its default text."""
        return error_response(self.api_key, request, version, error, message)


def _parts(entry: EntryData) -> list[tuple[str, str | None]]:
    """Return the parts of an entity in Kafka's order; of two of a type the last counts."""
    entity = {part.entity_type: part.entity_name for part in entry.entity}
    return in_hash_order(entity, len(entry.entity))


def _element(number: int, entry: EntryData) -> str:
    """Return the name of an entry; the number tells two of one entity apart."""
    return f"{number}:{','.join(f'{kind}={name}' for kind, name in _parts(entry))}"


def host_names(request: AlterClientQuotasRequest) -> list[str]:
    """Return the names in a request that are no addresses themselves."""
    names = (host_name(_parts(entry)) for entry in request.entries)
    return [name for name in names if name is not None]


def _altered(entry: EntryData, image: MetadataImage, resolvable: Container[str]) -> ConfigRecord:
    """Return an entity with the operations applied in their order; raises ApiError."""
    resource = quota_resource(_parts(entry), resolvable)
    configs = dict(image.configs.get(resource, {}))
    for operation in entry.ops:
        if operation.remove:
            configs.pop(operation.key, None)
        else:
            configs[operation.key] = set_quota(resource, operation.key, operation.value)
    return ConfigRecord(resource, configs)
