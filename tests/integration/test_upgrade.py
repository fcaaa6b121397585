"""Upgrades to forwarding (KIP-590) take two rolling bounces; old and new brokers coexist."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import confluent_kafka
import orjson
import pytest
from confluent_kafka import KafkaException
from kazoo.client import KazooClient

from bridgehead.application import module_command
from bridgehead.cluster import ClientHistory, Cluster
from bridgehead.cluster.errors import ClusterError
from bridgehead.raw_client.blocking import CLOSED, Connection
from bridgehead.raw_client.codec import create_topic_body, encode_json
from judge.evidence.run_lookup import read_run
from judge.history import Event, History, boot_of, is_below
from judge.verdicts import Judgement, Verdict, judge
from tests.integration.admin_clients import ConfluentAdmin, KafkaPythonAdmin
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until
from tests.integration.test_forwarding_metrics import metrics_of
from tests.integration.test_internal_topics import (
    GROUP,
    KEYS,
    OFFSETS,
    REDIRECTED,
    TRANSACTION,
    TRANSACTIONS,
    RawClient,
    codes,
    coordinators_once_found,
)
from tests.integration.zookeeper_peers import kazoo_client

ROOT = Path(__file__).resolve().parents[2]
LEVEL, ENVELOPE = "inter.broker.protocol.version", "bridgehead.envelope.supported"
OLD = {LEVEL: "3.3", ENVELOPE: "false"}
MUTANT_NODE = module_command("chaos.mutant_node", "--mutants")
API_VERSIONS, CREATE_TOPICS, INCREMENTAL_ALTER_CONFIGS, ALTER_CLIENT_QUOTAS = 18, 19, 44, 49
METADATA = 3
NONE, NOT_CONTROLLER, UNKNOWN_SERVER_ERROR = 0, 41, -1
# The pause between two writes of a client. The load must be continuous, not large.
PACE_S = 0.05


def set_quota(connection: Connection, user: str, value: float) -> int:
    entity = [{"entityType": "user", "entityName": user}]
    ops = [{"key": "producer_byte_rate", "value": value, "remove": False}]
    body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    (entry,) = connection.call(ALTER_CLIENT_QUOTAS, 0, body)["entries"]
    return int(entry["errorCode"])


def set_config(connection: Connection, topic: str, name: str, value: str) -> int:
    config = {"name": name, "configOperation": 0, "value": value}
    resource = {"resourceType": 2, "resourceName": topic, "configs": [config]}
    body = {"resources": [resource], "validateOnly": False}
    (response,) = connection.call(INCREMENTAL_ALTER_CONFIGS, 0, body)["responses"]
    return int(response["errorCode"])


def create(connection: Connection, topic: str) -> int:
    body = create_topic_body(topic)
    (response,) = connection.call(CREATE_TOPICS, 1, body)["topics"]
    return int(response["errorCode"])


def stored(client: KazooClient, path: str) -> dict[str, str]:
    configs: dict[str, str] = orjson.loads(client.get(path)[0])["config"]
    return configs


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bridgehead.cli.main", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


class Load:
    """Clients that write until they are stopped; their results are in the evidence."""

    def __init__(self, cluster: Cluster) -> None:
        self.acknowledged: dict[str, list[tuple[str, str]]] = defaultdict(list)  # path, value
        self._cluster = cluster
        self._stopped = threading.Event()
        self._history = ClientHistory(cluster.evidence_dir, "load")
        works = [threading.Thread(target=self._set_quotas, args=(b,)) for b in cluster.brokers]
        self._threads = [*works, threading.Thread(target=self._make_topics)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._history.close()

    def wait_for_more(self, number: int) -> None:
        """Wait until every client has `each` more successes."""
        clients = ("1", "2", "3", "topics")
        wanted = {name: len(self.acknowledged[name]) + number for name in clients}

        def late() -> list[str]:
            return [name for name in clients if len(self.acknowledged[name]) < wanted[name]]

        wait_until(late, lambda clients: not clients)

    def _set_quotas(self, broker: int) -> None:
        """Set quotas through this broker only, whether or not it is the controller."""
        connection: Connection | None = None
        for number in itertools.count():
            if self._stopped.is_set():
                return
            user, element = f"by-{broker}-{number}", f"0:user=by-{broker}-{number}"
            try:
                connection = connection or Connection(self._cluster.bootstrap_server(broker))
                with self._history.operation(ALTER_CLIENT_QUOTAS, [element]) as operation:
                    code = set_quota(connection, user, number)
                    operation.completed({element: code})
            except (OSError, AssertionError):  # The broker is being restarted.
                connection = None
                time.sleep(0.05)
                continue
            if code == NONE:
                path = f"/config/users/{user}"
                self.acknowledged[str(broker)].append((path, str(number)))
            self._stopped.wait(PACE_S)

    def _make_topics(self) -> None:
        """Create topics and alter their configs with confluent-kafka, through any broker."""
        admin = ConfluentAdmin(self._cluster.bootstrap_servers)
        for number in itertools.count():
            if self._stopped.is_set():
                break
            topic, value = f"topic-{number}", str(1000 + number)
            try:
                with self._history.operation(CREATE_TOPICS, [topic]) as operation:
                    admin.create(topic, 1, 2, {})
                    operation.completed({topic: NONE})
                with self._history.operation(INCREMENTAL_ALTER_CONFIGS, [f"2:{topic}"]) as altering:
                    admin.alter(topic, {"retention.ms": value}, legacy=False)
                    altering.completed({f"2:{topic}": NONE})
            except (KafkaException, TimeoutError):  # The history records an unknown outcome.
                time.sleep(0.05)
                continue
            self.acknowledged["topics"].append((f"/config/topics/{topic}", value))
            self._stopped.wait(PACE_S)
        admin.close()


def use_another_client(cluster: Cluster, topic: str) -> None:
    """Use a new kafka-python client: a client that lost its broker may need a minute to recover."""
    admin = KafkaPythonAdmin(cluster.bootstrap_servers)
    admin.create(topic, 1, 2, {})
    admin.alter(topic, {"retention.ms": "1000"}, legacy=False)
    assert admin.configs(topic)["retention.ms"] == "1000"
    admin.close()


@pytest.mark.long
@pytest.mark.timeout(420)
def test_upgrade_under_load_loses_nothing(start_cluster: StartCluster, tmp_path: Path) -> None:
    """Forwarding starts with the second bounce."""
    cluster = start_cluster(brokers=3, data_dir=tmp_path, properties=OLD)
    with Load(cluster) as load:
        use_another_client(cluster, "before")
        load.wait_for_more(3)
        upgraded = run_command("upgrade", "--data-dir", str(tmp_path))
        assert upgraded.returncode == 0, upgraded.stderr
        use_another_client(cluster, "after")
        load.wait_for_more(3)
    assert upgraded.stdout.count("is back after") == 6, upgraded.stdout
    with kazoo_client(cluster.zookeeper_connect) as client:
        for path, value in itertools.chain(*load.acknowledged.values()):
            assert value in stored(client, path).values(), path
    again = run_command("upgrade", "--data-dir", str(tmp_path))
    assert (again.returncode, again.stdout[:13]) == (0, "Nothing to do"), again
    with pytest.raises(ClusterError, match="An upgrade cannot be undone: start a new cluster"):
        cluster.reset()
    cluster.stop()
    judged = run_command("judge", str(tmp_path))
    assert judged.returncode == 0, judged.stdout
    assert "PASS      W6" in judged.stdout
    forwarding_starts_with_the_second_bounce(History(read_run(tmp_path)))


def forwarding_starts_with_the_second_bounce(history: History) -> None:
    """Check that each broker had three boots, and forwarded only in the third.

    The boots are: old release, new release, new protocol version.
    """
    lives = [(boot_of(e), e["level"], e["envelope_supported"]) for e in in_order(history)]
    for broker in ("1", "2", "3"):
        reports = [(is_below(level), knows) for (node, _), level, knows in lives if node == broker]
        assert reports == [(True, False), (True, True), (False, True)]
    below = {boot for boot, level, _ in lives if is_below(level)}
    routes = {number: defaultdict[str, Counter[str]](Counter) for number in (True, False)}
    for event in history.of_kind["request_received"]:
        routes[boot_of(event) in below][event["node"]][event["route"]] += 1
    clients = {event["request_id"] for event in history.of_kind["request_received"]}
    to_others = [e for e in history.of_kind["forward_sent"] if not e["local"]]
    # Only clients' requests count: as in Kafka, a broker of any protocol version also sends its own
    # AlterPartition and AllocateProducerIds to the controller.
    of_clients = {boot_of(e) for e in to_others if e["request_id"] in clients}
    assert of_clients
    assert of_clients.isdisjoint(below)
    for broker in ("1", "2", "3"):
        assert routes[True][broker]["DIRECT"] > 0
        assert routes[False][broker]["DIRECT"] == 0
        assert routes[False][broker]["FORWARD"] > 0
        assert routes[False][broker]["NOT_CONTROLLER"] == 0


def in_order(history: History) -> list[Event]:
    return sorted(history.of_kind["protocol_level"], key=lambda event: event["wall_ms"])


def test_old_and_new_brokers_work_together(start_cluster: StartCluster, tmp_path: Path) -> None:
    """Broker 1 runs a release older than the bridge release. Broker 2 forwards.

    While broker 1 is the controller, forwarding fails, because broker 1 does not support Envelopes.
    While broker 2 is the controller, both brokers write, and no write is lost.
    """
    cluster = start_cluster(
        brokers=2, data_dir=tmp_path, controller=1, node_properties={1: OLD, 2: {}}
    )
    old, new = (Connection(cluster.bootstrap_server(broker)) for broker in (1, 2))
    assert create(new, "orders") == UNKNOWN_SERVER_ERROR
    assert create(old, "orders") == NONE
    assert set_quota(old, "anna", 1) == NONE
    cluster.move_controller(2)
    assert create(old, "others") == NOT_CONTROLLER
    assert create(new, "others") == NONE
    new.call(API_VERSIONS, 3, {"clientSoftwareName": "probe", "clientSoftwareVersion": "1.0"})
    assert clients_of(metrics_of(cluster, 1)) == {"unknown": 1}  # `old` sent no name
    assert clients_of(metrics_of(cluster, 2)) == {"probe": 1}
    codes: list[int] = []

    def alter(connection: Connection, name: str) -> None:
        codes.extend(set_config(connection, "orders", name, str(n)) for n in range(1000, 1040))

    names = ((old, "retention.ms"), (new, "segment.ms"))
    threads = [threading.Thread(target=alter, args=name) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [NONE] * 80
    with kazoo_client(cluster.zookeeper_connect) as client:
        both = {"retention.ms": "1039", "segment.ms": "1039"}
        assert stored(client, "/config/topics/orders") == both
        assert [name[:4] for name in client.get_children("/bridgehead/direct")] == ["1-0x"]
    old.close()
    new.close()
    cluster.stop_node(2)
    with pytest.raises(ClusterError, match=r"Broker 2 is stopped: .* `bridgehead node start 2`"):
        cluster.upgrade()
    cluster.stop()
    verdicts = {row.property: row.verdict for row, _ in judgements_of(tmp_path)}
    assert [verdicts[name] for name in ("W1", "W2", "W6", "D3")] == [Verdict.PASS] * 4


def test_a_broker_below_the_bridge_creates_topics_itself(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """It sends no Envelope. The topics work after a failover, and while brokers are upgraded."""
    properties = {
        LEVEL: "3.3",
        "num.partitions": "4",
        "default.replication.factor": "2",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": "2",
    }
    cluster = start_cluster(brokers=3, data_dir=tmp_path, controller=1, properties=properties)
    clients = {broker: RawClient(cluster, broker) for broker in (1, 2, 3)}
    for broker, key_type in ((2, GROUP), (3, TRANSACTION)):
        assert codes(clients[broker].coordinators(key_type, *KEYS)) == {15}
        for client in clients.values():
            assert codes(coordinators_once_found(client, key_type)) == {0}
    assert clients[2].topics("new", create=True)["new"]["errorCode"] == 5
    shapes = {OFFSETS: [3] * 5, TRANSACTIONS: [2] * 3, "new": [2] * 4}

    def replicas(client: RawClient) -> dict[str, list[int]]:
        topics = client.topics(*shapes)
        return {
            name: [len(p["replicaNodes"]) for p in topic["partitions"] if not p["errorCode"]]
            for name, topic in topics.items()
        }

    for client in clients.values():
        assert wait_until(partial(replicas, client), lambda now: now == shapes) == shapes
    assert [metrics_of(cluster, broker)[REDIRECTED] for broker in clients] == [0, 0, 0]
    assert clients[1].own_configs(OFFSETS)["cleanup.policy"] == "compact"
    use_a_group(cluster, "new", 1)
    cluster.move_controller(2)
    for client in clients.values():
        assert codes(coordinators_once_found(client, GROUP)) == {0}
        assert wait_until(partial(replicas, client), lambda now: now == shapes) == shapes
    use_a_group(cluster, "new", 2)
    with kazoo_client(cluster.zookeeper_connect) as client:
        states = [f"/brokers/topics/{OFFSETS}/partitions/{p}/state" for p in range(5)]
        assert [orjson.loads(client.get(path)[0])["leader_epoch"] for path in states] == [0] * 5
    cluster.upgrade()
    use_a_group(cluster, "new", 3)
    cluster.stop()
    judgements = judgements_of(tmp_path)
    assert [j.row for j in judgements if j.row.verdict is Verdict.FAIL] == []
    verdicts = {j.row.property: j.row.verdict for j in judgements}
    assert [verdicts[name] for name in ("W1", "W2", "W6", "D10")] == [Verdict.PASS] * 4


def use_a_group(cluster: Cluster, topic: str, number: int) -> None:
    """Produce a record; consume all records of this topic in a new group, and commit."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = confluent_kafka.Producer(servers)
    producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0
    group = {"group.id": f"group-{number}", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**servers, **group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    records: set[bytes] = set()
    deadline_s = time.monotonic() + 60
    while len(records) < number:
        assert time.monotonic() < deadline_s, records
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            records.add(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    assert records == {b"%d" % n for n in range(1, number + 1)}


def test_consistent_reads_need_an_upgraded_controller(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """While the controller runs the old release, an upgraded broker serves no consistent reads.

    It closes connections that send reads, and logs one line.
    """
    reads = {"bridgehead.metadata.reads": "controller"}
    cluster = start_cluster(
        brokers=2, data_dir=tmp_path, controller=1, node_properties={1: OLD, 2: reads}
    )

    def read(broker: int) -> bytes | str:
        with Connection(cluster.bootstrap_server(broker)) as connection:
            return connection.exchange(encode_json(METADATA, 1, {"topics": None}))

    assert [read(2) for _ in range(3)] == [CLOSED] * 3
    assert isinstance(read(1), bytes), "the old release did not answer a read"
    log = (tmp_path / "nodes" / "2" / "node.log").read_text(encoding="utf-8")
    assert log.count("cannot report its metadata zxid") == 1
    cluster.move_controller(2)
    wait_until(lambda: isinstance(read(2), bytes))


def clients_of(metrics: dict[str, float]) -> dict[str, float]:
    """Return the number of connections by client software (KIP-511)."""
    pattern = re.compile(r'kafka_server_socket_server_connections\{client_software_name="([^"]*)"')
    return {match[1]: value for name, value in metrics.items() if (match := pattern.match(name))}


def judgements_of(folder: Path) -> list[Judgement]:
    return judge(History(read_run(folder)))


def test_direct_writes_of_a_broker_that_claims_to_forward_are_detected(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """The broker is not below the bridge release, but ZooKeeper's log shows its direct writes."""
    cluster = start_cluster(
        brokers=1,
        data_dir=tmp_path,
        node_command=(*MUTANT_NODE, "writes_past_the_bridge"),
    )
    connection = Connection(cluster.bootstrap_server(1))
    assert set_quota(connection, "anna", 1) == NONE
    connection.close()
    cluster.stop()
    judgements = {judgement.row.property: judgement for judgement in judgements_of(tmp_path)}
    for name in ("W1", "W2", "W6"):
        assert judgements[name].row.verdict is Verdict.FAIL
    assert "of broker 1, role direct, wrote" in judgements["W6"].violations[-1].sentence
