"""The comparison with a live Kafka reports differences. A missing Kafka is an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.live_comparison import LiveReplay, main
from tests.fidelity.random_cases import random_cases
from tests.fidelity.replay import Report, Step


class Kafka:
    """Gives the same response to every step."""

    def __init__(self, response: Any) -> None:
        self.response = response

    def take(self, step: Step) -> Any:
        return self.response


class Ours(LiveReplay):
    """A replay without a cluster."""

    def __init__(self, response: Any, kafka: Kafka) -> None:
        self._response = response
        self._kafka = kafka  # type: ignore[assignment]
        self._names = {}
        self._kafkas_names = {}
        self._after = ""
        self.report = Report()
        self.served = {19}

    def _take(self, step: Step) -> Any:
        return self._response


def response_to(code: int) -> dict[str, Any]:
    return {"throttleTimeMs": 0, "topics": [{"name": "t", "errorCode": code, "errorMessage": None}]}


def test_different_response_is_reported() -> None:
    """The report has the request and both responses. Equal responses are counted."""
    _, case = random_cases(1, 1)  # the first case creates internal topics
    creations = {**case, "steps": case["steps"][:1]}
    equal = Ours(response_to(0), Kafka(response_to(0)))
    equal.run(creations)
    assert (equal.report.equal, equal.report.differences) == (1, [])
    other = Ours(response_to(0), Kafka(response_to(36)))
    other.run(creations)
    (text,) = other.report.differences
    assert "CREATE_TOPICS v7" in text
    assert '"errorCode": 36' in text


def test_long_responses_are_shown_where_they_differ() -> None:
    _, case = random_cases(1, 1)
    creations = {**case, "steps": case["steps"][:1]}
    long = [response_to(0)["topics"][0]] * 100
    run = Ours(
        {"topics": [*long, {"name": "ours", "errorCode": 0}]},
        Kafka({"topics": [*long, {"name": "theirs", "errorCode": 0}]}),
    )
    run.run(creations)
    (text,) = run.report.differences
    kafkas, ours = text.splitlines()[1:]
    assert '"theirs"' in kafkas
    assert '"ours"' in ours


def test_missing_kafka_is_reported_with_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BRIDGEHEAD_KAFKA_JARS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["live_fidelity"])
    assert main() == 2
    assert "make kafka-jars" in capsys.readouterr().err
