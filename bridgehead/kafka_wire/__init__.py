"""The Kafka protocol without I/O: framing, headers, and every message in every version.

`decode_body` and `encode_body` convert between bytes and plain dicts with Kafka's field names, for
any tool. `WireError` is the only exception that bad input raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.framing import FrameBuffer, FrameError
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.lazy_imports import imported_when_used

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
__getattr__ = imported_when_used(
    __name__,
    {
        "API_SPECS": "bridgehead.kafka_wire.apis",
        "ApiSpec": "bridgehead.kafka_wire.apis",
        "decode_body": "bridgehead.kafka_wire.json_form",
        "encode_body": "bridgehead.kafka_wire.json_form",
    },
)
