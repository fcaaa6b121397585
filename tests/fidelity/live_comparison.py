"""Sends the same requests to a forwarding Kafka and to our cluster: `make fidelity LIVE=1`.

It runs random cases built from the schemas. `--recorded` adds the recorded cases; `--case` runs
only recorded ones. Both clusters are new and have three brokers; broker 1 is the controller. Exit
codes: 0 no unknown differences; 1 unknown differences, which it prints; 2 Kafka is not available.

    python -m tests.fidelity.live_comparison [--seed N] [--random COUNT] [--authorizer]
                                  [--recorded] [--case NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.node_plan import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.fidelity.random_cases import random_cases
from tests.fidelity.real_kafka import data_of, kafka_brokers, reason_to_skip
from tests.fidelity.replay import Replay, Report, Step, load_cases

_RECORDING: Final = Path("tests/recordings/forwarded-open.jsonl.gz")
_BROKERS: Final = (1, 2, 3)
_RANDOM_CASES: Final = 60
# Enables the ACL APIs; every client is a super user.
_AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker",
}
_CHANGE_TOPICS: Final = {
    "CREATE_TOPICS",
    "DELETE_TOPICS",
    "CREATE_PARTITIONS",
    "ELECT_LEADERS",
    "ALTER_PARTITION_REASSIGNMENTS",
}
_READ_RETRY_S: Final = 1.0
_READ_RETRIES: Final = 2
_KAFKA_UNAVAILABLE = 2

Case = dict[str, Any]


class LiveReplay(Replay):
    """Replays cases against our cluster and a real Kafka."""

    def __init__(self, brokers: Mapping[int, str], kafka: Replay, to: str | None) -> None:
        super().__init__(brokers, to)
        self._kafka = kafka
        self._after = ""  # the API of the previous step

    def _both(self, step: Step) -> tuple[Any, Any]:
        want, got = super()._both(step)
        for _ in range(_READ_RETRIES):
            if want == got or not step.get("reads"):
                break
            time.sleep(_READ_RETRY_S)  # Brokers learn configs, quotas and ACLs by notifications.
            want, got = super()._both(step)
        return want, got

    def _wanted(self, step: Step) -> Any:
        if self._after in _CHANGE_TOPICS:
            self._kafka.wait_until_agreed()
        self._after = step.get("api", "raw")
        time.sleep(step.get("settle_before", step.get("pause_before", 0)))
        return self._kafka.take(step)


@contextmanager
def both_clusters(
    folder: Path, properties: Mapping[str, str]
) -> Iterator[tuple[Mapping[int, str], Mapping[int, str]]]:
    """Run a real Kafka and our cluster; yield the addresses of both by broker id."""
    zookeeper = EmbeddedZooKeeper(folder / "zookeeper", [Ports().choose()], java=find_java())
    # Both clusters report the same directories, so that responses are comparable. Without a data
    # plane, ours does not access them.
    node_properties = {
        broker: {
            "broker.rack": f"rack-{broker}",
            "log.dirs": str(data_of(folder / "kafka", broker)),
        }
        for broker in _BROKERS
    }
    with (
        zookeeper,
        kafka_brokers(
            folder / "kafka",
            zookeeper.connect,
            _BROKERS,
            forwarding=True,
            one_by_one=True,
            properties=properties,
        ) as theirs,
        Cluster(
            brokers=len(_BROKERS),
            controller=1,
            properties={**properties, "bridgehead.data.plane": "false"},
            node_properties=node_properties,
        ) as ours,
    ):
        yield (
            dict(zip(_BROKERS, theirs.split(","), strict=True)),
            {broker: ours.bootstrap_server(broker) for broker in _BROKERS},
        )


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fidelity.live_comparison", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random cases")
    parser.add_argument("--random", type=int, default=_RANDOM_CASES, help="number of random cases")
    parser.add_argument(
        "--recorded", action="store_true", help="add the recorded cases (not with --authorizer)"
    )
    parser.add_argument("--case", nargs="+", help="run only the recorded cases with these prefixes")
    parser.add_argument(
        "--authorizer", action="store_true", help="enable the ACL APIs on both clusters"
    )
    options = parser.parse_args()
    reason = reason_to_skip()
    if reason is not None:
        sys.stderr.write(f"Kafka is not available: {reason}. `make kafka-jars` downloads Kafka.\n")
        return _KAFKA_UNAVAILABLE
    with (
        tempfile.TemporaryDirectory(prefix="fidelity-") as folder,
        both_clusters(Path(folder), _AUTHORIZER if options.authorizer else {}) as (theirs, ours),
    ):
        # Steps for the controller go to a broker that forwards.
        kafka = Replay(theirs, "other")
        run = LiveReplay(ours, kafka, "other")
        try:
            differ = False
            for kind, cases in _cases(options).items():
                differ |= _compare(run, kind, cases)
        finally:
            run.close()
            kafka.close()
    return int(differ)


def _cases(options: argparse.Namespace) -> dict[str, Iterable[Case]]:
    """Return the recorded cases, the random ones, or both."""
    prefixes = tuple(options.case or [""])
    recorded = (case for case in load_cases(_RECORDING) if case["case"].startswith(prefixes))
    cases: dict[str, Iterable[Case]] = {}
    if options.case or (options.recorded and not options.authorizer):
        cases["recorded"] = recorded
    if not options.case and options.random:
        cases[f"random, seed {options.seed}"] = random_cases(options.seed, options.random)
    return cases


def _compare(run: LiveReplay, kind: str, cases: Iterable[Case]) -> bool:
    """Run the cases, print unknown differences, and return whether there are any."""
    run.report = Report()
    for case in cases:
        printed = len(run.report.differences)
        run.run(case)
        sys.stdout.writelines(f"{text}\n" for text in run.report.differences[printed:])
        sys.stdout.flush()
    sys.stdout.write(f"{kind}: {run.report.summary()}\n")
    sys.stdout.flush()
    return bool(run.report.differences)


if __name__ == "__main__":
    sys.exit(main())
