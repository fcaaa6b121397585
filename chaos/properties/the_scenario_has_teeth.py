"""T1: the fault bit, was healed, and work was done before, during and after it.

A scenario that did not bite proves nothing, so what is missing makes NODATA, not FAIL. That a fault
bit is told by another witness than whoever injected it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from chaos.history import NEVER, Event, History, place_of, row_of
from chaos.properties.breach import violation
from chaos.verdicts import Finding, Property
from event_log.promises import Violation

# What is done once and stays done; everything else must be healed.
NEVER_HEALED: Final = frozenset({"kill", "stop", "expire"})


def _was_killed(history: History, fault: Event, _healed: Event | None) -> bool:
    return any(
        e["ended_node"] == fault["target"] and e["status"] < 0
        for e in history.of_kind["node_ended"]
    )


def _was_stopped(history: History, fault: Event, _healed: Event | None) -> bool:
    return any(e["node"] == fault["target"] for e in history.of_kind["stopped"])


def _session_went(history: History, fault: Event, _healed: Event | None) -> bool:
    closed = {c.session for c in history.applied if c.kind == "close_session"}
    return any(
        owner.node == fault["target"] and session in closed
        for session, owner in history.sessions.items()
    )


def _was_silent(history: History, fault: Event, healed: Event | None) -> bool:
    """A frozen process writes nothing; the first moments are those of the signal's way."""
    if healed is None:
        return False
    since = fault["mono_ns"] + (healed["mono_ns"] - fault["mono_ns"]) // 10
    return not any(
        e["node"] == fault["target"] and since < e["mono_ns"] < healed["mono_ns"]
        for e in history.events
    )


def _nothing_was_committed(history: History, fault: Event, healed: Event | None) -> bool:
    """A ZooKeeper that stands still commits nothing, by the times in its own log."""
    if healed is None:
        return False
    since = fault["wall_ms"] + (healed["wall_ms"] - fault["wall_ms"]) // 10
    return not any(since < c.time_ms < healed["wall_ms"] for c in history.applied)


def _zookeeper_elected(history: History, fault: Event, healed: Event | None) -> bool:
    """The members went into a new epoch, by their own logs: they had lost the one that led."""
    until = healed["wall_ms"] if healed is not None else NEVER
    before = [c.zxid >> 32 for c in history.applied if c.time_ms <= fault["wall_ms"]]
    during = [c.zxid >> 32 for c in history.applied if fault["wall_ms"] < c.time_ms < until]
    return bool(before) and max(during, default=0) > max(before)


BITES: Final[Mapping[str, Callable[[History, Event, Event | None], bool]]] = {
    "kill": _was_killed,
    "stop": _was_stopped,
    "expire": _session_went,
    "freeze": _was_silent,
    "disconnect": _session_went,
    "freeze_zookeeper": _nothing_was_committed,
    "kill_zookeeper_leader": _zookeeper_elected,
    "freeze_zookeeper_leader": _zookeeper_elected,
    "disconnect_zookeeper_leader": _zookeeper_elected,
}


def check(history: History) -> Finding:
    """Judge every fault of a scenario, and the work around them."""
    if history.run.scenario is None:
        return Finding(0, does_not_apply="no scenario: nothing was broken on purpose")
    faults = history.of_kind["fault_injected"]
    healed = {(e["action"], e["target"], e["mono_ns"]): e for e in history.of_kind["fault_healed"]}
    violations = [*_missing_bites(history, faults, list(healed.values()))]
    if faults:
        violations += _missing_work(history, faults, list(healed.values()))
    return Finding(len(faults), tuple(violations))


def _missing_bites(
    history: History, faults: Sequence[Event], healed: Sequence[Event]
) -> Iterator[Violation]:
    for fault in faults:
        mended = next((h for h in healed if _heals(h, fault)), None)
        bites = BITES.get(fault["action"])
        name = f"{fault['action']} of {fault['target']}"
        if bites is None:
            wrong = f"{name}: no witness is known that could tell whether it bit"
        elif mended is None and fault["action"] not in NEVER_HEALED:
            wrong = f"{name} was never healed"
        elif not bites(history, fault, mended):
            wrong = f"{name} did not bite, by all that others say"
        else:
            continue
        yield violation("T1", place_of(fault), [row_of(fault)], wrong)


def _heals(healed: Event, fault: Event) -> bool:
    same = all(healed[name] == fault[name] for name in ("action", "target"))
    return same and bool(healed["mono_ns"] >= fault["mono_ns"])


def _end_of(fault: Event, healed: Sequence[Event], elected: Sequence[Event]) -> int:
    """When a fault was over: healed, else when the next controller took office, else at once."""
    ends = [h["mono_ns"] for h in healed if _heals(h, fault)]
    ends = ends or [e["mono_ns"] for e in elected if e["mono_ns"] > fault["mono_ns"]]
    return min(ends, default=int(fault["mono_ns"]))


def _missing_work(
    history: History, faults: Sequence[Event], healed: Sequence[Event]
) -> Iterator[Violation]:
    """Enough was done before the first fault, something during, enough after the last."""
    begins = min(e["mono_ns"] for e in faults)
    ends = max(_end_of(fault, healed, history.of_kind["became_active"]) for fault in faults)
    wanted = history.run.operations_min
    done = [o for o in history.operations if o.outcome == "ok" and o.completed is not None]
    before = sum(1 for o in done if o.completed and o.completed["mono_ns"] < begins)
    after = sum(1 for o in done if o.invoked["mono_ns"] > ends)
    during = any(
        o.invoked["mono_ns"] <= ends and (o.completed is None or o.completed["mono_ns"] >= begins)
        for o in history.operations
    )
    fault = faults[0]
    for count, when in ((before, "before the first fault"), (after, "after the last one")):
        if count < max(wanted, 1):
            sentence = f"{count} operations succeeded {when}, {max(wanted, 1)} are asked for"
            yield violation("T1", place_of(fault), [row_of(fault)], sentence)
    if not during:
        sentence = "no operation was under way while things were broken"
        yield violation("T1", place_of(fault), [row_of(fault)], sentence)


PROPERTY: Final = Property("T1", check)
