"""What a live Kafka 3.9.1 was asked is asked again; every answer is equal or a known difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.cluster.properties import parse_properties
from chaos.fidelity import CLOSED, Report, comparable, load_cases, replay
from chaos.known_differences import KNOWN_DIFFERENCES

StartCluster = Callable[..., Cluster]
RECORDINGS = Path(__file__).parent.parent / "recordings"
DIFFERENCES = Path(__file__).parent.parent.parent / "docs" / "differences.md"
# These are served, so their steps are asked, all of them; what else is served is asked as well.
ASKED = {
    "CREATE_TOPICS": 371,
    "METADATA": 97,
    "DESCRIBE_CONFIGS": 96,
    "INCREMENTAL_ALTER_CONFIGS": 86,
    "CREATE_PARTITIONS": 73,
    "ALTER_CONFIGS": 57,
    "DELETE_TOPICS": 54,
    "raw": 30,
    "API_VERSIONS": 20,
    "ALTER_CLIENT_QUOTAS": 50,
    "DESCRIBE_CLIENT_QUOTAS": 52,
    "ALTER_USER_SCRAM_CREDENTIALS": 22,
    "DESCRIBE_USER_SCRAM_CREDENTIALS": 7,
    "DESCRIBE_CLUSTER": 6,
    "CREATE_DELEGATION_TOKEN": 1,
    "RENEW_DELEGATION_TOKEN": 1,
    "EXPIRE_DELEGATION_TOKEN": 1,
    "DESCRIBE_DELEGATION_TOKEN": 1,
    "CREATE_ACLS": 5,
    "DELETE_ACLS": 4,
    "DESCRIBE_ACLS": 4,
}


# The direct recordings are of brokers that do not forward: they write configs themselves.
PROPERTIES = {
    "direct": {"bridgehead.forwarding.enable": "false", "inter.broker.protocol.version": "3.3"},
    "forwarded": {},
}


def replayed(start_cluster: StartCluster, kind: str, to: str | None) -> Report:
    cluster = start_cluster(
        controller=1,
        properties=PROPERTIES[kind],
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    return replay(RECORDINGS / f"{kind}-open.jsonl.gz", brokers, to=to)


def assert_nothing_was_left_out(report: Report, recording: str) -> None:
    """Every recorded step was asked, and is equal or a row of the known differences."""
    cases = load_cases(RECORDINGS / f"{recording}.jsonl.gz")
    assert not report.skipped
    assert report.asked.total() == sum(len(case["steps"]) for case in cases)
    assert report.equal + report.known.total() == report.asked.total()


# The forwarded recording was taken from a broker that was not the controller.
@pytest.mark.parametrize(("kind", "to"), [("forwarded", "other"), ("direct", None)])
def test_every_answer_is_kafkas_or_a_known_difference(
    start_cluster: StartCluster, kind: str, to: str | None
) -> None:
    """Nothing else differs, and nothing that this release serves was left out."""
    report = replayed(start_cluster, kind, to)
    print(report.summary())  # the figures, for who runs it with -s
    assert not report.differences, "\n".join(report.differences)
    assert {api: report.asked[api] for api in ASKED} == ASKED
    assert_nothing_was_left_out(report, f"{kind}-open")
    assert report.known.total() <= report.asked.total() * 0.03


def test_logins_are_answered_as_kafka_answers_them(start_cluster: StartCluster) -> None:
    """Every recorded step of SASL, on a cluster with the recorded properties."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    cluster = start_cluster(controller=1, properties=dict(parse_properties(text)))
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    sasl = {broker: cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3)}
    for kind, to in (("forwarded", "other"), ("direct", None)):
        recording = RECORDINGS / f"{kind}-secured.jsonl.gz"
        report = replay(recording, brokers, to=to, only="sasl", sasl=sasl)
        assert not report.differences, "\n".join(report.differences)
        assert report.asked["SASL_HANDSHAKE"] == 16
        assert report.asked["SASL_AUTHENTICATE"] == 10
        assert report.equal == report.asked.total()
        assert not report.skipped


# Served with an authorizer, so asked as alice, bob and the super user.
SECURED = {
    "CREATE_ACLS": 102,
    "DELETE_ACLS": 37,
    "DESCRIBE_ACLS": 58,
    "CREATE_DELEGATION_TOKEN": 12,
    "RENEW_DELEGATION_TOKEN": 8,
    "EXPIRE_DELEGATION_TOKEN": 7,
    "DESCRIBE_DELEGATION_TOKEN": 10,
}


@pytest.mark.parametrize(("kind", "to"), [("forwarded", "other"), ("direct", None)])
def test_who_may_do_what_is_answered_as_kafka_answers_it(
    start_cluster: StartCluster, kind: str, to: str | None
) -> None:
    """ACLs, tokens, refusals, partial rights and logins: the whole recording, on both paths."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    cluster = start_cluster(
        controller=1,
        properties=dict(parse_properties(text)) | PROPERTIES[kind],
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    sasl = {broker: cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3)}
    report = replay(RECORDINGS / f"{kind}-secured.jsonl.gz", brokers, to=to, sasl=sasl)
    assert not report.differences, "\n".join(report.differences)
    assert {api: report.asked[api] for api in SECURED} == SECURED
    assert_nothing_was_left_out(report, f"{kind}-secured")
    assert report.known.total() <= report.asked.total() * 0.03


def test_every_known_difference_is_documented() -> None:
    """A row of the list is a row of the document."""
    text = DIFFERENCES.read_text(encoding="utf-8")
    assert [row.name for row in KNOWN_DIFFERENCES if f"`{row.name}`" not in text] == []


def test_a_known_difference_explains_no_more_than_it_names() -> None:
    """Equal bodies apart from one more error are not explained by any row."""
    step = {
        "to": "other",
        "api": "METADATA",
        "raw": "003a",
        "body": {"topics": [{"assignments": [{"brokerIds": [1]}]}], "resources": []},
    }
    brokers = [{"nodeId": 1}, {"nodeId": 2}]
    kafkas = {"brokers": brokers, "topics": [{"errorCode": 7}], "responses": [{"errorCode": 0}]}
    ours = {
        "brokers": brokers[::-1],
        "topics": [{"errorCode": 39}],
        "responses": [{"errorCode": 42}],
    }
    explained = [row.name for row in KNOWN_DIFFERENCES if row.api != "raw"]
    assert explained
    assert [
        r.name for r in KNOWN_DIFFERENCES if r.api != "raw" and r.explains(step, kafkas, ours)
    ] == []


def test_a_negative_partition_explains_that_topic_alone() -> None:
    """Not another topic's answer, no other code, and no answer that never came."""
    (row,) = (r for r in KNOWN_DIFFERENCES if r.name == "create-topics-negative-partition")
    asked = {"bad": [{"partitionIndex": -1}], "good": [{"partitionIndex": 0}]}
    step = {"body": {"topics": [{"name": n, "assignments": a} for n, a in asked.items()]}}

    def told(bad: int, good: int) -> Any:
        return {"topics": [{"name": "bad", "errorCode": bad}, {"name": "good", "errorCode": good}]}

    assert row.explains(step, told(-1, 0), told(39, 0))
    assert not row.explains(step, told(-1, -1), told(39, 39))
    assert not row.explains(step, told(-1, 0), told(39, 41))
    assert not row.explains(step, told(0, 0), told(39, 0))
    assert not row.explains(step, "timeout", told(39, 0))
    assert not row.explains(step, told(-1, 0), CLOSED)


def test_what_a_cluster_may_choose_is_compared_by_being_there() -> None:
    """An id that is there equals any other id, and does not equal none."""
    step = {"api": "CREATE_TOPICS", "unordered": ["topics"]}

    def answer(topic_id: str, *names: str) -> object:
        topics = [{"name": name, "topicId": topic_id, "errorCode": 0} for name in names]
        return comparable(step, {"topics": topics})

    assert answer("x", "a", "b") == answer("y", "b", "a")
    assert answer("x", "a") != answer("A" * 22, "a")
    assert answer("x", "a") != answer("x", "b")
    assert comparable({"raw": "0013"}, CLOSED) == CLOSED
    assert comparable({"raw": "0012"}, "00") != comparable({"raw": "0012"}, CLOSED)
    assert json.dumps(answer("x", "a"))
