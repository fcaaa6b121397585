"""Merges the logs of all members of an ensemble into the committed transactions.

Within one of ZooKeeper's epochs, proposals are numbered without gaps. A proposal is committed if it
is in a majority of logs, or if the final dump shows it. Any other proposal is *denied* if another
member's log lacks the proposal and continues with a later epoch. A proposal that is neither
committed nor denied is a gap. A denied proposal remains in the log of the former leader, so one log
alone proves nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.transaction_log import Transaction

COUNTER = 0xFFFFFFFF  # the part of a zxid that counts the proposals of an epoch


@dataclass(frozen=True, slots=True)
class Merged:
    """The committed transactions in order, the number of denied proposals, and gaps."""

    transactions: tuple[Transaction, ...]
    denied: int
    gaps: tuple[str, ...]


def merge(
    members: Sequence[Sequence[Transaction]],
    *,
    first_zxid: int,
    final_zxids: Mapping[str, tuple[int, int]] | None = None,
) -> Merged:
    """Merge the members' logs, each in the order of its zxids.

    Args:
        members: one log for each member of the ensemble; an empty one if the log is lost.
        first_zxid: transactions with this zxid or a lower one are omitted.
        final_zxids: (czxid, mzxid) of each path in the final dump.
    """
    majority = len(members) // 2 + 1
    logs = [[t.zxid for t in log if t.zxid > first_zxid] for log in members]
    content: dict[int, Transaction] = {}
    holders: Counter[int] = Counter()
    gaps: list[str] = []
    for log in members:
        for commit in log:
            if commit.zxid <= first_zxid:
                continue
            earlier = content.setdefault(commit.zxid, commit)
            if not _agree(earlier, commit):
                gaps.append(f"the members' logs disagree about zxid {commit.zxid}")
            holders[commit.zxid] += 1
    committed: list[Transaction] = []
    denied = 0
    for zxid in sorted(content):
        if holders[zxid] >= majority or _is_in(final_zxids, content[zxid]):
            committed.append(content[zxid])
        elif any(_denies(log, zxid) for log in logs):
            denied += 1
        else:
            gaps.append(f"the logs do not show whether zxid {zxid} was committed")
    gaps += _jumps(committed, first_zxid)
    return Merged(tuple(committed), denied, tuple(gaps))


def _agree(one: Transaction, other: Transaction) -> bool:
    """Return whether two members logged the same transaction.

    When a leader rejects a multi, it replaces the operations by errors while it writes them to its
    own log. In that log, the operation before the failed one can have the type of an error, but
    still its own data. Therefore only the headers of rejected multis are compared. This is enough,
    because these multis change nothing.
    """
    if one.failed and other.failed:
        return one.kind == other.kind and _header(one) == _header(other)
    return one == other


def _header(transaction: Transaction) -> tuple[int, int, int, int]:
    return transaction.zxid, transaction.session, transaction.cxid, transaction.time_ms


def _is_in(final: Mapping[str, tuple[int, int]] | None, transaction: Transaction) -> bool:
    if final is None:
        return False
    return any(transaction.zxid in final.get(o.path, ()) for o in transaction.operations)


def _denies(log: Sequence[int], zxid: int) -> bool:
    """Return whether a log lacks `zxid` and has the start of a later epoch in its place."""
    at = bisect_left(log, zxid)
    if at == len(log) or log[at] == zxid:
        return False
    return log[at] & COUNTER == 1 and log[at] >> 32 > zxid >> 32


def _jumps(transactions: Sequence[Transaction], first_zxid: int) -> Iterator[str]:
    """Yield a sentence for each gap. In each of ZooKeeper's epochs the counter begins at 1."""
    previous = first_zxid
    for transaction in transactions:
        zxid = transaction.zxid
        if zxid != previous + 1 and zxid & COUNTER != 1:
            if previous:
                yield f"ZooKeeper's log jumps from zxid {previous} to {zxid}"
            else:
                yield f"ZooKeeper's log begins at zxid {zxid}"
        previous = zxid
