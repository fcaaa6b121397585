"""The Kafka protocol without I/O: framing, headers, and every message in every version.

`decode_body` and `encode_body` convert between bytes and plain dicts with Kafka's field names, for
any tool. `WireError` is the only exception that bad input raises.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.framing import FrameBuffer, FrameError
from bridgehead.kafka_wire.primitives import WireError

if TYPE_CHECKING:
    from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
    from bridgehead.kafka_wire.json_form import decode_body, encode_body

__all__ = [
    "API_SPECS",
    "ApiError",
    "ApiKey",
    "ApiSpec",
    "ErrorCode",
    "FrameBuffer",
    "FrameError",
    "WireError",
    "decode_body",
    "encode_body",
]

# Importing these would take a sixth of the time of `import bridgehead.admin`, which needs them only
# when a client is created.
_IMPORTED_WHEN_USED = {
    "API_SPECS": "bridgehead.kafka_wire.apis",
    "ApiSpec": "bridgehead.kafka_wire.apis",
    "decode_body": "bridgehead.kafka_wire.json_form",
    "encode_body": "bridgehead.kafka_wire.json_form",
}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_IMPORTED_WHEN_USED[name]), name)
