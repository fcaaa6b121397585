"""Kafka's log lines become states, reasons and times."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearse.phases import DriverState, LogLine, Progress, parse_log_line

_LOG = Path("tests/data/rehearse/controller-3.9.1.log")


def _progress(*texts: str) -> tuple[Progress, list[str]]:
    progress = Progress()
    lines = [line for text in texts if (line := parse_log_line(text)) is not None]
    return progress, progress.feed(lines)


def _line(message: str, level: str = "INFO", second: int = 7) -> str:
    return f"[2026-03-04 05:06:{second:02},089] {level} {message} (org.apache.kafka.X)"


def test_recorded_log_of_a_controller_has_every_state_in_order() -> None:
    progress, sentences = _progress(*_LOG.read_text().splitlines())
    states = [transition.state for transition in progress.transitions]
    assert states == list(DriverState)[1:]
    assert progress.state is DriverState.DUAL_WRITE
    assert (progress.epoch, progress.records) == (6, 35)
    assert progress.writes == {"UpdateClientQuota": 4, "UpdateDelegationToken": 1}
    assert progress.gap_s() == pytest.approx(2.070, abs=1e-6)
    assert not progress.waiting_for
    assert "35 records were generated in 352 ms" in sentences


def test_line_has_time_level_and_message() -> None:
    line = parse_log_line(_line("[X id=7] hello (world)", "WARN"))
    assert line == LogLine(1772600767.089, "WARN", "[X id=7] hello (world)")
    assert parse_log_line("\tat kafka.Kafka$.main(Kafka.scala:1)") is None


def test_long_line_is_cut_and_takes_no_time() -> None:
    partitions = ", ".join(f"(topic-{number})" for number in range(200_000))
    line = parse_log_line(_line(f"Loading {partitions}"))
    assert line is not None
    assert line.message.startswith("Loading (topic-0)")
    assert len(line.message) < 10_000


def test_reason_of_a_fault_is_on_the_next_line_and_said_once() -> None:
    fault = _line("Encountered zk migration fault: Unhandled error in X", "ERROR")
    cause = 'java.lang.NumberFormatException: For input string: "abc"'
    progress, sentences = _progress(fault, cause, fault, cause)
    assert progress.waiting_for.endswith(
        'X: java.lang.NumberFormatException: For input string: "abc"'
    )
    assert len(sentences) == 2
    assert not progress.fatal


def test_fatal_fault_is_not_a_wait() -> None:
    progress, _ = _progress(
        _line("Encountered fatal fault: Aborting the ZK migration", "ERROR"),
        "java.lang.IndexOutOfBoundsException: 0",
    )
    assert progress.fatal == "Aborting the ZK migration: java.lang.IndexOutOfBoundsException: 0"


def test_reason_of_an_abortion_is_what_ended_it() -> None:
    """Kafka logs the exception first, and then only that it aborts."""
    progress, _ = _progress(
        _line(
            "[D] Aborting the metadata migration from ZooKeeper to KRaft. 7 records were", "ERROR"
        ),
        "java.lang.RuntimeException: Error in topic consumer. Topic was audit.",
        "Caused by: java.lang.IndexOutOfBoundsException: 0",
        _line("Encountered fatal fault: Aborting the ZK migration", "ERROR"),
    )
    assert progress.fatal == (
        "Aborting the metadata migration from ZooKeeper to KRaft: java.lang.RuntimeException: "
        "Error in topic consumer. Topic was audit.: Caused by: "
        "java.lang.IndexOutOfBoundsException: 0"
    )


def test_waiting_ends_with_the_next_state() -> None:
    waits = _line("[D] Still waiting for ZK brokers [9] found in metadata to register with KRaft.")
    progress, sentences = _progress(waits)
    assert progress.waiting_for == sentences[0]
    assert progress.waiting_for.startswith("Still waiting for ZK brokers [9]")
    line = parse_log_line(
        _line("[D] 3000 transitioning from WAIT_FOR_BROKERS to BECOME_CONTROLLER state")
    )
    assert line is not None
    progress.feed([line])
    assert not progress.waiting_for


def test_gap_of_a_second_claim_begins_again() -> None:
    claim = "KRaft controller 3000 creating /controller to become the active one with ZK epoch 9."
    done = "[D] 3000 transitioning from KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state"
    progress, _ = _progress(_line(claim, second=1), _line(done, second=4), _line(claim, second=20))
    assert progress.gap_s() is None
    line = parse_log_line(_line(done, second=25))
    assert line is not None
    progress.feed([line])
    assert progress.gap_s() == pytest.approx(5.0)


def test_gap_lasts_over_a_second_claim_before_dual_write() -> None:
    claim = "KRaft controller 3000 creating /controller to become the active one with ZK epoch 9."
    done = "[D] 3000 transitioning from KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state"
    progress, _ = _progress(_line(claim, second=1), _line(claim, second=20), _line(done, second=22))
    assert progress.gap_s() == pytest.approx(21.0)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("credential salt=c2FsdA==,stored_key=c3RvcmVk,iterations=4096", "c3RvcmVk"),
        ("Credentials not valid: opensesame", "opensesame"),
        ('config {"ssl.key.password": "sesame"}', "sesame"),
        ("hmac=0123456789", "0123456789"),
    ],
)  # fmt: skip
def test_secrets_of_the_log_are_not_shown(text: str, secret: str) -> None:
    line = parse_log_line(_line(text, "ERROR"))
    assert line is not None
    assert secret not in line.message
    assert "(hidden)" in line.message
