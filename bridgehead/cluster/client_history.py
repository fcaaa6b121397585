"""The operations of a workload and their results, as evidence from the client's side.

An operation is recorded before it is sent and again when it has ended, in the caller's thread. A
workload uses each name once per API and run (for example, it creates a topic once), so that the
judge can match effects in ZooKeeper with operations.

    with ClientHistory(cluster.evidence_dir, "load") as history:
        with history.operation(CREATE_TOPICS, ["orders"]) as operation:
            admin.create_topics([NewTopic("orders", 3)])["orders"].result()
            operation.completed({"orders": 0})
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from bridgehead.cluster.event_lines import EventLines
from bridgehead.kafka_wire.errors import ErrorCode, is_definite


class Operation:
    """One call of one client; its outcome is unknown until `completed` is called."""

    def __init__(self, op_id: str) -> None:
        self.op_id = op_id
        self.codes: dict[str, int] = {}
        self._error: int = ErrorCode.UNKNOWN_SERVER_ERROR

    def completed(
        self, codes: Mapping[str, int] | None = None, *, error: int = ErrorCode.UNKNOWN_SERVER_ERROR
    ) -> None:
        """Record Kafka's error code for each element of the request.

        A request without elements has one `error` instead.
        """
        self.codes, self._error = dict(codes or {}), error

    @property
    def outcome(self) -> str:
        """`info` if any error is indefinite, else `fail` if there is any error, else `ok`."""
        failures = [code for code in self.codes.values() or (self._error,) if code]
        if not all(map(is_definite, failures)):
            return "info"
        return "fail" if failures else "ok"


class ClientHistory:
    """The history of one workload; a thread-safe context manager."""

    def __init__(self, evidence_dir: Path, name: str) -> None:
        """Create the history in the cluster's `evidence_dir`. Each workload needs its own `name`.

        Raises:
            OSError: the folder cannot be written.
        """
        run_id = evidence_dir.name.removeprefix("run=")
        self._lines = EventLines(evidence_dir, run_id, "client", name)
        self._name = name
        self._numbers = itertools.count(1)

    @contextmanager
    def operation(self, api_key: int, elements: Sequence[str]) -> Iterator[Operation]:
        """Record one operation. Elements have the same names as in the event `request_decided`.

        For a topic, the element is the topic's name. When the response has arrived, call
        `completed` in the `with` block, with the error code of each element. Without this call, the
        outcome is unknown.
        """
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
        """Close the history."""
        self._lines.close("the workload is over")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the history."""
        self.close()
