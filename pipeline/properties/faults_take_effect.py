"""T1: faults have an effect and are healed; clients are active before, during and after them."""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

# Faults that need no healing.
NEVER_HEALED: Final = ("kill", "stop", "expire")
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
CLOCK_MOVED_MS_MIN: Final = 600_000
SLOW_NS_MIN: Final = 200_000_000  # An Envelope or a commit is slow if its reply takes longer.
LATE_NS_MAX: Final = 200_000_000  # from the healing to the end of an Envelope without a reply

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
  SELECT run, {place_of("judged")} AS place, {row_of("judged")} AS row, CASE
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
    min_by({place_of("f")}, struct(f.file, f.line_number)) AS place
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
