"""`--bridgehead-judge`: a cluster whose evidence violates a property is reported."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.pytest_plugin import _Clusters
from tests import golden_histories


@pytest.mark.parametrize(
    ("history", "violated"),
    [("acknowledged_write_missing", ["D1"]), ("forwarded_creation", [])],
)
def test_a_violated_property_is_reported_when_the_cluster_stops(
    history: str, violated: list[str], tmp_path: Path
) -> None:
    folder = golden_histories.expand(golden_histories.load(history), tmp_path / "run=golden")
    stopped: list[str] = []
    cluster: Any = SimpleNamespace(evidence_dir=folder, stop=lambda: stopped.append("stopped"))
    folders: Any = None
    clusters = _Clusters(folders, keep=None, judges=True)
    clusters._stop(cluster)
    assert stopped == ["stopped"]
    assert len(clusters.violations) == len(violated)
    assert all(f"FAIL      {name}" in "".join(clusters.violations) for name in violated)


def test_nothing_is_judged_without_the_option(tmp_path: Path) -> None:
    cluster: Any = SimpleNamespace(evidence_dir=tmp_path / "missing", stop=lambda: None)
    folders: Any = None
    clusters = _Clusters(folders, keep=None, judges=False)
    clusters._stop(cluster)
    assert clusters.violations == []
