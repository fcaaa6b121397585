"""Attacks on ZooKeeper's servers: hung members, lost transactions, deleted metadata.

They run on a cluster of their own, because lost transactions end a cluster's history. What must
hold: what a client was told is kept, unless ZooKeeper itself has lost it; the broker logs stay;
nobody continues on an emptied ZooKeeper, and the status says what to do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError

from tests.hostile.family import Report, cluster
from tests.hostile.target import bridgehead
from tests.hostile.zookeeper import (
    RECORDS,
    SERVES_WITHIN_S,
    SESSION_TIMEOUT_S,
    Scene,
    scene_in,
)

_CHROOT: Final = "/shared/kafka"


class Creations:
    """A client that creates topics until it is stopped; `acknowledged` has those that exist."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.acknowledged: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Creations:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        admin, number = AdminClient(self._settings), 0
        while not self._stop.wait(0.05):
            name = f"split-{number}-{id(self)}"
            number += 1
            with suppress(KafkaException):
                request = admin.create_topics([NewTopic(name, 1, 2)], request_timeout=5)
                request[name].result(timeout=10)
                self.acknowledged.add(name)


class Members:
    """The ZooKeeper servers of a cluster, as an operator of the machine sees them."""

    def __init__(self, scene: Scene, copies: Path) -> None:
        self._scene = scene
        self._folder = scene.data / "zookeeper"
        self._copies = copies

    def pids(self) -> list[int]:
        """Return their process ids; the leader is the first."""
        leaders: list[int] = []
        followers: list[int] = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
                if b"QuorumPeerMain" in command and str(self._folder).encode() in command:
                    configuration = Path(command.split(b"\0")[-2].decode())
                    led = _leads(configuration.read_text())
                    (leaders if led else followers).append(int(entry.name))
        return leaders + followers

    @contextmanager
    def hung(self, pids: Sequence[int]) -> Iterator[None]:
        """Stop processes without ending them."""
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        self._scene.within(lambda: not self.pids(), 10, "ZooKeeper's servers did not end")

    def start(self) -> None:
        here = ("--data-dir", str(self._scene.data))
        started = bridgehead("zookeeper", "start", *here, check=False)
        self._scene.expect(started.returncode == 0, f"ZooKeeper does not start: {started.stderr}")

    def save(self) -> None:
        """Copy their data; the servers must have ended."""
        shutil.rmtree(self._copies, ignore_errors=True)
        for folder in self._folder.glob("**/version-2"):
            shutil.copytree(folder, self._copies / folder.relative_to(self._folder))

    def restore(self) -> None:
        """Bring the last copy back; the servers must have ended."""
        for copy in self._copies.glob("**/version-2"):
            folder = self._folder / copy.relative_to(self._copies)
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)


def _leads(configuration: str) -> bool:
    """Ask a server whether it leads. A hung or killed server does not."""
    lines = dict(line.split("=", 1) for line in configuration.splitlines() if "=" in line)
    with suppress(OSError):
        address = lines["clientPortAddress"], int(lines["clientPort"])
        with socket.create_connection(address, timeout=1) as connection:
            connection.sendall(b"srvr")
            with connection.makefile("rb") as stream:
                return b"Mode: leader" in stream.read()
    return False


def _split(scene: Scene, members: Members, hung: int, name: str) -> None:
    """Hang the leader, or the leader and a follower, for longer than the session timeout."""
    with Creations(scene.client("admin")) as creations:
        scene.within(
            lambda: len(creations.acknowledged) > 3, SERVES_WITHIN_S, f"{name}: no topic before"
        )
        with members.hung(members.pids()[:hung]):
            threading.Event().wait(2 * SESSION_TIMEOUT_S)
        scene.serves(name)
    listed = AdminClient(scene.client("admin")).list_topics(timeout=30).topics
    lost = creations.acknowledged - listed.keys()
    scene.expect(not lost, f"{name}: {len(lost)} acknowledged topics are lost")


def hung_leader(scene: Scene, members: Members) -> None:
    """The leader hangs; the others elect another one, which the hung one then meets."""
    _split(scene, members, 1, "a hung leader")


def no_majority(scene: Scene, members: Members) -> None:
    """Two of three members hang, so nothing can be written."""
    _split(scene, members, 2, "an ensemble without a majority")


def lost_transactions(scene: Scene, members: Members) -> None:
    """All members come back with data from before the last transactions."""
    members.kill()
    members.save()
    members.start()
    scene.serves("all members killed")
    members.kill()
    members.restore()
    members.start()
    scene.down()  # A client that has seen later transactions cannot connect, as in Kafka.
    scene.up()
    scene.serves("lost transactions")
    scene.expect(scene.records() == RECORDS, "lost transactions: records are lost")


def emptied(scene: Scene, members: Members) -> None:
    """Somebody deletes every znode and restarts a broker. The operator then restores a backup."""
    members.kill()
    members.save()
    members.start()
    scene.serves("all members killed again")
    with _session(scene.status()["zookeeper_connect"]) as zookeeper:
        _delete_all(zookeeper)
        scene.within(lambda: _is_named(scene.data), SERVES_WITHIN_S, "emptied: no word of it")
        here = ("--data-dir", str(scene.data))
        bridgehead("node", "kill", "1", *here)
        started = bridgehead("node", "start", "1", *here, check=False)
        scene.expect(
            started.returncode != 0 and "cluster" in started.stderr,
            f"emptied: a broker starts on an empty ZooKeeper: {started.stderr}",
        )
        epoch = zookeeper.exists("/controller_epoch")
        scene.expect(epoch is None, "emptied: there is a controller of an empty cluster")
    members.kill()
    members.restore()
    members.start()
    scene.down()
    scene.up()
    scene.serves("emptied and restored")
    scene.expect(scene.records() == RECORDS, "emptied: records are lost")


def removed_chroot(scene: Scene, _: Members) -> None:
    """Another cluster in the same ensemble loses its chroot, which is then created again."""
    data = scene.data.parent / "shared"
    connect = scene.status()["zookeeper_connect"]
    options = ("--zookeeper", connect + _CHROOT, "--brokers", "2")
    with cluster(data, *options) as document, _session(connect) as zookeeper:
        admin = AdminClient({"bootstrap.servers": document["bootstrap_servers"], "log_level": 0})
        admin.create_topics([NewTopic("kept", 5, 2)])["kept"].result(timeout=60)
        logs = sorted(path.name for path in data.glob("nodes/*/logs/kept-*"))
        backup = dict(_persistent(zookeeper, _CHROOT))
        zookeeper.delete(_CHROOT, recursive=True)
        scene.within(lambda: _is_named(data), SERVES_WITHIN_S, "removed chroot: no word of it")
        for path, content in backup.items():
            with suppress(NodeExistsError):
                zookeeper.create(path, content, makepath=True)

        def is_served() -> bool:
            admin.create_topics([NewTopic("after", 1, 2)])["after"].result(timeout=10)
            return True

        scene.within(is_served, SERVES_WITHIN_S, "removed chroot: no topic can be created")
        listed = admin.list_topics(timeout=30).topics
        scene.expect("kept" in listed, f"removed chroot: topics are lost: {sorted(listed)}")
        now = sorted(path.name for path in data.glob("nodes/*/logs/kept-*"))
        scene.expect(now == logs, f"removed chroot: logs {logs} became {now}")


@contextmanager
def _session(connect: str) -> Iterator[KazooClient]:
    zookeeper = KazooClient(connect)
    zookeeper.start(timeout=30)
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def _delete_all(zookeeper: KazooClient) -> None:
    """Delete every znode, also those that a node creates again meanwhile."""
    for _ in range(20):
        names = [name for name in zookeeper.get_children("/") if name != "zookeeper"]
        for name in names:
            with suppress(KazooException):
                zookeeper.delete(f"/{name}", recursive=True)
        if not names:
            return


def _persistent(zookeeper: KazooClient, path: str) -> Iterator[tuple[str, bytes]]:
    content, stat = zookeeper.get(path)
    if not stat.ephemeralOwner:
        yield path, content
        for child in zookeeper.get_children(path):
            yield from _persistent(zookeeper, f"{path}/{child}")


def _is_named(data: Path) -> bool:
    """Return whether a node's status says what has happened and what to do."""
    status = json.loads(bridgehead("status", "--json", "--data-dir", str(data)).stdout)
    states = [broker["state"] or {} for broker in status["brokers"]]
    return any("restore its data" in str(state.get("election_problem")) for state in states)


FAMILIES: Final = (hung_leader, no_majority, lost_transactions, emptied, removed_chroot)


def attack_the_ensemble(folder: Path, report: Report) -> None:
    """Run every attack on one cluster, and report which of them ran."""
    with scene_in(folder) as scene:
        scene.create_records()
        scene.zookeeper.stop()  # It has seen transactions that will be lost.
        members, pids = Members(scene, folder / "copies"), scene.pids()
        for family in FAMILIES:
            if family is lost_transactions:  # From here on, brokers are started again.
                scene.expect(scene.pids() == pids, f"brokers died: {pids}, now {scene.pids()}")
            family(scene, members)
            scene.done.append(family.__name__)
        scene.expect_no_traceback()
    report.tries += len(scene.done)
    report.figures.append(f"ran: {', '.join(scene.done)}")
    report.findings += scene.findings
