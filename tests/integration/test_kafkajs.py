"""What kafkajs repeats: docs/tools.md and docs/guides/moving-controller.md say it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridgehead.cluster import Cluster

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("npm") is None, reason="kafkajs needs Node and npm"),
]
CLIENT = """
const { Kafka, logLevel } = require("kafkajs");
const [servers, method, topic] = process.argv.slice(2);
const admin = new Kafka({ brokers: servers.split(","), logLevel: logLevel.NOTHING }).admin();
const request = { topics: method === "deleteTopics" ? [topic] : [{ topic }] };
const show = (outcome) => console.log(JSON.stringify(outcome));
admin.connect()
  .then(() => admin[method](request))
  .then(() => show(["done"]))
  .catch((error) => show([error.name, ...(error.errors || []).map((e) => e.type)]))
  .finally(() => admin.disconnect());
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kafkajs")
    (folder / "client.js").write_text(CLIENT)
    (folder / "package.json").write_text("{}")
    install = ["npm", "install", "--silent", "--no-audit", "kafkajs@2.2.4"]
    subprocess.run(install, cwd=folder, check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, properties={"bridgehead.faults.allow": "true"}) as cluster:
        yield cluster


def call(folder: Path, cluster: Cluster, method: str, topic: str) -> list[str]:
    """Return `done`, or the name of the error and the types of the errors in it."""
    done = subprocess.run(
        ["node", "client.js", cluster.bootstrap_servers, method, topic],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    outcome: list[str] = json.loads(done.stdout)
    return outcome


def test_create_topics_is_not_repeated_after_not_controller(folder: Path, cluster: Cluster) -> None:
    rule = cluster.faults.add(
        "error", error="NOT_CONTROLLER", api="CreateTopics", count="cluster", times=1
    )
    error = ["KafkaJSAggregateError", "NOT_CONTROLLER"]
    assert call(folder, cluster, "createTopics", "orders") == error
    assert cluster.faults.hits(rule) == 1
    assert call(folder, cluster, "createTopics", "orders") == ["done"]


def test_delete_topics_is_repeated_after_not_controller(folder: Path, cluster: Cluster) -> None:
    assert call(folder, cluster, "createTopics", "payments") == ["done"]
    rule = cluster.faults.add(
        "error", error="NOT_CONTROLLER", api="DeleteTopics", count="cluster", times=2
    )
    assert call(folder, cluster, "deleteTopics", "payments") == ["done"]
    assert cluster.faults.hits(rule) == 2


@pytest.mark.parametrize("method", ["createTopics", "deleteTopics"])
def test_nothing_is_repeated_after_a_closed_connection(
    folder: Path, cluster: Cluster, method: str
) -> None:
    assert call(folder, cluster, "createTopics", method) == ["done"]
    api = method[0].upper() + method[1:]
    rule = cluster.faults.add("close", api=api, count="cluster", times=1)
    assert call(folder, cluster, method, f"{method}-again")[0].startswith("KafkaJSConnection")
    assert cluster.faults.hits(rule) == 1
