"""L7: faults and stopped controllers explain the number of elections.

One election starts the cluster. A fault may cause two elections: one directly, and one because a
controller on a busy machine loses its session while the cluster recovers. More elections are a
storm, as in KAFKA-6082, where each controller that had been replaced deleted its successor's
/controller.

A controller that is stopped by a signal resigns, and a node that still runs may be elected. This
happens at the end of each scenario, when all nodes are stopped.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import ELECTIONS_PER_FAULT_MAX, STOP_SIGNALS, Violation
from judge.history import History
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Compare the number of elections with the faults and the stopped controllers."""
    first = history.evidence.manifest.zookeeper.first_zxid
    faults = len(history.of_kind["fault_injected"])
    stopped = sum(each["reason"] in STOP_SIGNALS for each in history.of_kind["resigned"])
    allowed = 1 + ELECTIONS_PER_FAULT_MAX * faults + stopped
    for count, term in enumerate((t for t in history.terms if t.zxid > first), 1):
        if count <= allowed:
            yield None
            continue
        sentence = (
            f"zxid {term.zxid}: epoch {term.epoch} is election {count} of the run; {faults} faults "
            f"and {stopped} stopped controllers explain at most {allowed}"
        )
        yield violation("L7", term.zxid, [zxid_row(term.zxid)], sentence)
