"""The records of `__consumer_offsets`: keys and values of offset commits and of groups.

Each key and each value begins with its version (int16). Keys of versions 0 and 1 name an offset
commit, keys of version 2 a group. A record without a value (a tombstone) removes what its key
names. Values are written in version 3, as Kafka 3.9 does with ZooKeeper. Only an offset commit with
its own expiry time (from OffsetCommit versions 2 to 4) is written in version 1.

Version notes:
    Offset commit: 1 has `expire_timestamp`, 3 adds `leader_epoch`; flexible from 4.
    Group: 1 adds `rebalance_timeout`, 2 `current_state_timestamp`, 3 `group_instance_id`;
    flexible from 4.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from bridgehead.kafka_wire.generate import (
    DECODE_ERRORS,
    ENCODE_ERRORS,
    Decoder,
    Encoder,
    Generator,
)
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.schema import BYTES, INT32, INT64, STRING, Array, wire

_VERSION: Final = struct.Struct(">h")
_OFFSET_KEYS: Final = (0, 1)
_GROUP_KEY: Final = 2
_VALUE_VERSION_MAX: Final = 4
_FLEXIBLE_FROM: Final = 4
_WRITTEN: Final = 3
_WITH_EXPIRY: Final = 1
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Names one committed offset."""

    group: str = wire(STRING)
    topic: str = wire(STRING)
    partition: int = wire(INT32)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Names a group."""

    group: str = wire(STRING)


Key = OffsetKey | GroupKey


@dataclass(frozen=True, slots=True)
class OffsetValue:
    """A committed offset. Times are milliseconds since 1970; -1 means none."""

    offset: int = wire(INT64)
    leader_epoch: int = wire(INT32, versions="3+", default=-1)
    metadata: str = wire(STRING)
    commit_timestamp: int = wire(INT64)
    expire_timestamp: int = wire(INT64, versions="1", default=NEVER)


@dataclass(frozen=True, slots=True)
class MemberValue:
    """A member of a group, with its assignment."""

    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, versions="3+", nullable="3+", default=None)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    rebalance_timeout: int = wire(INT32, versions="1+")
    session_timeout: int = wire(INT32)
    subscription: bytes = wire(BYTES)
    assignment: bytes = wire(BYTES)


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A group: its generation, protocol, leader and members."""

    protocol_type: str = wire(STRING)
    generation: int = wire(INT32)
    protocol: str | None = wire(STRING, nullable="0+")
    leader: str | None = wire(STRING, nullable="0+")
    current_state_timestamp: int = wire(INT64, versions="2+", default=NEVER)
    members: list[MemberValue] = wire(Array(MemberValue))


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A key and a value for the log. The value None removes what the key names."""

    key: Key
    value: OffsetValue | GroupValue | None

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of key and value.

        Raises:
            WireError: a value does not fit its field, such as a string above 32,767 bytes.
        """
        match self.key:
            case OffsetKey():
                key = _encode(self.key, 1)
            case GroupKey():
                key = _encode(self.key, _GROUP_KEY)
        match self.value:
            case None:
                return key, None
            case OffsetValue(expire_timestamp=expires) if expires != NEVER:
                return key, _encode(self.value, _WITH_EXPIRY)
            case _:
                return key, _encode(self.value, _WRITTEN)


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Return the record; None if Kafka ignores keys of this version.

    Raises:
        WireError: the bytes are not such a record, or the value has an unknown version.
    """
    version = _version_of(key)
    if version in _OFFSET_KEYS:
        named: Key = _decode(OffsetKey, key, version)
        kind: type[Any] = OffsetValue
    elif version == _GROUP_KEY:
        named, kind = _decode(GroupKey, key, version), GroupValue
    else:
        return None
    if value is None:
        return GroupRecord(named, None)
    version = _version_of(value)
    if not 0 <= version <= _VALUE_VERSION_MAX:
        raise WireError(f"a {kind.__name__} of version {version}")
    decoded = _decode(kind, value, version)
    if isinstance(decoded, GroupValue) and version == 0:
        decoded = _with_rebalance_timeouts(decoded)
    return GroupRecord(named, decoded)


def _with_rebalance_timeouts(group: GroupValue) -> GroupValue:
    """Add rebalance timeouts, which version 0 lacks: each equals the member's session timeout."""
    members = [
        MemberValue(
            group_member.member_id,
            None,
            group_member.client_id,
            group_member.client_host,
            group_member.session_timeout,
            group_member.session_timeout,
            group_member.subscription,
            group_member.assignment,
        )
        for group_member in group.members
    ]
    return GroupValue(
        group.protocol_type, group.generation, group.protocol, group.leader, NEVER, members
    )


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError("a record without a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


@cache
def _encoder(kind: type[OffsetKey | GroupKey | OffsetValue | GroupValue], version: int) -> Encoder:
    return Generator(version, flexible=False).encoder(kind)


@cache
def _decoder(kind: type[OffsetKey | GroupKey | OffsetValue | GroupValue], version: int) -> Decoder:
    is_value = kind in (OffsetValue, GroupValue)
    flexible = is_value and version >= _FLEXIBLE_FROM
    return Generator(version, flexible=flexible).decoder(kind)


def _encode(value: Any, version: int) -> bytes:
    out = bytearray(_VERSION.pack(version))
    kind: Any = type(value)
    try:
        _encoder(kind, version)(value, out)
    except ENCODE_ERRORS as error:
        raise WireError(f"{type(value).__name__} does not fit its record: {error}") from None
    return bytes(out)


def _decode(kind: Any, data: bytes, version: int) -> Any:
    try:
        value, _ = _decoder(kind, version)(data, _VERSION.size, len(data))
    except DECODE_ERRORS:
        raise WireError(f"a {kind.__name__} that ends too early") from None
    return value
