"""What Kafka's request classes refuse while a request is read: the connection is closed.

The bytes are a message, but no request of that API. One literal table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.primitives import WireError

_UNKNOWN: Final = 0  # A code of Kafka's own enums; codes that they do not define are let through.
# PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.
_SECURITY_PROTOCOLS: Final = range(4)
# The versions of UpdateMetadata in which Kafka names a listener after its protocol.
_LISTENERS_FROM_PROTOCOLS: Final = (1, 2)


def check_request(api_key: int, version: int, request: Any) -> None:
    """Refuse what no client of Kafka's could have made.

    Raises:
        WireError: the connection is to be closed, and nothing answered.
    """
    check = _CHECKS.get(api_key)
    if check is not None:
        check(request, version)


def _filter(asked: Any, _version: int) -> None:
    codes = (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )
    if _UNKNOWN in codes:
        raise WireError(f"a filter of ACLs with an UNKNOWN element: {asked}")


def _create_acls(request: Any, _version: int) -> None:
    for creation in request.creations:
        codes = (
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        )
        if _UNKNOWN in codes:
            raise WireError(f"an ACL with an UNKNOWN element: {creation}")


def _delete_acls(request: Any, version: int) -> None:
    for each in request.filters:
        _filter(each, version)


def _update_metadata(request: Any, version: int) -> None:
    if version not in _LISTENERS_FROM_PROTOCOLS:
        return
    for broker in request.live_brokers:
        for endpoint in broker.endpoints:
            if endpoint.security_protocol not in _SECURITY_PROTOCOLS:
                raise WireError(f"a listener with an unknown security protocol: {endpoint}")


_CHECKS: Final[Mapping[int, Callable[[Any, int], None]]] = {
    6: _update_metadata,
    29: _filter,
    30: _create_acls,
    31: _delete_acls,
}
