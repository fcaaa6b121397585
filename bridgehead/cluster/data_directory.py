"""The folder of one cluster: its layout, and the process that owns it.

The owner locks `supervisor.pid`. The kernel releases the lock when the process exits, so a stale
pid file does not block a later owner. Only the user who runs this process has access to the files,
because ZooKeeper's log contains SCRAM keys, and properties contain passwords. Somebody else may
have prepared the folder: no link in it is followed, and nothing of other users is used.

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

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridgehead.cluster.errors import ClusterError

_ENTRIES = (
    *("cluster.json", "supervisor.pid", "supervisor.log", "control.sock", "control.token"),
    *("nodes", "evidence", "tls", "channel", "zookeeper", "fault-counts", "owned.json"),
)
_OPENING = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_JSON_BYTES_MAX = 1 << 28
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
        self.owned = self.root / "owned.json"
        """The id of the cluster that this folder ran last."""
        self.fault_counts = self.root / "fault-counts"
        """A file for each fault rule; the brokers count in it together."""

    def node(self, node_id: int) -> Path:
        """Return the folder of one node."""
        return self.root / "nodes" / str(node_id)

    def claim(self) -> int:
        """Make this process the owner; return the lock's descriptor, to be closed at the end.

        Raises:
            ClusterError: another process owns the folder, the folder cannot be written, has an
                entry that leads out of it, or gives other users access that cannot be withdrawn.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.supervisor_pid, os.O_RDWR | os.O_CREAT | _OPENING, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _not_ours(self.supervisor_pid, "is a symbolic link") from None
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
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError):
                raise self._not_writable(error) from error
            raise
        return descriptor

    def _make_private(self) -> None:
        """Make the folder private if it has nothing but a cluster's files; then these files.

        In this order nobody can plant an entry after it was checked.
        """
        status = self.root.stat()
        if status.st_uid != os.geteuid():
            raise ClusterError(
                f"{self.root} belongs to another user (uid {status.st_uid}): run this command as "
                "that user, or choose another --data-dir."
            )
        entries = [self.root / name for name in _ENTRIES]
        if set(self.root.iterdir()) <= set(entries):
            self.root.chmod(0o700)
        elif status.st_mode & 0o022:
            raise ClusterError(
                f"Other users can write to {self.root}, which has other files besides a cluster's: "
                "run `chmod go-w` on it, or choose another --data-dir."
            )
        make_private(entries, of_owner=True)

    def is_claimed(self) -> bool:
        """Return whether a live process owns the folder."""
        try:
            descriptor = os.open(self.supervisor_pid, os.O_RDWR | _OPENING)
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
            text = _read(self.supervisor_pid, bytes_max=100).strip()
        except (OSError, ValueError):
            return "unknown"
        return text if text.isdigit() else "unknown"

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


def make_private(paths: Iterable[Path], *, of_owner: bool = False) -> None:
    """Remove other users' access to `paths`, to everything below them, and to all new files.

    New files are private because of the umask of this process, which its children inherit. Paths
    that do not exist are ignored.

    Raises:
        ClusterError: an entry is a symbolic link, a pipe or a device; with `of_owner` also if it
            belongs to another user.
        OSError: an entry's mode cannot be changed.
    """
    os.umask(0o077)
    pending = list(paths)
    while pending:
        path = pending.pop()
        # A node that an earlier supervisor left running may remove a file at any moment.
        with contextlib.suppress(FileNotFoundError):
            pending += _made_private(path, of_owner=of_owner)


def _made_private(path: Path, *, of_owner: bool) -> list[Path]:
    """Make one entry private; return the entries of a folder."""
    status = path.lstat()
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        raise _not_ours(path, "is a symbolic link")
    if not any(is_kind(mode) for is_kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISSOCK)):
        raise _not_ours(path, "is a pipe or a device")
    if of_owner and status.st_uid != os.geteuid():
        raise _not_ours(path, f"belongs to another user (uid {status.st_uid})")
    if mode & 0o077:
        path.chmod(mode & 0o700)
    # A folder's entries are listed after others have lost access to it.
    return list(path.iterdir()) if stat.S_ISDIR(mode) else []


def _not_ours(path: Path, why: str) -> ClusterError:
    return ClusterError(f"{str(path)!r} {why}, which no cluster creates: remove it.")


def write_private(file: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner can ever read the new file."""
    beside = file.with_name(file.name + ".tmp")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(content)
    beside.replace(file)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Replace `path` by `document` atomically."""
    write_private(path, f"{json.dumps(document, indent=2)}\n".encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in `path`; None if the file is missing or malformed, or is a link."""
    try:
        document = json.loads(_read(path, bytes_max=_JSON_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _read(path: Path, *, bytes_max: int) -> str:
    """Return the text of a regular file.

    Raises:
        OSError: it cannot be read, or is a link.
        ValueError: it is not a regular file, is too large, or is not UTF-8.
    """
    with open(os.open(path, os.O_RDONLY | _OPENING), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a regular file")
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise ValueError(f"{path} is too large")
    return data.decode()
