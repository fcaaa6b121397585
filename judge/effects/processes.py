"""Effects that a node's events show: its end, its silence, its resignation, its clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from judge.effects.effect import Effect
from judge.history import Event, History

CLOCK_MOVED_MS_MIN: Final = 600_000


def _was_killed(history: History, fault: Event, _healed: Event | None) -> bool:
    return any(
        e["ended_node"] == fault["target"] and e["status"] < 0 and e["mono_ns"] >= fault["mono_ns"]
        for e in history.of_kind["node_ended"]
    )


def _event_during_work(kind: str) -> Callable[[History, Event, Event | None], bool]:
    """Return a check that the target has an event of this kind before the work of the run ended."""

    def check_kind(history: History, fault: Event, _healed: Event | None) -> bool:
        until = history.work_ended_ns
        return any(
            e["node"] == fault["target"] and fault["mono_ns"] <= e["mono_ns"] < until
            for e in history.of_kind[kind]
        )

    return check_kind


def _sql_of_event_during_work(kind: str) -> str:
    return f"""
  SELECT f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN worked w ON f.run = w.run
  JOIN {kind} e ON f.run = e.run AND f.target = e.node
    AND e.mono_ns >= f.mono_ns AND e.mono_ns < w.until"""


def _was_silent(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether the process wrote no events while it was paused.

    The first tenth of the pause does not count: the process may not have received the signal yet.
    """
    if healed is None:
        return False
    since = fault["mono_ns"] + (healed["mono_ns"] - fault["mono_ns"]) // 10
    return not any(
        e["node"] == fault["target"] and since < e["mono_ns"] < healed["mono_ns"]
        for e in history.events
    )


def _resigned_meanwhile(history: History, fault: Event, healed: Event | None) -> bool:
    return any(
        e["node"] == fault["target"] and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
        for e in history.of_kind["resigned"]
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


EFFECTS: Final[tuple[Effect, ...]] = (
    Effect(
        name="process_was_killed",
        actions=("kill",),
        check=_was_killed,
        reads=("node_ended",),
        sql="""
  SELECT f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN node_ended e ON f.run = e.run AND f.target = e.ended_node
    AND e.mono_ns >= f.mono_ns
  WHERE e.status < 0""",
    ),
    Effect(
        name="process_stopped",
        actions=("stop",),
        check=_event_during_work("stopped"),
        reads=("stopped",),
        sql=_sql_of_event_during_work("stopped"),
    ),
    # A deletion is not healed: `fault_healed` only shows how long the harness waited.
    Effect(
        name="controller_resigned",
        actions=("delete_controller_znode", "move"),
        check=_event_during_work("resigned"),
        reads=("resigned",),
        sql=_sql_of_event_during_work("resigned"),
    ),
    Effect(
        name="process_was_silent",
        actions=("pause", "block"),
        check=_was_silent,
        reads=("events",),
        sql="""
  SELECT f.run, f.node, f.boot, f.seq FROM $faults f LEFT JOIN (
    SELECT /*+ BROADCAST(z) */ DISTINCT z.run, z.node, z.boot, z.seq
    FROM events e JOIN $faults z ON e.run = z.run AND e.node = z.target
      AND e.mono_ns > z.mono_ns + (z.healed_ns - z.mono_ns) DIV 10 AND e.mono_ns < z.healed_ns) p
    ON f.run = p.run AND f.node = p.node AND f.boot = p.boot AND f.seq = p.seq
  WHERE f.healed_ns IS NOT NULL AND p.run IS NULL""",
    ),
    Effect(
        name="controller_resigned_meanwhile",
        actions=("fill_disk",),
        check=_resigned_meanwhile,
        reads=("resigned",),
        sql="""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN resigned e ON e.run = f.run AND e.node = f.target
    AND e.mono_ns > f.mono_ns AND e.mono_ns < f.healed_ns""",
    ),
    Effect(
        name="clock_moved",
        actions=("move_clock",),
        check=_clock_moved,
        reads=("events",),
        sql=f"""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN events e ON e.run = f.run AND e.node = f.target
    AND e.mono_ns > f.mono_ns AND e.mono_ns < f.healed_ns
  WHERE abs((e.wall_ms - e.mono_ns DIV 1000000) - (f.wall_ms - f.mono_ns DIV 1000000))
    > {CLOCK_MOVED_MS_MIN}""",
    ),
)
