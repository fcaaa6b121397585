"""Runs named tests in a copy of the project, and reads how each ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

# How a test ended. ERROR is the failure of a fixture, which shows nothing about the test.
PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
_ENDS = {"failure": FAILED, "error": ERROR, "skipped": SKIPPED}
_INTERRUPT_S = 20
_running: set[subprocess.Popen[bytes]] = set()


def run_tests(
    folder: Path, tests: Sequence[str], *, limit_s: float, until_failure: bool = False
) -> dict[str, set[str]]:
    """Return the results of each test that ran. A test with parameters can have several.

    With `until_failure`, the tests after the first failure do not run.

    Raises:
        TimeoutError: the tests took longer than `limit_s` and were ended.
    """
    with tempfile.TemporaryDirectory(prefix="kips-") as temporary:
        report = Path(temporary) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--timeout={limit_s / 2:.0f}", f"--junitxml={report}"]
        command += ["--exitfirst"] if until_failure else []
        command += tests
        _run(command, folder, limit_s)
        if not report.exists():
            return {}
        return _ends(report, tests)


def interrupt() -> None:
    """End every run."""
    for running in tuple(_running):
        _end(running)


def _run(command: list[str], folder: Path, limit_s: float) -> None:
    hidden = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTEST_ADDOPTS")
    with subprocess.Popen(
        command,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in hidden},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        _running.add(running)
        try:
            running.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"more than {limit_s:.0f} s") from None
        finally:
            _end(running)
            _running.discard(running)


def _end(running: subprocess.Popen[bytes]) -> None:
    """Let pytest stop what its fixtures started, then kill what is left of its process group."""
    if running.poll() is None:
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(_INTERRUPT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)


def _ends(report: Path, tests: Iterable[str]) -> dict[str, set[str]]:
    ends: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/")
        test = f"{file}.py::{case.get('name', '').partition('[')[0]}"
        ends_of_case = {_ENDS[item.tag] for item in case if item.tag in _ENDS} or {PASSED}
        ends.setdefault(test, set()).update(ends_of_case)
    return {test: ends[test] for test in tests if test in ends}
