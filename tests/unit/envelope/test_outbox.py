"""A delayed item is sent when its delay ends, or earlier with an item that has no delay."""

from __future__ import annotations

import asyncio

from envelope.stream import BATCH_ITEMS_MAX, HEARTBEAT_EVERY_S, Outbox

LATER_S = 60.0
SOON_S = 0.001


async def test_a_delayed_item_does_not_wake_the_writer_until_its_delay_ends() -> None:
    outbox = Outbox()
    writer = asyncio.create_task(outbox.wait())
    outbox.put("update", 10, SOON_S)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writer.done()
    async with asyncio.timeout(HEARTBEAT_EVERY_S / 2):  # A heartbeat also ends the wait.
        assert await writer
    assert outbox.take() == ["update"]


async def test_an_item_without_a_delay_takes_the_delayed_ones_along_in_order() -> None:
    outbox = Outbox()
    outbox.put("first update", 10, LATER_S)
    outbox.put("second update", 10, LATER_S)
    outbox.put("reply", 10)
    assert await outbox.wait()
    assert outbox.take() == ["first update", "second update", "reply"]


async def test_a_delayed_item_is_sent_even_if_the_timer_of_an_earlier_item_still_runs() -> None:
    outbox = Outbox()
    outbox.put("update", 10, SOON_S)
    outbox.put("reply", 10)
    assert await outbox.wait()
    outbox.take()
    outbox.put("second update", 10, LATER_S)  # The timer of the first item ends this delay early.
    assert await outbox.wait()
    assert outbox.take() == ["second update"]
    assert not await outbox.wait()  # a heartbeat


async def test_items_beyond_the_limit_of_a_message_are_sent_at_once_in_the_next_message() -> None:
    outbox = Outbox()
    for number in range(BATCH_ITEMS_MAX + 1):
        outbox.put(number, 1)
    assert await outbox.wait()
    assert len(outbox.take()) == BATCH_ITEMS_MAX
    assert await outbox.wait()
    assert outbox.take() == [BATCH_ITEMS_MAX]


async def test_an_idle_writer_sends_heartbeats() -> None:
    outbox = Outbox()
    assert not await outbox.wait()
    outbox.wake()
    assert not await outbox.wait()
