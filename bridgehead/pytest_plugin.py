"""Fixtures for your own test suite: real clusters, reset between tests (docs/testing.md).

The plug-in needs Java 11 or later, or the extra `embedded`. pytest finds the plug-in itself.

    @pytest.mark.bridgehead(brokers=2)
    def test_my_tool_survives_a_failover(bridgehead_cluster):
        tool = MyTool(bridgehead_cluster.bootstrap_servers)
        bridgehead_cluster.kill_controller()
        ...
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
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
_RUNNING_MAX = 2
"""At most this many clusters that no class or module uses run at a time."""
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_FIXTURES = tuple(f"bridgehead_{scope}cluster" for scope in ("", "class_", "module_", "session_"))
_BEGAN_MS = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup(MARKER, "clusters of Bridgehead")
    group.addoption(
        "--bridgehead-keep",
        type=Path,
        metavar="DIR",
        help="keep the clusters' folders, with logs and evidence, in DIR",
    )
    group.addoption(
        "--bridgehead-judge",
        action="store_true",
        help="judge each cluster's evidence when it stops; a violated property is an error",
    )
    group.addoption(
        "--bridgehead-log-level",
        choices=_LOG_LEVELS,
        default="INFO",
        help="a failed test shows log lines of this level and above; DEBUG: requests, too",
    )
    parser.addini(
        _PAGES,
        "for each failed test, write a page that shows its cluster's run (docs/ui.md)",
        type="bool",
        default=True,
    )


def _page_of(cluster: Cluster, test: str) -> str:
    """Write the page of a running cluster's run; return a sentence that says where it is."""
    from bridgehead.application import run_module

    folder = cluster.evidence_dir.parents[1]
    page = folder.parent / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', test)[:80]}.html"
    arguments = ("ui", str(folder), "--export", str(page))
    try:
        result = run_module("bridgehead", *arguments, timeout_s=_PAGE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"the page took longer than {_PAGE_TIMEOUT_S} s"
    if result.returncode:
        lines = result.stderr.splitlines()
        return f"no page: {lines[-1] if lines else 'the command failed'}"
    return f"what the cluster did: {page}"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `bridgehead`."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}({', '.join(f'{name}=…' for name in _ARGUMENTS)}): configure the cluster of "
        "the fixture bridgehead_cluster for this test",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when the test begins: its report shows later faults only."""
    item.stash[_BEGAN_MS] = time.time_ns() // 1_000_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the state of its clusters and the pages of their runs to a failed test's report."""
    report = yield
    used = getattr(item, "funcargs", {})
    clusters = {name: used[name] for name in _FIXTURES if name in used}
    if clusters and report.failed and call.when == "call":
        from bridgehead.cluster.failure_report import describe

        level = item.config.getoption("--bridgehead-log-level")
        for name, cluster in clusters.items():
            text = describe(cluster.data_dir, since_ms=item.stash[_BEGAN_MS], level=level)
            report.sections.append((f"cluster of {name}", text))
            if item.config.getini(_PAGES):
                report.sections.append((f"page of {name}", _page_of(cluster, item.name)))
    return report


@pytest.fixture(scope="session")
def bridgehead_cluster_options() -> dict[str, Any]:
    """Return the arguments of `bridgehead.cluster.Cluster`. Override this fixture to set them."""
    return {"brokers": 3}


@pytest.fixture(scope="session")
def bridgehead_session_cluster(
    bridgehead_cluster_options: dict[str, Any], _bridgehead_clusters: _Clusters
) -> Iterator[Cluster]:
    """One cluster for the whole session. It keeps its state from test to test."""
    with _bridgehead_clusters.lend(bridgehead_cluster_options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bridgehead_module_cluster(
    request: pytest.FixtureRequest,
    bridgehead_cluster_options: dict[str, Any],
    _bridgehead_clusters: _Clusters,
) -> Iterator[Cluster]:
    """A cluster that is like a new one for the first test of a module, and keeps its state."""
    yield from _for_node(request, bridgehead_cluster_options, _bridgehead_clusters)


@pytest.fixture(scope="class")
def bridgehead_class_cluster(
    request: pytest.FixtureRequest,
    bridgehead_cluster_options: dict[str, Any],
    _bridgehead_clusters: _Clusters,
) -> Iterator[Cluster]:
    """A cluster that is like a new one for the first test of a class, and keeps its state."""
    yield from _for_node(request, bridgehead_cluster_options, _bridgehead_clusters)


@pytest.fixture
def bridgehead_cluster(
    request: pytest.FixtureRequest,
    bridgehead_cluster_options: dict[str, Any],
    _bridgehead_clusters: _Clusters,
) -> Iterator[Cluster]:
    """A cluster that is like a new one: all brokers run, and nothing of earlier tests is left."""
    yield from _for_node(request, bridgehead_cluster_options, _bridgehead_clusters)


def _for_node(
    request: pytest.FixtureRequest, defaults: dict[str, Any], clusters: _Clusters
) -> Iterator[Cluster]:
    """Yield the cluster that the markers of the test, class or module describe."""
    options = cluster_options(defaults, list(request.node.iter_markers(MARKER)))
    with clusters.lend(options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _bridgehead_clusters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[_Clusters]:
    option = request.config.getoption
    clusters = _Clusters(
        tmp_path_factory, keep=option("--bridgehead-keep"), judges=option("--bridgehead-judge")
    )
    yield clusters
    clusters.stop(keep=0)
    if clusters.violations:
        pytest.fail("\n".join(clusters.violations), pytrace=False)


class _Clusters:
    """The running clusters that nobody uses, by their options, the latest one last."""

    def __init__(self, folders: pytest.TempPathFactory, *, keep: Path | None, judges: bool) -> None:
        self._folders = folders
        self._keep = keep
        self._judges = judges
        self._idle: dict[str, Cluster] = {}
        self.violations: list[str] = []
        """The output of the judge for each cluster that did not pass."""

    @contextlib.contextmanager
    def lend(self, options: Mapping[str, Any]) -> Iterator[Cluster]:
        """Yield a cluster with these options, healed and reset, or a new one."""
        key = json.dumps(options, sort_keys=True, default=str)
        cluster = self._like_new(self._idle.pop(key, None))
        if cluster is None:
            self.stop(keep=_RUNNING_MAX - 1)
            cluster = self._new(options)
            cluster.__enter__()  # On failure it stops its processes.
        try:
            yield cluster
        finally:
            if other := self._idle.pop(key, None):  # for example, of a class that has ended
                self._stop(other)
            self._idle[key] = cluster

    def _like_new(self, cluster: Cluster | None) -> Cluster | None:
        from bridgehead.cluster import ClusterError

        if cluster is None:
            return None
        try:
            cluster.reset()
        except ClusterError:  # for example it was upgraded, or its supervisor was killed
            self._stop(cluster)
            return None
        return cluster

    def stop(self, *, keep: int) -> None:
        """Stop the least recently used clusters until `keep` of them are left."""
        while len(self._idle) > keep:
            self._stop(self._idle.pop(next(iter(self._idle))))

    def _stop(self, cluster: Cluster) -> None:
        cluster.stop()
        if self._judges and (problem := _judge(cluster.evidence_dir)):
            self.violations.append(problem)

    def _new(self, options: Mapping[str, Any]) -> Cluster:
        from bridgehead.cluster import Cluster  # imported only if a test uses a cluster

        properties = {_FAULTS: "true", **options.get("properties", {})}
        if self._keep is None:
            folder = self._folders.mktemp("bridgehead")
        else:
            self._keep.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=self._keep))
        arguments = {"data_dir": folder, **options, "properties": properties}
        return Cluster(**arguments)


def _judge(evidence: Path) -> str:
    """Judge a run; return the judge's output if a property is violated, else ""."""
    from bridgehead.application import run_module
    from bridgehead.exit_codes import ExitCode

    done = run_module("judge", str(evidence))
    return done.stdout if done.returncode == ExitCode.FAILED else ""


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
