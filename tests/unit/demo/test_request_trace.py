"""`bridgehead trace` shows the steps of a request of one's own, from a folder of evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from demo.request_trace import printable, requests_of, steps_of
from demo.trace import main
from tests import golden_histories

CREATE_TOPICS = 19


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A creation of `orders` by client `app`, forwarded by broker 2 to broker 1."""
    return golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path / "run=x")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_steps_of_the_last_write_are_shown(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = shown(capsys, "--folder", str(run))
    assert output.startswith("CreateTopics v")
    steps = [line.split("│")[2:4] for line in output.splitlines() if line.startswith("│")]
    of_broker: dict[str, list[str]] = {"1": [], "2": []}
    for broker, step in steps:  # The events of this history have no times of their own.
        of_broker[broker.strip()].append(step.strip())
    assert of_broker == {
        "1": [
            "opens the Envelope from broker 2",
            "validates and decides, in controller epoch 1",
            "wrote ZooKeeper transaction 5; responds: orders ok",
        ],
        "2": [
            "receives the request; the controller must decide it",
            "sends an Envelope to the controller, broker 1",
            "receives the response in the Envelope",
            "relays the response to the client, unchanged",
        ],
    }


def test_a_request_is_chosen_by_id_api_and_client(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (request,) = requests_of(_events(run), api_key=CREATE_TOPICS)
    by_id = shown(capsys, "--folder", str(run), str(request["request_id"]))
    assert shown(capsys, "--folder", str(run), "--api", "CreateTopics") == by_id
    assert main(["--folder", str(run), "--client-id", "nobody"]) == 3
    assert main(["--folder", str(run), "--api", "DeleteTopics"]) == 3
    assert main(["--folder", str(run), "--api", "CreateTopic"]) == 2
    assert "Did you mean CreateTopics?" in capsys.readouterr().err


def test_a_live_run_with_an_incomplete_line_can_be_traced(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "manifest.json").rename(run / "run.json")
    (file,) = run.glob("node=2/events-*.jsonl")
    with file.open("a") as events:
        events.write('not json\n{"kind": "request_rec')
    assert "relays the response" in shown(capsys, "--folder", str(run))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"error": 41, "elements": []}, "rejects the request: NOT_CONTROLLER"),
        ({"elements": [["a", 36]]}, "wrote nothing; responds: a TOPIC_ALREADY_EXISTS"),
        ({"elements": [["a", 0]], "validate_only": True}, "wrote nothing; responds: a ok"),
        ({"elements": [["a", 0]], "unchanged": ["a"]}, "wrote nothing; responds: a ok"),
        (
            {"elements": [[name, 0] for name in "abcde"]},
            "wrote ZooKeeper transaction 7; responds: a ok, b ok, c ok, 2 more",
        ),
    ],
)
def test_a_decision_is_described(fields: dict[str, Any], text: str) -> None:
    event = {
        "kind": "request_decided",
        "request_id": "r",
        "node": "3",
        "mono_ns": 5,
        "zxid": 7,
        "error": 0,
        "unchanged": [],
        "validate_only": False,
        **fields,
    }
    (step,) = steps_of([event], "r")
    assert (step.node, step.text) == ("3", text)


def test_names_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def _events(run: Path) -> list[dict[str, Any]]:
    files = run.glob("node=*/*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
