"""The logs of all members of an ensemble, merged into what was committed (chaos reference 2.2).

Proposals are numbered without holes inside one of ZooKeeper's epochs. What a majority of logs
holds is committed. What a minority holds is *denied* by a member that steps over it into a later
epoch; the stale tail of a deposed leader stays in its file, so standing in a log proves nothing.
What nobody denies is looked up in the final dump; if that does not tell either, it is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.witness import Transaction

_COUNTER = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Merged:
    """What was committed, in order; how many proposals were not; what cannot be known."""

    transactions: tuple[Transaction, ...]
    denied: int
    holes: tuple[str, ...]


def merge(
    members: Sequence[Sequence[Transaction]],
    *,
    first_zxid: int,
    final_zxids: Mapping[str, tuple[int, int]] | None = None,
) -> Merged:
    """Merge the members' logs, each in the order of its zxids.

    Args:
        members: one log for each member of the ensemble; an empty one for a log that is lost.
        first_zxid: what happened up to there is not asked for.
        final_zxids: path to (czxid, mzxid) when the run was sealed.
    """
    majority = len(members) // 2 + 1
    logs = [[t.zxid for t in log if t.zxid > first_zxid] for log in members]
    content: dict[int, Transaction] = {}
    holders: Counter[int] = Counter()
    holes: list[str] = []
    for log in members:
        for each in log:
            if each.zxid <= first_zxid:
                continue
            known = content.setdefault(each.zxid, each)
            if known != each:
                holes.append(f"the members disagree about what zxid {each.zxid} is")
            holders[each.zxid] += 1
    committed: list[Transaction] = []
    denied = 0
    for zxid in sorted(content):
        if holders[zxid] >= majority or _is_in(final_zxids, content[zxid]):
            committed.append(content[zxid])
        elif any(_denies(log, zxid) for log in logs):
            denied += 1
        else:
            holes.append(f"whether zxid {zxid} was committed cannot be told from the logs")
    holes += _jumps(committed, first_zxid)
    return Merged(tuple(committed), denied, tuple(holes))


def _is_in(final: Mapping[str, tuple[int, int]] | None, transaction: Transaction) -> bool:
    if final is None:
        return False
    return any(transaction.zxid in final.get(o.path, ()) for o in transaction.operations)


def _denies(log: Sequence[int], zxid: int) -> bool:
    """The member went from something earlier straight into an epoch that `zxid` is not of."""
    at = bisect_left(log, zxid)
    if at == len(log) or log[at] == zxid:
        return False
    return log[at] & _COUNTER == 1 and log[at] >> 32 > zxid >> 32


def _jumps(transactions: Sequence[Transaction], first_zxid: int) -> Iterator[str]:
    """Name transactions that are missing: an epoch of ZooKeeper's counts from 1 without a gap."""
    previous = first_zxid
    for transaction in transactions:
        zxid = transaction.zxid
        if zxid != previous + 1 and zxid & _COUNTER != 1:
            if previous:
                yield f"ZooKeeper's log jumps from zxid {previous} to {zxid}"
            else:
                yield f"ZooKeeper's log begins at zxid {zxid}"
        previous = zxid
