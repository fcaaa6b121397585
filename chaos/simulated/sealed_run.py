"""A simulated cluster whose evidence is sealed when it stops, and the digest of a history."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from bridgehead.cluster import RunSettings
from bridgehead.cluster.event_lines import host_boot_id
from bridgehead.cluster.run_record import RunRecord
from bridgehead.cluster.settings import ClusterSettings
from chaos.player import NoProgressError, Say
from chaos.simulated.network import NetworkLoop
from chaos.simulated.nodes import SimulatedCluster
from chaos.simulated.zookeeper_session import SimulatedSession, ZooKeeperService
from event_log.evidence import COMMITS, FINAL_DUMP, Manifest, ZooKeeperEvidence
from judge.evidence.commit_lines import commit_line
from judge.evidence.sealing import load_dumps, load_run, write_manifest
from judge.transaction_log import Transaction
from node.znode_dump import dump_through

# These fields differ between Python processes, hosts and releases.
_NOT_HISTORY: Final = re.compile(rb'"(host_boot_id|version)":"[^"]*"|"pid":\d+')
_HOST: Final = b'"host_boot_id":"%b"' % host_boot_id().encode()
_COMPLETE_WITHIN_S: Final = 60.0
_POLL_S: Final = 0.02
_DUMP_TIMEOUT_MS: Final = 10_000


class SealedRun:
    """One cluster, and the record of its run. `manifest` is None until the run is sealed."""

    def __init__(
        self,
        loop: NetworkLoop,
        seed: int,
        folder: Path,
        say: Say,
        *,
        brokers: int,
        properties: Mapping[str, str],
        settings: RunSettings,
        node_properties: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
        seeded_bugs: frozenset[str] = frozenset(),
    ) -> None:
        properties = {"auto.create.topics.enable": "false", **properties}
        self._loop = loop
        self.manifest: Manifest | None = None
        self.record = RunRecord(
            folder,
            ClusterSettings(brokers=brokers, data_dir=folder, properties=properties, run=settings),
            say,
        )
        self.service = ZooKeeperService(loop.network, lambda: time.time_ns() // 1_000_000, seed)
        self.cluster = SimulatedCluster(
            loop,
            self.service,
            data_dir=folder / "nodes",
            evidence_dir=self.record.folder,
            brokers=brokers,
            properties=properties,
            node_properties=node_properties,
            seeded_bugs=seeded_bugs,
        )

    @asynccontextmanager
    async def sealed(self) -> AsyncIterator[None]:
        """Record what happens inside; then stop the cluster, and seal the evidence."""
        record = self.record
        record.start(chroot="", log_folders=None)
        record.dump_empty()
        try:
            yield
        finally:
            await self.end()

    async def end(self) -> None:
        """Stop the cluster, and seal the evidence."""
        record = self.record
        await self.cluster.stop()
        record.note_ends(self.cluster.nodes.values())
        await self._dump()
        record.end()
        log, sealed_ms = self.service.model.log, time.time_ns() // 1_000_000
        self.manifest = _seal(record.folder, log, sealed_ms)

    async def until_complete(self) -> None:
        """Wait until there is a controller, and every broker knows every other."""
        deadline_s = self._loop.time() + _COMPLETE_WITHIN_S
        while not self.cluster.is_complete():
            if self._loop.time() > deadline_s:
                raise NoProgressError("not every broker knows all other brokers")
            await asyncio.sleep(_POLL_S)

    async def _dump(self) -> None:
        session = SimulatedSession(
            self.service, session_timeout_ms=_DUMP_TIMEOUT_MS, on_state=lambda _state: None
        )
        await session.open(_DUMP_TIMEOUT_MS / 1000)
        await dump_through(session, "", self.record.folder, "final")
        await session.close()


def _seal(folder: Path, log: Sequence[Transaction], sealed_ms: int) -> Manifest:
    """Write the simulated ZooKeeper's transactions as commit lines, and the manifest."""
    lines = [orjson.dumps(commit_line(commit)) + b"\n" for commit in log]
    (folder / COMMITS).write_bytes(b"".join(lines))
    zookeeper = ZooKeeperEvidence(
        logs=True,
        members=1,
        last_zxid=log[-1].zxid,
        final_zxid=load_dumps(folder).get(FINAL_DUMP),
    )
    return write_manifest(folder, load_run(folder), zookeeper, sealed_ms=sealed_ms)


def digest_of(folder: Path, manifest: Manifest) -> str:
    """Return a digest of all events and transactions. A seed always gives the same digest."""
    digest = hashlib.sha256()
    for name in (file.path for file in manifest.files if file.path.endswith(".jsonl")):
        digest.update(name.encode())
        # The event `started`, the first line, is the only one with a version and a process id.
        first, _, others = (folder / name).read_bytes().partition(b"\n")
        digest.update(_NOT_HISTORY.sub(b"", first))
        digest.update(others.replace(_HOST, b""))
    return digest.hexdigest()[:16]
