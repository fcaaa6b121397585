"""Puts the same cases to a real Kafka that forwards and to us: `make fidelity LIVE=1`.

The recorded cases, whose answers are asked for anew, and cases made at random from the schemas.
Both clusters are started fresh, with three brokers, broker 1 the controller. Exit 0: nothing
differs in an unknown way; 1: something does, and is printed; 2: there is no real Kafka to be had.

    python -m chaos.live_fidelity [--seed N] [--random COUNT] [--authorizer]
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
from bridgehead.cluster.plan import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from chaos.fidelity import Replay, Report, Step, load_cases
from chaos.random_cases import random_cases
from chaos.real_kafka import data_of, kafka_brokers, why_not

_RECORDING: Final = Path("tests/recordings/forwarded-open.jsonl.gz")
_BROKERS: Final = (1, 2, 3)
_RANDOM_CASES: Final = 60
# Everybody may do everything, and there are ACLs to make, find and delete.
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
_LEARNS_LATE_S: Final = 1.0
_LEARNS_LATE_TIMES: Final = 2
_NO_KAFKA = 2

Case = dict[str, Any]


class LiveReplay(Replay):
    """Asks a cluster of ours, and a real Kafka for what to compare with."""

    def __init__(self, brokers: Mapping[int, str], kafka: Replay, to: str | None) -> None:
        super().__init__(brokers, to)
        self._kafka = kafka
        self._after = ""  # the API of the step before

    def _both(self, step: Step) -> tuple[Any, Any]:
        want, got = super()._both(step)
        for _ in range(_LEARNS_LATE_TIMES):
            if want == got or not step.get("reads"):
                break
            time.sleep(_LEARNS_LATE_S)  # Of configs, quotas and ACLs a broker is notified.
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
    """Run a real Kafka and a cluster of ours; give the addresses of both by broker id."""
    zookeeper = EmbeddedZooKeeper(folder / "zookeeper", [Ports().choose()], java=find_java())
    zookeeper.start()
    # The same names of directories, so that answers can be compared; ours touches none of them.
    own = {
        broker: {
            "broker.rack": f"rack-{broker}",
            "log.dirs": str(data_of(folder / "kafka", broker)),
        }
        for broker in _BROKERS
    }
    try:
        zookeeper.wait_until_serving()
        with (
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
                properties=properties,
                node_properties=own,
            ) as ours,
        ):
            yield (
                dict(zip(_BROKERS, theirs.split(","), strict=True)),
                {broker: ours.bootstrap_server(broker) for broker in _BROKERS},
            )
    finally:
        zookeeper.stop()


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos.live_fidelity", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the cases made at random")
    parser.add_argument("--random", type=int, default=_RANDOM_CASES, help="how many of them")
    parser.add_argument("--recorded", action="store_true", help="the recorded cases as well")
    parser.add_argument("--case", nargs="+", help="only recorded cases whose names begin so")
    parser.add_argument(
        "--authorizer", action="store_true", help="both with ACLs; no recorded ones"
    )
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.stderr.write(f"No real Kafka can be asked: {reason}. `make kafka-jars` fetches it.\n")
        return _NO_KAFKA
    with (
        tempfile.TemporaryDirectory(prefix="fidelity-") as folder,
        both_clusters(Path(folder), _AUTHORIZER if options.authorizer else {}) as (theirs, ours),
    ):
        # What the recordings send to the controller goes to a broker that forwards.
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
    """Return what is asked: recorded cases, those made at random, or both."""
    begin = tuple(options.case or [""])
    recorded = (case for case in load_cases(_RECORDING) if case["case"].startswith(begin))
    asked: dict[str, Iterable[Case]] = {}
    if options.case or (options.recorded and not options.authorizer):
        asked["recorded"] = recorded
    if not options.case and options.random:
        asked[f"random, seed {options.seed}"] = random_cases(options.seed, options.random)
    return asked


def _compare(run: LiveReplay, kind: str, cases: Iterable[Case]) -> bool:
    """Ask both; tell what came of it, and whether anything differs in an unknown way."""
    run.report = Report()
    for case in cases:
        told = len(run.report.differences)
        run.run(case)
        sys.stdout.writelines(f"{text}\n" for text in run.report.differences[told:])
        sys.stdout.flush()
    sys.stdout.write(f"{kind}: {run.report.summary()}\n")
    sys.stdout.flush()
    return bool(run.report.differences)


if __name__ == "__main__":
    sys.exit(main())
