"""What Kafka's request classes refuse while a request is read: the connection is closed.

The bytes are a message, but no request of that API. One literal table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.primitives import WireError

_UNKNOWN: Final = 0  # A code of Kafka's own enums; codes that they do not define are let through.


def check_request(api_key: int, request: Any) -> None:
    """Refuse what no client of Kafka's could have made.

    Raises:
        WireError: the connection is to be closed, and nothing answered.
    """
    check = _CHECKS.get(api_key)
    if check is not None:
        check(request)


def _filter(asked: Any) -> None:
    codes = (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )
    if _UNKNOWN in codes:
        raise WireError(f"a filter of ACLs with an UNKNOWN element: {asked}")


def _create_acls(request: Any) -> None:
    for creation in request.creations:
        codes = (
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        )
        if _UNKNOWN in codes:
            raise WireError(f"an ACL with an UNKNOWN element: {creation}")


def _delete_acls(request: Any) -> None:
    for each in request.filters:
        _filter(each)


_CHECKS: Final[Mapping[int, Callable[[Any], None]]] = {
    29: _filter,
    30: _create_acls,
    31: _delete_acls,
}
