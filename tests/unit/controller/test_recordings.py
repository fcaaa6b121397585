"""Recorded requests, replayed in one process, get the responses of a live Kafka 3.9.1.

tests/integration/test_fidelity.py makes the same comparison on a cluster; these tests take seconds.
The cases about malformed frames and logins are left out.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from cluster_model.znodes.layout import ConfigZnode
from tests.fidelity.replay import Replay, Report, load_cases
from tests.unit.controller.in_process_cluster import BROKERS, InProcessCluster

RECORDINGS: Final = Path(__file__).parents[2] / "recordings"
STEPS: Final = {
    "direct-open": 1086,
    "forwarded-open": 1086,
    "direct-secured": 317,
    "forwarded-secured": 317,
}
LEFT_OUT: Final = ("malformed", "sasl")


class InProcessReplay(Replay):
    """A replay without connections."""

    def __init__(self, cluster: InProcessCluster, to: str | None) -> None:
        self.cluster = cluster
        super().__init__(dict.fromkeys(BROKERS, ""), to)

    def _exchange(self, broker: int, payload: bytes) -> bytes | str:
        return self.cluster.call(broker, self._user, payload)


@cache
def replayed(recording: str) -> tuple[InProcessCluster, Report]:
    """Return the cluster after a replay, and the report. Each recording is replayed once."""
    path, security = recording.split("-")
    properties = (RECORDINGS / f"{security}.properties").read_text(encoding="utf-8")
    cluster = InProcessCluster(properties, forwards=path == "forwarded")
    # The forwarded recordings were taken from a broker that was not the controller.
    replay = InProcessReplay(cluster, "other" if path == "forwarded" else None)
    for case in load_cases(RECORDINGS / f"{recording}.jsonl.gz"):
        if case["case"] not in LEFT_OUT:
            replay.run(case)
    return cluster, replay.report


def znodes(recording: str, below: str) -> Mapping[str, Any]:
    """Return the content of the znodes at the end of a recording, by path."""
    with gzip.open(RECORDINGS / f"znodes-{recording}.jsonl.gz", "rt") as lines:
        contents = {line["path"]: line["data"] for line in map(json.loads, lines)}
    return {
        path: json.loads(data)
        for path, data in contents.items()
        if path.startswith(below) and (data or "").startswith("{")
    }


@pytest.mark.parametrize(("recording", "steps"), STEPS.items())
def test_responses_equal_kafkas_responses_or_differ_in_known_ways(
    recording: str, steps: int
) -> None:
    _, report = replayed(recording)
    assert not report.differences, "\n".join(report.differences)
    assert report.sent.total() == report.equal + report.known_differences.total() == steps
    assert report.known_differences.total() <= steps * 0.03


@pytest.mark.parametrize("recording", STEPS)
def test_configs_quotas_and_credentials_equal_kafkas_znodes(recording: str) -> None:
    cluster, _ = replayed(recording)
    ours = {
        ConfigZnode.path(resource): json.loads(ConfigZnode.encode(configs))
        for resource, configs in cluster.image.configs.items()
        if resource.entity_type != "brokers"  # `alter-configs-named-broker` in docs/differences.md
    }
    kafkas = znodes(recording, "/config/")
    of_clients = ("/config/users/", "/config/clients/", "/config/ips/")
    assert {path for path in kafkas if path.startswith(of_clients)} <= ours.keys()
    assert ours == {path: kafkas[path] for path in ours}


@pytest.mark.parametrize("recording", ["direct-open", "forwarded-open"])
def test_reassigned_partitions_equal_kafkas_znodes(recording: str) -> None:
    """The target replicas lead, and nothing of the reassignment is left."""
    cluster, _ = replayed(recording)
    for name in ("reassign-a", "reassign-b"):
        topic, kafkas = cluster.image.topics[name], znodes(recording, f"/brokers/topics/{name}")
        assert not topic.adding
        assert not topic.removing
        for partition, replicas in kafkas[f"/brokers/topics/{name}"]["partitions"].items():
            ours = topic.states[int(partition)]
            state = kafkas[f"/brokers/topics/{name}/partitions/{partition}/state"]
            assert list(topic.assignment[int(partition)]) == replicas
            assert (ours.leader, list(ours.isr)) == (state["leader"], state["isr"])
