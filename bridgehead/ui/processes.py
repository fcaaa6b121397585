"""Processes beside a page: the page of a cluster that starts, and scenarios to watch."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bridgehead.application import module_command, module_environment, run_module
from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError
from bridgehead.ui.reading import find_run

_START_S: Final = 120.0
_STOP_S: Final = 30.0
_POLL_S: Final = 0.1
_LIST_S: Final = 60.0


class Page:
    """The page of a running cluster, in a process of its own."""

    def __init__(self, data_dir: Path | None, *options: str) -> None:
        """`data_dir`: the cluster's folder; None: there is no page."""
        self._data_dir = data_dir
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, announce: Callable[[str], None]) -> None:
        """Start to serve, and announce the address."""
        if self._data_dir is None:
            return
        self._process = subprocess.Popen(
            module_command("bridgehead", "ui", str(self._data_dir.resolve()), *self._options),
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C first stops the cluster; the page shows it.
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        announce(line or "The page cannot be served: the line above says why.")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class Scenarios:
    """Runs scenarios of `bridgehead chaos`, one at a time; each has a cluster and a page.

    The evidence stays in `folder`. The pages are served until `close`.
    """

    folder: Path
    _run: subprocess.Popen[bytes] | None = None
    _pages: list[Page] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, scenario: str, seed: str) -> str:
        """Start a scenario; return the address of its page when its cluster can be seen.

        Raises:
            ClusterError: another scenario runs, or this one did not start.
        """
        with self._lock:
            if self._run is not None and self._run.poll() is None:
                raise ClusterError("A scenario runs already: wait for its end.")
            while self._pages:
                self._pages.pop().close()
            self.folder.mkdir(parents=True, exist_ok=True)
            run = self.folder / f"{scenario}-{seed}"
            log = self.folder / f"{run.name}.log"
            command = ("run", scenario, "--seed", seed, "--out", str(self.folder))
            with log.open("wb") as output:
                self._run = subprocess.Popen(
                    module_command("chaos", *command),
                    env=module_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._wait_until_visible(self._run, run, log)
            page = Page(run, "--read-only")
            self._pages.append(page)
            said: list[str] = []
            page.start(said.append)
            return said[0].split()[-1]

    def _wait_until_visible(self, process: subprocess.Popen[bytes], run: Path, log: Path) -> None:
        deadline = time.monotonic() + _START_S
        while not _is_visible(run):
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
                said = next((line for line in reversed(lines) if line.strip()), "")
                raise ClusterError(f"The scenario did not start: {said.strip()}")
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Stop the scenario, its cluster and the pages."""
        with self._lock:
            while self._pages:
                self._pages.pop().close()
            if self._run is not None and self._run.poll() is None:
                self._run.send_signal(signal.SIGINT)  # It stops its cluster.
                try:
                    self._run.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    self._run.kill()
                    self._run.wait()


def _is_visible(run: Path) -> bool:
    """Return whether the cluster of a run's folder has begun to write evidence."""
    try:
        find_run(run)
    except ClusterError:
        return False
    return DataDirectory(run).is_claimed()


def scenario_names() -> tuple[str, ...]:
    """Return the scenarios that run on real processes; none if they cannot be listed."""
    try:
        listed = run_module("chaos", "list", "--names", "--tier", "local", timeout_s=_LIST_S)
    except subprocess.TimeoutExpired:
        return ()
    return tuple(listed.stdout.split()) if listed.returncode == 0 else ()
