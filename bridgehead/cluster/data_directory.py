"""The folder of one cluster: its layout, and the process that owns it.

The owner locks `supervisor.pid`. The kernel releases the lock when the process exits, so a stale
pid file does not block a later owner. Only the user who runs this process has access to the files,
because ZooKeeper's log contains SCRAM keys, and properties contain passwords.

    cluster.json            while the cluster is ready
    supervisor.pid  supervisor.log  control.sock
    control.token           while the control API serves
    nodes/ID/               node.properties node.log node.out node.pid ready.json control.sock
    evidence/run=…/         the evidence of one run (docs/evidence.md)
    tls/                    ca.pem brokers.pem users/NAME.pem, if generated
    channel/                the brokers' certificates for Envelopes, and ZooKeeper credentials
    zookeeper/              zoo.cfg zookeeper.log zookeeper.pid version-2/
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridgehead.cluster.errors import ClusterError

_ENTRIES = (
    *("cluster.json", "supervisor.pid", "supervisor.log", "control.sock", "control.token"),
    *("nodes", "evidence", "tls", "channel", "zookeeper"),
)
_LOCK_ATTEMPTS = 10
_LOCK_RETRY_S = 0.02


class DataDirectory:
    """Paths in one cluster's folder, which may not exist yet."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.cluster_json = self.root / "cluster.json"
        self.supervisor_pid = self.root / "supervisor.pid"
        self.supervisor_log = self.root / "supervisor.log"
        self.control_socket = self.root / "control.sock"
        self.control_token = self.root / "control.token"
        self.zookeeper = self.root / "zookeeper"
        self.tls = self.root / "tls"

    def node(self, node_id: int) -> Path:
        """Return the folder of one node."""
        return self.root / "nodes" / str(node_id)

    def claim(self) -> int:
        """Make this process the owner; return the lock's descriptor, to be closed at the end.

        Raises:
            ClusterError: another process owns the folder, or the folder cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.supervisor_pid, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._not_writable(error) from error
        if not _lock(descriptor):
            os.close(descriptor)
            raise ClusterError(
                f"A cluster is already running in {self.root} as pid {self.owner_text()}: use "
                "`bridgehead status` or `bridgehead down` with this --data-dir, or choose another."
            )
        try:
            self._make_private()
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(descriptor)
            raise self._not_writable(error) from error
        return descriptor

    def _make_private(self) -> None:
        """Make the files of earlier runs private, and the folder if it contains nothing else."""
        own = [self.root / name for name in _ENTRIES]
        make_private(own)
        if set(self.root.iterdir()) <= set(own):
            self.root.chmod(0o700)

    def is_claimed(self) -> bool:
        """Return whether a live process owns the folder."""
        try:
            descriptor = os.open(self.supervisor_pid, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def owner_text(self) -> str:
        """Return the owner's pid as text, for messages."""
        try:
            return self.supervisor_pid.read_text(encoding="utf-8").strip() or "unknown"
        except OSError:
            return "unknown"

    def _not_writable(self, error: OSError) -> ClusterError:
        return ClusterError(
            f"{self.root} cannot be written ({error.strerror}): choose another --data-dir."
        )


def _lock(descriptor: int) -> bool:
    """Lock a file; return False if another process keeps it locked.

    Tries several times, because `is_claimed` in another process locks the file for a moment.
    """
    for attempt in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _LOCK_ATTEMPTS:
                time.sleep(_LOCK_RETRY_S)
        else:
            return True
    return False


def make_private(paths: Iterable[Path]) -> None:
    """Remove other users' access to `paths`, to everything below them, and to all new files.

    New files are private because of the umask of this process, which its children inherit. Paths
    that do not exist are ignored; symbolic links are not followed.
    """
    os.umask(0o077)
    for path in paths:
        for each in (path, *path.rglob("*")):
            if not each.is_symlink() and each.exists() and each.stat().st_mode & 0o077:
                each.chmod(each.stat().st_mode & 0o700)


def write_private(file: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner can ever read the new file."""
    beside = file.with_name(file.name + ".tmp")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(content)
    beside.replace(file)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Replace `path` by `document` atomically."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in `path`; None if the file is missing or malformed."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
