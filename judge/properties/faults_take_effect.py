"""Faults have an effect and are healed; clients are active before, during and after them.

A fault without effect proves nothing, so a violation results in NODATA, not FAIL. The harness
injects the fault, so evidence other than its `fault_injected` must show the effect.

The effect of a kill, stop, expiry, disconnection or deletion of /controller must come after the
fault. Except for a kill, it must also come before the last operation of the clients completes,
because at the end of a run every node stops and every session ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from judge import sql
from judge.history import NEVER, Event, History, place_of, row_of
from judge.property import PropertySpec, Runs, Violation

SPEC: Final = PropertySpec(
    id="T1",
    name="faults_take_effect",
    statement="each fault had an effect; each fault was healed, except kills, stops and "
    "expired sessions, which need no healing; clients were active before, during and after the "
    "faults",
    witnesses=("events", "clients"),
    row="faults of a scenario",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,
    violated="NODATA",  # a fault without effect proves nothing
    applies_to=Runs.OF_SCENARIOS,
)

# Faults that need no healing.
NEVER_HEALED: Final = ("kill", "stop", "expire")

CLOCK_MOVED_MS_MIN: Final = 600_000
SLOW_NS_MIN: Final = 200_000_000  # An Envelope or a commit is slow if its reply takes longer.
LATE_NS_MAX: Final = 200_000_000  # from the healing to the end of an Envelope without a reply


def _was_killed(history: History, fault: Event, _healed: Event | None) -> bool:
    return any(
        e["ended_node"] == fault["target"] and e["status"] < 0 and e["mono_ns"] >= fault["mono_ns"]
        for e in history.of_kind["node_ended"]
    )


def _work_ended_ns(history: History) -> int:
    """Return the time of the clients' last completion. After it, all nodes are stopped."""
    return max((o.completed["mono_ns"] for o in history.operations if o.completed), default=0)


def _event_while_clients_worked(kind: str) -> Callable[[History, Event, Event | None], bool]:
    """Return a check that the target has an event of this kind before the clients' work ended."""

    def check_kind(history: History, fault: Event, _healed: Event | None) -> bool:
        until = _work_ended_ns(history)
        return any(
            e["node"] == fault["target"] and fault["mono_ns"] <= e["mono_ns"] < until
            for e in history.of_kind[kind]
        )

    return check_kind


def _session_ended(history: History, fault: Event, _healed: Event | None) -> bool:
    """Return whether ZooKeeper closed a session of the target before the clients' work ended."""
    worked_ns = _work_ended_ns(history) - fault["mono_ns"]
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


def _was_silent(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether the process wrote no events while it was frozen.

    The first tenth of the freeze does not count: the process may not have received the signal yet.
    """
    if healed is None:
        return False
    since = fault["mono_ns"] + (healed["mono_ns"] - fault["mono_ns"]) // 10
    return not any(
        e["node"] == fault["target"] and since < e["mono_ns"] < healed["mono_ns"]
        for e in history.events
    )


def _nothing_was_committed(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether ZooKeeper committed nothing during the fault, by the times in its log.

    The first tenth of the fault does not count, as in `_was_silent`.
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


def _event_of_target(kind: str) -> Callable[[History, Event, Event | None], bool]:
    """Return a check that the target has an event of this kind during the fault."""

    def check_kind(history: History, fault: Event, healed: Event | None) -> bool:
        return any(
            e["node"] == fault["target"] and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
            for e in history.of_kind[kind]
            if healed is not None
        )

    return check_kind


def _envelopes_broke_off(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope of another broker ended without a reply during the fault."""
    return any(
        e["node"] != fault["target"]
        and e["error"] is None
        and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
        for e in history.of_kind["forward_answered"]
        if healed is not None
    )


def _clock_moved(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether the target's wall clock differed much from the harness's during the fault."""
    return any(
        e["node"] == fault["target"]
        and abs(_wall_clock_ms(e) - _wall_clock_ms(fault)) > CLOCK_MOVED_MS_MIN
        and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
        for e in history.events
        if healed is not None
    )


def _wall_clock_ms(event: Event) -> int:
    """Return the wall clock's reading when the monotonic clock was zero."""
    return int(event["wall_ms"]) - int(event["mono_ns"]) // 1_000_000


def _attempt(event: Event) -> tuple[Any, ...]:
    """Return what identifies one Envelope: a broker's attempt to forward a request."""
    return event["node"], event["boot"], event["request_id"], event["attempt"]


def _envelopes_were_slow(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope of another broker waited long for its reply during the fault."""
    if healed is None:
        return False
    replied = {_attempt(e): e["mono_ns"] for e in history.of_kind["forward_answered"]}
    return any(
        e["node"] != fault["target"]
        and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"] - SLOW_NS_MIN
        and replied.get(_attempt(e), NEVER) > e["mono_ns"] + SLOW_NS_MIN
        for e in history.of_kind["forward_sent"]
    )


def _envelopes_broke_off_late(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope that was in flight ended without a reply after the healing.

    A broker may notice some milliseconds after the healing that its connection was reset. The
    harness resets connections while an Envelope is in flight, so it was sent before the fault.
    """
    if healed is None:
        return False
    broke_off = {
        _attempt(e)
        for e in history.of_kind["forward_answered"]
        if e["error"] is None
        and healed["mono_ns"] <= e["mono_ns"] < healed["mono_ns"] + LATE_NS_MAX
    }
    return any(
        e["node"] != fault["target"]
        and e["mono_ns"] < healed["mono_ns"]
        and _attempt(e) in broke_off
        for e in history.of_kind["forward_sent"]
    )


def _envelopes_were_held(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope ended without a reply because of a cut, or was delayed."""
    held = _envelopes_broke_off, _envelopes_broke_off_late, _envelopes_were_slow
    return any(has_effect(history, fault, healed) for has_effect in held)


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
        for e in history.of_kind["commit_answered"]
        if e["mono_ns"] < healed["mono_ns"]
    )


EFFECTS: Final[Mapping[str, Callable[[History, Event, Event | None], bool]]] = {
    "kill": _was_killed,
    "stop": _event_while_clients_worked("stopped"),
    "expire": _session_ended,
    "freeze": _was_silent,
    "disconnect": _session_ended,
    "freeze_zookeeper": _nothing_was_committed,
    "fill_disk_of_zookeeper": _nothing_was_committed,
    "slow_fsync": _commits_were_slow,
    "kill_zookeeper_leader": _zookeeper_elected,
    "freeze_zookeeper_leader": _zookeeper_elected,
    "disconnect_zookeeper_leader": _zookeeper_elected,
    # A deletion is not healed: `fault_healed` only shows how long the harness waited.
    "delete_controller_znode": _event_while_clients_worked("resigned"),
    "fill_disk": _event_of_target("resigned"),
    "lose_commit": _event_of_target("commit_unknown"),
    "cut_from_peers": _envelopes_were_held,
    "corrupt_envelope": _envelopes_broke_off,
    "slow_peers": _envelopes_were_slow,
    "move_clock": _clock_moved,
}


def check(history: History) -> Iterator[Violation | None]:
    """Judge every fault of a scenario, and the clients' operations around the faults."""
    faults, healings = (history.of_kind[kind] for kind in ("fault_injected", "fault_healed"))
    for fault in faults:
        wrong = _wrong(history, fault, next((h for h in healings if _heals(h, fault)), None))
        yield SPEC.violation(place_of(fault), [row_of(fault)], wrong) if wrong else None
    if faults:
        for sentence in _missing_work(history, faults, healings):
            yield SPEC.extra_violation(place_of(faults[0]), [row_of(faults[0])], sentence)


def _wrong(history: History, fault: Event, healed: Event | None) -> str | None:
    name = f"{fault['action']} of {fault['target']}"
    has_effect = EFFECTS.get(fault["action"])
    if has_effect is None:
        return f"{name}: no witness can show its effect"
    if healed is None and fault["action"] not in NEVER_HEALED:
        return f"{name} was not healed"
    if not has_effect(history, fault, healed):
        return f"{name} had no effect that another witness shows"
    return None


def _heals(healed: Event, fault: Event) -> bool:
    same = all(healed[name] == fault[name] for name in ("action", "target"))
    return same and bool(healed["mono_ns"] >= fault["mono_ns"])


def _end_of(fault: Event, healings: Sequence[Event], elected: Sequence[Event]) -> int:
    """Return the end of a fault: its healing, else the next election, else its injection."""
    ends = [h["mono_ns"] for h in healings if _heals(h, fault)]
    ends = ends or [e["mono_ns"] for e in elected if e["mono_ns"] > fault["mono_ns"]]
    return min(ends, default=int(fault["mono_ns"]))


def _missing_work(
    history: History, faults: Sequence[Event], healings: Sequence[Event]
) -> Iterator[str]:
    """Yield a sentence for each requirement that the clients' operations do not meet.

    Operations must succeed before the first fault and after the last one, and at least one must be
    in progress between these times.
    """
    begins = min(e["mono_ns"] for e in faults)
    ends = max(_end_of(fault, healings, history.of_kind["became_active"]) for fault in faults)
    required = max(history.run.operations_min, 1)
    done = [o for o in history.operations if o.outcome == "ok" and o.completed is not None]
    before = sum(1 for o in done if o.completed and o.completed["mono_ns"] < begins)
    after = sum(1 for o in done if o.invoked["mono_ns"] > ends)
    during = any(
        o.invoked["mono_ns"] <= ends and (o.completed is None or o.completed["mono_ns"] >= begins)
        for o in history.operations
    )
    for count, when in ((before, "before the first fault"), (after, "after the last fault")):
        if count < required:
            yield f"{count} of {required} required operations succeeded {when}"
    if not during:
        yield "no operation was in progress during the faults"


LEADER_FAULTS: Final = (
    "kill_zookeeper_leader",
    "freeze_zookeeper_leader",
    "disconnect_zookeeper_leader",
)
# Faults with an effect that nodes record in events, between injection and healing or just after.
EVENT_FAULTS: Final = (
    *("fill_disk", "lose_commit", "cut_from_peers", "corrupt_envelope", "slow_peers"),
    *("move_clock", "slow_fsync"),
)
# Faults during which ZooKeeper commits nothing.
STILL_FAULTS: Final = ("freeze_zookeeper", "fill_disk_of_zookeeper")

_FAULTS: Final = f"""
WITH scenario AS (SELECT run, greatest(operations_min, 1) AS required FROM runs
  WHERE scenario IS NOT NULL),
faults AS (
  SELECT e.run, e.node, e.boot, e.seq, e.mono_ns, e.wall_ms, e.action, e.target,
    e.file, e.line_number
  FROM events e JOIN scenario s ON e.run = s.run WHERE e.kind = 'fault_injected'),
healings AS (SELECT run, action, target, mono_ns, wall_ms FROM events WHERE kind = 'fault_healed'),
healed AS (
  SELECT f.run, f.node, f.boot, f.seq, min(h.mono_ns) AS healed_ns,
    min(h.wall_ms) AS healed_ms
  FROM faults f JOIN healings h ON f.run = h.run AND f.action = h.action
    AND f.target = h.target AND h.mono_ns >= f.mono_ns
  GROUP BY f.run, f.node, f.boot, f.seq),
worked AS (SELECT run, max(completed_ns) AS until FROM operations GROUP BY run),
killed AS (
  SELECT DISTINCT f.run, f.node, f.boot, f.seq
  FROM faults f JOIN events e ON f.run = e.run AND f.target = e.ended_node
    AND e.mono_ns >= f.mono_ns
  WHERE f.action = 'kill' AND e.kind = 'node_ended' AND e.status < 0),
stopped AS (
  SELECT DISTINCT f.run, f.node, f.boot, f.seq
  FROM faults f JOIN worked w ON f.run = w.run
  JOIN events e ON f.run = e.run AND f.target = e.node
    AND e.mono_ns >= f.mono_ns AND e.mono_ns < w.until
  WHERE (f.action = 'stop' AND e.kind = 'stopped')
    OR (f.action = 'delete_controller_znode' AND e.kind = 'resigned')),
expired AS (
  SELECT DISTINCT f.run, f.node, f.boot, f.seq
  FROM faults f JOIN worked w ON f.run = w.run
  JOIN sessions s ON f.run = s.run AND f.target = s.node
  JOIN commits c ON s.run = c.run AND s.session = c.session AND c.time_ms >= f.wall_ms
    AND c.time_ms < f.wall_ms + floor((w.until - f.mono_ns) / 1000000D)
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE f.action IN ('expire', 'disconnect') AND c.kind = 'close_session' AND NOT c.failed),
frozen AS (
  SELECT f.run, f.node, f.boot, f.seq, f.target,
    f.mono_ns + (m.healed_ns - f.mono_ns) DIV 10 AS since, m.healed_ns AS until
  FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
    AND f.seq = m.seq WHERE f.action = 'freeze'),
wrote AS (
  SELECT /*+ BROADCAST(z) */ DISTINCT z.run, z.node, z.boot, z.seq FROM events e JOIN frozen z
    ON e.run = z.run AND e.node = z.target AND e.mono_ns > z.since AND e.mono_ns < z.until),
still AS (
  SELECT f.run, f.node, f.boot, f.seq,
    f.wall_ms + (m.healed_ms - f.wall_ms) DIV 10 AS since, m.healed_ms AS until
  FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
    AND f.seq = m.seq WHERE f.action IN {STILL_FAULTS}),
committed AS (
  SELECT /*+ BROADCAST(z) */ DISTINCT z.run, z.node, z.boot, z.seq FROM commits c JOIN still z
    ON c.run = z.run AND c.time_ms > z.since AND c.time_ms < z.until
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
led AS (
  SELECT f.run, f.node, f.boot, f.seq, f.wall_ms AS since, m.healed_ms AS until
  FROM faults f LEFT JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
    AND f.seq = m.seq WHERE f.action IN {LEADER_FAULTS}),
epochs AS (
  SELECT /*+ BROADCAST(l) */ l.run, l.node, l.boot, l.seq,
    max(CASE WHEN c.time_ms <= l.since THEN shiftright(c.zxid, 32) END) AS before,
    max(CASE WHEN c.time_ms > l.since AND (l.until IS NULL OR c.time_ms < l.until)
      THEN shiftright(c.zxid, 32) END) AS during
  FROM led l JOIN commits c ON l.run = c.run JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed GROUP BY l.run, l.node, l.boot, l.seq),
shown AS (
  SELECT /*+ BROADCAST(w) */ DISTINCT w.run, w.node, w.boot, w.seq
  FROM (SELECT f.run, f.node, f.boot, f.seq, f.action, f.target, f.mono_ns, f.wall_ms,
    m.healed_ns FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
      AND f.seq = m.seq WHERE f.action IN {EVENT_FAULTS}) w
  JOIN events e ON e.run = w.run AND e.mono_ns > w.mono_ns AND e.mono_ns < w.healed_ns
    AND CASE w.action
      WHEN 'fill_disk' THEN e.kind = 'resigned' AND e.node = w.target
      WHEN 'lose_commit' THEN e.kind = 'commit_unknown' AND e.node = w.target
      WHEN 'move_clock' THEN e.node = w.target
        AND abs((e.wall_ms - e.mono_ns DIV 1000000) - (w.wall_ms - w.mono_ns DIV 1000000))
          > {CLOCK_MOVED_MS_MIN}
      WHEN 'cut_from_peers' THEN e.kind = 'forward_answered' AND e.error IS NULL
        AND e.node != w.target
      WHEN 'corrupt_envelope' THEN e.kind = 'forward_answered' AND e.error IS NULL
        AND e.node != w.target
      ELSE false END
  UNION
  SELECT /*+ BROADCAST(w) */ w.run, w.node, w.boot, w.seq
  FROM (SELECT f.run, f.node, f.boot, f.seq, f.target, f.mono_ns, m.healed_ns
    FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
      AND f.seq = m.seq WHERE f.action IN ('slow_peers', 'cut_from_peers')) w
  JOIN events s ON s.run = w.run AND s.kind = 'forward_sent' AND s.node != w.target
    AND s.mono_ns > w.mono_ns AND s.mono_ns < w.healed_ns - {SLOW_NS_MIN}
  LEFT JOIN events a ON a.run = s.run AND a.kind = 'forward_answered' AND a.node = s.node
    AND a.boot = s.boot AND a.request_id = s.request_id AND a.attempt = s.attempt
    AND a.mono_ns <= s.mono_ns + {SLOW_NS_MIN}
  WHERE a.run IS NULL
  UNION
  SELECT /*+ BROADCAST(w) */ w.run, w.node, w.boot, w.seq
  FROM (SELECT f.run, f.node, f.boot, f.seq, f.target, f.mono_ns, m.healed_ns
    FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
      AND f.seq = m.seq WHERE f.action = 'cut_from_peers') w
  JOIN events s ON s.run = w.run AND s.kind = 'forward_sent' AND s.node != w.target
    AND s.mono_ns < w.healed_ns
  JOIN events a ON a.run = s.run AND a.kind = 'forward_answered' AND a.node = s.node
    AND a.boot = s.boot AND a.request_id = s.request_id AND a.attempt = s.attempt
    AND a.error IS NULL
    AND a.mono_ns >= w.healed_ns AND a.mono_ns < w.healed_ns + {LATE_NS_MAX}
  UNION
  SELECT /*+ BROADCAST(w) */ w.run, w.node, w.boot, w.seq
  FROM (SELECT f.run, f.node, f.boot, f.seq, f.mono_ns, m.healed_ns
    FROM faults f JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot
      AND f.seq = m.seq WHERE f.action = 'slow_fsync') w
  JOIN events s ON s.run = w.run AND s.kind = 'commit_sent' AND s.mono_ns > w.mono_ns
  JOIN events a ON a.run = s.run AND a.kind = 'commit_answered' AND a.node = s.node
    AND a.boot = s.boot AND a.number = s.number
    AND a.mono_ns < w.healed_ns AND a.mono_ns - s.mono_ns > {SLOW_NS_MIN}),
judged AS (
  SELECT f.*, concat(f.action, ' of ', f.target) AS name, m.healed_ns,
    CASE f.action WHEN 'kill' THEN k.run IS NOT NULL WHEN 'stop' THEN s.run IS NOT NULL
      WHEN 'delete_controller_znode' THEN s.run IS NOT NULL
      WHEN 'expire' THEN x.run IS NOT NULL
      WHEN 'disconnect' THEN x.run IS NOT NULL
      WHEN 'freeze' THEN m.run IS NOT NULL AND p.run IS NULL
      ELSE CASE WHEN f.action IN {STILL_FAULTS} THEN m.run IS NOT NULL AND q.run IS NULL
        WHEN f.action IN {EVENT_FAULTS} THEN v.run IS NOT NULL
        WHEN f.action IN {LEADER_FAULTS} THEN coalesce(l.during > l.before, false) END
    END AS has_effect
  FROM faults f
  LEFT JOIN healed m ON f.run = m.run AND f.node = m.node AND f.boot = m.boot AND f.seq = m.seq
  LEFT JOIN killed k ON f.run = k.run AND f.node = k.node AND f.boot = k.boot AND f.seq = k.seq
  LEFT JOIN stopped s ON f.run = s.run AND f.node = s.node AND f.boot = s.boot AND f.seq = s.seq
  LEFT JOIN expired x ON f.run = x.run AND f.node = x.node AND f.boot = x.boot AND f.seq = x.seq
  LEFT JOIN wrote p ON f.run = p.run AND f.node = p.node AND f.boot = p.boot AND f.seq = p.seq
  LEFT JOIN committed q ON f.run = q.run AND f.node = q.node AND f.boot = q.boot AND f.seq = q.seq
  LEFT JOIN shown v ON f.run = v.run AND f.node = v.node AND f.boot = v.boot AND f.seq = v.seq
  LEFT JOIN epochs l ON f.run = l.run AND f.node = l.node AND f.boot = l.boot AND f.seq = l.seq),
effects AS (
  SELECT run, {sql.place_of("judged")} AS place, {sql.row_of("judged")} AS row, CASE
    WHEN has_effect IS NULL THEN concat(name, ': no witness can show its effect')
    WHEN healed_ns IS NULL AND action NOT IN {NEVER_HEALED} THEN concat(name, ' was not healed')
    WHEN NOT has_effect THEN concat(name, ' had no effect that another witness shows') END AS wrong
  FROM judged)"""

_WORK: Final = f"""
elected AS (
  SELECT f.run, f.node, f.boot, f.seq, min(e.mono_ns) AS elected_ns
  FROM faults f JOIN events e ON f.run = e.run AND e.mono_ns > f.mono_ns
  WHERE e.kind = 'became_active' GROUP BY f.run, f.node, f.boot, f.seq),
bounds AS (
  SELECT f.run, min(f.mono_ns) AS begins,
    max(coalesce(f.healed_ns, w.elected_ns, f.mono_ns)) AS ends,
    min_by({sql.place_of("f")}, struct(f.file, f.line_number)) AS place
  FROM judged f LEFT JOIN elected w ON f.run = w.run AND f.node = w.node AND f.boot = w.boot
    AND f.seq = w.seq GROUP BY f.run),
work AS (
  SELECT b.run, max(b.place) AS place, max(s.required) AS required,
    count_if(o.outcome = 'ok' AND o.completed_ns < b.begins) AS before,
    count_if(o.outcome = 'ok' AND o.completed_ns IS NOT NULL AND o.invoked_ns > b.ends) AS after,
    count_if(o.invoked_ns <= b.ends AND coalesce(o.completed_ns >= b.begins, true)) AS during
  FROM bounds b JOIN scenario s ON b.run = s.run LEFT JOIN operations o ON b.run = o.run
  GROUP BY b.run),
lacking AS (
  SELECT run, place, concat(before, ' of ', required,
    ' required operations succeeded before the first fault') AS sentence
  FROM work WHERE before < required
  UNION ALL
  SELECT run, place, concat(after, ' of ', required,
    ' required operations succeeded after the last fault') FROM work WHERE after < required
  UNION ALL
  SELECT run, place, 'no operation was in progress during the faults' FROM work
  WHERE during = 0)"""

INPUTS: Final = (
    *("silver/events", "silver/sessions", "silver/commits", "gold/operations"),
    "runs",
)
JUDGED: Final = "judged"
SQL: Final = f"""
{_FAULTS}, {_WORK}
SELECT run, CASE WHEN wrong IS NOT NULL THEN place END AS key, array(row) AS rows,
  wrong AS sentence, 1 AS judged FROM effects
UNION ALL
SELECT run, place, array(concat('event/', place)), sentence, 0 FROM lacking
"""
