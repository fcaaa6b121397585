"""Envelopes from clients get the same responses as from a real Kafka 3.9.1, except `DIFFERENT`.

`DIFFERENT` has the cases whose responses differ, with our error codes.

`tests/data/client_envelopes.jsonl.gz` has the responses of a forwarding Kafka with an authorizer.
On the inter-broker listener (SASL_PLAINTEXT) the clients were a super user and alice, who lacks
CLUSTER_ACTION. On the other listener the client was anonymous.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.codec import decode_request, decode_response
from bridgehead.kafka_wire.headers import decode_request_header, decode_response_header
from bridgehead.kafka_wire.messages.envelope import EnvelopeResponse
from bridgehead.raw_client.blocking import CLOSED, Connection
from cluster_model.acls.authorizer import CLASS_NAME
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst
from tests.integration.secured import Secured

DATA: Final = Path(__file__).parents[1] / "data" / "client_envelopes.jsonl.gz"
BROKERS: Final = {"controller": 1, "other": 2}
LISTENER: Final = "SASL_PLAINTEXT"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ENVELOPE, CREATE_TOPICS, ALTER_CONFIGS = 58, 19, 44
PROPERTIES_OF_BROKERS: Final = {
    "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
    "inter.broker.listener.name": LISTENER,
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{MODULE} username="broker" password="broker-secret" user_broker="broker-secret" '
        'user_admin="admin-secret" user_alice="alice-secret";'
    ),
    "authorizer.class.name": CLASS_NAME,
    "super.users": "User:admin;User:broker",
    "delegation.token.secret.key": "token-master-key",
}
AUTHORIZATION_FAILED: Final = "request_forwarding_to_controller_authorization_fail_count_total"
# docs/differences.md: `envelope-broken-inside`.
STRICTER: Final = {"principal-trailing": 97, "principal-emptytype": 97, "principal-tok2": 97}
DIFFERENT: Final = {**STRICTER, "inner-describequorum": 35}


def recorded_steps() -> Iterator[Any]:
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        step = json.loads(line)
        yield pytest.param(step, id=f"{step['to']}-{step['user']}-{step['case']}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("envelopes")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    with Cluster(
        brokers=2, controller=1, data_dir=folder, properties=PROPERTIES_OF_BROKERS
    ) as running:
        yield running


def send(cluster: Cluster, step: Any) -> bytes | str:
    user = step["user"]
    listener = LISTENER if user else "PLAINTEXT"
    connection = Connection(cluster.bootstrap_server(BROKERS[step["to"]], listener))
    if user:
        assert connection.log_in(user, f"{user}-secret")
    frame = connection.exchange(bytes.fromhex(step["request_hex"]))
    connection.close()
    return frame


def opened(frame: bytes) -> EnvelopeResponse:
    _, at = decode_response_header(ENVELOPE, 0, frame)
    response: EnvelopeResponse = decode_response(ENVELOPE, 0, frame, at)
    return response


def results(step: Any, response: EnvelopeResponse) -> Any:
    """Return the error of the Envelope, and the inner correlation id, names and errors."""
    if response.response_data is None:
        return response.error_code, None
    _, at = decode_request_header(bytes.fromhex(step["request_hex"]))
    inner = decode_request(ENVELOPE, 0, bytes.fromhex(step["request_hex"]), at).request_data
    header, _ = decode_request_header(inner)
    key, version = header.api_key, header.api_version
    correlation, at = decode_response_header(key, version, response.response_data)
    message = decode_response(key, version, response.response_data, at)
    if key == CREATE_TOPICS:
        results = [(topic.name, topic.error_code, topic.error_message) for topic in message.topics]
    elif key == ALTER_CONFIGS:
        results = [responded.error_code for responded in message.responses]
    else:
        results = message.error_code
    return response.error_code, correlation, results


@pytest.mark.parametrize("step", list(recorded_steps()))
def test_a_clients_envelope_gets_kafkas_response(cluster: Cluster, step: Any) -> None:
    frame = send(cluster, step)
    if step.get("closed"):
        assert frame == CLOSED
        return
    assert isinstance(frame, bytes)
    kafkas, ours = opened(bytes.fromhex(step["response_hex"])), opened(frame)
    if step["case"] in DIFFERENT:
        assert ours.error_code == DIFFERENT[step["case"]]
        assert results(step, ours) != results(step, kafkas)
    else:
        assert results(step, ours) == results(step, kafkas)


def test_rejected_envelopes_are_counted_and_have_events(cluster: Cluster, folder: Path) -> None:
    recorded = [recorded_step.values[0] for recorded_step in recorded_steps()]
    for step in (sent_step for sent_step in recorded if sent_step["user"] == "admin"):
        send(cluster, step)
    steps = [sent_step for sent_step in recorded if sent_step["user"] == "alice"]
    before = Secured.metric_of(cluster, 1, AUTHORIZATION_FAILED)
    for step in (candidate for candidate in steps if candidate["to"] == "controller"):
        send(cluster, step)
    denied = [
        candidate
        for candidate in steps
        if candidate["to"] == "controller" and not candidate.get("closed")
    ]
    after = Secured.metric_of(cluster, 1, AUTHORIZATION_FAILED)
    assert after - before == len(denied) > 3
    cluster.stop()
    history = History(read_run(folder))
    rejected = [e for e in history.of_kind["envelope_rejected"] if e["error"] == 31]
    assert len(rejected) >= len(denied)
    executed = {e["principal"] for e in history.of_kind["execution_started"]}
    assert executed >= {"User:admin", "User:alice", "Group:admin"}
    assert worst(judgement.row for judgement in judge(history)) is Verdict.PASS
