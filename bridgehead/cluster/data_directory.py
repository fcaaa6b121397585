"""The folder of one cluster: what lies where in it, and who owns it.

Read first: the owner holds a lock on `supervisor.pid` for as long as it lives; the kernel drops the
lock with the process, so a stale pid file never keeps anybody out.

    cluster.json            once the cluster is ready, until it stops
    supervisor.pid  supervisor.log  control.sock
    nodes/ID/               node.properties node.log node.out node.pid ready.json control.sock
    evidence/run=…/         what one run has left, for the judge (docs/evidence.md)
    tls/                    ca.pem brokers.pem users/NAME.pem, where certificates are generated
    channel/                certificates of the brokers, for the channel between them
    zookeeper/              zoo.cfg zookeeper.log zookeeper.pid version-2/
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from bridgehead.cluster.errors import ClusterError


class DataDirectory:
    """Paths in one cluster's folder, which need not exist yet."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.cluster_json = self.root / "cluster.json"
        self.supervisor_pid = self.root / "supervisor.pid"
        self.supervisor_log = self.root / "supervisor.log"
        self.control_socket = self.root / "control.sock"
        self.zookeeper = self.root / "zookeeper"
        self.tls = self.root / "tls"

    def node(self, node_id: int) -> Path:
        """The folder of one node."""
        return self.root / "nodes" / str(node_id)

    def claim(self) -> int:
        """Makes this process the owner; returns the lock's descriptor, to be closed at the end.

        Raises:
            ClusterError: another process owns the folder, or it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.supervisor_pid, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._not_writable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ClusterError(
                f"A cluster is already running in {self.root} as pid {self.owner_text()}: use "
                "`bridgehead status` or `bridgehead down` with this --data-dir, or choose another."
            ) from None
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(descriptor)
            raise self._not_writable(error) from error
        return descriptor

    def is_claimed(self) -> bool:
        """Whether a live process owns the folder."""
        try:
            descriptor = os.open(self.supervisor_pid, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def owner_text(self) -> str:
        """What the pid file says, for sentences."""
        try:
            return self.supervisor_pid.read_text(encoding="utf-8").strip() or "unknown"
        except OSError:
            return "unknown"

    def _not_writable(self, error: OSError) -> ClusterError:
        return ClusterError(
            f"{self.root} cannot be written ({error.strerror}): choose another --data-dir."
        )


def write_private(file: Path, content: bytes) -> None:
    """Replace a file by one that was never readable by anybody but its owner."""
    beside = file.with_name(file.name + ".tmp")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(content)
    beside.replace(file)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Replaces `path` by `document` at once: a reader sees the old one or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in `path`; None when there is no such file or no object in it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
