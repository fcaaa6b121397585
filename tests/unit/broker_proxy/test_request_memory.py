"""The requests of all connections share queued.max.request.bytes. A *reader* is a connection."""

from __future__ import annotations

from broker_proxy.connections.request_memory import (
    PROGRESS_BYTES,
    SMALL_FRAME_BYTES,
    Held,
    RequestMemory,
)

MB = 1024 * 1024
LIMIT = 10 * MB
CLAIMED = 8 * MB


def large(partial: int, number: int = 0) -> Held:
    return Held(partial=partial, claimed=CLAIMED, number=number)


def exhausted() -> RequestMemory[str]:
    """Three readers began large frames, in the order of their names. Together they exceed LIMIT."""
    memory: RequestMemory[str] = RequestMemory(LIMIT, CLAIMED)
    for name in ("a", "b", "c"):
        memory.update(name, large(1))
    for name in ("c", "b", "a"):
        memory.update(name, large(4 * MB))
    assert memory.used == 12 * MB
    return memory


def test_below_the_limit_every_reader_may_read() -> None:
    memory: RequestMemory[str] = RequestMemory(LIMIT, CLAIMED)
    memory.update("a", large(6 * MB))
    memory.update("b", large(3 * MB))
    assert memory.may_read("a")
    assert memory.may_read("b")
    assert memory.may_read("new")
    assert memory.released() == memory.take_idle() == memory.take_excess() == []


def test_at_the_limit_only_the_earliest_large_frame_is_read() -> None:
    memory = exhausted()
    assert [memory.may_read(name) for name in ("a", "b", "c")] == [True, False, False]


def test_small_frames_are_always_read() -> None:
    memory = exhausted()
    memory.update("small", Held(partial=100, claimed=SMALL_FRAME_BYTES))
    memory.update("unknown length", Held(partial=2))
    assert memory.may_read("small")
    assert memory.may_read("unknown length")
    assert memory.may_read("new")


def test_a_request_counts_until_its_response() -> None:
    memory = exhausted()
    assert not memory.may_read("b")
    memory.update("a", Held(whole=CLAIMED, number=1))
    assert memory.used == 16 * MB
    assert memory.released() == ["b"], "b is the earliest reader now, and whole requests leave room"
    memory.update("a", Held(number=1))
    assert memory.used == 8 * MB


def test_no_large_frame_is_read_while_whole_requests_take_all_memory() -> None:
    memory = exhausted()
    memory.update("d", Held(whole=LIMIT))
    assert not memory.may_read("a")
    assert memory.take_idle() == memory.take_idle() == [], (
        "only responses free memory of whole requests"
    )


def test_a_reader_waits_behind_readers_whose_frames_began_earlier() -> None:
    memory = exhausted()
    memory.update("a", large(4 * MB, number=1))
    assert not memory.may_read("a"), "the second frame of reader a began last"
    assert memory.may_read("b")


def test_waiting_readers_are_released_only_while_there_is_room() -> None:
    memory = exhausted()
    memory.update("d", large(1))
    waiting = [name for name in ("b", "c", "d") if not memory.may_read(name)]
    assert waiting == ["b", "c", "d"]
    memory.update("a", large(2 * MB - 300 * 1024))
    assert memory.released() == ["b", "c"], "each may receive 256 KiB at once"
    assert memory.has_muted
    memory.update("a", Held())
    assert memory.released() == ["d"]
    assert not memory.has_muted


def test_idle_readers_are_closed_only_until_a_tenth_of_the_memory_is_free() -> None:
    memory = exhausted()
    assert memory.take_idle() == [], "no reader was idle for a whole interval yet"
    assert memory.take_idle() == ["a"]
    assert memory.used == 8 * MB
    assert memory.take_idle() == memory.take_idle() == [], "a tenth of the memory is free"


def test_a_reader_that_delivers_is_not_idle() -> None:
    memory = exhausted()
    memory.take_idle()
    memory.update("a", large(4 * MB + PROGRESS_BYTES))
    assert memory.take_idle() == ["b"]


def test_bytes_that_a_busy_broker_has_not_read_yet_count_as_sent() -> None:
    memory = exhausted()
    memory.take_idle()
    unread = {"a": PROGRESS_BYTES, "b": PROGRESS_BYTES - 1}
    assert memory.take_idle(unread_bytes=lambda reader: unread.get(reader, 0)) == ["b"]


def test_a_slow_reader_is_idle() -> None:
    memory = exhausted()
    memory.take_idle()
    memory.update("a", large(4 * MB + PROGRESS_BYTES - 1))
    assert memory.take_idle() == ["a"]


def test_a_reader_that_has_to_wait_is_not_idle() -> None:
    memory = exhausted()
    assert not memory.may_read("b")
    memory.take_idle()
    assert not memory.may_read("c")
    assert memory.take_idle() == ["a"]


def test_idle_readers_of_small_frames_are_closed_too() -> None:
    memory = exhausted()
    for number in range(20):
        memory.update(f"small {number}", Held(partial=SMALL_FRAME_BYTES - 1, claimed=MB // 16))
    assert not memory.may_read("b")
    assert not memory.may_read("c")
    memory.take_idle()
    memory.update("a", large(4 * MB + PROGRESS_BYTES))
    assert memory.take_idle() == [f"small {number}" for number in range(20)]


def test_the_earliest_reader_is_closed_if_memory_exceeds_its_limit_by_more_than_a_frame() -> None:
    memory = exhausted()
    memory.update("d", large(6 * MB))
    assert memory.take_excess() == []
    memory.update("d", large(6 * MB + 1))
    assert memory.take_excess() == ["a"]
    assert memory.take_excess() == []


def test_a_closed_reader_leaves_nothing_behind() -> None:
    memory = exhausted()
    assert not memory.may_read("b")
    for name in ("a", "b", "c"):
        memory.update(name, Held())
    assert memory.used == 0
    assert not memory.has_muted
    assert memory.released() == []
