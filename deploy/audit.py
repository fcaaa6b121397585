"""`python -m deploy.audit PIP-AUDIT`: looks for known vulnerabilities in the locked packages.

pip-audit looks each package up in a database. A package that the database does not know counts as
skipped, not as clean. Without the database pip-audit skips all packages and reports success; this
program reports that nothing was tested.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

REQUIREMENTS: Final = Path(__file__).resolve().parent.parent / "requirements"
_TIMEOUT_S: Final = 300
_OPTIONS: Final = ("--disable-pip", "--require-hashes", "--format=json", "--progress-spinner=off")


@dataclass(slots=True)
class Findings:
    """The results of an audit: how many packages are clean or skipped; which are vulnerable."""

    clean: int = 0
    skipped: int = 0
    vulnerable: list[str] = field(default_factory=list)

    def add(self, document: dict[str, Any]) -> None:
        """Count the packages of one report in pip-audit's JSON format."""
        for package in document["dependencies"]:
            ids = [vulnerability["id"] for vulnerability in package.get("vulns", ())]
            if ids:
                name = f"{package['name']} {package['version']}"
                self.vulnerable.append(f"{name}: {', '.join(ids)}")
            elif "skip_reason" in package:
                self.skipped += 1
            else:
                self.clean += 1


def audit(command: str, locks: Sequence[Path]) -> Findings | None:
    """Audit lock files with pip-audit. Return None if it fails, for example without network.

    If it fails after it has found a vulnerable package, return what it has found.
    """
    findings = Findings()
    for lock in locks:
        try:
            done = subprocess.run(
                [command, *_OPTIONS, "-r", str(lock)],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            findings.add(json.loads(done.stdout))
        except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError):
            return findings if findings.vulnerable else None
    return findings


def report(findings: Findings | None) -> tuple[int, str]:
    """Return the exit status and the lines to print."""
    if findings is None or not (findings.clean or findings.vulnerable):
        return 0, "NOT TESTED: pip-audit failed, or cannot reach its database of vulnerabilities."
    lines = [f"{findings.clean} packages without a known vulnerability"]
    if findings.skipped:
        lines.append(f"NOT TESTED: pip-audit's database does not know {findings.skipped} packages.")
    lines += findings.vulnerable
    return int(bool(findings.vulnerable)), "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Audit every lock file; return 1 if a package is vulnerable."""
    status, text = report(audit(arguments[0], sorted(REQUIREMENTS.glob("*.lock"))))
    sys.stdout.write(f"{text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
