"""The broker and the controller log a forwarded request in kafka-request.log, without secrets."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import call_once
from bridgehead.raw_client.codec import create_topic_body
from tests.integration.conftest import StartCluster

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (DEBUG|INFO) Completed request:(\{.*\}) "
    r"\(kafka\.request\.logger\)\n"
)
CREATE_TOPICS, API_VERSIONS, ALTER_CREDENTIALS = 19, 18, 51
SECRET = base64.b64encode(b"salted-password-of-alice").decode()
SECONDS = 10.0


def call(cluster: Cluster, broker: int, key: int, version: int, body: dict[str, Any]) -> None:
    address = cluster.bootstrap_server(broker)
    call_once(address, key, version, body, client_id="auditor")


def log_of(cluster: Cluster, broker: int) -> Path:
    return Path(cluster.data_dir) / "nodes" / str(broker) / "logs" / "kafka-request.log"


def lines(cluster: Cluster, broker: int, key: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Wait for `count` lines of one API; return their levels and values."""
    deadline = time.monotonic() + SECONDS
    while True:
        text = log_of(cluster, broker).read_text()
        parsed = [(m[1], json.loads(m[2])) for m in map(LINE.fullmatch, text.splitlines(True)) if m]
        assert len(parsed) == text.count("\n")
        chosen = [line for line in parsed if line[1]["requestHeader"]["requestApiKey"] == key]
        if len(chosen) >= count:
            return chosen
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def test_forwarded_request_is_logged_by_broker_and_controller(
    start_brokers: StartCluster,
) -> None:
    """Both lines have the same principal, client id and topic id.

    A request that a client sends to the controller's own broker has one line.
    """
    cluster = start_brokers(controller=1, brokers=2)
    call(cluster, 2, CREATE_TOPICS, 7, create_topic_body("elsewhere"))
    call(cluster, 1, CREATE_TOPICS, 1, create_topic_body("here"))
    ((level, received),) = lines(cluster, 2, CREATE_TOPICS, 1)
    (_, forwarded), (own_level, direct) = lines(cluster, 1, CREATE_TOPICS, 2)
    assert (level, own_level) == ("DEBUG", "INFO")
    assert (received["isForwarded"], forwarded["isForwarded"], direct["isForwarded"]) == (
        False,
        True,
        False,
    )
    for same in ("requestHeader", "request", "response", "principal"):
        assert received[same] == forwarded[same]
    assert received["requestHeader"]["clientId"] == "auditor"
    assert (received["listener"], forwarded["listener"]) == ("PLAINTEXT", "ENVELOPE")
    assert received["connection"].startswith(cluster.bootstrap_server(2))
    assert received["remoteTimeMs"] > received["localTimeMs"] > 0
    assert received["totalTimeMs"] >= forwarded["totalTimeMs"] > 0
    credentials = {
        "deletions": [],
        "upsertions": [
            {
                "name": "alice",
                "mechanism": 1,
                "iterations": 4096,
                "salt": SECRET,
                "saltedPassword": SECRET,
            }
        ],
    }
    call(cluster, 2, ALTER_CREDENTIALS, 0, credentials)
    for broker in (1, 2):
        ((_, line),) = lines(cluster, broker, ALTER_CREDENTIALS, 1)
        assert line["response"]["results"][0]["errorCode"] == 0
        assert line["request"]["upsertions"][0]["saltedPassword"] == "[hidden]"
        assert SECRET not in log_of(cluster, broker).read_text()


def test_request_log_can_be_disabled(start_brokers: StartCluster) -> None:
    cluster = start_brokers(brokers=1, properties={"bridgehead.request.log": "OFF"})
    call(cluster, 1, API_VERSIONS, 0, {})
    assert not log_of(cluster, 1).exists()
