"""Lines of kafka-request.log, in the format of Kafka's RequestConvertToJson.

Kafka hides only the values of sensitive configs (docs/kafka/logs.md#request-log). Bridgehead also
hides credentials, tokens and SASL messages. A message with many elements, which Kafka writes whole,
is shown as their number: one request must not push all others out of the files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import orjson

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from bridgehead.kafka_wire.codec import decode_response
from bridgehead.kafka_wire.generate_json import HIDDEN, JsonGenerator
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages import (
    alter_user_scram_credentials,
    create_delegation_token,
    describe_delegation_token,
    envelope,
    expire_delegation_token,
    renew_delegation_token,
    sasl_authenticate,
)
from bridgehead.kafka_wire.messages.drafted import envelope as drafted_envelope
from bridgehead.kafka_wire.schema import Array, fields_of, has_more_elements
from cluster_model.configs.broker_configs.table import config_key
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from cluster_model.configs.types import java_double_text

REQUEST_LOGGER: Final = "kafka.request.logger"
_SECRETS: Final = {
    alter_user_scram_credentials.ScramCredentialUpsertion: {"salt", "salted_password"},
    create_delegation_token.CreateDelegationTokenResponse: {"hmac"},
    describe_delegation_token.DescribedDelegationToken: {"hmac"},
    expire_delegation_token.ExpireDelegationTokenRequest: {"hmac"},
    renew_delegation_token.RenewDelegationTokenRequest: {"hmac"},
    sasl_authenticate.SaslAuthenticateRequest: {"auth_bytes"},
    sasl_authenticate.SaslAuthenticateResponse: {"auth_bytes"},
    # An Envelope can embed any of these messages.
    envelope.EnvelopeRequest: {"request_data"},
    envelope.EnvelopeResponse: {"response_data"},
    drafted_envelope.EnvelopeRequest: {"request_data"},
    drafted_envelope.EnvelopeResponse: {"response_data"},
}
# A line is longer than this only because of its client id or principal.
_LINE_BYTES_MAX: Final = 64 * 1024
_ELEMENTS_MAX: Final = 500
_ALTER_CONFIGS: Final = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
# Config resource types; the values of all other types are hidden.
_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS = 2, 4, 8, 16


@dataclass(slots=True)  # created for every request; a frozen one takes longer to create
class Times:
    """The durations of a request's phases."""

    queue_ns: int = 0  # waiting for processing
    local_ns: int = 0  # processing on this node
    remote_ns: int = 0  # waiting for other nodes
    response_queue_ns: int = 0  # waiting to be sent
    send_ns: int = 0  # sending the response
    throttle_ms: int = 0


@dataclass(slots=True)  # created for every request; a frozen one takes longer to create
class CompletedRequest:
    """A finished request.

    `response` is a decoded message, an encoded body, or None if the connection was closed.
    """

    is_forwarded: bool
    header: RequestHeader
    request: Any
    response: Any
    connection_id: str
    times: Times
    security_protocol: str
    principal: str
    listener_name: str
    software_name: str = "unknown"
    software_version: str = "unknown"
    dialect: str = "shipped"


def is_deprecated(header: RequestHeader) -> bool:
    """Return whether the request log includes this version at INFO (KIP-896)."""
    return header.api_version <= DRAFTED_SPECS[header.api_key].deprecated_through


def request_line(done: CompletedRequest) -> bytes:
    """Return `Completed request:` followed by JSON; large messages only as numbers."""
    line = _line(done, _request(done), _response(done))
    if len(line) <= _LINE_BYTES_MAX:
        return line
    return _line(done, _numbers(done.request), _numbers(done.response))


def _line(done: CompletedRequest, request: Any, response: Any) -> bytes:
    header, times = done.header, done.times
    parts = (
        times.queue_ns,
        times.local_ns,
        times.remote_ns,
        times.response_queue_ns,
        times.send_ns,
    )
    queue_ms, local_ms, remote_ms, response_queue_ms, send_ms = map(_milliseconds, parts)
    described = {
        "isForwarded": done.is_forwarded,
        "requestHeader": _header(header),
        "request": request,
        "response": response,
        "connection": done.connection_id,
        "totalTimeMs": _milliseconds(sum(parts)),
        "requestQueueTimeMs": queue_ms,
        "localTimeMs": local_ms,
        "remoteTimeMs": remote_ms,
        "throttleTimeMs": times.throttle_ms,
        "responseQueueTimeMs": response_queue_ms,
        "sendTimeMs": send_ms,
        "securityProtocol": done.security_protocol,
        "principal": done.principal,
        "listener": done.listener_name,
        "clientInformation": {
            "softwareName": done.software_name,
            "softwareVersion": done.software_version,
        },
    }
    return b"Completed request:" + orjson.dumps(described)


def _header(header: RequestHeader) -> dict[str, Any]:
    spec = DRAFTED_SPECS[header.api_key]
    described: dict[str, Any] = {
        "requestApiKey": header.api_key,
        "requestApiVersion": header.api_version,
        "correlationId": header.correlation_id,
        "clientId": header.client_id,
        "requestApiKeyName": spec.enum_name,
    }
    if is_deprecated(header):
        described["requestApiVersionDeprecated"] = True
    return described


def _request(done: CompletedRequest) -> Any:
    if done.request is None:
        return ""
    if has_more_elements(done.request, _ELEMENTS_MAX):
        return _numbers(done.request)
    body = _to_json(done.request, done.header.api_version)
    if done.header.api_key in _ALTER_CONFIGS:
        for resource in body["resources"]:
            for config in resource["configs"]:
                if _is_sensitive(resource["resourceType"], config["name"]):
                    config["value"] = HIDDEN
    return body


def _response(done: CompletedRequest) -> Any:
    if done.response is None:
        return ""
    response, header = done.response, done.header
    if isinstance(response, bytes):
        if len(response) > _LINE_BYTES_MAX:
            return _numbers(response)
        response = decode_response(
            header.api_key,
            header.api_version,
            response,
            dialect=done.dialect,
            repeated=("configs",),  # equal for most topics of a CreateTopics response
        )
    if has_more_elements(response, _ELEMENTS_MAX):
        return _numbers(response)
    return _to_json(response, header.api_version)


def _numbers(message: Any) -> Any:
    """Return the number of elements of each array of a message, or of the bytes of a body."""
    if message is None:
        return ""
    if isinstance(message, bytes):
        return {"bytes": len(message)}
    arrays = (field for field in fields_of(type(message)) if isinstance(field.type, Array))
    numbers = {field.json_name: len(getattr(message, field.name) or ()) for field in arrays}
    return {"elements": {name: number for name, number in numbers.items() if number}}


def _to_json(message: Any, version: int) -> dict[str, Any]:
    return _generator(version).function(type(message))(message)


@cache
def _generator(version: int) -> JsonGenerator:
    return JsonGenerator(version, _SECRETS, _double, _fragment)


def _fragment(rows: list[dict[str, Any]]) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(rows))


def _is_sensitive(resource_type: int, name: str) -> bool:
    """Return whether KafkaConfig.loggableValue hides the value: of a password or unknown config."""
    if resource_type == _TOPIC:
        topic_key = TOPIC_CONFIGS.get(name)
        return topic_key is None or topic_key.sensitive
    if resource_type == _BROKER:
        broker_key = config_key(name)
        return broker_key is None or broker_key.sensitive
    return resource_type not in (_BROKER_LOGGER, _CLIENT_METRICS)


def _double(value: float) -> Any:
    text = java_double_text(value)
    return text if math.isnan(value) or math.isinf(value) else orjson.Fragment(text)


def _milliseconds(nanoseconds: int) -> float:
    """Return milliseconds, truncated to three decimals, as Kafka does."""
    return max(nanoseconds, 0) // 1000 / 1000
