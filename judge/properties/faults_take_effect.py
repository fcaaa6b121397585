"""Faults have an effect and are healed; clients are active before, during and after them.

A fault without effect proves nothing, so a violation results in NODATA, not FAIL. The harness
injects the fault, so evidence other than its `fault_injected` must show the effect. `judge/effects`
has the checks of effects.

The effect of a kill, stop, move, expiry, cut from ZooKeeper or deletion of /controller must come
after the fault. Except for a kill, it must also come before the work of the run ends, because then
every node stops and every session ends. The work of a scenario ends with the last operation of the
clients. In other runs, users inject faults by command; the work ends when the cluster begins to
stop, and nothing is required of clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from judge import sql
from judge.effects import EFFECT_OF, EFFECTS
from judge.history import NEVER, Event, History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="T1",
    name="faults_take_effect",
    statement="each fault had an effect; each fault was healed, except kills, stops, moves and "
    "expired sessions, which need no healing; in a scenario, clients were active before, during "
    "and after the faults",
    witnesses=("events", "clients"),
    row="faults",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,
    violated="NODATA",  # a fault without effect proves nothing
)

# Faults that need no healing.
NEVER_HEALED: Final = ("kill", "stop", "expire", "move")


def check(history: History) -> Iterator[Violation | None]:
    """Judge every fault and, in a scenario, the clients' operations around the faults."""
    faults, healings = (history.of_kind[kind] for kind in ("fault_injected", "fault_healed"))
    for fault in faults:
        wrong = _wrong(history, fault, next((h for h in healings if _heals(h, fault)), None))
        yield SPEC.violation(place_of(fault), [row_of(fault)], wrong) if wrong else None
    if faults and history.run.scenario is not None:
        for sentence in _missing_work(history, faults, healings):
            yield SPEC.extra_violation(place_of(faults[0]), [row_of(faults[0])], sentence)


def _wrong(history: History, fault: Event, healed: Event | None) -> str | None:
    name = f"{fault['action']} of {fault['target']}"
    effect = EFFECT_OF.get(fault["action"])
    if effect is None:
        return f"{name}: no witness can show its effect"
    if healed is None and fault["action"] not in NEVER_HEALED:
        return f"{name} was not healed"
    if not effect.check(history, fault, healed):
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


_SHOWN: Final = "\n  UNION ALL".join(effect.query() for effect in EFFECTS)
_KNOWN: Final = ", ".join(f"'{action}'" for action in EFFECT_OF)
_FAULTS: Final = f"""
WITH scenario AS (SELECT run, greatest(operations_min, 1) AS required FROM runs
  WHERE scenario IS NOT NULL),
injected AS (
  SELECT e.run, e.node, e.boot, e.seq, e.mono_ns, e.wall_ms, e.action, e.target,
    e.file, e.line_number
  FROM fault_injected e),
healings AS (SELECT run, action, target, mono_ns, wall_ms FROM fault_healed),
healed AS (
  SELECT f.run, f.node, f.boot, f.seq, min(h.mono_ns) AS healed_ns,
    min(h.wall_ms) AS healed_ms
  FROM injected f JOIN healings h ON f.run = h.run AND f.action = h.action
    AND f.target = h.target AND h.mono_ns >= f.mono_ns
  GROUP BY f.run, f.node, f.boot, f.seq),
faults AS (
  SELECT f.*, m.healed_ns, m.healed_ms FROM injected f LEFT JOIN healed m
    ON f.run = m.run AND f.node = m.node AND f.boot = m.boot AND f.seq = m.seq),
worked AS (
  SELECT o.run, max(o.completed_ns) AS until
  FROM operations o JOIN scenario s ON o.run = s.run GROUP BY o.run
  UNION ALL
  SELECT r.run, coalesce(min(e.mono_ns), {NEVER})
  FROM runs r LEFT JOIN run_ending e ON r.run = e.run
  WHERE r.scenario IS NULL GROUP BY r.run),
shown AS (SELECT DISTINCT run, node, boot, seq FROM ({_SHOWN})),
judged AS (
  SELECT f.*, concat(f.action, ' of ', f.target) AS name,
    CASE WHEN f.action IN ({_KNOWN}) THEN v.run IS NOT NULL END AS has_effect
  FROM faults f
  LEFT JOIN shown v ON f.run = v.run AND f.node = v.node AND f.boot = v.boot AND f.seq = v.seq),
effects AS (
  SELECT run, {sql.place_of("judged")} AS place, {sql.row_of("judged")} AS row, CASE
    WHEN has_effect IS NULL THEN concat(name, ': no witness can show its effect')
    WHEN healed_ns IS NULL AND action NOT IN {NEVER_HEALED} THEN concat(name, ' was not healed')
    WHEN NOT has_effect THEN concat(name, ' had no effect that another witness shows') END AS wrong
  FROM judged)"""

_WORK: Final = f"""
elected AS (
  SELECT f.run, f.node, f.boot, f.seq, min(e.mono_ns) AS elected_ns
  FROM faults f JOIN became_active e ON f.run = e.run AND e.mono_ns > f.mono_ns
  GROUP BY f.run, f.node, f.boot, f.seq),
bounds AS (
  SELECT f.run, min(f.mono_ns) AS begins,
    max(coalesce(f.healed_ns, w.elected_ns, f.mono_ns)) AS ends,
    min_by({sql.place_of("f")}, struct(f.file, f.line_number)) AS place
  FROM faults f LEFT JOIN elected w ON f.run = w.run AND f.node = w.node AND f.boot = w.boot
    AND f.seq = w.seq GROUP BY f.run),
work AS (
  SELECT b.run, max(b.place) AS place, max(s.required) AS required,
    count_if(o.outcome = 'ok' AND o.completed_ns < b.begins) AS before,
    count_if(o.outcome = 'ok' AND o.completed_ns IS NOT NULL AND o.invoked_ns > b.ends) AS after,
    count_if(o.invoked_ns <= b.ends AND coalesce(o.completed_ns >= b.begins, true)) AS during
  FROM bounds b JOIN scenario s ON b.run = s.run LEFT JOIN operations o ON b.run = o.run
  GROUP BY b.run),
lacking AS (
  SELECT run, place, explode(filter(array(
    CASE WHEN before < required THEN concat(before, ' of ', required,
      ' required operations succeeded before the first fault') END,
    CASE WHEN after < required THEN concat(after, ' of ', required,
      ' required operations succeeded after the last fault') END,
    CASE WHEN during = 0 THEN 'no operation was in progress during the faults' END
  ), sentence -> sentence IS NOT NULL)) AS sentence
  FROM work)"""

INPUTS: Final = (
    *("silver/fault_injected", "silver/fault_healed", "silver/run_ending", "silver/became_active"),
    *(f"silver/{table}" for table in sorted({table for e in EFFECTS for table in e.reads})),
    *("silver/sessions", "silver/commits", "gold/operations", "runs"),
)
JUDGED: Final = "judged"
SQL: Final = f"""
{_FAULTS}, {_WORK}
SELECT run, CASE WHEN wrong IS NOT NULL THEN place END AS key, array(row) AS rows,
  wrong AS sentence, 1 AS judged FROM effects
UNION ALL
SELECT run, place, array(concat('event/', place)), sentence, 0 FROM lacking
"""
