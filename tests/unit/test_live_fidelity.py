"""The comparison with a live Kafka: what differs is told, and who has none is told so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.fidelity import Report, Step
from chaos.live_fidelity import LiveReplay, main
from chaos.random_cases import random_cases


class Kafka:
    """Answers every step alike."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def take(self, step: Step) -> Any:
        return self.answer


class Ours(LiveReplay):
    """A cluster of ours that needs none."""

    def __init__(self, answer: Any, kafka: Kafka) -> None:
        self._answer = answer
        self._kafka = kafka  # type: ignore[assignment]
        self._names = {}
        self._after = ""
        self.report = Report()
        self.served = {19}

    def _take(self, step: Step) -> Any:
        return self._answer


def answer(code: int) -> dict[str, Any]:
    return {"throttleTimeMs": 0, "topics": [{"name": "t", "errorCode": code, "errorMessage": None}]}


def test_an_answer_that_differs_from_the_live_one_is_told() -> None:
    """With the request, and both answers; equal ones are counted."""
    _, case = random_cases(1, 1)  # after the one that makes internal topics
    creations = {**case, "steps": case["steps"][:1]}
    equal = Ours(answer(0), Kafka(answer(0)))
    equal.run(creations)
    assert (equal.report.equal, equal.report.differences) == (1, [])
    other = Ours(answer(0), Kafka(answer(36)))
    other.run(creations)
    (told,) = other.report.differences
    assert "CREATE_TOPICS v7" in told
    assert '"errorCode": 36' in told


def test_of_long_answers_that_part_is_told_in_which_they_differ() -> None:
    """Not their beginnings, which are alike."""
    _, case = random_cases(1, 1)
    creations = {**case, "steps": case["steps"][:1]}
    long = [answer(0)["topics"][0]] * 100
    run = Ours(
        {"topics": [*long, {"name": "ours", "errorCode": 0}]},
        Kafka({"topics": [*long, {"name": "theirs", "errorCode": 0}]}),
    )
    run.run(creations)
    (told,) = run.report.differences
    kafkas, ours = told.splitlines()[1:]
    assert '"theirs"' in kafkas
    assert '"ours"' in ours


def test_without_a_kafka_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BRIDGEHEAD_KAFKA_JARS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["live_fidelity"])
    assert main() == 2
    assert "make kafka-jars" in capsys.readouterr().err
