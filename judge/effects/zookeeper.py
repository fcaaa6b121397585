"""Effects on ZooKeeper: on its sessions, its transactions and its leader."""

from __future__ import annotations

from typing import Final

from judge.effects.effect import Effect
from judge.history import NEVER, Event, History

SLOW_NS_MIN: Final = 200_000_000  # A commit is slow if its reply takes longer.


def _session_ended(history: History, fault: Event, _healed: Event | None) -> bool:
    """Return whether ZooKeeper closed a session of the target before the work of the run ended."""
    worked_ns = history.work_ended_ns - fault["mono_ns"]
    until_ms = fault["wall_ms"] + worked_ns // 1_000_000
    closed = {
        c.session
        for c in history.applied
        if c.kind == "close_session" and fault["wall_ms"] <= c.time_ms < until_ms
    }
    return any(
        owner.node == fault["target"] and session in closed
        for session, owner in history.sessions.items()
    )


def _nothing_was_committed(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether ZooKeeper committed nothing during the fault, by the times in its log.

    The first tenth of the fault does not count, as for the effect `process_was_silent`.
    """
    if healed is None:
        return False
    since = fault["wall_ms"] + (healed["wall_ms"] - fault["wall_ms"]) // 10
    return not any(since < c.time_ms < healed["wall_ms"] for c in history.applied)


def _zookeeper_elected(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether ZooKeeper elected a leader again: its logs then have a new epoch."""
    until = healed["wall_ms"] if healed is not None else NEVER
    before = [c.zxid >> 32 for c in history.applied if c.time_ms <= fault["wall_ms"]]
    during = [c.zxid >> 32 for c in history.applied if fault["wall_ms"] < c.time_ms < until]
    return bool(before) and max(during, default=0) > max(before)


def _commit_was_unknown(history: History, fault: Event, healed: Event | None) -> bool:
    return any(
        e["node"] == fault["target"] and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
        for e in history.of_kind["commit_unknown"]
        if healed is not None
    )


def _commits_were_slow(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether ZooKeeper took long for a commit during the fault."""
    if healed is None:
        return False
    sent = {
        (e["node"], e["boot"], e["number"]): e["mono_ns"]
        for e in history.of_kind["commit_sent"]
        if e["mono_ns"] > fault["mono_ns"]
    }
    return any(
        e["mono_ns"] - sent.get((e["node"], e["boot"], e["number"]), NEVER) > SLOW_NS_MIN
        for e in history.of_kind["commit_acknowledged"]
        if e["mono_ns"] < healed["mono_ns"]
    )


EFFECTS: Final[tuple[Effect, ...]] = (
    Effect(
        name="session_ended",
        actions=("expire", "cut_from_zookeeper"),
        check=_session_ended,
        sql="""
  SELECT f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN worked w ON f.run = w.run
  JOIN sessions s ON f.run = s.run AND f.target = s.node
  JOIN commits c ON s.run = c.run AND s.session = c.session AND c.time_ms >= f.wall_ms
    AND c.time_ms < f.wall_ms + floor((w.until - f.mono_ns) / 1000000D)
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE c.kind = 'close_session' AND NOT c.failed""",
    ),
    Effect(
        name="nothing_was_committed",
        actions=("pause_quorum", "fill_disk_of_zookeeper"),
        check=_nothing_was_committed,
        sql="""
  SELECT f.run, f.node, f.boot, f.seq FROM $faults f LEFT JOIN (
    SELECT /*+ BROADCAST(z) */ DISTINCT z.run, z.node, z.boot, z.seq
    FROM commits c JOIN $faults z ON c.run = z.run
      AND c.time_ms > z.wall_ms + (z.healed_ms - z.wall_ms) DIV 10 AND c.time_ms < z.healed_ms
    JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed) q
    ON f.run = q.run AND f.node = q.node AND f.boot = q.boot AND f.seq = q.seq
  WHERE f.healed_ns IS NOT NULL AND q.run IS NULL""",
    ),
    Effect(
        name="zookeeper_elected",
        actions=(
            "kill_zookeeper_leader",
            "pause_zookeeper_leader",
            "empty_zookeeper_leader",
            "cut_zookeeper_leader",
        ),
        check=_zookeeper_elected,
        sql="""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN commits c ON f.run = c.run
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed GROUP BY f.run, f.node, f.boot, f.seq
  HAVING max(CASE WHEN c.time_ms > f.wall_ms AND (f.healed_ms IS NULL OR c.time_ms < f.healed_ms)
      THEN shiftright(c.zxid, 32) END)
    > max(CASE WHEN c.time_ms <= f.wall_ms THEN shiftright(c.zxid, 32) END)""",
    ),
    Effect(
        name="commit_was_unknown",
        actions=("lose_commit",),
        check=_commit_was_unknown,
        reads=("commit_unknown",),
        sql="""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN commit_unknown e ON e.run = f.run AND e.node = f.target
    AND e.mono_ns > f.mono_ns AND e.mono_ns < f.healed_ns""",
    ),
    Effect(
        name="commits_were_slow",
        actions=("slow_fsync",),
        check=_commits_were_slow,
        reads=("commit_sent", "commit_acknowledged"),
        sql=f"""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f
  JOIN commit_sent s ON s.run = f.run AND s.mono_ns > f.mono_ns
  JOIN commit_acknowledged a ON a.run = s.run AND a.node = s.node
    AND a.boot = s.boot AND a.number = s.number
    AND a.mono_ns < f.healed_ns AND a.mono_ns - s.mono_ns > {SLOW_NS_MIN}""",
    ),
)
