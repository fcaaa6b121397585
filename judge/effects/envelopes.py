"""Effects on Envelopes between brokers and the controller."""

from __future__ import annotations

from typing import Any, Final

from judge.effects.effect import Effect
from judge.history import NEVER, Event, History

SLOW_NS_MIN: Final = 200_000_000  # An Envelope is slow if its reply takes longer.
LATE_NS_MAX: Final = 200_000_000  # from the healing to the end of an Envelope without a reply


def _broke_off(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope of another broker ended without a reply during the fault."""
    return any(
        e["node"] != fault["target"]
        and e["error"] is None
        and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"]
        for e in history.of_kind["forward_replied"]
        if healed is not None
    )


_SQL_OF_BROKE_OFF: Final = """
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f JOIN forward_replied e ON e.run = f.run AND e.node != f.target
    AND e.mono_ns > f.mono_ns AND e.mono_ns < f.healed_ns
  WHERE e.error IS NULL"""


def _attempt(event: Event) -> tuple[Any, ...]:
    """Return what identifies one Envelope: a broker's attempt to forward a request."""
    return event["node"], event["boot"], event["request_id"], event["attempt"]


def _were_slow(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope of another broker waited long for its reply during the fault."""
    if healed is None:
        return False
    replied = {_attempt(e): e["mono_ns"] for e in history.of_kind["forward_replied"]}
    return any(
        e["node"] != fault["target"]
        and fault["mono_ns"] < e["mono_ns"] < healed["mono_ns"] - SLOW_NS_MIN
        and replied.get(_attempt(e), NEVER) > e["mono_ns"] + SLOW_NS_MIN
        for e in history.of_kind["forward_sent"]
    )


_SQL_OF_SLOW: Final = f"""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f
  JOIN forward_sent s ON s.run = f.run AND s.node != f.target
    AND s.mono_ns > f.mono_ns AND s.mono_ns < f.healed_ns - {SLOW_NS_MIN}
  LEFT JOIN forward_replied a ON a.run = s.run AND a.node = s.node
    AND a.boot = s.boot AND a.request_id = s.request_id AND a.attempt = s.attempt
    AND a.mono_ns <= s.mono_ns + {SLOW_NS_MIN}
  WHERE a.run IS NULL"""


def _broke_off_late(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope that was in flight ended without a reply after the healing.

    A broker may notice some milliseconds after the healing that its connection was reset. The
    harness resets connections while an Envelope is in flight, so it was sent before the fault.
    """
    if healed is None:
        return False
    broke_off = {
        _attempt(e)
        for e in history.of_kind["forward_replied"]
        if e["error"] is None
        and healed["mono_ns"] <= e["mono_ns"] < healed["mono_ns"] + LATE_NS_MAX
    }
    return any(
        e["node"] != fault["target"]
        and e["mono_ns"] < healed["mono_ns"]
        and _attempt(e) in broke_off
        for e in history.of_kind["forward_sent"]
    )


_SQL_OF_BROKE_OFF_LATE: Final = f"""
  SELECT /*+ BROADCAST(f) */ f.run, f.node, f.boot, f.seq
  FROM $faults f
  JOIN forward_sent s ON s.run = f.run AND s.node != f.target
    AND s.mono_ns < f.healed_ns
  JOIN forward_replied a ON a.run = s.run AND a.node = s.node
    AND a.boot = s.boot AND a.request_id = s.request_id AND a.attempt = s.attempt
    AND a.error IS NULL
    AND a.mono_ns >= f.healed_ns AND a.mono_ns < f.healed_ns + {LATE_NS_MAX}"""


def _were_held(history: History, fault: Event, healed: Event | None) -> bool:
    """Return whether an Envelope ended without a reply because of a cut, or was delayed."""
    held = _broke_off, _broke_off_late, _were_slow
    return any(has_effect(history, fault, healed) for has_effect in held)


EFFECTS: Final[tuple[Effect, ...]] = (
    Effect(
        name="envelopes_were_held",
        actions=("cut_from_peers", "cut_requests", "cut_replies", "reset_peers"),
        check=_were_held,
        reads=("forward_sent", "forward_replied"),
        sql=f"{_SQL_OF_BROKE_OFF} UNION ALL {_SQL_OF_BROKE_OFF_LATE} UNION ALL {_SQL_OF_SLOW}",
    ),
    Effect(
        name="envelopes_broke_off",
        actions=("corrupt_envelope",),
        check=_broke_off,
        reads=("forward_replied",),
        sql=_SQL_OF_BROKE_OFF,
    ),
    Effect(
        name="envelopes_were_slow",
        actions=("slow_peers",),
        check=_were_slow,
        reads=("forward_sent", "forward_replied"),
        sql=_SQL_OF_SLOW,
    ),
)
