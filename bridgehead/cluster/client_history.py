"""What a workload asked and what it was told, as evidence: the witness that no node can replace.

Read first: an operation is written down before it is sent and again when it has ended, in a thread
of its caller's. A workload uses each name once for each API in a run (a topic is created once), so
that the judge can tell which effect in ZooKeeper is whose.

    with ClientHistory(cluster.evidence_dir, "load") as history:
        with history.operation(CREATE_TOPICS, ["orders"]) as operation:
            admin.create_topics([NewTopic("orders", 3)])["orders"].result()
            operation.told({"orders": 0})
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bridgehead.cluster.event_lines import EventLines

# Codes that decide nothing: UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NETWORK_EXCEPTION,
# NOT_CONTROLLER. Whatever else is not 0 is a definite no.
_INFO: Final = frozenset({-1, 7, 13, 41})


class Operation:
    """One call of one client; without `told` its end is not known."""

    def __init__(self, op_id: str) -> None:
        self.op_id = op_id
        self.codes: dict[str, int] = {}

    def told(self, codes: Mapping[str, int]) -> None:
        """The answer: Kafka's error code of each element that was asked for."""
        self.codes = dict(codes)

    @property
    def outcome(self) -> str:
        """`ok`, `fail` (definitely not, at least for one element) or `info` (who knows)."""
        if not self.codes or any(code in _INFO for code in self.codes.values()):
            return "info"
        return "fail" if any(self.codes.values()) else "ok"


class ClientHistory:
    """The history of one workload; a context manager, for any number of threads."""

    def __init__(self, evidence_dir: Path, name: str) -> None:
        """`evidence_dir` is the cluster's; `name` tells workloads of one run apart.

        Raises:
            OSError: the folder cannot be written.
        """
        run_id = evidence_dir.name.removeprefix("run=")
        self._lines = EventLines(evidence_dir, run_id, "client", name)
        self._name = name
        self._numbers = itertools.count(1)

    @contextmanager
    def operation(self, api_key: int, elements: Sequence[str]) -> Iterator[Operation]:
        """One operation; elements are named as in `request_decided` (a topic by its name)."""
        operation = Operation(f"{self._name}.{self._lines.boot}.{next(self._numbers)}")
        self._lines.append(
            "client_invoked", op_id=operation.op_id, api_key=api_key, elements=list(elements)
        )
        try:
            yield operation
        finally:
            self._lines.append(
                "client_completed",
                op_id=operation.op_id,
                outcome=operation.outcome,
                elements=[[element, code] for element, code in operation.codes.items()],
            )

    def close(self) -> None:
        """The workload is over."""
        self._lines.close("the workload is over")

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes."""
        self.close()
