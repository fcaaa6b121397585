"""Steers a running cluster by its data directory; what `status`, `down` and their kin use."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridgehead.cluster.control_socket import ControlError, call
from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError

_DOWN_TIMEOUT_S = 60.0
_COMMAND_TIMEOUT_S = 90.0
_RESTART_TIMEOUT_S = 240.0
_POLL_S = 0.02


class ClusterClient:
    """One running cluster. Every method raises ClusterError when it cannot be done."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = DataDirectory(data_dir)

    def status(self) -> dict[str, Any]:
        """Phase, ZooKeeper, controller, and every broker's condition, pid and state."""
        return self._command({"command": "status"})

    def down(self) -> bool:
        """Stops the cluster and waits for its end; False when none was running."""
        if not self.directory.is_claimed():
            return False
        self._command({"command": "down"})
        deadline = time.monotonic() + _DOWN_TIMEOUT_S
        while self.directory.is_claimed():
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"The cluster in {self.directory.root} did not end within "
                    f"{_DOWN_TIMEOUT_S:.0f} s; its supervisor is pid {self.directory.owner_text()}."
                )
            time.sleep(_POLL_S)
        return True

    def start_node(self, node_id: int) -> dict[str, Any]:
        """Starts a broker that does not run; waits until it serves."""
        return self._command({"command": "node_start", "id": node_id})

    def restart_node(self, node_id: int, properties: Mapping[str, str]) -> dict[str, Any]:
        """Restarts a broker with other properties; waits until all brokers know each other.

        Only what an upgrade changes may be said: bridgehead.cluster.upgrade.
        """
        message = {"command": "node_restart", "id": node_id, "properties": dict(properties)}
        return self._command(message, timeout_s=_RESTART_TIMEOUT_S)

    def stop_node(self, node_id: int) -> dict[str, Any]:
        """Ends a broker politely; waits for its end."""
        return self._command({"command": "node_stop", "id": node_id})

    def kill_node(self, node_id: int) -> dict[str, Any]:
        """SIGKILL for a broker."""
        return self._command({"command": "node_kill", "id": node_id})

    def controller(self) -> dict[str, Any]:
        """`controller_id`, `controller_epoch` and `state` of the controller; None while none is."""
        return self._command({"command": "controller_show"})

    def move_controller(self, node_id: int) -> dict[str, Any]:
        """Makes a broker the controller; waits until every broker knows it."""
        return self._command({"command": "controller_move", "id": node_id})

    def kill_controller(self) -> dict[str, Any]:
        """SIGKILL for the process of the controller; `id` and `pid` of the victim."""
        return self._command({"command": "controller_kill"})

    def freeze_controller(self, seconds: float = 5.0) -> dict[str, Any]:
        """SIGSTOP for the controller's process, SIGCONT after `seconds`; returns at once."""
        return self._command({"command": "controller_freeze", "seconds": seconds})

    def expire_controller(self) -> dict[str, Any]:
        """Ends the controller's ZooKeeper session from outside, as its timeout would."""
        return self._command({"command": "controller_expire"})

    def _command(
        self, message: dict[str, Any], *, timeout_s: float = _COMMAND_TIMEOUT_S
    ) -> dict[str, Any]:
        if not self.directory.is_claimed():
            raise ClusterError(
                f"No cluster is running in {self.directory.root}: start one with `bridgehead up`, "
                "or name its folder with --data-dir."
            )
        try:
            return call(self.directory.control_socket, message, timeout_s=timeout_s)
        except ControlError as error:
            raise ClusterError(str(error)) from error
