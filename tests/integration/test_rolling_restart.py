"""A broker that stops cleanly hands over its leaders first: clients see no gap in the service."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bridgehead.cluster import Cluster
from raw_client.blocking import Connection
from tests.integration.judged_runs import failed, judged
from tests.integration.test_replication import (
    PROPERTIES,
    TOPIC,
    Records,
    all_in_sync,
    consume,
    create_topic,
)
from tests.integration.waiting import wait_until

pytestmark = pytest.mark.long
_METADATA, _VERSION = 3, 4


class Observer:
    """Reads the metadata of one broker all the time, while another one stops."""

    def __init__(self, cluster: Cluster, broker: int, stopping: int) -> None:
        self.handed_over = False
        """The stopping broker was registered, and led nothing."""
        self.without_leader = False
        self._address = cluster.bootstrap_server(broker)
        self._stopping = stopping
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        body = {"topics": [{"name": TOPIC}], "allowAutoTopicCreation": False}
        with Connection(self._address) as connection:
            while not self._stopped.is_set():
                found = connection.call(_METADATA, _VERSION, body)
                live = {each["nodeId"] for each in found["brokers"]}
                leaders = {each["leaderId"] for each in found["topics"][0]["partitions"]}
                self.handed_over |= self._stopping in live - leaders
                self.without_leader |= not leaders <= live

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def wait_for_more(records: Records, more: int) -> None:
    enough = len(records.acknowledged) + more
    wait_until(lambda: len(records.acknowledged) > enough)


@pytest.mark.parametrize("enabled", [True, False])
def test_stopping_broker_hands_over_its_leaders(tmp_path: Path, enabled: bool) -> None:
    """Each broker is restarted in turn. Without controlled shutdown no leader moves in advance."""
    switch = {"controlled.shutdown.enable": str(enabled).lower()}
    with Cluster(data_dir=tmp_path, properties={**PROPERTIES, **switch}) as cluster:
        create_topic(cluster, min_insync_replicas="2")
        with Records(cluster, **{"enable.idempotence": True}) as records:
            for broker, other in ((1, 2), (2, 3), (3, 1)):
                wait_until(lambda: all_in_sync(cluster))
                with Observer(cluster, other, broker) as observer:
                    cluster.stop_node(broker)
                    wait_for_more(records, 100)
                cluster.start_node(broker)
                assert observer.handed_over is enabled
                assert not (enabled and observer.without_leader)
        found = consume(cluster)
    assert records.acknowledged.items() <= found.items()
    assert not failed(judged(tmp_path))
