"""Properties that no seeded bug of a node violates, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WITHOUT_SEEDED_BUG: Final[Mapping[str, str]] = {
    "D4": "D3 already finds a request that a node commits twice. D4 checks the same, but only for "
    "requests and client operations without a definite response",
    "K2": "the function in broker_proxy/requests/ that returns a response also records it. "
    "Seeded bugs replace only the parts that node/collaborators.py lists, so no seeded bug can "
    "omit the event",
    "K3": "K3 judges the event logs, not nodes. Golden histories violate it",
    "K6": "K6 judges the reading of evidence, not nodes",
    "T1": "T1 judges the faults of the harness, not nodes",
}
