"""Serializes principals for Envelopes. KIP-590 §KafkaPrincipal Serialization.

Every format begins with an int16 version, which distinguishes the formats:

    0       Kafka's DefaultPrincipalData, a flexible message (docs/kafka/forwarding.md#principals)
    16384   a custom principal builder's name, then the bytes that the builder returned
    32767   a fake principal, for the first implementation stage of KIP-590's draft

A node reads only the format that it is configured for. Other bytes raise an error; they
never become a default principal. This holds even if the bytes that a custom builder returned
look like Kafka's format.
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
_CUSTOM: Final = 0x4000
_FAKE: Final = 0x7FFF
FAKE_TYPE: Final = "Fake"


class PrincipalDeserializationError(Exception):
    """The bytes are not a principal in this node's format. Nothing was executed."""


class PrincipalSerde(Protocol):
    """Serializes principals; a custom principal builder provides its own."""

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """Return the principal's bytes."""

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        """Return the principal. Raises PrincipalDeserializationError."""


class DefaultPrincipalSerde:
    """Kafka's own byte format, version 0."""

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """See PrincipalSerde. `User:alice` is 0000 05 55736572 06 616c696365 00 00."""
        return b"".join(
            (
                _VERSION.pack(_CURRENT),
                _text(principal.type),
                _text(principal.name),
                b"\1" if principal.token_authenticated else b"\0",
                b"\0",
            )
        )

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        try:
            kind, at = _read_text(data, _after_version(data, _CURRENT))
            name, at = _read_text(data, at)
            token = data[at]
            tags, at = decode_varint(data, at + 1)
            at = skip_tagged_fields(data, at, tags)
        except (struct.error, IndexError, WireError, UnicodeDecodeError) as error:
            raise PrincipalDeserializationError(f"principal bytes: {error}") from None
        if at != len(data) or token > 1 or not kind:
            raise PrincipalDeserializationError("principal bytes: not a principal")
        return KafkaPrincipal(kind, name, token_authenticated=token == 1)


class PrincipalCodec(Protocol):
    """The methods that a custom principal builder needs on a broker that forwards.

    In KIP-590's draft the builder has both methods. In Kafka, KafkaPrincipalSerde has them.
    """

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """Return the principal's bytes."""

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        """Return the principal; any exception means that the bytes are invalid."""


class CustomPrincipalSerde:
    """A custom builder's name, then the builder's bytes. Another builder's name is an error."""

    def __init__(self, name: str, codec: PrincipalCodec) -> None:
        self._head = _VERSION.pack(_CUSTOM) + _text(name)
        self._name = name
        self._codec = codec

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        """See PrincipalSerde. Raises whatever the builder raises."""
        return self._head + self._codec.serialize(principal)

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        try:
            name, at = _read_text(data, _after_version(data, _CUSTOM))
        except (struct.error, WireError, UnicodeDecodeError) as error:
            raise PrincipalDeserializationError(f"principal bytes: {error}") from None
        if name != self._name:
            raise PrincipalDeserializationError("principal bytes of another principal builder")
        try:
            principal = self._codec.deserialize(data[at:])
        except Exception as error:  # Custom code may raise anything.
            raise PrincipalDeserializationError(
                f"the principal builder {self._name} raised {type(error).__name__}"
            ) from error
        if not isinstance(principal, KafkaPrincipal):
            raise PrincipalDeserializationError(f"{self._name} returned no principal")
        return principal


class FakePrincipalSerde:
    """Fake principals, with which the first stage of KIP-590's draft tests forwarding.

    Every principal arrives as `Fake:<name>`, so no user's ACL applies to it. Nodes in the first
    stage accept only this format. Nodes in the second stage reject it.
    """

    def __init__(self) -> None:
        self._inner = DefaultPrincipalSerde()

    def serialize(self, principal: KafkaPrincipal) -> bytes:
        fake = KafkaPrincipal(FAKE_TYPE, principal.name)
        return _VERSION.pack(_FAKE) + self._inner.serialize(fake)[_VERSION.size :]

    def deserialize(self, data: bytes) -> KafkaPrincipal:
        try:
            at = _after_version(data, _FAKE)
        except struct.error as error:
            raise PrincipalDeserializationError(f"principal bytes: {error}") from None
        principal = self._inner.deserialize(_VERSION.pack(_CURRENT) + data[at:])
        if principal.type != FAKE_TYPE:
            raise PrincipalDeserializationError("principal bytes: a real principal marked as fake")
        return principal


def _after_version(data: bytes, expected: int) -> int:
    (version,) = _VERSION.unpack_from(data)
    if version != expected:
        raise PrincipalDeserializationError(f"Invalid principal data version {version}")
    return _VERSION.size


def _text(text: str) -> bytes:
    data = text.encode()
    return encode_varint(len(data) + 1) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    length, at = decode_varint(data, at)
    end = at + length - 1
    if length == 0 or end > len(data):
        raise PrincipalDeserializationError("principal bytes: a text is null or incomplete")
    return data[at:end].decode(), end
