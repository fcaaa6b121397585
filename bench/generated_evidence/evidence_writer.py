"""Writes a run's folder: events with the nodes' own writer, commits and dumps as lines of JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from event_log.clock import ManualClock
from event_log.commits import (
    CommitLine,
    CommitOperation,
    CommitOutcome,
    DumpLine,
    content_digest,
    role_of,
)
from event_log.events import Event
from event_log.evidence import (
    COMMITS,
    FINAL_DUMP,
    FIRST_DUMP,
    RunDescription,
    ZooKeeperEvidence,
)
from event_log.writer import FileEventLog
from judge.evidence.sealing import write_manifest


@dataclass(slots=True)
class Znode:
    """One znode as a dump shows it."""

    czxid: int
    mzxid: int
    version: int
    data: str
    owner: str | None = None


class Boot:
    """One boot of one process. `seq` is the number of its next event."""

    def __init__(self, folder: Path, run_id: str, node: str, clock: ManualClock) -> None:
        self.node = node
        self.boot = f"{node.rpartition('-')[2]}b{'0' * 9}1"
        source, _, name = node.partition("-") if "-" in node else ("node", "", node)
        self._log = FileEventLog(
            folder / f"{source}={name}",
            run_id=run_id,
            node=node,
            boot=self.boot,
            host_boot_id="generated",
            clock=clock,
        )
        self.seq = 0

    def append(self, event: Event) -> int:
        """Write an event; return its number."""
        self._log.append(event)
        self.seq += 1
        return self.seq - 1

    def place(self, seq: int) -> str:
        """Return where an event is, spelled as in the key of a violation."""
        return f"{self.node}/{self.boot}/{seq}"

    def close(self) -> None:
        """Flush and close the log."""
        self._log.close()


class ZooKeeperLog:
    """Committed transactions, and the resulting znodes."""

    def __init__(
        self, folder: Path, znodes: dict[str, Znode], first_zxid: int, clock: ManualClock
    ) -> None:
        self._clock = clock
        (folder / "zookeeper").mkdir(parents=True)
        self._folder = folder
        self._file: IO[bytes] = (folder / COMMITS).open("wb")
        self.znodes = znodes
        self.zxid = first_zxid
        self.first_zxid = first_zxid
        _write_dump(folder / FIRST_DUMP, znodes)

    def commit(
        self,
        session: str,
        operations: list[tuple[str, str, str]],
        outcomes: list[CommitOutcome] | None = None,
        *,
        kind: str = "multi",
        check: int | None = None,
    ) -> int:
        """Write one transaction of (kind, path, data); return its zxid."""
        self.zxid += 1
        line = CommitLine(
            zxid=self.zxid,
            session=session,
            time_ms=self._clock.wall_ms(),
            kind=kind,
            outcomes=outcomes or [],
        )
        if check is not None:
            line.operations.append(
                CommitOperation(kind="check", path="/controller_epoch", role="epoch", version=check)
            )
        for change, path, data in operations:
            line.operations.append(self._apply(change, path, data, session))
        self._file.write(orjson.dumps(line) + b"\n")
        return self.zxid

    def _apply(self, change: str, path: str, data: str, session: str) -> CommitOperation:
        kind = "create" if change == "ephemeral" else change
        role = role_of(kind, path)
        if kind == "delete":
            self.znodes.pop(path, None)
            return CommitOperation(kind=kind, path=path, role=role)
        old = self.znodes.get(path)
        version = 0 if kind == "create" or old is None else old.version + 1
        czxid = self.zxid if kind == "create" or old is None else old.czxid
        owner = session if change == "ephemeral" else None
        self.znodes[path] = Znode(czxid, self.zxid, version, data, owner)
        return CommitOperation(
            kind=kind,
            path=path,
            role=role,
            version=version,
            ephemeral=change == "ephemeral",
            data=data,
            digest=content_digest(data.encode()),
        )

    def close(self) -> None:
        """Write the final dump."""
        self._file.close()
        _write_dump(self._folder / FINAL_DUMP, self.znodes)


def _write_dump(path: Path, znodes: dict[str, Znode]) -> None:
    with path.open("wb") as file:
        for name, znode in sorted(znodes.items()):
            line = DumpLine(
                path=name,
                czxid=znode.czxid,
                mzxid=znode.mzxid,
                version=znode.version,
                ephemeral_owner=znode.owner,
                digest=content_digest(znode.data.encode()),
                data=znode.data,
            )
            file.write(orjson.dumps(line) + b"\n")


def seal(folder: Path, run: RunDescription, zookeeper: ZooKeeperLog) -> None:
    """Write the manifest of everything in the folder."""
    evidence = ZooKeeperEvidence(
        logs=True,
        members=1,
        first_zxid=zookeeper.first_zxid,
        last_zxid=zookeeper.zxid,
        final_zxid=zookeeper.zxid,
    )
    write_manifest(folder, run, evidence, sealed_ms=0)
