"""Recorded requests get the responses of a live Kafka 3.9.1, except for known differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.properties import parse_properties
from bridgehead.raw_client.blocking import CLOSED
from tests.fidelity.known_differences import KNOWN_DIFFERENCES
from tests.fidelity.replay import Report, comparable, load_cases, replay
from tests.integration.conftest import StartCluster

RECORDINGS = Path(__file__).parent.parent / "recordings"
DIFFERENCES = Path(__file__).parent.parent.parent / "docs" / "differences.md"
# The number of recorded steps of each API; the test checks that none is skipped.
SENT = {
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


# In the direct recordings the brokers did not forward, and wrote configs to ZooKeeper themselves.
PROPERTIES = {
    "direct": {"bridgehead.forwarding.enable": "false", "inter.broker.protocol.version": "3.3"},
    "forwarded": {},
}


def replayed(start_brokers: StartCluster, kind: str, to: str | None) -> Report:
    cluster = start_brokers(
        controller=1,
        properties=PROPERTIES[kind],
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    return replay(RECORDINGS / f"{kind}-open.jsonl.gz", brokers, to=to)


def assert_all_sent(report: Report, recording: str) -> None:
    """Check that every step was sent, and that each response is equal or has a known difference."""
    cases = load_cases(RECORDINGS / f"{recording}.jsonl.gz")
    assert not report.skipped
    assert report.sent.total() == sum(len(case["steps"]) for case in cases)
    assert report.equal + report.known_differences.total() == report.sent.total()


# The forwarded recording was taken on a broker that was not the controller.
@pytest.mark.parametrize(
    ("kind", "to"), [pytest.param("forwarded", "other", marks=pytest.mark.long), ("direct", None)]
)
def test_no_response_has_an_unknown_difference(
    start_brokers: StartCluster, kind: str, to: str | None
) -> None:
    """Every difference is known, and no recorded step is skipped."""
    report = replayed(start_brokers, kind, to)
    print(report.summary())  # shown with -s
    assert not report.differences, "\n".join(report.differences)
    assert {api: report.sent[api] for api in SENT} == SENT
    assert_all_sent(report, f"{kind}-open")
    assert report.known_differences.total() <= report.sent.total() * 0.03


def test_logins_get_the_responses_of_kafka(start_brokers: StartCluster) -> None:
    """The test sends every recorded SASL step to a cluster with the recorded properties."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    cluster = start_brokers(controller=1, properties=dict(parse_properties(text)))
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    sasl = {broker: cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3)}
    for kind, to in (("forwarded", "other"), ("direct", None)):
        recording = RECORDINGS / f"{kind}-secured.jsonl.gz"
        report = replay(recording, brokers, to=to, only="sasl", sasl=sasl)
        assert not report.differences, "\n".join(report.differences)
        assert report.sent["SASL_HANDSHAKE"] == 16
        assert report.sent["SASL_AUTHENTICATE"] == 10
        assert report.equal == report.sent.total()
        assert not report.skipped


# The number of steps recorded with an authorizer, by API. Alice, bob and the super user send them.
SECURED = {
    "CREATE_ACLS": 102,
    "DELETE_ACLS": 37,
    "DESCRIBE_ACLS": 58,
    "CREATE_DELEGATION_TOKEN": 12,
    "RENEW_DELEGATION_TOKEN": 8,
    "EXPIRE_DELEGATION_TOKEN": 7,
    "DESCRIBE_DELEGATION_TOKEN": 10,
}


@pytest.mark.parametrize(
    ("kind", "to"), [pytest.param("forwarded", "other", marks=pytest.mark.long), ("direct", None)]
)
def test_requests_with_an_authorizer_get_the_responses_of_kafka(
    start_brokers: StartCluster, kind: str, to: str | None
) -> None:
    """The recording has ACLs, tokens, denials, partial rights and logins."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    cluster = start_brokers(
        controller=1,
        properties=dict(parse_properties(text)) | PROPERTIES[kind],
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    sasl = {broker: cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3)}
    report = replay(RECORDINGS / f"{kind}-secured.jsonl.gz", brokers, to=to, sasl=sasl)
    assert not report.differences, "\n".join(report.differences)
    assert {api: report.sent[api] for api in SECURED} == SECURED
    assert_all_sent(report, f"{kind}-secured")
    assert report.known_differences.total() <= report.sent.total() * 0.03


# The number of steps for records and groups, sent to broker 1, which leads every partition.
RECORDS_AND_GROUPS = {
    "PRODUCE": 672,
    "FETCH": 972,
    "LIST_OFFSETS": 585,
    "DELETE_RECORDS": 56,
    "OFFSET_FOR_LEADER_EPOCH": 105,
    "INIT_PRODUCER_ID": 66,
    "FIND_COORDINATOR": 59,
    "OFFSET_COMMIT": 262,
    "OFFSET_FETCH": 152,
    "JOIN_GROUP": 365,
    "SYNC_GROUP": 201,
    "OFFSET_DELETE": 10,
    "LIST_GROUPS": 32,
    "DESCRIBE_GROUPS": 76,
    "LEAVE_GROUP": 100,
    "DELETE_GROUPS": 24,
    "HEARTBEAT": 133,
}
RIGHTS_TO_RECORDS_AND_GROUPS = {
    "PRODUCE": 89,
    "FETCH": 114,
    "LIST_OFFSETS": 81,
    "OFFSET_FOR_LEADER_EPOCH": 57,
    "DELETE_RECORDS": 48,
    "JOIN_GROUP": 36,
    "OFFSET_FETCH": 51,
    "SYNC_GROUP": 24,
    "LEAVE_GROUP": 24,
    "DESCRIBE_GROUPS": 24,
    "HEARTBEAT": 24,
    "OFFSET_COMMIT": 96,
    "FIND_COORDINATOR": 24,
    "OFFSET_DELETE": 15,
    "LIST_GROUPS": 3,
    "DELETE_GROUPS": 12,
    "INIT_PRODUCER_ID": 8,
}


@pytest.mark.parametrize(
    ("recording", "sent"),
    [
        pytest.param("data-plane", RECORDS_AND_GROUPS, marks=pytest.mark.long),
        ("data-plane-secured", RIGHTS_TO_RECORDS_AND_GROUPS),
    ],
)
def test_requests_for_records_and_groups_get_the_responses_of_kafka(
    start_brokers: StartCluster, recording: str, sent: dict[str, int]
) -> None:
    """Every version gets valid and invalid requests. The second recording has an authorizer."""
    text = (RECORDINGS / f"{recording}.properties").read_text(encoding="utf-8")
    cluster = start_brokers(
        controller=1,
        properties=dict(parse_properties(text)) | {"bridgehead.data.plane": "true"},
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker, "PLAINTEXT") for broker in (1, 2, 3)}
    sasl = {}
    if "listeners" in parse_properties(text):
        sasl = {broker: cluster.bootstrap_server(broker, "SASL_PLAINTEXT") for broker in (1, 2, 3)}
    report = replay(RECORDINGS / f"{recording}.jsonl.gz", brokers, sasl=sasl)
    print(report.summary())  # shown with -s
    assert not report.differences, "\n".join(report.differences)
    assert {api: report.sent[api] for api in sent} == sent
    assert_all_sent(report, recording)
    assert report.known_differences.total() <= report.sent.total() * 0.03


def test_every_known_difference_is_documented() -> None:
    """docs/differences.md has a section for each known difference."""
    text = DIFFERENCES.read_text(encoding="utf-8")
    assert [row.name for row in KNOWN_DIFFERENCES if f"`{row.name}`" not in text] == []


def test_known_differences_explain_no_other_differences() -> None:
    """No known difference explains an arbitrary wrong error code."""
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


def test_row_for_a_negative_partition_explains_only_the_topic_that_has_one() -> None:
    """The row explains no other topic, no other code, and no missing response."""
    (row,) = (r for r in KNOWN_DIFFERENCES if r.name == "create-topics-negative-partition")
    topics = {"bad": [{"partitionIndex": -1}], "good": [{"partitionIndex": 0}]}
    step = {"body": {"topics": [{"name": n, "assignments": a} for n, a in topics.items()]}}

    def response(bad: int, good: int) -> Any:
        return {"topics": [{"name": "bad", "errorCode": bad}, {"name": "good", "errorCode": good}]}

    assert row.explains(step, response(-1, 0), response(39, 0))
    assert not row.explains(step, response(-1, -1), response(39, 39))
    assert not row.explains(step, response(-1, 0), response(39, 41))
    assert not row.explains(step, response(0, 0), response(39, 0))
    assert not row.explains(step, "timeout", response(39, 0))
    assert not row.explains(step, response(-1, 0), CLOSED)


def test_ids_and_times_are_compared_only_for_presence() -> None:
    """An id equals any other id, but not a missing id."""
    step = {"api": "CREATE_TOPICS", "unordered": ["topics"]}

    def respond(topic_id: str, *names: str) -> object:
        topics = [{"name": name, "topicId": topic_id, "errorCode": 0} for name in names]
        return comparable(step, {"topics": topics})

    assert respond("x", "a", "b") == respond("y", "b", "a")
    assert respond("x", "a") != respond("A" * 22, "a")
    assert respond("x", "a") != respond("x", "b")
    assert comparable({"raw": "0013"}, CLOSED) == CLOSED
    assert comparable({"raw": "0012"}, "00") != comparable({"raw": "0012"}, CLOSED)
    assert json.dumps(respond("x", "a"))
