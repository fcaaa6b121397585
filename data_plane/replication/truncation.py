"""Finds where a follower's log diverges from its leader's. KIP-101, KIP-279, KIP-595. Pure.

A follower names the leader epoch of its last record. If the leader's log differs, the leader
answers with its own largest epoch up to the named epoch, and with the end offset of that epoch. The
follower's records from that offset on come from a leader that failed before they were committed.
"""

from __future__ import annotations

from data_plane.log.epochs import UNDEFINED_OFFSET, LeaderEpochs


def truncation(
    epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """Return where a log must end after its leader's answer (`leader_epoch`, `leader_end_offset`).

    `epochs` and `end_offset` are those of the follower. If its log lacks the epoch `leader_epoch`,
    the log is cut after its largest epoch below `leader_epoch`. The next fetch compares again.
    """
    own_epoch, own_end = epochs.end_offset(leader_epoch, end_offset)
    if own_end == UNDEFINED_OFFSET:
        return min(leader_end_offset, end_offset)
    if own_epoch != leader_epoch:
        return min(own_end, end_offset)
    return min(own_end, leader_end_offset, end_offset)
