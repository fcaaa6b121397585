"""Clients can send texts with encoded lone surrogates. These harm neither brokers nor events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import encode_json, topic_body
from tests.integration.secured import jaas

PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin;User:broker",
    **{name: text for name, text in jaas("sasl_plaintext").items() if "scram" not in name},
}
TEXT, SURROGATE = b"QQQ", b"\xed\xa0\x80"
ACL = {
    "resourceType": 2,
    "resourceName": "QQQ",
    "resourcePatternType": 3,
    "principal": "User:QQQ",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}
CONFIG = {"name": "QQQ", "configOperation": 0, "value": "QQQ"}
REQUESTS: list[tuple[ApiKey, int, dict[str, Any]]] = [
    (ApiKey.API_VERSIONS, 3, {"clientSoftwareName": "aQQQ", "clientSoftwareVersion": "QQQ"}),
    (
        ApiKey.CREATE_TOPICS,
        5,
        {
            "topics": [topic_body(name, configs={"QQQ": "QQQ"}) for name in ("QQQ", "orders")],
            "timeoutMs": 5000,
            "validateOnly": False,
        },
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                {"resourceType": kind, "resourceName": name, "configs": [CONFIG]}
                for kind, name in ((2, "QQQ"), (4, "QQQ"), (4, "1"))
            ],
            "validateOnly": False,
        },
    ),
    (ApiKey.CREATE_ACLS, 3, {"creations": [ACL]}),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("surrogates")
    with Cluster(brokers=1, data_dir=folder, properties=PROPERTIES) as started:
        yield started


def events(folder: Path) -> list[dict[str, object]]:
    return [
        orjson.loads(line)
        for path in folder.glob("evidence/run=*/node=1/*.jsonl")
        for line in path.read_bytes().splitlines()
    ]


def plain(user: str) -> bytes:
    return base64.b64encode(b"\0%b\0secret" % user.encode().replace(TEXT, SURROGATE))


def test_requests_with_lone_surrogates_get_a_response(cluster: Cluster) -> None:
    """Client ids, software names, topic names, configs and principals of ACLs have surrogates."""
    with Connection(cluster.bootstrap_servers) as connection:
        assert connection.log_in("admin", "admin-secret")
        for key, version, body in REQUESTS:
            request = encode_json(key, version, body, client_id="QQQ")
            assert TEXT in request
            response = connection.exchange(request.replace(TEXT, SURROGATE))
            assert isinstance(response, bytes), (key, response)


def test_an_oauth_principal_with_a_lone_surrogate_is_rejected(cluster: Cluster) -> None:
    """JSON can escape a surrogate. The login fails before the broker uses the name."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    token = f"{part({'alg': 'none'})}.{part({'sub': chr(0xD800), 'iat': 1, 'exp': 9e9})}."
    message = base64.b64encode(f"n,,\x01auth=Bearer {token}\x01\x01".encode()).decode()
    with Connection(cluster.bootstrap_servers) as connection:
        connection.call(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "OAUTHBEARER"})
        first = connection.call(ApiKey.SASL_AUTHENTICATE, 1, {"authBytes": message})
        assert b"invalid_token" in base64.b64decode(first["authBytes"])
        end = base64.b64encode(b"\x01").decode()
        last = connection.call(ApiKey.SASL_AUTHENTICATE, 1, {"authBytes": end})
    assert last["errorCode"] == 58  # SASL_AUTHENTICATION_FAILED


def test_events_and_log_are_intact(cluster: Cluster) -> None:
    """This holds even after a failed PLAIN login whose user name has a lone surrogate."""
    with Connection(cluster.bootstrap_servers) as connection:
        connection.call(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        body = {"authBytes": plain("QQQ").decode()}
        assert connection.call(ApiKey.SASL_AUTHENTICATE, 1, body)["errorCode"] == 58
    cluster.stop()
    assert "request_received" in {event["kind"] for event in events(cluster.data_dir)}
    log = (cluster.data_dir / "nodes" / "1" / "node.log").read_text()
    assert "Traceback" not in log
