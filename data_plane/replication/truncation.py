"""Where a follower's log leaves that of its leader. KIP-101, KIP-279, KIP-595. Pure.

A follower names the leader epoch of its last record. If the leader's log differs, it answers with
the largest epoch up to that one that it has, and with its end. The records beyond are those of a
leader that failed before they were committed.
"""

from __future__ import annotations

from data_plane.log.epochs import UNDEFINED_OFFSET, LeaderEpochs


def truncation(
    epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """Return where a log must end after its leader's answer (`leader_epoch`, `leader_end_offset`).

    `epochs` and `end_offset` are those of the follower. If it lacks the leader's epoch, what
    follows the epoch before may be wrong: it is removed, and the next fetch compares again.
    """
    own_epoch, own_end = epochs.end_offset(leader_epoch, end_offset)
    if own_end == UNDEFINED_OFFSET:
        return min(leader_end_offset, end_offset)
    if own_epoch != leader_epoch:
        return min(own_end, end_offset)
    return min(own_end, leader_end_offset, end_offset)
