"""Runs one suite of a checkout with pytest, in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree

from tests.fidelity.client_suites.clusters import Listeners
from tests.fidelity.client_suites.suites import Suite

_PLUGINS: Final = Path(__file__).parent / "plugins"
_TIMEOUT_S: Final = 240  # for each test

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """The outcome of one test, and pytest's message if it did not pass."""

    test: str
    outcome: Outcome
    message: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class Runner:
    """Runs the tests of a suite's checkout with the interpreter `python`."""

    suite: Suite
    checkout: Path
    python: Path

    def run(self, listeners: Listeners, folder: Path, only: str, attempts: int) -> list[Result]:
        """Run the tests that match `only`; run each at most `attempts` times, until it passes."""
        results = {result.test: result for result in self._run(listeners, folder / "1", only)}
        for attempt in range(2, attempts + 1):
            failed = [test for test, result in results.items() if result.outcome == "failed"]
            if not failed:
                break
            names = {re.split(r"::|\[", item)[1] for item in failed}
            again = self._run(listeners, folder / str(attempt), " or ".join(sorted(names)))
            results |= {
                repeated.test: replace(repeated, attempts=attempt)
                for repeated in again
                if repeated.test in failed
            }
        return list(results.values())

    def _run(self, listeners: Listeners, folder: Path, only: str) -> list[Result]:
        folder.mkdir(parents=True)
        report = folder / "report.xml"
        command = [
            str(self.python),
            *("-m", "pytest", "--quiet", "--tb=short", f"--rootdir={self.checkout}"),
            *(f"--config-file={self.checkout / 'pyproject.toml'}", f"--junit-xml={report}"),
            # Nothing is written into the checkout.
            *("-p", "no:cacheprovider", "-p", self.suite.plugin, f"--timeout={_TIMEOUT_S}"),
            *("-o", "junit_family=xunit1", "-o", "asyncio_default_fixture_loop_scope=function"),
            *("-k", only),
            *self.suite.options,
            str(self.checkout / self.suite.tests),
        ]
        environment = {
            **os.environ,
            **self.suite.environment,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(_PLUGINS),
            "PYTHONSAFEPATH": "1",
            "SUITE_AUTHORITY": str(listeners.authority),
            "SUITE_SERVERS": json.dumps(dict(listeners.servers)),
        }
        with (folder / "pytest.out").open("w") as output:
            subprocess.run(
                command, cwd=folder, env=environment, stdout=output, stderr=output, check=False
            )
        if not report.exists():
            text = (folder / "pytest.out").read_text()
            raise RuntimeError(f"pytest could not run {self.suite.name}:\n{text}")
        return list(parse_report(report.read_text()))


def parse_report(text: str) -> Iterator[Result]:
    """Yield the results in a report of pytest, in the family xunit1.

    A test whose tear-down fails has two elements in the report, and counts as failed.
    """
    results: dict[str, Result] = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        result = _result(case)
        previous = results.get(result.test)
        if previous is None or previous.outcome == "passed":
            results[result.test] = result
    yield from results.values()


def _result(case: ElementTree.Element) -> Result:
    test = f"{Path(case.get('file', '')).name}::{case.get('name')}"
    for tag in ("failure", "error", "skipped"):
        outcome = case.find(tag)
        if outcome is not None:
            message = outcome.get("message", "")
            return Result(test, "skipped" if tag == "skipped" else "failed", message)
    return Result(test, "passed")
