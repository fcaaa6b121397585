"""Values that Kafka's request classes reject while parsing: the connection is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.primitives import WireError

_UNKNOWN: Final = 0  # rejected in ACL requests; codes that Kafka does not define pass
_ACL: Final = ("resource_type", "resource_pattern_type", "operation", "permission_type")
_FILTER: Final = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
_SECURITY_PROTOCOLS: Final = range(4)  # PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
# These versions of UpdateMetadata have no listener names; Kafka uses the name of the protocol.
_LISTENERS_FROM_PROTOCOLS: Final = (1, 2)


def check_request(api_key: int, version: int, request: Any) -> None:
    """Raise WireError for a request that no Kafka client can send; the connection is closed."""
    check = _CHECKS.get(api_key)
    if check is not None:
        check(request, version)


def _reject_unknown(elements: Iterable[Any], fields: Iterable[str]) -> None:
    for element in elements:
        if any(getattr(element, field) == _UNKNOWN for field in fields):
            raise WireError(f"an UNKNOWN element: {element}")


def _update_metadata(request: Any, version: int) -> None:
    if version not in _LISTENERS_FROM_PROTOCOLS:
        return
    for broker in request.live_brokers:
        for endpoint in broker.endpoints:
            if endpoint.security_protocol not in _SECURITY_PROTOCOLS:
                raise WireError(f"a listener with an unknown security protocol: {endpoint}")


_CHECKS: Final[Mapping[int, Callable[[Any, int], None]]] = {
    ApiKey.UPDATE_METADATA: _update_metadata,
    ApiKey.DESCRIBE_ACLS: lambda request, _: _reject_unknown([request], _FILTER),
    ApiKey.CREATE_ACLS: lambda request, _: _reject_unknown(request.creations, _ACL),
    ApiKey.DELETE_ACLS: lambda request, _: _reject_unknown(request.filters, _FILTER),
}
