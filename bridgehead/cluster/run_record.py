"""The evidence folder of one run; docs/evidence.md describes its layout.

Nodes write their own events into it. The supervisor writes `run.json` and the harness's events
(injected faults, exits of processes). It also runs two programs: one dumps ZooKeeper, the other
seals the folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.event_lines import EventLines, host_boot_id, software_versions
from bridgehead.cluster.settings import ZOOKEEPER_ACCESS, ClusterSettings
from bridgehead.cluster.zookeeper_credentials import with_credentials

_HARNESS: Final = "supervisor"
# A dump of 300,000 znodes takes some seconds.
_DUMP_TIMEOUT_S: Final = 60.0
_SEAL_TIMEOUT_S: Final = 600.0
_FAULTS_SHOWN_MAX: Final = 100


class EndedNode(Protocol):
    """A node whose process may have exited."""

    @property
    def id(self) -> int:
        """The broker's id."""

    def exit_status(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""


class RunRecord:
    """One run, from before its first node starts until the evidence is sealed."""

    def __init__(self, data_dir: Path, settings: ClusterSettings, announce: Callable[[str], None]):
        self.run_id = secrets.token_hex(8)
        self.folder = data_dir / "evidence" / f"run={self.run_id}"
        self._settings = settings
        self._announce = announce
        self._noted: set[tuple[int, str]] = set()
        self._lines: EventLines | None = None
        self.faults: deque[dict[str, Any]] = deque(maxlen=_FAULTS_SHOWN_MAX)
        """The latest faults that commands injected: `action`, `target` and `wall_ms`."""

    async def check_seal_key(self) -> None:
        """Check the file of the seal key, if there is one.

        Raises:
            ClusterError: the key cannot be used.
        """
        key = self._settings.seal_key
        if key is not None and (error := await _run("judge.evidence", "check-key", str(key))):
            raise ClusterError(error)

    def start(self, *, chroot: str, log_folders: list[Path] | None) -> None:
        """Write run.json and open the harness's events.

        Raises:
            OSError: the folder cannot be written; no cluster starts without evidence.
        """
        self.folder.mkdir(parents=True)
        document = {
            **self._description(),
            "chroot": chroot,
            "log_folders": None if log_folders is None else [str(folder) for folder in log_folders],
        }
        _write(self.folder / "run.json", document)
        self._lines = EventLines(self.folder, self.run_id, "harness", _HARNESS)

    def _description(self) -> dict[str, Any]:
        properties = self._settings.properties
        authorizer = properties.get("authorizer.class.name", "").strip()
        super_users = [user.strip() for user in properties.get("super.users", "").split(";")]
        no_acl = properties.get("allow.everyone.if.no.acl.found", "false").strip().lower()
        return {
            "run_id": self.run_id,
            **dataclasses.asdict(self._settings.run),
            "versions": software_versions(),
            "host_boot_id": host_boot_id(),
            "started_ms": time.time_ns() // 1_000_000,
            "brokers": self._settings.brokers,
            "request_timeout_ms": self._request_timeout_ms(),
            "session_timeout_ms": int(properties.get("zookeeper.session.timeout.ms", "6000")),
            # The judge knows only the rules of Kafka's own authorizer. With any other authorizer
            # this field is null, and the judge does not check authorization.
            "super_users": [user for user in super_users if user]
            if authorizer.endswith(".AclAuthorizer")
            else None,
            "allow_if_no_acl": no_acl == "true",
        }

    def _request_timeout_ms(self) -> int:
        """Return the longest `request.timeout.ms` of a broker; Kafka's default is 30 s."""
        shared = self._settings.properties
        nodes = [
            {**shared, **node_properties}
            for node_properties in self._settings.node_properties.values()
        ]
        return max(int(node.get("request.timeout.ms", "30000")) for node in (shared, *nodes))

    def node_folder(self, node_id: int) -> Path:
        """Return the folder of a node's events."""
        return self.folder / f"node={node_id}"

    def fault_injected(self, action: str, node_id: int) -> None:
        """Record that a fault is injected."""
        now_ms = time.time_ns() // 1_000_000
        self.faults.append({"action": action, "target": str(node_id), "wall_ms": now_ms})
        self._note("fault_injected", action=action, target=str(node_id))

    def fault_healed(self, action: str, node_id: int) -> None:
        """Record that a fault has ended."""
        self._note("fault_healed", action=action, target=str(node_id))

    def ending(self, running: int) -> None:
        """Record that the nodes are about to be stopped; `running` of them still run."""
        self._note("run_ending", running=running)

    def note_ends(self, nodes: Iterable[EndedNode]) -> None:
        """Record the nodes that have exited since the last call.

        Raises:
            OSError: for example, the disk is full; the next call records the rest.
        """
        for node in nodes:
            status = node.exit_status()
            if status is None:
                continue
            for path in sorted(self.node_folder(node.id).glob("events-*-0000.jsonl")):
                boot = path.name.removeprefix("events-").removesuffix("-0000.jsonl")
                if (node.id, boot) not in self._noted:
                    self._note(
                        "node_ended", ended_node=str(node.id), ended_boot=boot, status=status
                    )
                    self._noted.add((node.id, boot))

    def dump_empty(self) -> None:
        """Write the first dump of a new ZooKeeper: an empty one."""
        (self.folder / "zookeeper").mkdir()
        (self.folder / "zookeeper" / "first.jsonl").touch()
        _write(self.folder / "zookeeper" / "dumps.json", {"zookeeper/first.jsonl": 0})

    async def dump(self, connect: str, name: str) -> None:
        """Dump every znode. If this fails, announce the reason."""
        properties = with_credentials(self._settings).properties
        access = {n: v for n, v in properties.items() if n.startswith(ZOOKEEPER_ACCESS)}
        error = await _run(
            "node.znode_dump", connect, str(self.folder), name, secret=json.dumps(access)
        )
        if error:
            self._announce(f"ZooKeeper could not be dumped ({name}): {error}")

    async def seal(self) -> None:
        """Close the harness's events and seal the folder; a failed seal can be repeated later."""
        if self._lines is None:
            return
        try:
            self.end()
        except OSError as full:
            self._announce(f"{self.folder} is not sealed: {full}")
            return
        key = self._settings.seal_key  # Only its path: a process list shows the arguments.
        arguments = [str(self.folder), *([] if key is None else [f"--seal-key={key}"])]
        error = await _run("judge.evidence", "seal", *arguments, timeout_s=_SEAL_TIMEOUT_S)
        if error:
            self._announce(f"{self.folder} is not sealed: {error}")

    def end(self) -> None:
        """Close the harness's events: the run has ended, and can be sealed."""
        if self._lines is not None:
            self._lines.close("the run has ended")

    def close(self) -> None:
        """Close the harness's events without sealing, for a run that is not kept."""
        if self._lines is not None:
            self._lines.close(None)

    def _note(self, kind: str, **fields: Any) -> None:
        if self._lines is not None:
            self._lines.append(kind, **fields)


async def _run(
    module: str, *arguments: str, secret: str = "", timeout_s: float = _DUMP_TIMEOUT_S
) -> str:
    """Run a program of the application tree; return its error, or "" on success.

    `secret` is written to the program's standard input.
    """
    process = await asyncio.create_subprocess_exec(
        *module_command(module, *arguments),
        env=module_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C stops the cluster, not the recording of its evidence
    )
    try:
        async with asyncio.timeout(timeout_s):
            _, stderr = await process.communicate(secret.encode() + b"\n")
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"it took more than {timeout_s:g} s"
    if process.returncode == 0:
        return ""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"it exited with status {process.returncode}"


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
