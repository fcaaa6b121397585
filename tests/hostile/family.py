"""A family of attacks that needs its own folders or cluster, and what it reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile.target import ROOT, bridgehead


@dataclass
class Report:
    """The tries of one family, a sentence for each finding, and figures for people."""

    tries: int = 0
    findings: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, finding: str) -> None:
        """Count one try; record the finding unless `holds`."""
        self.tries += 1
        if not holds:
            self.findings.append(finding)


class Family(NamedTuple):
    """`attack` gets an empty folder. A family that cannot run here says so in its figures."""

    name: str
    attack: Callable[[Path, Report], None]


def limited(
    *arguments: str, timeout_s: float = 60.0, memory_gib: int = 4, cwd: Path = ROOT
) -> tuple[int | None, str]:
    """Run `bridgehead` with a limit of time and memory; return its exit code and its output.

    The exit code is None if the time was over.
    """
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({memory_gib << 30},) * 2)\n"
        "from bridgehead.cli.main import main; main()"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "surrogateescape")


@contextmanager
def cluster(data: Path, *options: str, classes: Path | None = None) -> Iterator[dict[str, Any]]:
    """Start a cluster with its files in `data`; yield the document of `up`; stop it at the end."""
    here = ("--data-dir", str(data))
    detached = ("up", "--json", "--ports", "auto", "--detach")
    up = bridgehead(*detached, *options, *here, check=False, classes=classes)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        document: dict[str, Any] = json.loads(up.stdout)
        yield document
    finally:
        bridgehead("down", *here, check=False)


def resident_bytes(pid: int) -> int:
    """Return the memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def node_logs(data: Path) -> str:
    """Return the logs of all nodes."""
    logs = sorted(data.glob("nodes/*/node.log")) + sorted(data.glob("nodes/*/node.out"))
    return "".join(log.read_text(errors="replace") for log in logs)
