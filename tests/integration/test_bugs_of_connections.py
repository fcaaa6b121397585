"""The judge finds seeded bugs of connections: responses out of order, and a forged Envelope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.framing import frame
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics, encode_json
from cluster_model.principal import KafkaPrincipal
from envelope.channel import ControllerChannel
from envelope.messages import Envelope, Hello, RequestIdentity
from envelope.principal_serde import DefaultPrincipalSerde
from tests.integration.judged_runs import failed, judged

FORWARDER = 2  # Broker 1 is the controller.
CREATION = create_topics(["orders"])
HEADER_BYTES = 13  # key, version, correlation id, client id "raw"


def mutants(folder: Path, bug: str) -> Cluster:
    return Cluster(
        brokers=2,
        controller=1,
        data_dir=folder,
        properties={"bridgehead.grpc.tls": "false"},
        node_command=module_command("chaos.mutant_node", "--mutants", bug),
    )


@pytest.mark.long
def test_a_response_that_overtakes_another_fails_f4(tmp_path: Path) -> None:
    """A client sends CreateTopics, which is forwarded, and then ApiVersions, which is not."""
    versions = encode_json(18, 0, {})
    with (
        mutants(tmp_path, "responses_overtake") as cluster,
        Connection(cluster.bootstrap_server(FORWARDER)) as connection,
    ):
        connection._socket.sendall(frame(CREATION) + frame(versions))
        sizes = [len(connection.receive()) for _ in range(2)]
        assert sizes[0] > sizes[1], "the response to ApiVersions, which is longer, was not first"
    assert failed(judged(tmp_path)) == {"F4"}


@pytest.mark.long
async def test_an_envelope_that_no_broker_sent_fails_f10(tmp_path: Path) -> None:
    """A process that is no broker sends the controller an Envelope with broker 2's identity."""
    with mutants(tmp_path, "trusts_identities") as cluster:
        ready = {
            broker: json.loads((cluster.data_dir / f"nodes/{broker}/ready.json").read_text())
            for broker in cluster.brokers
        }
        channel = ControllerChannel(
            ready[1]["grpc"],
            Hello(99, "forger"),
            on_update=lambda _update: None,
            on_closed=lambda: None,
            lowest_unfinished=lambda: 1,
            applied_zxid=lambda: 0,
        )
        forged = Envelope(
            identity=RequestIdentity(FORWARDER, ready[FORWARDER]["incarnation"], 10**9),
            request_header=CREATION[:HEADER_BYTES],
            request_data=CREATION[HEADER_BYTES:],
            principal=DefaultPrincipalSerde().serialize(KafkaPrincipal("User", "admin")),
            client_address=b"\x7f\0\0\1",
            listener_name="PLAINTEXT",
            security_protocol="PLAINTEXT",
            dialect="shipped",
            remaining_ms=5000,
            request_id="forged",
        )
        response = await channel.send(forged)
        await channel.close()
        assert response.error_code == ErrorCode.NONE
    assert failed(judged(tmp_path)) == {"F10"}
