"""The embedded ZooKeeper: the real server, with one or three members.

Its jars are in our wheel; a checkout uses PySpark's jars (docs/adr/0010-jars-in-the-wheel.md).

Metadata and transaction logs stay in the data folder, so that the next start finds them. The logs
are neither purged nor rolled at snapshots, so that the judge can read every write. The servers
listen on loopback, log to `zookeeper.log` in their folder, and die with their parent.
`jute.maxbuffer` is 4 MiB, the value of Kafka's ZooKeeper client.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from bridgehead.cluster.child_process import (
    die_with_parent,
    send_signal,
    start_child,
    stop_child,
    stop_stray,
)
from bridgehead.cluster.data_directory import write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import archive_file, archive_flags, class_path
from bridgehead.cluster.ports import LOOPBACK

TICK_TIME_MS = 500
_FREE_BYTES_MIN = 1 << 20  # with less, the disk counts as full
JUTE_BUFFER_BYTES_MAX = 4 << 20
_FIRST_HEAP_MIB, _YOUNG_MIB = 128, 48
_OUT_OF_MEMORY = 3  # Java's exit status, and one of ZooKeeper's
_LAST_OUTPUT_BYTES = 1000
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The logger in log4j-api; loading and configuring log4j-core would take a quarter of the start.
_SIMPLE_LOGGER = "org.apache.logging.log4j.simplelog"
LOG_FILE = f"{_SIMPLE_LOGGER}.logFile"
"""The property that names the log, by default standard error."""
LOGGING = (
    "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
    f"-D{_SIMPLE_LOGGER}.level=INFO",
    f"-D{_SIMPLE_LOGGER}.showdatetime=true",
    f"-D{_SIMPLE_LOGGER}.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss,SSS",
    "-Dzookeeper.jmx.log4j.disable=true",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One server. `quorum_port` and `election_port` are 0 unless there are three members."""

    id: int
    folder: Path
    port: int
    quorum_port: int = 0
    election_port: int = 0


def jvm_flags() -> list[str]:
    """Return additional JVM flags from BRIDGEHEAD_ZOOKEEPER_JVMFLAGS."""
    return shlex.split(os.environ.get("BRIDGEHEAD_ZOOKEEPER_JVMFLAGS", ""))


def server_configuration(member: Member, ensemble: Sequence[Member]) -> str:
    """Return the text of a member's zoo.cfg."""
    lines = [
        f"dataDir={member.folder}",
        f"clientPort={member.port}",
        f"clientPortAddress={LOOPBACK}",
        f"tickTime={TICK_TIME_MS}",
        "minSessionTimeout=1000",
        "maxSessionTimeout=120000",
        "initLimit=40",
        "syncLimit=20",
        "maxClientCnxns=0",
        "maxCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr,ruok,mntr,conf",
        "autopurge.purgeInterval=0",
        "snapCount=100000000",
    ]
    if len(ensemble) > 1:
        lines += [
            f"server.{peer.id}={LOOPBACK}:{peer.quorum_port}:{peer.election_port}"
            for peer in ensemble
        ]
    return "\n".join(lines) + "\n"


def server_mode(host: str, port: int, *, timeout_s: float = 1.0) -> str | None:
    """Return `standalone`, `leader` or `follower`; None while the server does not serve."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(b"srvr")
            with connection.makefile("rb") as stream:
                response = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    for line in response.splitlines():
        if line.startswith("Mode: "):
            return line.removeprefix("Mode: ").strip()
    return None


def serves(host: str, port: int) -> bool:
    """Return whether a server serves; blocks for about two seconds at most.

    A starting server may never respond on a connection (4 of 60 did not), so this soon asks again.
    """
    return any(server_mode(host, port, timeout_s=timeout_s) for timeout_s in (0.1, 1.0))


class EmbeddedZooKeeper:
    """One ensemble in one folder. Three members have the subfolders 1, 2 and 3."""

    def __init__(
        self,
        folder: Path,
        ports: Sequence[int],
        *,
        java: Path,
        heap_mib: int = 1024,
        flags: Sequence[str] = (),
    ) -> None:
        """`ports` is one client port, or the client, quorum and election port of each member.

        `flags` replace Java's flags for the class archive.
        """
        assert len(ports) in (1, 9)
        self.folder = folder.resolve()
        self._java = java
        self._heap_mib = heap_mib
        self._flags = tuple(flags)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._exits: dict[int, tuple[int, str]] = {}
        if len(ports) == 1:
            self.members: tuple[Member, ...] = (Member(1, self.folder, ports[0]),)
        else:
            self.members = tuple(
                Member(index + 1, self.folder / str(index + 1), *ports[3 * index : 3 * index + 3])
                for index in range(3)
            )

    @property
    def connect(self) -> str:
        """`host:port[,host:port]...`, for `zookeeper.connect`."""
        return ",".join(f"{LOOPBACK}:{member.port}" for member in self.members)

    def has_history(self) -> bool:
        """Return whether a member has data of an earlier run."""
        return any((member.folder / "version-2").is_dir() for member in self.members)

    def pid(self, member_id: int = 1) -> int | None:
        """Return the process id of a running member."""
        process = self._processes.get(member_id)
        return process.pid if process is not None and process.poll() is None else None

    def exits(self) -> dict[int, str]:
        """Reap the members that have exited unexpectedly; return a sentence for each."""
        sentences = {}
        for member in self.members:
            process = self._processes.get(member.id)
            if process is None or (status := process.poll()) is None:
                continue
            pid, sentence = self._exits.get(member.id, (0, ""))
            # Find the reason once, at the first call: a full disk may have space again later.
            if pid != process.pid:
                sentence = self._describe_exit(member, status)
                self._exits[member.id] = process.pid, sentence
            sentences[member.id] = sentence
        return sentences

    def _describe_exit(self, member: Member, status: int) -> str:
        name = "ZooKeeper" if len(self.members) == 1 else f"ZooKeeper member {member.id}"
        if _is_full(member.folder):
            return f"{name} exited: there is no space left for {member.folder}."
        output = (member.folder / "zookeeper.out").read_bytes()[-_LAST_OUTPUT_BYTES:]
        if status == _OUT_OF_MEMORY and b"java.lang.OutOfMemoryError" in output:
            return (
                f"{name} exited: its heap of {self._heap_mib} MiB is full; increase heap_mib of "
                "`zookeeper` in the cluster's file."
            )
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"{name} exited: {how}; see {member.folder / 'zookeeper.log'} and zookeeper.out."

    def __enter__(self) -> Self:
        """Start every member; return when all serve. See `start` and `wait_until_serving`."""
        self.start()
        try:
            self.wait_until_serving()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every member."""
        self.stop()

    def start(self) -> None:
        """Start every member; `is_serving` returns whether they serve.

        Raises:
            ClusterError: the jars are missing.
            OSError: the folder cannot be written.
        """
        jars = class_path()
        for member in self.members:
            self._start_member(member, jars)

    def start_member(self, member_id: int) -> None:
        """Start one member again, with the same data and port.

        Raises:
            ClusterError: its disk is full.
        """
        member = self.members[member_id - 1]
        try:
            self._start_member(member, class_path())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise ClusterError(
                f"ZooKeeper cannot start: there is no space left for {member.folder}."
            ) from error

    def _start_member(self, member: Member, jars: str) -> None:
        member.folder.mkdir(parents=True, exist_ok=True)
        self._stop_stray(member)
        configuration = member.folder / "zoo.cfg"
        write_private(configuration, server_configuration(member, self.members).encode())
        if len(self.members) > 1:
            write_private(member.folder / "myid", f"{member.id}\n".encode())
        command = [
            str(self._java),
            f"-Xmx{self._heap_mib}m",
            # Java fills its young generation before it collects it. By default the generation grows
            # with the machine's memory. With 8 MiB ZooKeeper needs a fifth more processor time
            # under load than with 48. The old generation takes memory only as it fills.
            f"-Xms{min(_FIRST_HEAP_MIB, self._heap_mib)}m",
            f"-Xmn{min(_YOUNG_MIB, self._heap_mib // 3)}m",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+UseSerialGC",  # the nodes need the cores
            "-XX:TieredStopAtLevel=1",  # the second compiler uses more CPU than the server
            f"-Djute.maxbuffer={JUTE_BUFFER_BYTES_MAX}",
            *LOGGING,
            *(self._flags or archive_flags(archive_file(self._java, jars))),
            *jvm_flags(),
            "-cp",
            jars,
            MAIN_CLASS,
            str(configuration),
        ]
        process = start_child(
            die_with_parent(command),
            output=member.folder / "zookeeper.out",
            errors=member.folder / "zookeeper.log",  # the server logs to its standard error
        )
        self._processes[member.id] = process
        _pid_file(member).write_text(f"{process.pid}\n", encoding="utf-8")

    def is_serving(self) -> bool:
        """Return whether every member serves. Blocks for about two seconds per member at most.

        Raises:
            ClusterError: a member has exited.
        """
        for sentence in self.exits().values():
            raise ClusterError(sentence)
        return all(serves(LOOPBACK, member.port) for member in self.members)

    def wait_until_serving(self, timeout_s: float = 30.0) -> None:
        """Block until every member serves.

        Raises:
            ClusterError: a member has exited, or `timeout_s` passed.
        """
        deadline = time.monotonic() + timeout_s
        while not self.is_serving():
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"ZooKeeper did not serve within {timeout_s:.0f} s: see {self.folder}."
                )
            time.sleep(0.02)

    def stop_member(self, member_id: int) -> None:
        """Stop one member; return when it has exited."""
        process = self._processes.pop(member_id, None)
        if process is not None:
            stop_child(process)
            _pid_file(self.members[member_id - 1]).unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop every running member; return when all have exited."""
        for member in self.members:
            self.stop_member(member.id)

    def kill(self) -> None:
        """Kill every member (SIGKILL); their data may be incomplete afterwards."""
        for process in self._processes.values():
            send_signal(process, signal.SIGKILL)
        self.stop()

    @staticmethod
    def _stop_stray(member: Member) -> None:
        stop_stray(_pid_file(member), str(member.folder / "zoo.cfg"))


def stop_stray_zookeeper(folder: Path) -> list[int]:
    """Kill the members of an earlier, killed supervisor; return their pids."""
    candidates = [folder.resolve() / part for part in ("", "1", "2", "3")]
    ended = (
        stop_stray(candidate / "zookeeper.pid", str(candidate / "zoo.cfg"))
        for candidate in candidates
    )
    return [pid for pid in ended if pid is not None]


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < _FREE_BYTES_MIN


def _pid_file(member: Member) -> Path:
    return member.folder / "zookeeper.pid"
