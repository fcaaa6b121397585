"""`bridgehead demo authorization` shows error codes, log lines and metrics of four attempts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.integration.private_files import holders, open_to_others

ROOT = Path(__file__).resolve().parents[2]


def test_authorization_demo_passes(tmp_path: Path) -> None:
    """It exits with 0 and prints the log lines and the metrics, but no secret."""
    command = [sys.executable, "-m", "bridgehead.cli.main", "demo", "authorization"]
    demo = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "demo")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for code in ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"):
        assert code in demo.stdout
    assert "UNKNOWN_SERVER_ERROR" in demo.stdout
    assert "Principal = User:mallory is Denied Operation = ClusterAction" in demo.stdout
    assert "request-forwarding-to-controller-authorization-fail-count" in demo.stdout
    assert "Topics at the end: orders." in demo.stdout
    assert "-secret" not in demo.stdout
    assert open_to_others(tmp_path / "demo") == []
    held = holders(tmp_path / "demo", b"-secret")
    assert {file for file in held if not re.fullmatch(r"nodes/\d+/node\.properties", file)} == set()
    assert held
