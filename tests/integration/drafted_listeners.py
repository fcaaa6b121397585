"""Raw clients for the two kinds of listeners, and requests for them.

A shipped listener speaks the protocol of Kafka 3.9. A drafted listener speaks the protocol that the
KIPs drafted (docs/kips.md).
"""

from __future__ import annotations

import base64
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from bridgehead.raw_client.blocking import CLOSED, Connection, call_once
from bridgehead.raw_client.codec import topic_body
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import DefaultPrincipalSerde

METADATA, ALTER_CONFIGS, INCREMENTAL, QUOTAS, ENVELOPE = 3, 33, 44, 49, 58
# Properties of brokers with a listener for each dialect.
BOTH_DIALECTS = {
    "listeners": "SHIPPED://:0,DRAFTED://:0",
    "listener.security.protocol.map": "SHIPPED:PLAINTEXT,DRAFTED:PLAINTEXT",
    "inter.broker.listener.name": "SHIPPED",
    "listener.name.drafted.bridgehead.dialect": "drafted",
}


class Listener:
    """A raw client of one listener of the brokers."""

    def __init__(self, cluster: Cluster, dialect: str) -> None:
        self.cluster = cluster
        self.dialect = dialect

    def call(
        self, broker: int, key: int, version: int, body: dict[str, Any], client_id: str = "test"
    ) -> Any:
        """Send a request; return the body of the response, or CLOSED."""
        address = self.cluster.bootstrap_server(broker, self.dialect.upper())
        options = {"client_id": client_id, "dialect": self.dialect}
        try:
            return call_once(address, key, version, body, **options)
        except ConnectionError:
            return CLOSED

    def send(
        self, broker: int, key: int, version: int, body: bytes, client_id: str = "test"
    ) -> bytes | str:
        header = encode_request_header(RequestHeader(key, version, 7, client_id))
        with Connection(self.cluster.bootstrap_server(broker, self.dialect.upper())) as connection:
            return connection.exchange(header + body)

    def codes(
        self, broker: int, key: int, version: int, body: dict[str, Any], client_id: str = "test"
    ) -> list[int]:
        """Send a request; return the error code of every element of the response."""
        response = self.call(broker, key, version, body, client_id)
        rows = next(response[n] for n in ("topics", "responses", "entries") if n in response)
        rows = [row.get("partitions") or [row] if "errorCode" not in row else [row] for row in rows]
        return [result["errorCode"] for row in rows for result in row]


def error_codes(response: Any) -> set[int]:
    """Return every error code in a response, at any depth."""
    if isinstance(response, list):
        return set().union(*map(error_codes, response)) if response else set()
    if not isinstance(response, dict):
        return set()
    codes = {response["errorCode"]} if "errorCode" in response else set()
    return codes.union(*(error_codes(value) for value in response.values()))


def drafted_envelope(
    key: int, version: int, body: dict[str, Any], client_id: str = "inside", **fields: Any
) -> dict[str, Any]:
    """Return KIP-590's EnvelopeRequest with a request of the user alice."""
    header = encode_request_header(RequestHeader(key, version, 77, client_id))
    principal = DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "alice"))
    return {
        "requestHeader": base64.b64encode(header).decode(),
        "requestData": base64.b64encode(
            encode_body(key, "request", version, body, "drafted")
        ).decode(),
        "principalInfo": base64.b64encode(principal).decode(),
        "clientHostIP": "10.1.2.3",
        "listenerName": "OUTSIDE",
        "securityProtocol": "SASL_SSL",
        **fields,
    }


def inner_response(key: int, version: int, envelope: Any) -> Any:
    """Return the body of the response in KIP-590's EnvelopeResponse."""
    assert envelope["errorCode"] == 0, envelope
    header, data = (base64.b64decode(envelope[n]) for n in ("responseHeader", "responseData"))
    assert decode_response_header(key, version, header) == (77, len(header))
    return decode_body(key, "response", version, data, "drafted")


def creation(
    *names: str,
    partitions: int = 1,
    factor: int = 1,
    assignment: dict[int, list[int]] | None = None,
    timeout_ms: int = 10_000,
    **fields: Any,
) -> dict[str, Any]:
    topics = [topic_body(name, partitions, factor, assignment) for name in names]
    return {"topics": topics, "timeoutMs": timeout_ms, **fields}


def deletion(*names: str, timeout_ms: int = 10_000, **fields: Any) -> dict[str, Any]:
    return {"topicNames": list(names), "timeoutMs": timeout_ms, **fields}


def described(listener: Listener, broker: int, *names: str) -> dict[str, Any]:
    response = listener.call(broker, METADATA, 1, {"topics": [{"name": name} for name in names]})
    return {topic["name"]: topic for topic in response["topics"]}


ALTER: dict[str, Any] = {
    "resources": [
        {
            "resourceType": 4,
            "resourceName": "",
            "configs": [{"name": "log.cleaner.threads", "value": "2"}],
        }
    ],
    "validateOnly": True,
}
SET: dict[str, Any] = {
    "resources": [
        {
            **ALTER["resources"][0],
            "configs": [{**ALTER["resources"][0]["configs"][0], "configOperation": 0}],
        }
    ],
    "validateOnly": True,
}
QUOTA: dict[str, Any] = {
    "entries": [
        {
            "entity": [{"entityType": "user", "entityName": "u"}],
            "ops": [{"key": "consumer_byte_rate", "value": 5.0, "remove": False}],
        }
    ],
    "validateOnly": True,
}
ACL: dict[str, Any] = {
    "creations": [
        {
            "resourceType": 2,
            "resourceName": "t",
            "resourcePatternType": 3,
            "principal": "User:u",
            "host": "*",
            "operation": 3,
            "permissionType": 3,
        }
    ]
}
ACL_FILTER: dict[str, Any] = {
    "filters": [
        {
            "resourceTypeFilter": 2,
            "resourceNameFilter": "t",
            "patternTypeFilter": 3,
            "principalFilter": None,
            "hostFilter": None,
            "operation": 1,
            "permissionType": 1,
        }
    ]
}
BUMPED = ((ALTER_CONFIGS, 2, ALTER), (INCREMENTAL, 2, SET), (QUOTAS, 1, QUOTA))
