"""Conformance cases: how a row becomes requests, and how responses are compared with it.

A case is sent in every version that it names, once to a broker that forwards and once to the
controller. Strings may contain placeholders: `{n}` is unique for each request and of constant
length. `{topic}` is the topic that is created before the request. `{mine}` is a key whose
coordinator is the receiving broker, `{other}` is a key with another coordinator. `{logs}` is the
folder of the receiving broker's log directories. Fields that a version lacks are omitted from the
request and from the expected response.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.codec import decode_response, encode_response
from bridgehead.kafka_wire.headers import decode_response_header
from bridgehead.kafka_wire.schema import Array, fields_of
from broker_proxy.apis.groups.coordinators import partition_of
from tests.fidelity.replay import FREE

# Two keys of equal length, one in each of the two partitions of an internal topic.
KEYS: Final = ("coordinated-g", "coordinated-h")
# The leaders of partition 0 and of partition 1 of each internal topic.
COORDINATORS: Final = (1, 2)
ALL: Final = range(100)
CLOSED: Final = "closed"


_FOLDER: Final = TemporaryDirectory(prefix="bridgehead-conformance-")
# These fields are not compared, because other processes use the same disk.
_SIZES: Final = frozenset({"totalBytes", "usableBytes"})


def log_directories(broker: int) -> Path:
    """Return the folder of a broker's log directories."""
    return Path(_FOLDER.name) / str(broker)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic created before the request; the receiving broker leads every partition."""

    partitions: int = 1
    replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A row. In fields that `response` omits, both brokers must return the same value."""

    name: str
    body: Mapping[str, Any]
    response: Mapping[str, Any] | str  # CLOSED: the broker closes the connection
    versions: range = ALL
    topic: Topic | None = None
    # How a KIP's draft differs (docs/kips.md). If set, the case is not sent to drafted listeners.
    drafted: str = ""


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """One case in one version to one broker. `number` makes its names unique."""

    case: Case
    key: int
    version: int
    broker: int
    number: int
    dialect: str = "shipped"

    @property
    def marker(self) -> str:
        """The value of `{n}`."""
        return f"{self.number:05d}"

    @property
    def topic_name(self) -> str:
        """The value of `{topic}`."""
        return f"there-{self.marker}"

    @property
    def names(self) -> Mapping[str, str]:
        """The value of each placeholder."""
        mine = next(key for key in KEYS if COORDINATORS[partition_of(key, 2)] == self.broker)
        (other,) = set(KEYS) - {mine}
        return {
            "{logs}": str(log_directories(self.broker)),
            "{n}": self.marker,
            "{topic}": self.topic_name,
            "{mine}": mine,
            "{other}": other,
        }

    def filled(self, value: Any) -> Any:
        """Return a row's value with placeholders replaced."""
        if isinstance(value, str):
            for placeholder, name in self.names.items():
                value = value.replace(placeholder, name)
            return value
        if isinstance(value, Mapping):
            return {key: self.filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        return value

    def message(self) -> Any:
        """Return the request."""
        return _build(API_SPECS[self.key].request, self.filled(self.case.body), self.version)


def _build(kind: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_build(kind.of, item, version) for item in value]
    if not isinstance(kind, type):
        return value
    fields = {member.json_name: member for member in fields_of(kind)}
    unknown = set(value) - set(fields)
    assert not unknown, f"{kind.__name__} has no {sorted(unknown)}"
    return kind(
        **{
            fields[name].name: _build(fields[name].type, inner, version)
            for name, inner in value.items()
        }
    )


def first_difference(expected: Any, got: Any, place: str = "answer") -> str | None:
    """Return a text about the first difference; None if there is none.

    Fields that the version lacks are not compared."""
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping):
            return f"{place} is {got!r}"
        difference = (
            first_difference(inner, got[key], f"{place}.{key}")
            for key, inner in expected.items()
            if key in got
        )
        return next((inner_difference for inner_difference in difference if inner_difference), None)
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"{place} does not have {len(expected)} elements: {got!r}"
        pairs = enumerate(zip(expected, got, strict=True))
        difference = (
            first_difference(here, there, f"{place}[{at}]") for at, (here, there) in pairs
        )
        return next((inner_difference for inner_difference in difference if inner_difference), None)
    if isinstance(expected, str) and expected.endswith("…"):
        text = str(got)
        return None if text.startswith(expected[:-1]) else f"{place} is {got!r}, not {expected!r}"
    return None if got == expected else f"{place} is {got!r}, not {expected!r}"


def comparable_bytes(request: CaseRequest, response: bytes) -> tuple[int, bytes]:
    """Return a response's length, and its bytes without unique names, ids and times."""
    key, version = request.key, request.version
    if key == 18 and response[4:6] == b"\0\x23":
        version = 0  # an unsupported version of ApiVersions gets a response of version 0
    _, at = decode_response_header(key, version, response)
    message = decode_response(key, version, response, at)
    again = encode_response(key, version, message)
    assert again == response[at:], "this codec encodes the response differently"
    return len(response), encode_response(key, version, _without_unique(message, request.names))


def _without_unique(value: Any, names: Mapping[str, str]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {}
        for member in fields_of(type(value)):
            there = getattr(value, member.name)
            if member.json_name in FREE | _SIZES and there is not None:
                changes[member.name] = type(there)() if not isinstance(there, bytes) else bytes(16)
            else:
                changes[member.name] = _without_unique(there, names)
        return dataclasses.replace(value, **changes)
    if isinstance(value, list):
        return [_without_unique(item, names) for item in value]
    if isinstance(value, str):
        for placeholder, name in names.items():
            value = value.replace(name, placeholder)
    return value
