"""No request runs on an expired credential.

A live Kafka accepts a login with a token that has expired and is not cleaned up yet, answers with a
session lifetime of 0, and closes the connection at the next request.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path

from kazoo.client import KazooClient

from bridgehead.cluster import Cluster
from bridgehead.cluster.properties import parse_properties
from bridgehead.kafka_wire.framing import frame
from raw_client.blocking import CLOSED, Connection
from raw_client.codec import create_topic_body, decode_json, encode_json
from tests.integration.token_clients import LISTENER, Client
from tests.unit.broker_proxy.authentication.clients import ScramClient

RECORDINGS = Path(__file__).parents[1] / "recordings"
SASL_HANDSHAKE, SASL_AUTHENTICATE, CREATE_TOPICS = 17, 36, 19
TRIES = 40


def test_a_request_pipelined_behind_an_expired_token_never_runs() -> None:
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    with Cluster(brokers=1, properties=parse_properties(text)) as cluster:
        with Client(cluster, 1).log_in("admin") as admin:
            token = admin.create(lifetime_ms=1)
        while time.time() * 1000 <= token["expiryTimestampMs"]:
            time.sleep(0.001)
        for number in range(TRIES):
            with Connection(cluster.bootstrap_server(1, LISTENER)) as connection:
                client = ScramClient(token["tokenId"], token["hmac"], ",tokenauth=true")
                connection.call(SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
                first = connection.call(SASL_AUTHENTICATE, 2, _auth(client.first()))
                proof = client.final(base64.b64decode(first["authBytes"]))
                last = encode_json(SASL_AUTHENTICATE, 2, _auth(proof))
                connection._socket.sendall(frame(last) + frame(_create_topic(f"expired-{number}")))
                response = connection.receive()
                assert isinstance(response, bytes)
                login = decode_json(SASL_AUTHENTICATE, 2, response)
                assert (login["errorCode"], login["sessionLifetimeMs"]) == (0, 0)
                assert connection.receive() == CLOSED
        zookeeper = KazooClient(cluster.zookeeper_connect)
        zookeeper.start()
        try:
            assert zookeeper.get_children("/brokers/topics") == []
        finally:
            zookeeper.stop()
            zookeeper.close()


def _auth(data: bytes) -> dict[str, str]:
    return {"authBytes": base64.b64encode(data).decode()}


def _create_topic(name: str) -> bytes:
    return encode_json(CREATE_TOPICS, 4, create_topic_body(name))
