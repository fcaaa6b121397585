"""Encoded responses, and what the evidence records about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bridgehead.kafka_wire.apis import error_response
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.schema import has_more_elements
from bridgehead.slices import in_thread, is_large
from broker_proxy.client_request import ClientRequest

# A response of so many elements is encoded within a slice.
_SMALL_ELEMENTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response body and what the evidence records about it."""

    body: bytes | None  # None: close the connection
    zxid: int
    error: int | None = None  # set when the whole request failed


CLOSE: Final = EncodedResponse(None, 0)


async def encoded(request: ClientRequest, response: Any, zxid: int) -> EncodedResponse:
    """Make this message the response to the request; `zxid` is what it reflects."""
    header = request.header
    request.progress.response = response
    key, version, dialect = header.api_key, header.api_version, request.client.dialect
    large = has_more_elements(response, _SMALL_ELEMENTS)
    body = await in_thread(large, encode_response, key, version, response, dialect)
    return EncodedResponse(body, zxid)


async def failure(
    request: ClientRequest, message: Any, error: ErrorCode, text: str | None, zxid: int
) -> EncodedResponse:
    """Return the response that reports `error` for everything in `message`."""
    return await in_thread(is_large(request.body), _failure, request, message, error, text, zxid)


def _failure(
    request: ClientRequest, message: Any, error: ErrorCode, text: str | None, zxid: int
) -> EncodedResponse:
    key, version = request.header.api_key, request.header.api_version
    response = error_response(key, message, version, error, text)
    request.progress.response = response
    if response is None:
        return CLOSE
    try:
        body = encode_response(key, version, response, request.client.dialect)
    except WireError:
        if text is None:
            raise
        # The text contains a name from the request, and is longer than a string may be.
        return _failure(request, message, ErrorCode.UNKNOWN_SERVER_ERROR, None, zxid)
    return EncodedResponse(body, zxid, int(error))
