"""A broker runs no request of a client whose credential has expired.

A live Kafka accepts a login with an expired token until it has deleted the token. The response to
such a login has a session lifetime of 0, and Kafka closes the connection at the next request.
"""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from pathlib import Path

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from bridgehead.cluster.properties import parse_properties
from bridgehead.kafka_wire.framing import frame
from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import create_topic_body, decode_json, encode_json
from judge.properties.no_request_on_expired_credential import RECORDED_LATER_MS_MAX
from judge.verdicts import Verdict
from tests.integration.login_clients import LISTENER, Client, unsecured_token
from tests.integration.pipeline_runs import failed, judged
from tests.integration.zookeeper_peers import kazoo_client
from tests.unit.broker_proxy.authentication.clients import ScramClient

RECORDINGS = Path(__file__).parents[1] / "recordings"
MUTANT_NODE = module_command("chaos.mutant_node", "--mutants")
SASL_HANDSHAKE, SASL_AUTHENTICATE, CREATE_TOPICS, DESCRIBE_CLUSTER = 17, 36, 19, 60
OPERATIONS = {"includeClusterAuthorizedOperations": False}
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
TRIES = 40


def test_a_request_pipelined_behind_an_expired_token_never_runs(tmp_path: Path) -> None:
    with Cluster(brokers=1, properties=properties(), data_dir=tmp_path) as cluster:
        with Client(cluster, 1).log_in("admin") as admin:
            token, valid = admin.create(lifetime_ms=1), admin.create()
        wait_until_ms(token["expiryTimestampMs"] + 1)
        for number in range(TRIES):
            with Connection(cluster.bootstrap_server(1, LISTENER)) as connection:
                scram = ScramClient(token["tokenId"], token["hmac"], ",tokenauth=true")
                connection.call(SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
                first = connection.call(SASL_AUTHENTICATE, 2, _auth(scram.first()))
                proof = scram.final(base64.b64decode(first["authBytes"]))
                last = encode_json(SASL_AUTHENTICATE, 2, _auth(proof))
                connection._socket.sendall(frame(last) + frame(_create_topic(f"expired-{number}")))
                response = connection.receive()
                assert isinstance(response, bytes)
                login = decode_json(SASL_AUTHENTICATE, 2, response)
                assert (login["errorCode"], login["sessionLifetimeMs"]) == (0, 0)
                assert connection.receive() == CLOSED
        with kazoo_client(cluster.zookeeper_connect) as zookeeper:
            assert zookeeper.get_children("/brokers/topics") == []
        with Client(cluster, 1) as client:
            assert client.log_in_with_token(valid["tokenId"], valid["hmac"])
            assert client.call(DESCRIBE_CLUSTER, OPERATIONS) is not None
    judgements = judged(tmp_path)
    assert (judgements["A10"].row.verdict, judgements["A10"].row.judged) == (Verdict.PASS, 1)
    assert failed(judgements) == set()


def test_a_request_behind_an_expired_oauth_token_never_runs(tmp_path: Path) -> None:
    """The session ends when the token expires. The last request arrives after that."""
    oauth = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": OAUTH_MODULE,
    }
    with Cluster(brokers=1, properties={**properties(), **oauth}, data_dir=tmp_path) as cluster:
        with Connection(cluster.bootstrap_server(1, LISTENER)) as connection:
            ends_s = int(time.time()) + 2
            token = unsecured_token("admin", expires_s=ends_s)
            connection.call(SASL_HANDSHAKE, 1, {"mechanism": "OAUTHBEARER"})
            message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
            login = connection.call(SASL_AUTHENTICATE, 2, _auth(message))
            assert login["errorCode"] == 0
            assert 0 < login["sessionLifetimeMs"] <= 2000
            connection.call(CREATE_TOPICS, 4, create_topic_body("before"))
            wait_until_ms(ends_s * 1000 + 1)
            with suppress(OSError):
                connection._socket.sendall(frame(_create_topic("after")))
            assert connection.receive() == CLOSED
        with kazoo_client(cluster.zookeeper_connect) as zookeeper:
            assert zookeeper.get_children("/brokers/topics") == ["before"]
    judgements = judged(tmp_path)
    assert (judgements["A10"].row.verdict, judgements["A10"].row.judged) == (Verdict.PASS, 1)
    assert failed(judgements) == set()


def test_served_expired_sessions_fail_a10(tmp_path: Path) -> None:
    """With the seeded bug the broker serves clients whose token or session has expired."""
    limit = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "300"}
    with (
        Cluster(
            brokers=1,
            properties={**properties(), **limit},
            data_dir=tmp_path,
            node_command=(*MUTANT_NODE, "serves_expired_sessions"),
        ) as cluster,
        Client(cluster, 1).log_in("admin") as admin,
        Client(cluster, 1) as owner,
    ):
        session_ends_ms = int(time.time() * 1000) + 300
        token = admin.create(lifetime_ms=1)
        ends_ms = max(session_ends_ms, token["expiryTimestampMs"])
        wait_until_ms(ends_ms + RECORDED_LATER_MS_MAX + 100)
        assert owner.log_in_with_token(token["tokenId"], token["hmac"])
        for client in (admin, owner):
            assert client.call(DESCRIBE_CLUSTER, OPERATIONS) is not None
    judgements = judged(tmp_path)
    assert failed(judgements) == {"A10"}
    assert len({violation.rows[0] for violation in judgements["A10"].violations}) == 2, (
        "the judge did not report both logins"
    )


def properties() -> dict[str, str]:
    return parse_properties((RECORDINGS / "secured.properties").read_text(encoding="utf-8"))


def wait_until_ms(wall_ms: int) -> None:
    while time.time() * 1000 < wall_ms:
        time.sleep(0.001)


def _auth(data: bytes) -> dict[str, str]:
    return {"authBytes": base64.b64encode(data).decode()}


def _create_topic(name: str) -> bytes:
    return encode_json(CREATE_TOPICS, 4, create_topic_body(name))
