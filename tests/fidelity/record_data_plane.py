"""Records the answers of a live Kafka 3.9.1 to the requests of `tests.fidelity.data_plane_cases`.

It starts three brokers; broker 1 is the controller. It needs `make kafka-jars`. The files are
`tests/recordings/data-plane.jsonl.gz` and, with --secured, `data-plane-secured.jsonl.gz`.

    python -m tests.fidelity.record_data_plane [--secured] [--case PREFIX] [--into FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.properties import parse_properties
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from bridgehead.raw_client.blocking import CLOSED, TIMEOUT
from tests.fidelity.data_plane_cases.all_cases import open_cases, secured_cases
from tests.fidelity.data_plane_cases.steps import Case
from tests.fidelity.real_kafka import kafka_brokers, reason_to_skip
from tests.fidelity.replay import NO_RESPONSE, Replay

_RECORDINGS: Final = Path("tests/recordings")
_BROKERS: Final = (1, 2, 3)
# Prefixes of the cases that other cases need.
_SET_UP: Final = ("internal topics", "committed offsets: ", "fetch: ", "offsets: ", "rights: ")
_LOADING: Final = 14  # COORDINATOR_LOAD_IN_PROGRESS
_RETRY_S: Final = 0.1
_SHOWN: Final = 700  # characters


@contextmanager
def live_kafka(name: str, *, secured: bool) -> Iterator[Replay]:
    """Run a Kafka with the properties of the recording `name`; yield connections to it."""
    text = (_RECORDINGS / f"{name}.properties").read_text(encoding="utf-8")
    properties = dict(parse_properties(text))
    properties.pop("listeners", None)
    ports = Ports()
    sasl = {broker: ports.choose() for broker in _BROKERS} if secured else {}
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        zookeeper = EmbeddedZooKeeper(
            Path(folder) / "zookeeper", [Ports().choose()], java=find_java()
        )
        with (
            zookeeper,
            kafka_brokers(
                Path(folder) / "kafka",
                zookeeper.connect,
                _BROKERS,
                forwarding=not secured,
                one_by_one=True,
                properties=properties,
                more_listeners={
                    mechanism: {"SASL_PLAINTEXT": port} for mechanism, port in sasl.items()
                },
            ) as servers,
        ):
            kafka = Replay(
                dict(zip(_BROKERS, servers.split(","), strict=True)),
                sasl={broker: f"127.0.0.1:{port}" for broker, port in sasl.items()},
            )
            yield kafka
            kafka.close()


def record(kafka: Replay, cases: Iterable[Case], prefix: str) -> Iterator[Case]:
    """Yield the cases with this prefix and the cases in `_SET_UP`, each with Kafka's answers."""
    for case in cases:
        if case["case"].startswith((prefix, *_SET_UP)):
            steps = [_responded(step, _take(kafka, step)) for step in case["steps"]]
            yield {**case, "steps": steps}


def _take(kafka: Replay, step: Mapping[str, Any]) -> Any:
    """Send a step, and send it again while a broker waits for its first block of producer ids."""
    response = kafka.take(step)
    while step.get("api") == "INIT_PRODUCER_ID" and response["errorCode"] == _LOADING:
        time.sleep(_RETRY_S)
        response = kafka.take(step)
    return response


def _responded(step: Mapping[str, Any], response: Any) -> dict[str, Any]:
    if response == CLOSED:
        return {**step, "closed": True}
    if response == TIMEOUT:
        return {**step, "timeout": True}
    if response == NO_RESPONSE:
        return dict(step)
    return {**step, "response_hex" if "raw" in step else "response": response}


def main() -> int:
    """Run the command; return its exit code: 2 if Kafka is not available."""
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity.record_data_plane")
    parser.add_argument("--secured", action="store_true", help="record with an authorizer")
    parser.add_argument("--case", default="", help="only the setup and cases with this prefix")
    parser.add_argument("--into", type=Path, help="write this file instead")
    options = parser.parse_args()
    if reason := reason_to_skip():
        sys.stderr.write(f"Kafka is not available: {reason}. `make kafka-jars` downloads Kafka.\n")
        return 2
    name = "data-plane-secured" if options.secured else "data-plane"
    cases = secured_cases() if options.secured else open_cases()
    path = options.into or _RECORDINGS / f"{name}.jsonl.gz"
    count = 0
    with (
        live_kafka(name, secured=options.secured) as kafka,
        # Without a time in the header, equal answers give equal files.
        path.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as lines,
    ):
        for case in record(kafka, cases, options.case):
            lines.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")
            count += len(case["steps"])
            for step in case["steps"]:
                # A step without an answer delays every replay: remove it from the cases.
                if "timeout" in step:
                    sys.stdout.write(f"{case['case']}: unanswered {step}"[:_SHOWN] + "\n")
                    sys.stdout.flush()
    sys.stdout.write(f"{count} steps in {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
