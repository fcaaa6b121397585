"""T1: faults have an effect and are healed; clients are active before, during and after them.

A fault without effect proves nothing, so a violation results in NODATA, not FAIL. The harness
injects the fault, so evidence other than its `fault_injected` must show the effect.

The effect of a kill, stop, expiry, disconnection or deletion of /controller must come after the
fault. Except for a kill, it must also come before the last operation of the clients completes,
because at the end of a run every node stops and every session ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from event_log.properties import Violation
from judge.history import NEVER, Event, History, place_of, row_of
from judge.properties.violations import extra_violation, violation

# Faults that need no healing.
NEVER_HEALED: Final = frozenset({"kill", "stop", "expire"})

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
        yield violation("T1", place_of(fault), [row_of(fault)], wrong) if wrong else None
    if faults:
        for sentence in _missing_work(history, faults, healings):
            yield extra_violation("T1", place_of(faults[0]), [row_of(faults[0])], sentence)


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
