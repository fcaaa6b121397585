"""What comes between a handshake and its end is refused as a real Kafka 3.9.1 refused it.

Read first: `tests/data/requests_within_a_login.jsonl.gz` has a request of each API in each version,
and what Kafka answered before it closed the connection.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from broker_proxy.authentication.authenticator import Refuse
from tests.unit.authentication.clients import authenticator, handshake

DATA: Final = Path(__file__).parents[2] / "data" / "requests_within_a_login.jsonl.gz"
# docs/differences.md: `login-out-of-turn`. AddPartitionsToTxn in its first versions.
CLOSED: Final = {
    "PRODUCE",
    "LEADER_AND_ISR",
    "STOP_REPLICA",
    "OFFSET_COMMIT",
    "OFFSET_FOR_LEADER_EPOCH",
    "WRITE_TXN_MARKERS",
    "TXN_OFFSET_COMMIT",
    *(f"ADD_PARTITIONS_TO_TXN-{version}" for version in range(4)),
}
# Names that stand twice in these requests are in the order of Kafka's hash tables.
ORDERED: Final = {"ALTER_REPLICA_LOG_DIRS", "OFFSET_FETCH"}
# Kafka's class refuses what these hold.
UNREADABLE: Final = {"UPDATE_METADATA-1", "UPDATE_METADATA-2"}


def sent() -> Iterator[Any]:
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        step = json.loads(line)
        names = {step["api"], f"{step['api']}-{step['version']}"}
        if not names & (ORDERED | UNREADABLE):
            yield pytest.param(step, names, id=f"{step['api']}-{step['version']}")


SENT: Final = list(sent())


@pytest.mark.parametrize(("step", "names"), SENT)
def test_a_request_within_a_login_is_refused_as_kafka_refuses_it(
    step: Any, names: set[str]
) -> None:
    """Byte for byte, and the login is over."""
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(bytes.fromhex(step["request_hex"]), 0)
    assert isinstance(outcome, Refuse)
    kafkas = None if step.get("closed") or names & CLOSED else bytes.fromhex(step["response_hex"])
    assert outcome.payload == kafkas
    assert not login.is_complete


@pytest.mark.parametrize(("key", "told"), [(18, "00000007002200000000"), (3, None), (36, None)])
def test_a_version_that_nobody_has_closes_but_for_api_versions(key: int, told: str | None) -> None:
    """As a Kafka did; its answer is in version 0."""
    login = authenticator()
    login.receive(handshake("PLAIN"), 0)
    outcome = login.receive(struct.pack(">hhih", key, 99, 7, -1) + bytes(16), 0)
    assert isinstance(outcome, Refuse)
    assert outcome.payload == (bytes.fromhex(told) if told else None)


def test_most_answers_were_compared_and_what_is_closed_is_not_closed_by_kafka() -> None:
    """So that no row of the differences outlives its reason."""
    closed = [step for each in SENT for step, names in [each.values] if names & CLOSED]
    assert len(SENT) - len(closed) > 200
    assert sum("response_hex" in step for step in closed) > len(closed) // 2
