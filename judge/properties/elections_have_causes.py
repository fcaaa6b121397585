"""L7: there are not more elections than the faults of a scenario explain.

One election starts the cluster. A fault may cause two: one because of what it does, and one because
a busy machine loses a session while the cluster recovers. More elections are a storm, as in
KAFKA-6082, where each controller that had been replaced deleted its successor's /controller.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import ELECTIONS_PER_FAULT_MAX, Violation
from judge.history import History
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Compare the number of elections with the number of faults."""
    first = history.evidence.manifest.zookeeper.first_zxid
    faults = len(history.of_kind["fault_injected"])
    allowed = 1 + ELECTIONS_PER_FAULT_MAX * faults
    for count, term in enumerate((t for t in history.terms if t.zxid > first), 1):
        if count <= allowed:
            yield None
            continue
        sentence = (
            f"zxid {term.zxid}: epoch {term.epoch} is election {count} of the run; {faults} faults "
            f"explain at most {allowed}"
        )
        yield violation("L7", term.zxid, [zxid_row(term.zxid)], sentence)
