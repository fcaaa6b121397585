"""Faults and stopped controllers explain the number of elections.

One election starts the cluster. A fault may cause two elections: one directly, and one because a
controller on a busy machine loses its session while the cluster recovers. More elections are a
storm, as in KAFKA-6082, where each controller that had been replaced deleted its successor's
/controller.

A controller that is stopped by a signal resigns, and a node that still runs may be elected. This
happens at the end of each run, when all nodes are stopped.

A run that is not a scenario is judged if a command injected a fault. In other runs, causes that
nothing records, such as a laptop that was asleep, are more likely than a storm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import History
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="L7",
    name="elections_have_causes",
    statement="there are no more elections than faults and stopped controllers explain",
    witnesses=("commits", "events"),
    row="elections of a run with faults, or of a scenario",
    key="<zxid>",
    gap_blocks_fail=True,  # the gap may hide a fault
)

ELECTIONS_PER_FAULT_MAX: Final = 2  # see above
STOP_SIGNALS: Final = ("SIGINT", "SIGTERM")  # reasons of `resigned`


def check(history: History) -> Iterator[Violation | None]:
    """Compare the number of elections with the faults and the stopped controllers."""
    first = history.evidence.manifest.zookeeper.first_zxid
    faults = len(history.of_kind["fault_injected"])
    if not faults and history.run.scenario is None:
        return
    stopped = sum(
        resignation["reason"] in STOP_SIGNALS for resignation in history.of_kind["resigned"]
    )
    allowed = 1 + ELECTIONS_PER_FAULT_MAX * faults + stopped
    for count, term in enumerate((t for t in history.terms if t.zxid > first), 1):
        if count <= allowed:
            yield None
            continue
        sentence = (
            f"zxid {term.zxid}: epoch {term.epoch} is election {count} of the run; {faults} faults "
            f"and {stopped} stopped controllers explain at most {allowed}"
        )
        yield SPEC.violation(term.zxid, [zxid_row(term.zxid)], sentence)


INPUTS: Final = ("silver/fault_injected", "silver/resigned", "silver/terms", "runs")
SQL: Final = f"""
WITH causes AS (
  SELECT run, sum(faults) AS faults, sum(stopped) AS stopped FROM (
    SELECT run, 1 AS faults, 0 AS stopped FROM fault_injected
    UNION ALL SELECT run, 0, 1 FROM resigned WHERE reason IN {STOP_SIGNALS}) GROUP BY run),
counted AS (
  SELECT t.run, t.zxid, t.epoch,
    row_number() OVER (PARTITION BY t.run ORDER BY t.zxid) AS number,
    coalesce(c.faults, 0) AS faults, coalesce(c.stopped, 0) AS stopped,
    1 + {ELECTIONS_PER_FAULT_MAX} * coalesce(c.faults, 0) + coalesce(c.stopped, 0) AS allowed
  FROM terms t JOIN runs r ON t.run = r.run AND t.zxid > r.first_zxid
  LEFT JOIN causes c ON t.run = c.run
  WHERE r.scenario IS NOT NULL OR c.faults > 0)
SELECT run, CASE WHEN number > allowed THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': epoch ', epoch, ' is election ', number, ' of the run; ', faults,
    ' faults and ', stopped, ' stopped controllers explain at most ', allowed) AS sentence
FROM counted
"""
