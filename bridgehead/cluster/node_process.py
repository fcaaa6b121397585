"""One node as its supervisor sees it: files, process and control socket.

A node is ready when `ready.json` names the pid of the started process. It stops at the end of its
standard input (`BRIDGEHEAD_PARENT_PIPE=1`), so it does not outlive a killed supervisor.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

from bridgehead.application import module_command
from bridgehead.cluster.child_process import (
    Child,
    send_signal,
    start_child,
    stop_child,
    stop_stray,
)
from bridgehead.cluster.control_socket import ControlError, call_async
from bridgehead.cluster.data_directory import read_json, write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.fork_server import ForkServer, node_environment
from bridgehead.cluster.node_plan import NodePlan, advertised_listeners
from bridgehead.cluster.properties import format_properties

FAULTS_ALLOWED = "bridgehead.faults.allow"
_STATE_TIMEOUT_S = 2.0


class NodeProcess:
    """One node of the cluster."""

    def __init__(self, plan: NodePlan, folder: Path, command: tuple[str, ...] = ()) -> None:
        """`command` replaces `python -m node`, in tests and chaos runs."""
        self.id = plan.id
        self.folder = folder
        self.condition = "stopped"
        """`running`, `frozen`, `stopped`, `killed`, or `ended` if it exited unexpectedly."""
        self.plan = plan
        self._addresses: dict[str, Any] = {"listeners": {}, "metrics_url": None}
        self._serves = False
        self._command = list(command) or module_command("node")
        self._process: Child | None = None
        self._output_start = 0

    @property
    def log(self) -> Path:
        """The node's log file."""
        return self.folder / "node.log"

    @property
    def pid(self) -> int | None:
        """The pid of the process; None if it does not run."""
        return self._process.pid if self._process is not None and self.is_running() else None

    @property
    def allows_faults(self) -> bool:
        """Whether the node accepts fault rules."""
        return self.plan.properties.get(FAULTS_ALLOWED, "").strip().lower() == "true"

    def is_running(self) -> bool:
        """Return whether the process exists; it may be frozen."""
        return self._process is not None and self._process.poll() is None

    def exit_status(self) -> int | None:
        """Return the exit status, negative for a signal. None if it runs or was never started."""
        return self._process.poll() if self._process is not None else None

    def start(self, fork_server: ForkServer | None = None) -> None:
        """Start the process; `is_ready` is true once the node serves.

        If `fork_server` answers, it forks the process. Otherwise this starts a new Python process.

        Raises:
            ClusterError: it is running already.
            OSError: its folder cannot be written.
        """
        if self.is_running():
            raise ClusterError(f"Broker {self.id} is running already, as pid {self.pid}.")
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "node.properties"
        clear_stray_node(self.folder)
        (self.folder / "ready.json").unlink(missing_ok=True)
        self._serves = False
        # The properties may contain secrets.
        write_private(properties, format_properties(self.plan.properties).encode())
        output = self.folder / "node.out"
        self._output_start = output.stat().st_size if output.exists() else 0
        arguments = [
            *("--config", str(properties)),
            *("--data-dir", str(self.folder)),
            *("--log-file", str(self.log)),
        ]
        forked = None if fork_server is None else fork_server.fork(arguments, output)
        self._process = forked or start_child(
            [*self._command, *arguments],
            output=output,
            environment=node_environment(),
            stdin=subprocess.PIPE,
        )
        (self.folder / "node.pid").write_text(f"{self._process.pid}\n", encoding="utf-8")
        self.condition = "running"

    @property
    def addresses(self) -> dict[str, Any]:
        """Where clients reach the node, or reached it last: `listeners` and `metrics_url`."""
        self._read_addresses()
        return self._addresses

    def is_ready(self) -> bool:
        """Return whether the node serves.

        Raises:
            ClusterError: the process has exited; the message has its last line of output.
        """
        status = self.exit_status()
        if status is not None:
            raise ClusterError(f"Broker {self.id} did not start: {self.exit_reason(status)}")
        self._read_addresses()
        return self._serves

    def _read_addresses(self) -> None:
        """Read `ready.json` once in each life of the process."""
        if self._serves or self._process is None:
            return
        document = read_json(self.folder / "ready.json") or {}
        if document.get("pid") == self._process.pid:
            self._serves = True
            self._addresses = {
                "listeners": advertised_listeners(self.plan, document["listeners"]),
                "metrics_url": document["metrics_url"],
            }

    def exit_reason(self, status: int) -> str:
        """Return the process's last line of output since its start, or a hint to its log."""
        try:
            with (self.folder / "node.out").open("rb") as output:
                output.seek(self._output_start)
                lines = output.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else f"it exited with status {status}; see {self.log}."

    async def command(self, message: dict[str, Any], *, timeout_s: float = 10.0) -> dict[str, Any]:
        """Send one command to the node's control socket.

        Raises:
            ControlError: the node does not run, does not answer in time, or returns an error.
        """
        if not self.is_running():
            raise ControlError(f"Broker {self.id} is not running.")
        return await call_async(self.folder / "control.sock", message, timeout_s=timeout_s)

    async def state(self) -> dict[str, Any] | None:
        """Return the node's status; None if it does not run or answer."""
        if self.condition == "frozen":
            return None
        try:
            return await self.command({"command": "state"}, timeout_s=_STATE_TIMEOUT_S)
        except ControlError:
            return None

    def request_stop(self) -> None:
        """Send SIGTERM without waiting."""
        if self._process is not None and self.is_running():
            self.condition = "stopped"
            send_signal(self._process, signal.SIGCONT)
            send_signal(self._process, signal.SIGTERM)

    def stop(self) -> None:
        """Stop the process, or kill it if that takes too long; return when it has exited."""
        if self._process is not None:
            if self.is_running():
                self.condition = "stopped"
            stop_child(self._process)
            (self.folder / "node.pid").unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        if self._process is not None and self.is_running():
            self.condition = "killed"
            send_signal(self._process, signal.SIGKILL)
            self._process.wait()

    def freeze(self) -> None:
        """Freeze the process (SIGSTOP); its sockets stay open."""
        if self._process is not None and self.is_running():
            self.condition = "frozen"
            send_signal(self._process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen process (SIGCONT)."""
        if self._process is not None and self.condition == "frozen":
            self.condition = "running"
            send_signal(self._process, signal.SIGCONT)


def clear_stray_node(folder: Path) -> int | None:
    """Kill the node process of an earlier, killed supervisor; return its pid if there was one."""
    return stop_stray(folder / "node.pid", str(folder / "node.properties"))
