"""Puts the same cases to a real Kafka that forwards and to us: `make fidelity LIVE=1`.

The recorded cases, whose answers are asked for anew, and cases made at random from the schemas.
Both clusters are started fresh, with three brokers, broker 1 the controller; what the recordings
send to the controller goes to a broker that forwards. Exit 0: nothing differs in an unknown way;
1: something does, and is printed; 2: there is no real Kafka to be had.

    python -m chaos.live_fidelity [--seed N] [--random COUNT] [--recorded] [--case NAME]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.plan import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from chaos.fidelity import Replay, Step, load_cases
from chaos.random_cases import random_cases
from chaos.real_kafka import kafka_brokers, why_not

_RECORDING: Final = Path("tests/recordings/forwarded-open.jsonl.gz")
_BROKERS: Final = (1, 2, 3)
_RANDOM_CASES: Final = 60
_NO_KAFKA = 2


class LiveReplay(Replay):
    """Asks a cluster of ours, and a real Kafka for what to compare with."""

    def __init__(self, brokers: Mapping[int, str], kafka: Replay, to: str | None) -> None:
        super().__init__(brokers, to)
        self._kafka = kafka

    def _wanted(self, step: Step) -> Any:
        time.sleep(step.get("settle_before", 0))
        return self._kafka.take(step)


@contextmanager
def both_clusters(folder: Path) -> Iterator[tuple[Mapping[int, str], Mapping[int, str]]]:
    """Run a real Kafka and a cluster of ours; give the addresses of both by broker id."""
    zookeeper = EmbeddedZooKeeper(folder / "zookeeper", [Ports().choose()], java=find_java())
    zookeeper.start()
    racks = {broker: {"broker.rack": f"rack-{broker}"} for broker in _BROKERS}
    try:
        zookeeper.wait_until_serving()
        with (
            kafka_brokers(
                folder / "kafka", zookeeper.connect, _BROKERS, forwarding=True, one_by_one=True
            ) as theirs,
            Cluster(brokers=len(_BROKERS), controller=1, node_properties=racks) as ours,
        ):
            yield (
                dict(zip(_BROKERS, theirs.split(","), strict=True)),
                {broker: ours.bootstrap_server(broker) for broker in _BROKERS},
            )
    finally:
        zookeeper.stop()


def _cases(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    recorded = load_cases(_RECORDING) if options.recorded or options.case else iter(())
    made = () if options.case else random_cases(options.seed, options.random)
    for case in chain(recorded, made):
        if case["case"].startswith(options.case):
            yield case


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos.live_fidelity", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the cases made at random")
    parser.add_argument("--random", type=int, default=_RANDOM_CASES, help="how many of them")
    parser.add_argument("--recorded", action="store_true", help="the recorded cases as well")
    parser.add_argument("--case", default="", help="only recorded cases whose name begins so")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.stderr.write(f"No real Kafka can be asked: {reason}. `make kafka-jars` fetches it.\n")
        return _NO_KAFKA
    with (
        tempfile.TemporaryDirectory(prefix="fidelity-") as folder,
        both_clusters(Path(folder)) as (theirs, ours),
    ):
        kafka = Replay(theirs, "other")
        run = LiveReplay(ours, kafka, "other")
        try:
            for case in _cases(options):
                run.run(case)
        finally:
            run.close()
            kafka.close()
    sys.stdout.writelines(f"{text}\n" for text in run.report.differences)
    sys.stdout.write(run.report.summary() + "\n")
    return bool(run.report.differences)


if __name__ == "__main__":
    sys.exit(main())
