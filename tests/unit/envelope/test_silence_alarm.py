"""A silent peer is noticed in time, a peer whose messages are waiting is not called silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from envelope.stream import SILENCE_MAX_S, SilenceAlarm


class Loop:
    """An event loop whose time passes only in `run`; it counts its wake-ups."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.wakes = 0
        self._timers: list[tuple[float, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], object]) -> asyncio.TimerHandle | None:
        self._timers.append((self.now_s + delay_s, call))
        return None

    def run(self, until_s: float) -> None:
        """Call the timers in their order, until a time."""
        while self._timers and (first := min(self._timers, key=lambda timer: timer[0])):
            if first[0] > until_s:
                break
            self._timers.remove(first)
            self.now_s = max(self.now_s, first[0])
            self.wakes += 1
            first[1]()
        self.now_s = until_s


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    virtual = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: virtual)
    return virtual


@pytest.fixture
def alarms() -> list[float]:
    """The times of the alarms."""
    return []


def test_silence_is_noticed_after_its_limit(loop: Loop, alarms: list[float]) -> None:
    alarm = SilenceAlarm(lambda: alarms.append(loop.time()))
    for last_s in (100.3, 100.9, 101.1, 102.0):
        loop.run(last_s)
        alarm.message_received()
    loop.run(150)
    assert alarms == [pytest.approx(102.0 + SILENCE_MAX_S)]


def test_heartbeats_wake_an_idle_channel_less_than_three_times_in_two_seconds(
    loop: Loop, alarms: list[float]
) -> None:
    alarm = SilenceAlarm(lambda: alarms.append(loop.time()))
    for heartbeat in range(120):
        loop.run(100 + heartbeat * 0.5)
        alarm.message_received()
    assert loop.wakes < 60 * 1.5
    assert alarms == []


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_process_that_was_frozen_first_reads_what_waits_in_its_socket(
    loop: Loop, alarms: list[float], *, is_alive: bool
) -> None:
    alarm = SilenceAlarm(lambda: alarms.append(loop.time()))
    loop.now_s = 160.0  # Nothing ran for a minute.
    loop.run(160.1)
    if is_alive:
        alarm.message_received()
        loop.run(161.0)
    else:
        loop.run(161.0)
    assert alarms == ([] if is_alive else [pytest.approx(160.6)])


def test_an_end_that_does_not_read_calls_nobody_silent(loop: Loop, alarms: list[float]) -> None:
    alarm = SilenceAlarm(lambda: alarms.append(loop.time()))
    with alarm.suspended():
        loop.run(130)
    loop.run(131)
    assert alarms == []
    loop.run(140)
    assert alarms == [pytest.approx(130 + SILENCE_MAX_S)]
