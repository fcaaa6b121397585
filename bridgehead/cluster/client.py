"""Controls a running cluster through its data directory, for the CLI and `Cluster`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bridgehead.cluster.control_socket import ControlError, call
from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import HIDE_FROM_PYTEST, ClusterError

__tracebackhide__ = HIDE_FROM_PYTEST
_DOWN_TIMEOUT_S = 600.0  # Sealing gigabytes of evidence on a busy machine takes minutes.
_SAYS_THAT_IT_WAITS_AFTER_S = 3.0
_COMMAND_TIMEOUT_S = 90.0
_RESTART_TIMEOUT_S = 240.0
_POLL_S = 0.02


class ControlClient:
    """A client of one running cluster. Every method raises ClusterError on failure."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = DataDirectory(data_dir)

    def status(self) -> dict[str, Any]:
        """Return phase, ZooKeeper, controller, and every broker's condition, pid and state."""
        return self._command({"command": "status"})

    def down(self, on_wait: Callable[[], None] | None = None) -> bool:
        """Stop the cluster and wait until it has stopped; return False if none was running.

        `on_wait` is called once if that takes longer than a few seconds.
        """
        if not self.directory.is_claimed():
            return False
        self._command({"command": "down"})
        begun = time.monotonic()
        while self.directory.is_claimed():
            waited_s = time.monotonic() - begun
            if on_wait is not None and waited_s > _SAYS_THAT_IT_WAITS_AFTER_S:
                on_wait()
                on_wait = None
            if waited_s > _DOWN_TIMEOUT_S:
                raise ClusterError(
                    f"The cluster in {self.directory.root} did not stop within "
                    f"{_DOWN_TIMEOUT_S:.0f} s; its supervisor is pid {self.directory.owner_text()}."
                )
            time.sleep(_POLL_S)
        return True

    def start_node(self, node_id: int) -> dict[str, Any]:
        """Start a stopped broker; return when it serves."""
        return self._command({"command": "node_start", "id": node_id})

    def upgrade_next(self) -> dict[str, Any]:
        """Restart the next broker of an upgrade to forwarding; its `id` is None if none is left."""
        return self._command({"command": "upgrade"}, timeout_s=_RESTART_TIMEOUT_S)

    def stop_node(self, node_id: int) -> dict[str, Any]:
        """Stop a broker (SIGTERM); return when it has exited."""
        return self._command({"command": "node_stop", "id": node_id})

    def kill_node(self, node_id: int) -> dict[str, Any]:
        """Kill a broker (SIGKILL)."""
        return self._command({"command": "node_kill", "id": node_id})

    def start_zookeeper(self) -> dict[str, Any]:
        """Start the embedded ZooKeeper after it has exited; return when it serves."""
        return self._command({"command": "zookeeper_start"})

    def heal(self) -> dict[str, Any]:
        """Undo faults; return the brokers that were `started`."""
        return self._command({"command": "heal"}, timeout_s=_RESTART_TIMEOUT_S)

    def reset(self) -> dict[str, Any]:
        """Undo faults and remove what clients have written; return the `started` brokers."""
        return self._command({"command": "reset"}, timeout_s=_RESTART_TIMEOUT_S)

    def controller(self) -> dict[str, Any]:
        """Return `controller_id`, `controller_epoch`, `state`; all None without a controller."""
        return self._command({"command": "controller_show"})

    def wait_for_controller(
        self, *, other_than: int | None = None, timeout_s: float = 30.0
    ) -> dict[str, Any]:
        """Return the `controller_id` once every broker that answers names the same controller.

        The broker `other_than` does not count as a controller.
        """
        message = {"command": "controller_wait", "other_than": other_than, "timeout_s": timeout_s}
        return self._command(message, timeout_s=timeout_s + _COMMAND_TIMEOUT_S)

    def move_controller(self, node_id: int) -> dict[str, Any]:
        """Make a broker the controller; return when every broker knows the new controller."""
        return self._command({"command": "controller_move", "id": node_id})

    def kill_controller(self) -> dict[str, Any]:
        """Kill the controller's process (SIGKILL); return its `id` and `pid`."""
        return self._command({"command": "controller_kill"})

    def freeze_controller(self, seconds: float = 5.0) -> dict[str, Any]:
        """Freeze the controller's process (SIGSTOP) for `seconds`; return immediately."""
        return self._command({"command": "controller_freeze", "seconds": seconds})

    def expire_controller(self) -> dict[str, Any]:
        """Expire the controller's ZooKeeper session."""
        return self._command({"command": "controller_expire"})

    def add_fault(self, rule: Mapping[str, Any], broker_id: int | None) -> dict[str, Any]:
        """Add a fault rule to one broker, or to all; return its `name`."""
        return self._command({"command": "faults_add", "rule": dict(rule), "broker": broker_id})

    def list_faults(self) -> dict[str, Any]:
        """Return the `rules` of every broker."""
        return self._command({"command": "faults_list"})

    def remove_faults(self, name: str | None) -> dict[str, Any]:
        """Remove one fault rule, or all; return how many were `removed`."""
        return self._command({"command": "faults_remove", "name": name})

    def _command(
        self, message: dict[str, Any], *, timeout_s: float = _COMMAND_TIMEOUT_S
    ) -> dict[str, Any]:
        if not self.directory.is_claimed():
            raise ClusterError(
                f"No cluster is running in {self.directory.root}: start one with `bridgehead up`, "
                "or name a running cluster's folder with --data-dir."
            )
        try:
            return call(self.directory.control_socket, message, timeout_s=timeout_s)
        except ControlError as error:
            raise ClusterError(str(error)) from None
