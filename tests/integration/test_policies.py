"""A user's own policy decides the same at every broker of a cluster. No client can bypass it."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridgehead.application import module_command
from bridgehead.cluster import Cluster, ClusterError
from bridgehead.raw_client.asynchronous import drive
from bridgehead.raw_client.blocking import call_once
from bridgehead.raw_client.codec import create_topics, decode_message, topic_body
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst
from tests.integration.conftest import StartCluster

NONE, VIOLATION, UNKNOWN, TIMED_OUT = 0, 44, -1, 7
CREATE, DELETE, DELETE_RECORDS, ALTER, GROW, INCREMENTAL, REASSIGN = 19, 20, 21, 33, 37, 44, 45
HONOURS_CLIENTS = module_command("chaos.mutant_node", "--mutants", "honour_client_bypass")
RULES = '''
"""What a user writes."""

import pathlib
import time

from bridgehead.policy import PolicyViolationException, TopicManagementPolicy


class Rules(TopicManagementPolicy):
    def configure(self, configs):
        self.largest = int(configs["my.largest"])
        self.folder = pathlib.Path(configs["my.folder"])
        self.asleep = self.folder / "asleep"
        self.broker = configs["broker.id"]

    def close(self):
        with (self.folder / "closed").open("a") as closed:
            closed.write(f"{self.broker} ")

    def validate_create_topic(self, request, cluster):
        if request.topic == "sleeps":
            self.asleep.touch()
            time.sleep(3600)
        if request.topic == "fails":
            raise KeyError("a secret")
        if request.topic == "exits":
            raise SystemExit(1)
        self.check(request, cluster)

    def validate_alter_topic(self, request, cluster):
        self.check(request, cluster)

    def check(self, request, cluster):
        state = request.requested_state
        if state.num_partitions > self.largest:
            raise PolicyViolationException(
                f"{request.topic}: {state.num_partitions} partitions, requested by "
                f"{request.principal}, in a cluster of {cluster.cluster_size()}"
            )
        if state.configs.get("retention.ms") == "1":
            raise PolicyViolationException(f"{request.topic} forgets too fast")
        if not state.generated_replica_assignments:
            raise PolicyViolationException(f"{request.topic}: replicas are ours to place")

    def validate_delete_topic(self, request, cluster):
        partitions = cluster.topic_state(request.topic).num_partitions
        raise PolicyViolationException(f"{request.topic} has {partitions} partitions, and stays")

    def validate_delete_records(self, request, cluster):
        if request.topic not in cluster.topics(False, False):
            raise RuntimeError("the cluster is not what it should be")
        state = cluster.topic_state(request.topic)
        if state.configs.get("retention.ms") == "5000":
            raise PolicyViolationException(f"{request.deleted_message_offsets}")
'''


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the dotted path of a policy in the user's own package."""
    package = tmp_path / "code" / "my_company"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "policies.py").write_text(RULES)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return "my_company.policies.Rules"


def call(
    cluster: Cluster,
    broker: int,
    key: int,
    version: int,
    body: dict[str, Any],
    dialect: str = "shipped",
) -> Any:
    return call_once(cluster.bootstrap_server(broker), key, version, body, dialect=dialect)


def topics(
    *names: str, partitions: int = 1, retention: str | None = None, **fields: Any
) -> dict[str, Any]:
    configs = {"retention.ms": retention} if retention else None
    bodies = [topic_body(name, partitions, 2, configs=configs) for name in names]
    return {"topics": bodies, "timeoutMs": 10_000, "validateOnly": False, **fields}


def without_validation(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "validateOnly"}


def results(response: Any) -> list[tuple[int, str | None]]:
    """Return code and message of every element of the response."""
    rows = response.get("topics") or response.get("responses") or response.get("results")
    rows = [row.get("partitions") or [row] for row in rows]
    return [(result["errorCode"], result.get("errorMessage")) for row in rows for result in row]


RETENTION = {"name": "retention.ms", "value": "1"}
TOPIC = {"resourceType": 2, "resourceName": "there"}
FORGETS = (VIOLATION, "there forgets too fast")
LARGE = "large: 5 partitions, requested by None, in a cluster of 3"
REJECTED: list[tuple[int, int, dict[str, Any], tuple[int, str | None]]] = [
    (CREATE, 0, without_validation(topics("large", partitions=5)), (VIOLATION, None)),
    (CREATE, 1, topics("large", partitions=5), (VIOLATION, LARGE)),
    (CREATE, 7, topics("large", partitions=5), (VIOLATION, LARGE)),
    (CREATE, 7, topics("large", partitions=5, validateOnly=True), (VIOLATION, LARGE)),
    (
        GROW,
        3,
        {
            "topics": [{"name": "there", "count": 5, "assignments": None}],
            "timeoutMs": 1000,
            "validateOnly": False,
        },
        (VIOLATION, LARGE.replace("large", "there")),
    ),
    (ALTER, 2, {"resources": [{**TOPIC, "configs": [RETENTION]}], "validateOnly": True}, FORGETS),
    (
        INCREMENTAL,
        1,
        {
            "resources": [{**TOPIC, "configs": [{**RETENTION, "configOperation": 0}]}],
            "validateOnly": False,
        },
        FORGETS,
    ),
    (
        REASSIGN,
        0,
        {
            "timeoutMs": 1000,
            "topics": [
                {"name": "there", "partitions": [{"partitionIndex": 0, "replicas": [3, 1]}]}
            ],
        },
        (VIOLATION, "there: replicas are ours to place"),
    ),
    (DELETE, 4, {"topicNames": ["there"], "timeoutMs": 1000}, (UNKNOWN, None)),
    (
        DELETE,
        5,
        {"topicNames": ["there"], "timeoutMs": 1000},
        (VIOLATION, "there has 1 partitions, and stays"),
    ),
]


def test_every_admin_write_of_a_topic_is_checked_direct_and_forwarded(
    start_cluster: StartCluster, tmp_path: Path, rules: str
) -> None:
    """A forwarding broker returns the same response as the controller's broker."""
    cluster = start_cluster(
        controller=1,
        properties={
            "topic.management.policy.class.name": rules,
            "my.largest": "4",
            "my.folder": str(tmp_path),
        },
    )
    created = call(cluster, 2, CREATE, 7, topics("there", retention="5000"))
    assert results(created) == [(NONE, None)]
    for key, version, body, expected in REJECTED:
        direct, forwarded = (call(cluster, broker, key, version, body) for broker in (1, 2))
        assert direct == forwarded
        assert results(direct) == [expected]
    leader = created_leader(cluster)
    body = {
        "topics": [{"name": "there", "partitions": [{"partitionIndex": 0, "offset": -1}]}],
        "timeoutMs": 1000,
    }
    assert results(call(cluster, leader, DELETE_RECORDS, 2, body)) == [(VIOLATION, None)]
    quick = {
        "resources": [
            {**TOPIC, "configs": [{"name": "retention.ms", "value": "6", "configOperation": 0}]}
        ],
        "validateOnly": False,
    }
    assert results(call(cluster, 3, INCREMENTAL, 1, quick)) == [(NONE, None)]
    assert results(call(cluster, leader, DELETE_RECORDS, 2, body)) == [(NONE, None)]
    cluster.stop()
    closed = (tmp_path / "closed").read_text().split()
    assert sorted(closed) == ["1", "1", "2", "2", "3", "3"], (
        "each node closes two policies: one for the controller, one for leaders"
    )


def created_leader(cluster: Cluster) -> int:
    metadata = call(cluster, 1, 3, 1, {"topics": [{"name": "there"}]})
    return int(metadata["topics"][0]["partitions"][0]["leaderId"])


def test_a_policy_that_fails_or_hangs_affects_its_topic_only(
    start_cluster: StartCluster, tmp_path: Path, rules: str
) -> None:
    """While a policy hangs, other requests are served. An exception's text is only in the log."""
    cluster = start_cluster(
        controller=1,
        properties={
            "topic.management.policy.class.name": rules,
            "my.largest": "4",
            "my.folder": str(tmp_path),
            "bridgehead.policy.timeout.ms": "3000",
        },
    )
    failed = f"The policy {rules} failed; see the log of the broker that called it."
    response = call(cluster, 2, CREATE, 7, topics("fails", "exits", "good"))
    assert results(response) == [(UNKNOWN, failed), (UNKNOWN, failed), (NONE, None)]
    overran = f"Rejected: the policy {rules} did not decide within 3000 ms."
    with ThreadPoolExecutor(1) as other_thread:
        began = time.monotonic()
        slow = other_thread.submit(call, cluster, 2, CREATE, 7, topics("sleeps", "calm"))
        while not (tmp_path / "asleep").exists():
            time.sleep(0.01)
        assert results(call(cluster, 3, CREATE, 7, topics("quick"))) == [(NONE, None)]
        assert time.monotonic() - began < 3
        assert results(slow.result()) == [(UNKNOWN, overran), (NONE, None)]
        assert time.monotonic() - began > 3
    assert cluster.wait_for_controller() == 1
    assert "a secret" in (cluster.data_dir / "nodes" / "1" / "node.log").read_text()


def test_a_clients_bypass_flag_has_an_effect_only_with_the_seeded_bug(
    start_cluster: StartCluster, tmp_path: Path, rules: str
) -> None:
    for mutant in (False, True):
        cluster = start_cluster(
            brokers=1,
            properties={
                "topic.management.policy.class.name": rules,
                "my.largest": "4",
                "my.folder": str(tmp_path),
                "listener.name.plaintext.bridgehead.dialect": "drafted",
            },
            node_command=HONOURS_CLIENTS if mutant else (),
        )
        body = topics("large", partitions=5, bypassPolicy=True)
        body["topics"][0]["replicationFactor"] = 1
        response = call(cluster, 1, CREATE, 7, body, "drafted")
        assert results(response)[0][0] == (NONE if mutant else VIOLATION)


async def test_concurrent_requests_share_commits_and_cannot_exceed_a_limit(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """Decisions with the same zxid were written by the same commit."""
    allowed, requested, connections = 60, 100, 32
    cluster = start_cluster(
        controller=1,
        data_dir=tmp_path,
        properties={
            "topic.management.policy.class.name": "bridgehead.policy.limits.TopicLimits",
            "bridgehead.policy.limits.topics.max": str(allowed),
        },
    )
    rejections: list[str] = []

    def check(response: bytes) -> None:
        for topic in decode_message(CREATE, 4, response).topics:
            assert topic.error_code in (NONE, VIOLATION), topic
            rejections.extend(filter(None, (topic.error_message,)))

    requests = iter([create_topics([f"t{number}"]) for number in range(requested)])
    address = cluster.bootstrap_server(2)
    await drive(address, connections=connections, requests=requests, check=check)
    text = f"The cluster would have {allowed + 1} topics; the limit is {allowed}."
    assert rejections == [text] * (requested - allowed)
    cluster.stop()
    history = History(read_run(tmp_path))
    commits = Counter(
        event["zxid"]
        for event in history.of_kind["request_decided"]
        if event["api_key"] == CREATE and [code for _, code in event["elements"]] == [NONE]
    )
    assert sum(commits.values()) == allowed
    assert max(commits.values()) > 1
    assert worst(judgement.row for judgement in judge(history)) is Verdict.PASS


def test_a_missing_policy_prevents_the_cluster_from_starting(tmp_path: Path) -> None:
    name = "create.topic.policy.class.name"
    cluster = Cluster(brokers=1, data_dir=tmp_path, properties={name: "my_company.Missing"})
    with pytest.raises(ClusterError, match=rf"{name}=my_company\.Missing cannot be imported"):
        cluster.start()
