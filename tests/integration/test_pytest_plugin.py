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
    section = text[f"\n{text}".index(f"\n{heading}\n") :]
    match = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run pytest once with the plug-in. Map each test's name to its failure text, empty if none."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_readme.py").write_text(example("README.md", "# Bridgehead"))
    (folder / "test_page.py").write_text(example("docs/testing.md", "## pytest"))
    (folder / "test_aio.py").write_text(example("docs/testing.md", "### asyncio"))
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
        "test_aiokafka_creates_topics_after_a_failover",
    ],
)
def test_documented_example_passes(outcomes: dict[str, str], name: str) -> None:
    """The examples are in README.md, docs/testing.md and docs/guides/ci.md."""
    assert outcomes[name] == ""


@pytest.mark.long
def test_order_of_tests_does_not_matter(outcomes: dict[str, str]) -> None:
    """Every test checks that the damage by the previous test is repaired."""
    assert len(outcomes) == 11
    assert set(outcomes.values()) == {""}


FAILING = """
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.bridgehead(brokers=2, properties={"zookeeper.session.timeout.ms": "3000"})
SEEN = {}


@pytest.fixture
def mine(bridgehead_cluster):
    return bridgehead_cluster


def test_fails_after_a_kill(mine):
    rule = mine.faults.add("error", error="NOT_CONTROLLER", api="CreateTopics", times=0)
    killed = mine.kill_controller()
    assert killed == 77


def test_adds_a_wrong_rule(mine):
    mine.faults.add("error", error="NOT_CONTROLER", api="CreateTopics")


class TestClass:
    def test_first(self, bridgehead_class_cluster, bridgehead_module_cluster):
        SEEN["class"], SEEN["module"] = bridgehead_class_cluster, bridgehead_module_cluster
        assert len({c.data_dir for c in SEEN.values()}) == 2
        for cluster in SEEN.values():
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
            admin.create_topics([NewTopic("kept", 1, 2)])["kept"].result()

    def test_second(self, bridgehead_class_cluster):
        assert bridgehead_class_cluster is SEEN["class"]
        assert "kept" in AdminClient(
            {"bootstrap.servers": bridgehead_class_cluster.bootstrap_servers}
        ).list_topics().topics


class TestOtherClass:
    def test_first(self, bridgehead_class_cluster, bridgehead_module_cluster):
        assert bridgehead_module_cluster is SEEN["module"]
        topics = [
            AdminClient({"bootstrap.servers": c.bootstrap_servers}).list_topics().topics
            for c in (bridgehead_class_cluster, bridgehead_module_cluster)
        ]
        assert ["kept" in names for names in topics] == [False, True]
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run a suite in which two tests fail; return pytest's output and the folder that is kept."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "test_failing.py").write_text(FAILING)
    kept = folder / "kept"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("-p", "bridgehead.pytest_plugin", f"--bridgehead-keep={kept}", "--bridgehead-judge"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr, kept


def test_a_failed_test_shows_its_cluster(failed: tuple[str, Path]) -> None:
    output, kept = failed
    shown = output[output.index("- cluster of bridgehead_cluster -") :]
    assert re.search(r"^phase       (no controller|ready)$", shown, re.MULTILINE)
    assert re.search(r"^brokers     .*\d killed", shown, re.MULTILINE)
    assert re.search(r"^fault       kill of broker \d, [\d.]+ s after the start$", shown, re.M)
    assert re.search(r"^fault rule  rule-1: 0 hits, 0 matches$", shown, re.MULTILINE)
    assert "error=NOT_CONTROLLER" in shown
    assert re.search(r"^    \[\d{4}-.* INFO ", shown, re.MULTILINE)  # a line of a log
    evidence = re.search(r"^judge it    bridgehead judge (\S+)$", shown, re.MULTILINE)
    assert evidence is not None
    assert kept in Path(evidence[1]).parents
    assert (Path(evidence[1]) / "manifest.json").exists()  # kept, and sealed


def test_a_wrong_rule_is_one_line_of_the_report(failed: tuple[str, Path]) -> None:
    output, _ = failed
    section = output[output.index("_ test_adds_a_wrong_rule _") :]
    section = section[: section.index("- cluster of")]
    (error,) = [line for line in section.splitlines() if line.startswith("E ")]
    assert error.endswith("Did you mean NOT_CONTROLLER?")
    assert "control_socket" not in section
    assert "cluster/client.py" not in section


def test_clusters_of_a_class_and_a_module_keep_their_state(failed: tuple[str, Path]) -> None:
    output, _ = failed
    assert "2 failed, 3 passed" in output


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
        cluster.reset()
        assert call_once(cluster.bootstrap_servers, METADATA, 1, {"topics": None})["topics"] == []


@pytest.mark.parametrize(
    ("mark", "message"), [(marker(3), "each by name"), (marker(broker=3), "not broker")]
)
def test_wrong_marker_is_an_error(mark: pytest.Mark, message: str) -> None:
    with pytest.raises(pytest.UsageError, match=message):
        cluster_options({}, [mark])
