"""Decodes the transaction logs of a run that is not sealed, while ZooKeeper writes them.

For pages and terminals that show a running cluster, not for verdicts: a transaction counts as
committed as soon as most members have logged it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import orjson

from event_log.evidence import FIRST_DUMP
from judge.evidence.commit_lines import commit_line
from judge.evidence.run_lookup import own_log_folders
from judge.evidence.sealing import load_dumps, load_run
from judge.transaction_log import TornLogError, Transaction, read_new

_POLL_S: Final = 0.2


class LogFollower:
    """The transactions that most members have logged since the run began, each once, by zxid."""

    def __init__(self, members: list[Path], first_zxid: int) -> None:
        self._members = members
        self._ends: dict[Path, int] = {}
        self._held: dict[int, Transaction] = {}  # in too few logs so far
        self._holders: dict[int, set[int]] = {}
        self._last_zxid = first_zxid

    def new(self) -> list[Transaction]:
        """Return the transactions that were committed since the last call."""
        for member, folder in enumerate(self._members):
            logs = [*folder.glob("version-2/log.*")] or [*folder.glob("log.*")]
            for path in logs:
                self._read(member, path)
        majority = len(self._members) // 2 + 1
        ready = sorted(z for z, holders in self._holders.items() if len(holders) >= majority)
        for zxid in ready:
            del self._holders[zxid]
        if ready:
            self._last_zxid = ready[-1]
        return [self._held.pop(zxid) for zxid in ready]

    def _read(self, member: int, path: Path) -> None:
        try:
            transactions, self._ends[path] = read_new(path, self._ends.get(path, 0))
        except (OSError, TornLogError):
            return  # Sealing reports a damaged log.
        for transaction in transactions:
            if transaction.zxid > self._last_zxid:
                self._held[transaction.zxid] = transaction
                self._holders.setdefault(transaction.zxid, set()).add(member)


def follow(
    folder: Path, is_wanted: Callable[[], bool], log_folders: Sequence[str] = ()
) -> Iterator[bytes]:
    """Yield commit lines until they are no longer wanted.

    An empty line follows the transactions that the logs have at the beginning. `log_folders` are
    the folders of the members' logs; without them, run.json names some in the cluster's folder.

    Raises:
        EvidenceError: the folder does not describe a run.
    """
    run = load_run(folder)
    members = [Path(name) for name in log_folders]
    if not members:
        members = [member for member in own_log_folders(folder, run) if member is not None]
    follower = LogFollower(members, load_dumps(folder).get(FIRST_DUMP, 0))
    has_caught_up = False
    while True:
        for transaction in follower.new():
            yield orjson.dumps(commit_line(transaction, run.chroot)) + b"\n"
        if not has_caught_up:
            has_caught_up = True
            yield b"\n"
        if not is_wanted():
            return
        time.sleep(_POLL_S)
