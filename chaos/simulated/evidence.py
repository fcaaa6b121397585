"""Seals the evidence of a simulated run, and digests its history."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from bridgehead.cluster.event_lines import host_boot_id
from event_log.evidence import COMMITS, FINAL_DUMP, Manifest, ZooKeeperEvidence
from judge.evidence.commit_lines import commit_line
from judge.evidence.sealing import load_dumps, load_run, write_manifest
from judge.transaction_log import Transaction

# These fields differ between Python processes, hosts and releases.
_NOT_HISTORY: Final = re.compile(rb'"(host_boot_id|version)":"[^"]*"|"pid":\d+')
_HOST: Final = b'"host_boot_id":"%b"' % host_boot_id().encode()


def seal_run(folder: Path, log: Sequence[Transaction], sealed_ms: int) -> Manifest:
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
