"""A stopping broker repeats its request, but does not wait for a controller that is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from node.config import read_config
from node.controlled_shutdown import ControlledShutdown

DONE = ControlledShutdownResponse(ErrorCode.NONE, [])
REMAINING = ControlledShutdownResponse(ErrorCode.NONE, [RemainingPartition("orders", 0)])
STALE = ControlledShutdownResponse(ErrorCode.STALE_BROKER_EPOCH, [])


class Controller:
    """Answers with `answers`, in order, and then never again; it is gone after `gone_after`."""

    def __init__(self, *answers: ControlledShutdownResponse | None, gone_after: int = 99) -> None:
        self.answers = list(answers)
        self.gone_after = gone_after
        self.requests: list[ControlledShutdownRequest] = []

    def is_known(self) -> bool:
        return len(self.requests) < self.gone_after

    async def send(self, key: ApiKey, version: int, message: Any) -> Any:
        assert (key, version) == (ApiKey.CONTROLLED_SHUTDOWN, 3)
        self.requests.append(message)
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)


async def run(controller: Controller) -> bool:
    config = read_config(
        "broker.id=1\nzookeeper.connect=localhost:1\nlisteners=PLAINTEXT://:0\n"
        "controlled.shutdown.retry.backoff.ms=1"
    )
    shutdown = ControlledShutdown(config, controller, lambda: 17, controller.is_known)
    async with asyncio.timeout(10):
        return await shutdown.run()


@pytest.mark.parametrize(
    ("answers", "is_done", "count"),
    [
        ([DONE], True, 1),
        ([REMAINING, DONE], True, 2),
        ([STALE, None, DONE], True, 3),
        ([REMAINING] * 4, False, 3),
    ],
)
async def test_request_is_repeated_until_no_partition_remains(
    answers: list[ControlledShutdownResponse | None],
    is_done: bool,
    count: int,
) -> None:
    controller = Controller(*answers)
    assert await run(controller) is is_done
    assert controller.requests == [ControlledShutdownRequest(1, 17)] * count


@pytest.mark.parametrize(
    "controller",
    [Controller(gone_after=0), Controller(gone_after=1), Controller(REMAINING, gone_after=1)],
)
async def test_broker_stops_when_the_controller_is_gone(
    controller: Controller,
) -> None:
    assert await run(controller) is False
    assert len(controller.requests) == controller.gone_after
