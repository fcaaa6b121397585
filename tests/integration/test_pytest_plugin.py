"""In a user's test suite the plug-in's documented examples pass in any order of tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bridgehead.cluster import Cluster
from bridgehead.pytest_plugin import cluster_options
from bridgehead.raw_client.blocking import call_once

DIALECT = "listener.name.plaintext.bridgehead.dialect"
METADATA, CREATE_TOPICS = 3, 19
ROOT = Path(__file__).parents[2]
ORDER = '''
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

SEEN = set()


def client(servers):
    return AdminClient({"bootstrap.servers": servers, "topic.metadata.refresh.interval.ms": 1000})


def is_like_new(cluster):
    """Three brokers that know each other, and no topic."""
    for broker in cluster.brokers:
        metadata = client(cluster.bootstrap_server(broker)).list_topics()
        assert set(metadata.brokers) == {1, 2, 3}
        assert not metadata.topics
    SEEN.add(cluster.data_dir)


@pytest.mark.parametrize("damage", ["topic", "kill", "freeze", None])
def test_every_test_gets_the_same_cluster_like_new(bridgehead_cluster, damage):
    is_like_new(bridgehead_cluster)
    assert len(SEEN) == 1
    if damage == "topic":
        admin = client(bridgehead_cluster.bootstrap_servers)
        admin.create_topics([NewTopic("left-over", 1, 1)])["left-over"].result()
    elif damage == "kill":
        killed = bridgehead_cluster.kill_controller()
        bridgehead_cluster.kill_node(killed % 3 + 1)
    elif damage == "freeze":
        bridgehead_cluster.freeze_controller(3600)


@pytest.mark.parametrize("number", range(2))
def test_a_cluster_that_cannot_be_healed_is_replaced(bridgehead_cluster, number):
    is_like_new(bridgehead_cluster)
    assert len(SEEN) == number + 1
    bridgehead_cluster._supervisor.kill()


def test_the_session_cluster_is_another_one(bridgehead_session_cluster, bridgehead_cluster):
    is_like_new(bridgehead_cluster)
    assert bridgehead_session_cluster.data_dir != bridgehead_cluster.data_dir
'''


def example(page: str, heading: str) -> str:
    """Return the first Python block of a section."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text[text.index(f"\n{heading}\n") :]
    match = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run pytest once with the plug-in. Map each test's name to its failure text, empty if none."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_readme.py").write_text(example("README.md", "## In pytest"))
    (folder / "test_page.py").write_text(example("docs/testing.md", "## pytest"))
    (folder / "test_guide.py").write_text(example("docs/guides/ci.md", "## The test"))
    (folder / "test_the_order.py").write_text(ORDER)  # runs after test_readme.py
    plugin = ("-p", "bridgehead.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "--junitxml=report.xml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (folder / "report.xml").exists(), done.stdout + done.stderr
    return {
        str(case.get("name")): "".join(part.text or "" for part in case)
        for case in ElementTree.parse(folder / "report.xml").iter("testcase")
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "test_topics_are_created_after_a_failover",
        "test_alice_may_create_topics_with_short_names",
        "test_topics_can_be_created_after_a_failover",
    ],
)
def test_documented_example_passes(outcomes: dict[str, str], name: str) -> None:
    """The examples are in README.md, docs/testing.md and docs/guides/ci.md."""
    assert outcomes[name] == ""


@pytest.mark.long
def test_order_of_tests_does_not_matter(outcomes: dict[str, str]) -> None:
    """Every test checks that the damage by the previous test is repaired."""
    assert len(outcomes) == 10
    assert set(outcomes.values()) == {""}


def marker(*args: object, **kwargs: object) -> pytest.Mark:
    return pytest.Mark("bridgehead", args, kwargs, _ispytest=True)


def test_closest_marker_wins_and_properties_are_merged() -> None:
    method = marker(brokers=1, properties={"a": "1"})
    module = marker(brokers=2, dialect="drafted", properties={"a": "2", "b": "2"})
    options = cluster_options({"brokers": 3, "properties": {"c": "3"}}, [method, module])
    assert options == {
        "brokers": 1,
        "properties": {"a": "1", "b": "2", "c": "3", DIALECT: "drafted"},
    }


def test_dialect_of_the_marker_applies_to_every_listener() -> None:
    listeners = {"A": "PLAINTEXT", "B": "SASL_PLAINTEXT"}
    options = cluster_options({}, [marker(dialect="drafted", listeners=listeners)])
    assert options["properties"] == {
        "listener.name.a.bridgehead.dialect": "drafted",
        "listener.name.b.bridgehead.dialect": "drafted",
    }


def test_cluster_with_the_drafted_dialect_starts_and_is_reset() -> None:
    with Cluster(**cluster_options({"brokers": 1}, [marker(dialect="drafted")])) as cluster:
        topic = {"name": "x", "numPartitions": 1, "replicationFactor": 1}
        body = {"topics": [{**topic, "assignments": [], "configs": []}], "timeoutMs": 30_000}
        (created,) = call_once(cluster.bootstrap_servers, CREATE_TOPICS, 0, body)["topics"]
        assert created["errorCode"] == 0
        cluster.heal(reset=True)
        assert call_once(cluster.bootstrap_servers, METADATA, 1, {"topics": None})["topics"] == []


@pytest.mark.parametrize(
    ("mark", "message"), [(marker(3), "each by name"), (marker(broker=3), "not broker")]
)
def test_wrong_marker_is_an_error(mark: pytest.Mark, message: str) -> None:
    with pytest.raises(pytest.UsageError, match=message):
        cluster_options({}, [mark])
