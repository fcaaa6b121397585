"""KafkaPrincipal to bytes and back, versioned. KIP-590 §KafkaPrincipal Serialization.

Default format is Kafka's DefaultPrincipalData: an int16 version, then the flexible message
(kafka-semantics 1.8). What cannot be read is an error, never a default principal.
"""

from __future__ import annotations

import struct
from typing import Final, Protocol

from bridgehead.kafka_wire.primitives import (
    WireError,
    decode_varint,
    encode_varint,
    skip_tagged_fields,
)
from cluster_model.principal import KafkaPrincipal

_VERSION: Final = struct.Struct(">h")
_CURRENT: Final = 0


class PrincipalDeserializationError(Exception):
    """The bytes are no principal that this node can read. Definite: nothing was executed."""


class PrincipalSerde(Protocol):
    """How principals travel; a custom principal builder brings its own."""

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """Return the principal's bytes."""
        ...

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        """Return the principal. Raises PrincipalDeserializationError."""
        ...


class DefaultPrincipalSerde:
    """Kafka's own byte format, version 0."""

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """See PrincipalSerde. `User:alice` is 0000 05 55736572 06 616c696365 00 00."""
        kind, name = principal.type.encode(), principal.name.encode()
        return b"".join(
            (
                _VERSION.pack(_CURRENT),
                encode_varint(len(kind) + 1),
                kind,
                encode_varint(len(name) + 1),
                name,
                b"\1" if principal.token_authenticated else b"\0",
                b"\0",
            )
        )

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        """See PrincipalSerde."""
        try:
            (version,) = _VERSION.unpack_from(data)
            if version != _CURRENT:
                raise PrincipalDeserializationError(f"Invalid principal data version {version}")
            kind, at = _read_text(data, _VERSION.size)
            name, at = _read_text(data, at)
            token = data[at]
            tags, at = decode_varint(data, at + 1)
            at = skip_tagged_fields(data, at, tags)
        except (struct.error, IndexError, WireError, UnicodeDecodeError) as wrong:
            raise PrincipalDeserializationError(f"principal bytes: {wrong}") from None
        if at != len(data) or token > 1 or not kind:
            raise PrincipalDeserializationError("principal bytes: not a principal")
        return KafkaPrincipal(kind, name, token_authenticated=token == 1)


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    length, at = decode_varint(data, at)
    end = at + length - 1
    if length == 0 or end > len(data):
        raise PrincipalDeserializationError("principal bytes: the data ends within a text")
    return data[at:end].decode(), end
