"""Fixtures for your own test suite: real clusters, reset between tests (docs/testing.md).

The plug-in needs Java 11 or later, or the extra `embedded`. pytest finds the plug-in itself.

    @pytest.mark.bridgehead(brokers=2)
    def test_my_tool_survives_a_failover(bridgehead_cluster):
        tool = MyTool(bridgehead_cluster.bootstrap_servers)
        bridgehead_cluster.kill_controller()
        ...
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bridgehead.cluster import Cluster

MARKER = "bridgehead"
_ARGUMENTS = ("brokers", "listeners", "users", "acls", "policies", "dialect", "properties")
_LISTENERS = {"CLIENTS": "SASL_PLAINTEXT"}
_FAULTS = "bridgehead.faults.allow"  # tests may add fault rules
_PAGES = "bridgehead_pages"
_PAGE_TIMEOUT_S = 120
_FIXTURES = ("bridgehead_cluster", "bridgehead_session_cluster")
_RUNNING_MAX = 2
"""At most this many clusters of `bridgehead_cluster` run at a time, with different options."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that switches the pages of failed tests off."""
    parser.addini(
        _PAGES,
        "for each failed test, write a page that shows its cluster's run (docs/ui.md)",
        type="bool",
        default=True,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the page of a failed test's cluster, and name it in the report."""
    report = yield
    clusters = [getattr(item, "funcargs", {}).get(name) for name in _FIXTURES]
    cluster = next((candidate for candidate in clusters if candidate is not None), None)
    if report.failed and call.when == "call" and cluster and item.config.getini(_PAGES):
        report.sections.append(("bridgehead", _page_of(cluster, item.name)))
    return report


def _page_of(cluster: Cluster, test: str) -> str:
    """Write the page of a running cluster's run; return a sentence that says where it is."""
    from bridgehead.application import module_command, module_environment

    folder = cluster.evidence_dir.parents[1]
    page = folder.parent / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', test)[:80]}.html"
    command = module_command("bridgehead", "ui", str(folder), "--export", str(page))
    try:
        result = subprocess.run(
            command,
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PAGE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the page took longer than {_PAGE_TIMEOUT_S} s"
    if result.returncode:
        lines = result.stderr.decode("utf-8", "replace").splitlines()
        return f"no page: {lines[-1] if lines else 'the command failed'}"
    return f"what the cluster did: {page}"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `bridgehead`."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}({', '.join(f'{name}=…' for name in _ARGUMENTS)}): configure the cluster of "
        "the fixture bridgehead_cluster for this test",
    )


@pytest.fixture(scope="session")
def bridgehead_cluster_options() -> dict[str, Any]:
    """Return the arguments of `bridgehead.cluster.Cluster`. Override this fixture to set them."""
    return {"brokers": 3}


@pytest.fixture(scope="session")
def bridgehead_session_cluster(
    bridgehead_cluster_options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """One cluster for the whole session. It keeps its state from test to test."""
    with _new(bridgehead_cluster_options, tmp_path_factory) as cluster:
        yield cluster


@pytest.fixture
def bridgehead_cluster(
    request: pytest.FixtureRequest,
    bridgehead_cluster_options: dict[str, Any],
    _bridgehead_clusters: _Clusters,
) -> Cluster:
    """A cluster that is like a new one: all brokers run, and nothing of earlier tests is left."""
    markers = list(request.node.iter_markers(MARKER))
    return _bridgehead_clusters.get(cluster_options(bridgehead_cluster_options, markers))


@pytest.fixture(scope="session")
def _bridgehead_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Clusters]:
    clusters = _Clusters(tmp_path_factory)
    yield clusters
    clusters.stop(keep=0)


class _Clusters:
    """The running clusters by their options, the most recently used one last."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._running: dict[str, Cluster] = {}

    def get(self, options: Mapping[str, Any]) -> Cluster:
        """Return a running cluster with these options, healed and reset, or a new one."""
        from bridgehead.cluster import ClusterError

        key = json.dumps(options, sort_keys=True, default=str)
        cluster = self._running.pop(key, None)
        if cluster is not None:
            try:
                cluster.heal(reset=True)
                self._running[key] = cluster
                return cluster
            except ClusterError:  # for example it was upgraded, or its supervisor was killed
                cluster.stop()
        self.stop(keep=_RUNNING_MAX - 1)
        cluster = _new(options, self._folders)
        self._running[key] = cluster.__enter__()  # On failure it stops its processes.
        return cluster

    def stop(self, *, keep: int) -> None:
        """Stop the least recently used clusters until `keep` of them are left."""
        while len(self._running) > keep:
            self._running.pop(next(iter(self._running))).stop()


def _new(options: Mapping[str, Any], folders: pytest.TempPathFactory) -> Cluster:
    from bridgehead.cluster import Cluster  # imported only if a test uses a cluster

    properties = {_FAULTS: "true", **options.get("properties", {})}
    arguments = {**options, "properties": properties}
    return Cluster(**{"data_dir": folders.mktemp("bridgehead"), **arguments})


def cluster_options(defaults: Mapping[str, Any], markers: Sequence[pytest.Mark]) -> dict[str, Any]:
    """Return the arguments of `Cluster` for a test.

    `markers` begin with the marker that is closest to the test. If several markers have the same
    argument, the closest of them determines its value. Only `properties` are merged instead.

    Raises:
        pytest.UsageError: a marker has a positional or an unknown argument.
    """
    marked: dict[str, Any] = {}
    properties: dict[str, str] = dict(defaults.get("properties", {}))
    for mark in reversed(markers):
        unknown = sorted(set(mark.kwargs) - set(_ARGUMENTS))
        if mark.args or unknown:
            which = f", not {unknown[0]}" if unknown else ""
            raise pytest.UsageError(
                f"@pytest.mark.{MARKER} takes {', '.join(_ARGUMENTS)}, each by name{which}."
            )
        marked |= mark.kwargs
        properties |= mark.kwargs.get("properties", {})
    if "users" in marked:  # Users need a listener on which they can log in.
        marked.setdefault("listeners", defaults.get("listeners") or _LISTENERS)
    if "dialect" in marked:
        sections = marked.get("listeners") or defaults.get("listeners")
        listed = properties.get("listeners", "PLAINTEXT://")
        names = sections or [listener.partition("://")[0].strip() for listener in listed.split(",")]
        dialect = marked.pop("dialect")
        for name in names:
            properties[f"listener.name.{name.lower()}.bridgehead.dialect"] = dialect
    return {**defaults, **marked, "properties": properties}
