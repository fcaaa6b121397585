"""Recorded requests get the responses of a live Kafka even if many are sent without waiting.

The recording was made one request at a time. Steps of one connection that do not need the response
to an earlier step are sent at once, so the broker overlaps independent writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.fidelity.replay import Replay, Step, load_cases
from tests.integration.conftest import StartCluster

RECORDING = Path(__file__).parent.parent / "recordings" / "forwarded-open.jsonl.gz"
# A step with one of these fields needs its own connection, or a response before the next step.
_ALONE: Final = {"capture", "fresh", "later", "raw", "receive", "settle", "settle_before", "until"}
_SENT = "sent"


def _may_share(step: Step) -> bool:
    return "response_hex" in step and not _ALONE & set(step) and not step.get("wait_after")


def _series(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield series of steps. The steps of one series can be sent at once."""
    series: list[Step] = []
    for step in steps:
        same = [
            (same_step["to"], same_step.get("user"), same_step.get("client"))
            for same_step in (*series[-1:], step)
        ]
        if series and (same[0] != same[-1] or not _may_share(series[-1]) or not _may_share(step)):
            yield series
            series = []
        series.append(step)
    yield series


class ReplayAtOnce(Replay):
    """Sends the steps of a series before it receives the first response."""

    longest = 0
    _is_sending = _is_receiving = False

    def run(self, case: Mapping[str, Any]) -> None:
        for steps in _series(case["steps"]):
            self.longest = max(self.longest, len(steps))
            if len(steps) > 1:
                self._is_sending = True
                for step in steps:
                    assert self._take(step) == _SENT
                self._is_sending, self._is_receiving = False, True
            super().run({**case, "steps": steps})
            self._is_receiving = False

    def _exchange(self, broker: int, payload: bytes) -> bytes | str:
        if self._is_receiving:
            return self._receive(broker)
        if self._is_sending:
            assert self._connection(broker).send(payload)
            return _SENT
        return super()._exchange(broker, payload)


def test_recorded_requests_sent_at_once_get_the_recorded_responses(
    start_brokers: StartCluster,
) -> None:
    cluster = start_brokers(
        controller=1,
        node_properties={broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)},
    )
    brokers = {broker: cluster.bootstrap_server(broker) for broker in (1, 2, 3)}
    replay = ReplayAtOnce(brokers, "other")
    cases = list(load_cases(RECORDING))
    try:
        for case in cases:
            replay.run(case)
    finally:
        replay.close()
    report = replay.report
    assert not report.differences, "\n".join(report.differences)
    assert not report.skipped
    assert report.sent.total() == sum(len(case["steps"]) for case in cases)
    assert replay.longest > 40
