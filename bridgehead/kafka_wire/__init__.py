"""The Kafka protocol without I/O: framing, headers, and every message in every version.

`decode_body` and `encode_body` convert between bytes and plain dicts with Kafka's field names, for
any tool. `WireError` is the only exception that bad input raises.
"""

from __future__ import annotations

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, ApiSpec
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.framing import FrameBuffer, FrameError
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from bridgehead.kafka_wire.primitives import WireError

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
