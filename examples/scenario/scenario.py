"""A scenario of your own: create topics while the controller is moved, frozen and killed.

    python scenario.py FOLDER

The exit code is the judge's: 0 if no acknowledged topic was lost and no request took effect twice.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

from bridgehead.cluster import ClientHistory, Cluster, RunSettings
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

CREATE_TOPICS = 19  # Kafka's number of the API; the judge matches operations by it
REQUEST_TIMED_OUT = 7


class Load(threading.Thread):
    """A client that creates one topic after the other, and records each operation."""

    def __init__(self, servers: str, history: ClientHistory) -> None:
        super().__init__()
        self.created = 0
        self.stop = threading.Event()
        self._history = history
        self._admin = AdminClient(
            {"bootstrap.servers": servers, "topic.metadata.refresh.interval.ms": 500}
        )

    def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            name = f"topic-{number}"  # each name once: the judge then knows whose effect it sees
            with self._history.operation(CREATE_TOPICS, [name]) as operation:
                try:
                    created = self._admin.create_topics([NewTopic(name, 1, 2)], request_timeout=5)
                    created[name].result()
                    operation.completed({name: 0})
                    self.created += 1
                except KafkaException as error:
                    code = error.args[0].code()
                    # Negative codes are the client's own: nobody knows whether it was executed.
                    operation.completed({name: code if code > 0 else REQUEST_TIMED_OUT})

    def wait_for(self, count: int) -> None:
        """Return when `count` more topics were created."""
        target, deadline = self.created + count, time.monotonic() + 60
        while self.created < target:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.created} topics after a minute, not {target}")
            time.sleep(0.05)


def main(folder: Path) -> int:
    """Run the scenario and judge it."""
    run = RunSettings(scenario="my_failovers", seed=1, operations_min=5)
    properties = {"zookeeper.session.timeout.ms": "2000"}
    with Cluster(3, data_dir=folder, run=run, properties=properties) as cluster:
        with ClientHistory(cluster.evidence_dir, "load") as history:
            load = Load(cluster.bootstrap_servers, history)
            load.start()
            try:
                load.wait_for(5)
                cluster.freeze_controller(4)
                load.wait_for(1)
                killed = cluster.kill_controller()
                cluster.wait_for_controller(other_than=killed)
                cluster.heal()
                load.wait_for(10)
            finally:
                load.stop.set()
                load.join()
    print(f"{load.created} topics were created")
    return subprocess.run(["bridgehead", "judge", str(folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
