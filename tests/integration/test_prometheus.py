"""A real Prometheus scrapes a real cluster. Rules and dashboards use existing metrics."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridgehead.cluster import Cluster
from bridgehead.cluster.ports import Ports
from tests.integration.admin_clients import ConfluentAdmin

pytestmark = pytest.mark.long

MONITORING = Path(__file__).parent.parent.parent / "deploy" / "monitoring"
READY_WITHIN_S = 30.0
NAME = re.compile(r"[a-z_][a-z0-9_]*(?=[{)\[ ]|$)")
FUNCTIONS = {"sum", "by", "rate", "increase", "max", "count", "absent", "or"}


@pytest.fixture(scope="module")
def prometheus_program() -> str:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("NOT TESTED: prometheus is not installed (apt-get install prometheus)")
    return program


class Prometheus:
    """A running server and its HTTP interface."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the `data` of a response."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as response:
            document = json.load(response)
        assert document["status"] == "success", document
        return document["data"]

    def wait_for(self, condition: Callable[[], bool], description: str) -> None:
        """Wait for a condition; ignore the errors of a starting server."""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"no {description} within {READY_WITHIN_S:g} s")


@pytest.fixture(scope="module")
def prometheus(
    prometheus_program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A server with our rules, scraping three brokers that have served requests."""
    folder = tmp_path_factory.mktemp("prometheus")
    with Cluster(brokers=3, properties={"bridgehead.metrics.dialect": "both"}) as cluster:
        ConfluentAdmin(cluster.bootstrap_servers).create("orders", 1, 1, {})
        with scraping(cluster, prometheus_program, folder) as server:
            yield server


@contextlib.contextmanager
def scraping(cluster: Cluster, program: str, folder: Path) -> Iterator[Prometheus]:
    """A server that has scraped every broker at least once."""
    configuration = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
    configuration["rule_files"] = [str(MONITORING / "rules.yml")]
    targets = [
        urllib.parse.urlsplit(broker.metrics_url).netloc for broker in cluster.brokers.values()
    ]
    configuration["scrape_configs"][0]["static_configs"] = [{"targets": targets}]
    configuration["scrape_configs"][0]["scrape_timeout"] = "200ms"
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    port = Ports().choose()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            server = Prometheus(port)
            server.wait_for(
                lambda: len(server.get("query", query="up == 1")["result"]) == 3,
                "scrape of all brokers",
            )
            yield server
        finally:
            process.terminate()
            process.wait()


def rule_queries() -> list[str]:
    groups = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def dashboard_queries() -> list[str]:
    queries = []
    for path in sorted((MONITORING / "grafana" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            queries += [target["expr"] for target in panel["targets"]]
    return queries


def names_in(query: str) -> set[str]:
    """Return the metrics in a query, without functions, labels and groupings."""
    bare = re.sub(r"\{[^}]*\}|by \([^)]*\)|\[[^]]*\]", " ", query)
    return {name for name in NAME.findall(bare) if name not in FUNCTIONS}


def test_every_query_of_rules_and_dashboards_uses_existing_metrics(prometheus: Prometheus) -> None:
    queries = rule_queries() + dashboard_queries()
    assert len(queries) > 20
    scraped = set(prometheus.get("label/__name__/values"))
    missing = {name for query in queries for name in names_in(query)} - scraped
    assert missing == set()
    for query in queries:
        prometheus.get("query", query=query)


def test_a_healthy_cluster_raises_no_alert(prometheus: Prometheus) -> None:
    query = "sum(kafka_controller_kafkacontroller_activecontrollercount)"
    prometheus.wait_for(
        lambda: prometheus.get("query", query=query)["result"][0]["value"][1] == "1",
        "active controller",
    )
    prometheus.wait_for(
        lambda: all(
            rule["health"] == "ok" and rule["state"] == "inactive"
            for group in prometheus.get("rules")["groups"]
            for rule in group["rules"]
        ),
        "alert-free evaluation of every rule",
    )


def test_both_metric_dialects_are_exposed(prometheus: Prometheus) -> None:
    scraped = set(prometheus.get("label/__name__/values"))
    assert "kafka_network_requestmetrics_requestspersec" in scraped
    assert "kafka_network_requestmetrics_requests_total" in scraped


def test_each_alert_is_raised_by_its_test_series(prometheus_program: str) -> None:
    promtool = str(Path(prometheus_program).with_name("promtool"))
    done = subprocess.run(
        [promtool, "test", "rules", str(MONITORING / "rules_test.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    groups = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    assert alerts == set(
        re.findall(r"alertname: (\w+)", (MONITORING / "rules_test.yml").read_text())
    )
