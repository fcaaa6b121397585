"""Which thread runs the event loop of a blocking client. The calls here send nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bridgehead.admin.requests import Plan
from bridgehead.admin.shared_loop import SharedLoop
from tests.integration.processes import wait_until

LIMIT_S = 5


@pytest.fixture
def loop() -> Iterator[SharedLoop]:
    shared = SharedLoop({"bootstrap.servers": "127.0.0.1:9092"}, None)
    yield shared
    closer = threading.Thread(target=shared.close, daemon=True)
    closer.start()
    closer.join(LIMIT_S)
    assert not closer.is_alive()


def thread_name() -> Plan[str]:
    """A call that returns the name of the thread that executes it."""
    yield from ()
    return threading.current_thread().name


async def test_a_call_in_a_coroutine_is_executed_by_the_clients_thread(loop: SharedLoop) -> None:
    """The coroutine's thread runs an event loop already."""
    assert loop.run(thread_name(), None, None) == "bridgehead-admin"


def test_a_call_is_executed_by_its_callers_thread(loop: SharedLoop) -> None:
    assert loop.run(thread_name(), None, None) == threading.current_thread().name


def test_a_call_waits_while_another_thread_runs_the_loop(loop: SharedLoop) -> None:
    """Many threads may call the client at the same time. The client's own thread takes over."""
    is_executed, may_end = threading.Event(), threading.Event()

    def blocking() -> Plan[str]:
        is_executed.set()
        may_end.wait(LIMIT_S)
        return (yield from thread_name())

    names: dict[str, str] = {}

    def call(name: str, plan: Plan[str]) -> threading.Thread:
        def run() -> None:
            names[name] = loop.run(plan, None, None)

        caller = threading.Thread(target=run, name=name, daemon=True)
        caller.start()
        return caller

    first = call("first", blocking())
    assert is_executed.wait(LIMIT_S)
    second = call("second", thread_name())
    wait_until(lambda: loop._calls, lambda count: count == 2)
    may_end.set()
    for caller in (first, second):
        caller.join(LIMIT_S)
    assert names == {"first": "first", "second": "bridgehead-admin"}
