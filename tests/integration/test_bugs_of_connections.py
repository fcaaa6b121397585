"""The judge finds seeded bugs of connections: responses out of order, and a forged Envelope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

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
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge
from tests.integration.conftest import StartCluster
from tests.integration.pipeline_runs import failed, judged
from tests.integration.test_upgrade import MUTANT_NODE, OLD, set_quota

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


# The judge checks the rights (property A1) of direct writes.

CREATE_ACLS, DESCRIBE_ACLS = 30, 29
CLUSTER, LITERAL, ANY = 4, 3, 1
ALTER_CONFIGS, ALL, ALLOW, DENY = 11, 2, 3, 2
NONE, CLUSTER_AUTHORIZATION_FAILED = 0, 31
USER: Final = "User:ANONYMOUS"
SECURED: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:broker",
}


def make_rules(connection: Connection) -> None:
    """Allow ALL, deny ALTER_CONFIGS, and check that the broker has applied the two ACLs."""
    rule = {"resourceType": CLUSTER, "resourceName": "kafka-cluster", "principal": USER}
    rule |= {"resourcePatternType": LITERAL, "host": "*"}
    rules = [
        {**rule, "operation": ALL, "permissionType": ALLOW},
        {**rule, "operation": ALTER_CONFIGS, "permissionType": DENY},
    ]
    results = connection.call(CREATE_ACLS, 1, {"creations": rules})["results"]
    assert [result["errorCode"] for result in results] == [NONE, NONE]
    any_rule = {"resourceTypeFilter": CLUSTER, "resourceNameFilter": None, "patternTypeFilter": 1}
    any_rule |= {"principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": ANY}
    resources = connection.call(DESCRIBE_ACLS, 1, any_rule)["resources"]
    assert [len(resource["acls"]) for resource in resources] == [len(rules)]


@pytest.mark.parametrize(
    ("mutants", "error", "verdict"),
    [
        ((), CLUSTER_AUTHORIZATION_FAILED, Verdict.PASS),
        (("allow_before_deny",), NONE, Verdict.FAIL),
    ],
    ids=["no mutant", "allow_before_deny"],
)
def test_direct_write_is_judged_by_the_acls_of_its_broker(
    start_cluster: StartCluster,
    tmp_path: Path,
    mutants: tuple[str, ...],
    error: int,
    verdict: Verdict,
) -> None:
    """The seeded bug checks ALLOW before DENY. Property A1 (no_unauthorized_effect) detects it."""
    command = (*MUTANT_NODE, *mutants) if mutants else ()
    cluster = start_cluster(
        brokers=1, data_dir=tmp_path, properties={**OLD, **SECURED}, node_command=command
    )
    connection = Connection(cluster.bootstrap_server(1))
    assert set_quota(connection, "anna", 1) == NONE, "a write failed before any ACL existed"
    make_rules(connection)
    assert set_quota(connection, "berta", 1) == error
    connection.close()
    cluster.stop()
    judgements = {
        judgement.row.property: judgement for judgement in judge(History(read_run(tmp_path)))
    }
    assert judgements["A1"].row.verdict is verdict
    assert judgements["A1"].row.judged == (3 if mutants else 2)
    assert judgements["F1"].row.verdict is Verdict.PASS
    assert judgements["W6"].row.verdict is Verdict.PASS
    keys = [violation.key.partition("/")[2] for violation in judgements["A1"].violations]
    assert keys == (["0:user=berta"] if mutants else [])
