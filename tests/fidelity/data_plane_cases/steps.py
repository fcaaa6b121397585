"""Builds the steps of a case: requests of every version, with the defaults of their fields.

Pure. A step is a dict in the form that `tests.fidelity.replay` describes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.headers import RequestHeader, encode_request_header
from bridgehead.kafka_wire.schema import BYTES, RECORDS, UUID, Array, Wire, fields_of
from bridgehead.raw_client.codec import topic_body

Step = dict[str, Any]
Case = dict[str, Any]
LEADER: Final = "broker:1"  # leads every partition, unless a case says otherwise
FOLLOWER: Final = "broker:2"
NO_ID: Final = "A" * 22
# The default time of records: 2023-11-14, in milliseconds.
TIME_MS: Final = 1_700_000_000_000


def versions(key: ApiKey, first: int = 0, last: int | None = None) -> Iterator[int]:
    """Yield the API's versions from `first` to `last`, both inclusive."""
    for version in API_SPECS[key].versions:
        if first <= version and (last is None or version <= last):
            yield version


def request(key: ApiKey, version: int, fields: Mapping[str, Any], **step: Any) -> Step:
    """Return a step whose body has `fields` (Kafka's names). All other fields have their defaults.

    Fields that the version lacks are left out. `step` has the step's other fields, such as `to`.
    """
    spec = API_SPECS[key]
    body = _struct(spec.request, version, fields)
    return {"to": LEADER, "api": spec.enum_name, "version": version, "body": body, **step}


def unsupported(key: ApiKey, version: int, **step: Any) -> Step:
    """Return a step with a version that no broker supports. The bytes of the body are zeros."""
    header = RequestHeader(key, version, 1, "raw")
    data = encode_request_header(header) + bytes(8)
    return {"to": LEADER, "raw": data.hex(), "fresh": True, **step}


def received(key: ApiKey, version: int, client: str, **step: Any) -> Step:
    """Return a step that waits for the response to a request that was sent with `later`."""
    api = API_SPECS[key].enum_name
    return {"to": LEADER, "api": api, "version": version, "client": client, "receive": True, **step}


def topics(*wanted: Mapping[str, Any]) -> Step:
    """Return a step that creates topics made by `topic`. Later steps can use the topics' ids."""
    step = request(ApiKey.CREATE_TOPICS, 7, {"topics": wanted, "timeoutMs": 10_000})
    captured = {
        f"{wanted_topic['name']}_id": f"topics.{at}.topicId"
        for at, wanted_topic in enumerate(wanted)
    }
    return {**step, "capture": captured, "wait_after": True}


def topic(name: str, *replicas: Sequence[int], **configs: str) -> Mapping[str, Any]:
    """Return a topic for `topics`.

    `replicas`: the brokers of each partition; by default, there is one partition on broker 1.
    `configs`: by Kafka's names, with underscores instead of dots.
    """
    placed = dict(enumerate(replicas or ((1,),)))
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return topic_body(name, assignments=placed, configs=named)


def text(data: bytes | None) -> str | None:
    """Return bytes in their JSON form."""
    return None if data is None else base64.b64encode(data).decode()


def _struct(target: type[Any], version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    fields_by_name = {field.json_name: field for field in fields_of(target)}
    if unknown := fields.keys() - fields_by_name.keys():
        raise ValueError(f"{target.__name__} has no {sorted(unknown)}")
    return {
        name: _value(field, version, fields.get(name, field.default))
        for name, field in fields_by_name.items()
        if version in field.versions and (field.tag is None or name in fields)
    }


def _value(field: Wire, version: int, value: Any) -> Any:
    if isinstance(field.type, Array):
        of = field.type.of
        if value is None:
            return None
        if not isinstance(of, type):
            return list(value)
        return [_struct(of, version, item) for item in value]
    if isinstance(field.type, type):
        return _struct(field.type, version, value)
    if field.type is UUID and isinstance(value, bytes):
        return NO_ID
    if (field.type is BYTES or field.type is RECORDS) and isinstance(value, bytes):
        return text(value)
    return value
