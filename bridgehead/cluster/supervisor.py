"""The process behind `bridgehead up`: starts ZooKeeper and the nodes, and runs until it is stopped.

It keeps running when nodes exit, and does not restart them. It executes the commands that arrive on
its control socket (`control_commands`). It ends on a signal, on `down`, after a failed start, or
at the end of `parent_pipe`. It then stops the nodes and ZooKeeper, and leaves no process behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Sequence
from typing import Any

from bridgehead.cluster import class_archive, control_commands, other_cluster
from bridgehead.cluster.broker_certificates import ensure_cluster_certificates
from bridgehead.cluster.control_socket import ControlError, serve, serve_http
from bridgehead.cluster.data_directory import read_json, write_json, write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.fork_server import ForkServer, fork_server
from bridgehead.cluster.initial_access import apply_access, with_certificates
from bridgehead.cluster.java import find_java
from bridgehead.cluster.node_plan import DEFAULT_ZOOKEEPER_PORT, plan_nodes, with_advertised
from bridgehead.cluster.node_process import NodeProcess, clear_stray_node
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.cluster.running_cluster import Announce, RunningCluster, wait_until
from bridgehead.cluster.settings import ClusterSettings, ControlSettings
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper, stop_stray_zookeeper
from bridgehead.cluster.zookeeper_credentials import embedded_chroot, with_credentials

_ZOOKEEPER_TIMEOUT_S = 30.0
_READY_TIMEOUT_S = 60.0
_ADDRESSES_TIMEOUT_S = 300.0
_WATCH_S = 0.2


class Supervisor:
    """One cluster, from `run` to its end."""

    def __init__(
        self,
        settings: ClusterSettings,
        announce: Announce,
        parent_pipe: int | None = None,
        running_fork_server: ForkServer | None = None,
    ) -> None:
        """`announce` prints a sentence for the user; EOF on `parent_pipe` stops the cluster."""
        self._settings = settings
        self._cluster = RunningCluster(settings, announce)
        self._directory = self._cluster.directory
        self._announce = announce
        self._parent_pipe = parent_pipe
        self._running_fork_server = running_fork_server
        self._ports = Ports()
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[dict[str, Any]], None]) -> None:
        """Start everything, call `on_ready` with the contents of cluster.json, wait for the end.

        Raises:
            ClusterError: the cluster could not be started; nothing is left running.
        """
        self._bind_to_process_and_time()
        lock = self._directory.claim()
        self._handle_signals()
        servers: list[asyncio.Server] = []
        watcher: asyncio.Task[None] | None = None
        try:
            servers.append(await serve(self._directory.control_socket, self._execute))
            if self._settings.control is not None:
                servers.append(await self._serve_http(self._settings.control))
            if await self._start_unless_stopped():
                self._cluster.phase = "ready"
                self._cluster.has_started.set()
                on_ready(self._cluster.document)
                watcher = asyncio.create_task(self._watch())
                with class_archive.made_meanwhile(is_useful=self._cluster.zookeeper is not None):
                    await self._stopping.wait()
        except BrokenPipeError:  # `on_ready` wrote to a closed output
            raise
        except OSError as error:
            where = error.filename or self._directory.root
            raise ClusterError(
                f"{where} cannot be used ({error.strerror or error}): choose another --data-dir."
            ) from error
        finally:
            self._cluster.phase = "stopping"
            if watcher is not None:
                watcher.cancel()
            await self._cluster.stop()
            self._ports.close()
            for server in servers:
                server.close()
            self._directory.control_socket.unlink(missing_ok=True)
            self._directory.control_token.unlink(missing_ok=True)
            os.close(lock)

    async def _serve_http(self, control: ControlSettings) -> asyncio.Server:
        """Serve the control API; its token is in a file that only this user can read.

        Raises:
            ClusterError: the address cannot be used.
        """
        token = control.token or secrets.token_urlsafe(32)
        write_private(self._directory.control_token, token.encode() + b"\n")
        host = control.host.strip("[]")
        try:
            server = await serve_http(host, control.port, token, self._execute)
        except OSError as error:
            raise ClusterError(
                f"The control API cannot listen at {control.host}:{control.port} "
                f"({error.strerror or error}): choose another address with --control."
            ) from error
        port = server.sockets[0].getsockname()[1]
        shown = LOOPBACK if host in ("0.0.0.0", "::") else control.host  # noqa: S104 - never bound
        self._cluster.control_url = f"http://{shown}:{port}"
        return server

    async def _start_unless_stopped(self) -> bool:
        start = asyncio.create_task(self._start())
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((start, stop), return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return False
            start.result()
            return True
        finally:
            for task in (start, stop):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ClusterError, OSError):
                    await task

    async def _start(self) -> None:
        if self._settings.node_command:
            if self._running_fork_server is not None:
                self._running_fork_server.close()
            await self._start_processes(None)
            return
        with fork_server(self._running_fork_server) as server:
            await self._start_processes(server)

    async def _start_processes(self, server: ForkServer | None) -> None:
        cluster, external = self._cluster, self._settings.zookeeper_connect
        self._directory.cluster_json.unlink(missing_ok=True)
        await cluster.record.check_seal_key()
        self._clear_strays()
        settings = with_certificates(self._settings, self._directory.tls)
        ports = self._ports
        embedded = None
        if external is None:
            embedded = EmbeddedZooKeeper(
                self._directory.zookeeper,
                self._zookeeper_ports(ports),
                java=find_java(),
                heap_mib=self._settings.zookeeper_heap_mib,
            )
        plans = plan_nodes(  # before anything starts: a port conflict is reported immediately
            with_credentials(settings),
            ports,
            zookeeper_connect=external
            or (embedded and embedded.connect + embedded_chroot(settings))
            or "",
            run_id=cluster.record.run_id,
            evidence=cluster.record.folder,
        )
        # Generated while ZooKeeper starts.
        certificates = asyncio.create_task(
            asyncio.to_thread(ensure_cluster_certificates, self._settings)
        )
        is_new = embedded is not None and not embedded.has_history()
        if embedded is not None:
            cluster.zookeeper = embedded
            embedded.start()
            await self._wait_until_serving(embedded)
        else:
            await self._check_reachable(external or "")
            await self._check_owner(external or "")
        source = self._settings.copied_zookeeper
        if source is not None and not self._directory.owned.exists():
            await self._copy(source)
            is_new = False
        await self._begin_record(is_new)
        await certificates
        if server is not None:
            await asyncio.to_thread(server.wait_until_ready)
        if addresses := await self._addresses():
            plans = with_advertised(plans, addresses)
            # The certificate must have the hosts that clients connect to.
            with_certificates(self._settings, self._directory.tls, addresses)
        for plan in plans:
            node = NodeProcess(plan, self._directory.node(plan.id), self._settings.node_command)
            cluster.nodes[plan.id] = node
            node.start(server)
        await wait_until(self._is_ready, _READY_TIMEOUT_S, self._describe_late)
        cluster.salts = await apply_access(list(cluster.nodes.values()), self._settings.access)
        await cluster.write_document()
        write_json(self._directory.owned, {"cluster_id": cluster.document["cluster_id"]})

    async def _addresses(self) -> Sequence[str]:
        """Return the addresses that brokers advertise; wait for them if they are late."""
        cluster = self._cluster
        if not self._settings.advertised_late:
            return self._settings.advertised
        cluster.phase = "waiting"
        self._announce(f"Waiting for the brokers' addresses: POST {cluster.control_url}/advertise")
        try:
            async with asyncio.timeout(_ADDRESSES_TIMEOUT_S):
                await cluster.has_addresses.wait()
        except TimeoutError:
            raise ClusterError(
                f"No addresses arrived at the control API within {_ADDRESSES_TIMEOUT_S:.0f} s."
            ) from None
        cluster.phase = "starting"
        return cluster.late_addresses

    async def _begin_record(self, is_new: bool) -> None:
        """Begin the evidence, with a dump of what ZooKeeper contains before this run."""
        cluster = self._cluster
        _, slash, chroot = cluster.zookeeper_connect.partition("/")
        members = None if cluster.zookeeper is None else cluster.zookeeper.members
        folders = None if members is None else [member.folder for member in members]
        cluster.record.start(chroot=slash + chroot, log_folders=folders)
        if is_new:
            cluster.record.dump_empty()
        elif self._settings.keep_evidence:
            await cluster.record.dump(cluster.zookeeper_connect, "first")

    def _zookeeper_ports(self, ports: Ports) -> list[int]:
        if self._settings.zookeeper_members > 1:
            return [ports.choose() for _ in range(9)]
        if self._settings.ports_auto:
            return [ports.choose()]
        return [ports.prefer(LOOPBACK, DEFAULT_ZOOKEEPER_PORT)]

    def _clear_strays(self) -> None:
        for pid in stop_stray_zookeeper(self._directory.zookeeper):
            self._announce(f"Stopped ZooKeeper (pid {pid}), left running by an earlier run.")
        for folder in sorted((self._directory.root / "nodes").glob("*/")):
            stray = clear_stray_node(folder)
            if stray is not None:
                self._announce(f"Stopped a node (pid {stray}), left running by an earlier run.")

    async def _wait_until_serving(self, zookeeper: EmbeddedZooKeeper) -> None:
        async def late() -> str:
            return (
                f"ZooKeeper did not serve within {_ZOOKEEPER_TIMEOUT_S:.0f} s: see "
                f"{self._directory.zookeeper}."
            )

        await wait_until(
            lambda: asyncio.to_thread(zookeeper.is_serving), _ZOOKEEPER_TIMEOUT_S, late
        )
        self._announce(f"ZooKeeper serves at {zookeeper.connect}.")

    async def _check_reachable(self, connect: str) -> None:
        """Connect to any of the external servers."""
        for server in connect.partition("/")[0].split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdigit():
                raise ClusterError(f"--zookeeper {connect!r} is not HOST:PORT[,...][/chroot].")
            with contextlib.suppress(OSError):
                async with asyncio.timeout(3):
                    _, writer = await asyncio.open_connection(host, int(port))
                    writer.close()
                    return
        raise ClusterError(
            f"No ZooKeeper answers at {connect}: start it, correct --zookeeper, or omit the "
            "option to start the embedded one."
        )

    async def _check_owner(self, connect: str) -> None:
        """Raise ClusterError if the external ZooKeeper belongs to another cluster."""
        if self._settings.adopt is None:
            return
        contents = await other_cluster.look(connect, with_credentials(self._settings))
        owned = read_json(self._directory.owned) or {}
        reason = other_cluster.rejection(
            connect, contents, own_id=owned.get("cluster_id"), adopt=self._settings.adopt
        )
        if reason is not None:
            raise ClusterError(reason)

    async def _copy(self, source: str) -> None:
        """Copy the metadata of another cluster into the new embedded ZooKeeper."""
        await self._check_reachable(source)
        target = self._cluster.zookeeper_connect
        try:
            count = await other_cluster.copy(source, target, self._settings)
        except ClusterError as error:
            folder = self._directory.root
            raise ClusterError(f"{error} Remove {folder} before you try again.") from None
        self._announce(f"{count} znodes were copied from {source}, which is only read.")

    async def _is_ready(self) -> bool:
        # Check every node: a node that is late must not hide a node that has exited.
        ready = [node.is_ready() for node in self._cluster.nodes.values()]
        return all(ready) and await self._cluster.is_complete()

    async def _describe_late(self) -> str:
        late = [str(node.id) for node in self._cluster.nodes.values() if not node.is_ready()]
        if late:
            problem = f"Brokers {', '.join(late)} did not serve"
        elif await self._cluster.active_controller() is None:
            problem = "No controller became active"
        else:
            problem = "The brokers did not all find each other"
        return (
            f"{problem} within {_READY_TIMEOUT_S:.0f} s: see the logs of the nodes in "
            f"{self._directory.root / 'nodes'}."
        )

    async def _watch(self) -> None:
        """Announce each process that exits unexpectedly; the cluster keeps running."""
        problem: str | None = None
        while True:
            if self._cluster.phase == "sealed":
                return
            with contextlib.suppress(OSError):  # If the disk is full, the next pass tries again.
                self._cluster.record.note_ends(self._cluster.nodes.values())
            for node in self._cluster.nodes.values():
                status = node.exit_status()
                if status is not None and node.condition in ("running", "frozen"):
                    node.condition = "ended"
                    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
                    self._announce(f"Broker {node.id} exited: {how}.")
            before, problem = problem, self._cluster.zookeeper_problem(())
            if problem not in (None, before):
                self._announce(problem)
            await asyncio.sleep(_WATCH_S)

    async def _execute(self, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("command") == "down":
            self._stopping.set()
            return {"stopping": True}
        try:
            return await control_commands.execute(self._cluster, message)
        except (ClusterError, OSError) as error:
            raise ControlError(str(error)) from error

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stopping.set)
        if self._parent_pipe is not None:
            loop.add_reader(self._parent_pipe, self._read_parent_pipe, self._parent_pipe)

    def _bind_to_process_and_time(self) -> None:
        """Stop when the process of the settings exits, and when their time is over.

        Raises:
            ClusterError: there is no such process.
        """
        loop, pid, ttl_s = (
            asyncio.get_running_loop(),
            self._settings.stop_with_pid,
            self._settings.ttl_s,
        )

        def stop(reason: str) -> None:
            if not self._stopping.is_set():
                self._announce(f"The cluster stops: {reason}.")
            self._stopping.set()

        if ttl_s is not None:
            loop.call_later(ttl_s, stop, f"its time of {ttl_s:g} s is over")
        if pid is None:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except (OSError, OverflowError):
            raise ClusterError(f"--stop-with-pid: there is no process {pid}.") from None

        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            stop(f"process {pid} has exited")

        loop.add_reader(descriptor, ended)

    def _read_parent_pipe(self, pipe: int) -> None:
        if not os.read(pipe, 4096):
            asyncio.get_running_loop().remove_reader(pipe)
            self._stopping.set()


def supervise(
    settings: ClusterSettings,
    *,
    announce: Announce,
    on_ready: Callable[[dict[str, Any]], None],
    parent_pipe: int | None = None,
    running_fork_server: ForkServer | None = None,
) -> None:
    """Run one cluster in this process until it is stopped.

    Raises:
        ClusterError: the cluster could not be started.
    """

    async def main() -> None:
        await Supervisor(settings, announce, parent_pipe, running_fork_server).run(on_ready)

    os.umask(0o077)  # before the first file; child processes inherit it
    asyncio.run(main())
