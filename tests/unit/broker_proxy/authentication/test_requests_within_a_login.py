"""Requests between SaslHandshake and the end of a login are rejected as in Kafka 3.9.1.

`tests/data/requests_within_a_login.jsonl.gz` has a request of each API in each version, and the
response that Kafka sent before it closed the connection.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bridgehead.kafka_wire.apis import API_SPECS, error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from broker_proxy.authentication.authenticator import Reject
from tests.unit.broker_proxy.authentication.clients import authenticator, handshake

DATA: Final = Path(__file__).parents[3] / "data" / "requests_within_a_login.jsonl.gz"
DIFFERENCES: Final = Path(__file__).parents[4] / "docs" / "differences.md"
# After these requests we only close the connection. Kafka may first send an error response: see
# `login-out-of-turn` in docs/differences.md. AddPartitionsToTxn differs only below version 4.
CLOSED: Final = {
    "LEADER_AND_ISR",
    "STOP_REPLICA",
    "WRITE_TXN_MARKERS",
    "TXN_OFFSET_COMMIT",
    *(f"ADD_PARTITIONS_TO_TXN-{version}" for version in range(4)),
}


def sent() -> Iterator[Any]:
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        step = json.loads(line)
        names = {step["api"], f"{step['api']}-{step['version']}"}
        yield pytest.param(step, names, id=f"{step['api']}-{step['version']}")


SENT: Final = list(sent())


@pytest.mark.parametrize(("step", "names"), SENT)
def test_a_request_within_a_login_gets_kafkas_error(step: Any, names: set[str]) -> None:
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(bytes.fromhex(step["request_hex"]), 0)
    assert isinstance(outcome, Reject)
    kafkas = None if step.get("closed") or names & CLOSED else bytes.fromhex(step["response_hex"])
    assert outcome.payload == kafkas
    assert not login.is_complete


@pytest.mark.parametrize(("key", "results"), [(18, "00000007002200000000"), (3, None), (36, None)])
def test_unknown_versions_close_the_connection_except_for_api_versions(
    key: int, results: str | None
) -> None:
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(struct.pack(">hhih", key, 99, 7, -1) + bytes(16), 0)
    assert isinstance(outcome, Reject)
    assert outcome.payload == (bytes.fromhex(results) if results else None)


def test_every_recorded_response_is_compared() -> None:
    assert len(SENT) == len(gzip.decompress(DATA.read_bytes()).splitlines()) == 298
    closed = [step for case in SENT for step, names in [case.values] if names & CLOSED]
    assert len(closed) == 24
    assert sum("response_hex" in step for step in closed) > len(closed) // 2


def test_every_api_that_gets_no_response_is_a_documented_difference() -> None:
    page = DIFFERENCES.read_text(encoding="utf-8")
    section = page.partition("### `login-out-of-turn`\n")[2].partition("\n### ")[0]
    names = {spec.enum_name: spec.name for spec in API_SPECS.values()}
    assert [api for api in CLOSED if names[api.partition("-")[0]] not in section] == []


def test_more_than_64_names_keep_the_order_of_the_request() -> None:
    """Kafka uses the order of Java's hash table, which takes long to compute for many names.

    See `login-out-of-turn` in docs/differences.md.
    """
    topics = [OffsetFetchRequestTopic(f"t{number}", [0]) for number in range(65)]
    request = OffsetFetchRequest(group_id="g", topics=topics)
    results = error_response(9, request, 1, ErrorCode.ILLEGAL_SASL_STATE, None)
    assert [topic.name for topic in results.topics] == [topic.name for topic in topics]
    request.topics = topics[:64]
    results = error_response(9, request, 1, ErrorCode.ILLEGAL_SASL_STATE, None)
    assert [topic.name for topic in results.topics] != [topic.name for topic in topics[:64]]
    assert {topic.name for topic in results.topics} == {topic.name for topic in topics[:64]}
