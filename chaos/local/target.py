"""A cluster of real processes as a target of faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster import Cluster
from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.event_lines import EventLines
from bridgehead.cluster.zookeeper import server_mode
from chaos.clocked_node import set_clock
from chaos.local.network import ProxiedNetwork
from chaos.mutant_node import BLOCK, STOP
from chaos.player import NoProgressError
from chaos.recorded_client import recorded_fault
from cluster_model.znodes.operations import Delete
from zookeeper_client.session import ZooKeeperSession

_POLL_S: Final = 0.02
_SESSION_TIMEOUT_MS: Final = 10_000
_HELD_WITHIN_S: Final = 60.0


def clocks_of(data_dir: Path) -> Path:
    """Return the folder that has the clock offset of each node."""
    return data_dir / "clocks"


def failpoints_of(data_dir: Path) -> Path:
    """Return the folder in which failpoints are armed."""
    return data_dir / "failpoints"


class LocalEnsemble:
    """The members of the embedded ZooKeeper."""

    def __init__(self, cluster: Cluster, members: int) -> None:
        self._cluster = cluster
        self.members = tuple(range(1, members + 1))

    async def leader(self) -> int:
        servers = self._cluster.zookeeper_connect.partition("/")[0].split(",")
        ports = [int(server.rpartition(":")[2]) for server in servers]
        while True:
            modes = [await asyncio.to_thread(server_mode, "127.0.0.1", port) for port in ports]
            for member, mode in zip(self.members, modes, strict=True):
                if mode in ("leader", "standalone"):
                    return member
            await asyncio.sleep(_POLL_S)

    async def kill(self, member: int) -> None:
        self._signal(member, signal.SIGKILL)

    async def start(self, member: int) -> None:
        client = ControlClient(self._cluster.data_dir)
        while (await asyncio.to_thread(client.status))["zookeeper_problem"] is None:
            await asyncio.sleep(_POLL_S)  # until the supervisor knows that the member has ended
        await asyncio.to_thread(client.start_zookeeper)

    async def empty(self, member: int) -> None:
        shutil.rmtree(self._folder(member) / "version-2")

    async def pause(self, member: int) -> None:
        self._signal(member, signal.SIGSTOP)

    async def resume(self, member: int) -> None:
        self._signal(member, signal.SIGCONT)

    async def fill_disk(self, member: int) -> None:
        limit_files(self._pid(member), 0)

    @contextlib.asynccontextmanager
    async def slow_fsync(self, member: int, seconds: float) -> AsyncIterator[None]:
        """See chaos.fault.Ensemble. strace delays the system calls."""
        pid, calls = self._pid(member), "fsync,fdatasync"
        delay = f"inject={calls}:delay_enter={seconds * 1000:.0f}ms"
        command = ["strace", "-f", "-qq", "-e", f"trace={calls}", "-e", delay, "-p", str(pid)]
        try:
            tracer = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            raise NoProgressError(
                "strace is missing: install it (apt-get install strace)"
            ) from None
        try:
            while _tracer_of(pid) != tracer.pid:
                if tracer.returncode is not None:
                    raise NoProgressError("strace needs CAP_SYS_PTRACE to trace ZooKeeper")
                await asyncio.sleep(_POLL_S)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                tracer.terminate()  # It detaches from ZooKeeper first.
            await tracer.wait()

    def _signal(self, member: int, number: signal.Signals) -> None:
        os.kill(self._pid(member), number)

    def _pid(self, member: int) -> int:
        return int((self._folder(member) / "zookeeper.pid").read_text())

    def _folder(self, member: int) -> Path:
        document = _document(self._cluster)
        members = document["zookeeper"].get("members", [document["zookeeper"]])
        return Path(members[member - 1]["data_dir"])


def limit_files(pid: int, bytes_max: int) -> None:
    """Let no file of a process grow beyond a size.

    A write beyond it fails with EFBIG. (A write to a full disk would fail with ENOSPC.)
    """
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (bytes_max, hard))


def _tracer_of(pid: int) -> int:
    """Return the pid of the process that traces another one; 0 if none does."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("TracerPid:")[2].split()[0])


def _document(cluster: Cluster) -> dict[str, Any]:
    """Return the content of cluster.json, without asking nodes, which may not answer."""
    return dict(json.loads((cluster.data_dir / "cluster.json").read_text()))


def _broker_at(held: Path) -> int:
    return int(held.name.rpartition("@")[2])


def _pid_of(cluster: Cluster, broker: int) -> int:
    brokers = _document(cluster)["brokers"]
    return next(int(node["pid"]) for node in brokers if node["id"] == broker)


class LocalDisks:
    """The files of the brokers' processes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def fill(self, broker: int) -> None:
        limit_files(_pid_of(self._cluster, broker), 0)

    async def free(self, broker: int) -> None:
        limit_files(_pid_of(self._cluster, broker), resource.RLIM_INFINITY)


class LocalTarget:
    """One running cluster. It implements every protocol of chaos.fault."""

    def __init__(
        self, cluster: Cluster, members: int, network: ProxiedNetwork | None, lines: EventLines
    ) -> None:
        """`lines` records the events of the harness."""
        self._cluster = cluster
        self._network = network
        self._lines = lines
        self.brokers = tuple(cluster.brokers)
        self.zookeeper = LocalEnsemble(cluster, members)
        self.disks = LocalDisks(cluster)

    @property
    def network(self) -> ProxiedNetwork:
        assert self._network is not None, "the fault must set breaks_links"
        return self._network

    async def controller(self) -> int:
        return await asyncio.to_thread(self._cluster.wait_for_controller)

    async def another_controller(self, before: int) -> int:
        """Wait until a broker other than `before` is the active controller, and return it."""
        return await asyncio.to_thread(self._cluster.wait_for_controller, other_than=before)

    async def kill(self, broker: int) -> None:
        await asyncio.to_thread(self._cluster.kill_node, broker)

    async def stop(self, broker: int) -> None:
        await asyncio.to_thread(self._cluster.stop_node, broker)

    async def start(self, broker: int) -> None:
        await asyncio.to_thread(self._cluster.start_node, broker)

    async def pause(self, broker: int) -> None:
        os.kill(_pid_of(self._cluster, broker), signal.SIGSTOP)

    async def resume(self, broker: int) -> None:
        os.kill(_pid_of(self._cluster, broker), signal.SIGCONT)

    async def hold_at(self, failpoint: str) -> int:
        held = await self._reached(failpoint, STOP)
        held.unlink()
        broker = _broker_at(held)
        await self.pause(broker)  # The process may still run: it renames the file, then stops.
        return broker

    async def block_at(self, failpoint: str) -> int:
        return _broker_at(await self._reached(failpoint, BLOCK))

    async def unblock(self, broker: int) -> None:
        for held in failpoints_of(self._cluster.data_dir).glob(f"*@{broker}"):
            held.unlink()

    async def _reached(self, failpoint: str, what: str) -> Path:
        """Arm a failpoint; return the file, as renamed by the process that reaches it."""
        folder = failpoints_of(self._cluster.data_dir)
        (folder / "new").write_text(what, encoding="ascii")
        (folder / "new").rename(folder / failpoint)
        deadline_s = time.monotonic() + _HELD_WITHIN_S
        while not (held := list(folder.glob(f"{failpoint}@*"))):
            if time.monotonic() > deadline_s:
                raise NoProgressError(f"no process reached {failpoint} in {_HELD_WITHIN_S:g} s")
            await asyncio.sleep(_POLL_S)
        return held[0]

    async def expire(self, broker: int) -> None:
        expired = await asyncio.to_thread(self._cluster.expire_controller)
        assert expired == broker, "the controller changed before its session ended"

    async def move_clock(self, broker: int, offset_s: int) -> None:
        set_clock(clocks_of(self._cluster.data_dir), broker, offset_s)

    async def corrupt_envelope(self, broker: int) -> None:
        await self.network.corrupt_envelope(broker)

    async def delete_znode(self, path: str) -> None:
        session = ZooKeeperSession(
            self._cluster.zookeeper_connect,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            on_state=lambda _state: None,
        )
        await session.open(_SESSION_TIMEOUT_MS / 1000)
        try:
            await session.multi([session.encode(Delete(path))])
        finally:
            await session.close()

    def recorded(self, action: str, target: int | str) -> contextlib.AbstractContextManager[None]:
        return recorded_fault(self._lines, action, target)
