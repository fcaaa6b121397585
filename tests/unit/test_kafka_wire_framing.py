"""Frames come out of a stream whole, however the stream was cut, and lengths are not believed."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.kafka_wire import FrameBuffer, FrameError, WireError
from bridgehead.kafka_wire.framing import frame

PAYLOADS = [b"", b"a", b"\x00" * 300, b"last"]


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_frames_are_the_same_however_the_stream_is_cut(size: int) -> None:
    """Whole, split, and byte by byte."""
    stream = b"".join(frame(payload) for payload in PAYLOADS)
    frames = FrameBuffer()

    received = [whole for piece in pieces(stream, size) for whole in frames.receive_data(piece)]

    assert received == PAYLOADS


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), min_size=1))
def test_any_cut_gives_the_same_frames(payloads: list[bytes], cuts: list[int]) -> None:
    """Random payloads, random cuts."""
    stream = b"".join(frame(payload) for payload in payloads)
    frames, received, at, turn = FrameBuffer(), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        received += frames.receive_data(stream[at : at + size])
        at, turn = at + size, turn + 1

    assert received == payloads


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_that_no_frame_may_have_is_refused_when_it_is_read(length: int) -> None:
    """Below 0 or above the limit: refused with the length alone, nothing is waited for."""
    with pytest.raises(FrameError, match="the limit is 100"):
        FrameBuffer(frame_bytes_max=100).receive_data(struct.pack(">i", length))


def test_a_frame_of_exactly_the_limit_passes() -> None:
    """The limit is allowed, one more is not."""
    assert FrameBuffer(frame_bytes_max=5).receive_data(frame(b"12345")) == [b"12345"]
    with pytest.raises(FrameError):
        FrameBuffer(frame_bytes_max=5).receive_data(frame(b"123456"))


def test_what_came_whole_before_a_bad_length_is_handed_over() -> None:
    """Earlier requests of the same read can still be answered."""
    with pytest.raises(FrameError) as caught:
        FrameBuffer().receive_data(frame(b"good") + struct.pack(">i", -1))
    assert caught.value.frames == [b"good"]


def test_a_broken_frame_is_a_wire_error() -> None:
    """Whoever catches WireError has caught every bad input."""
    assert issubclass(FrameError, WireError)


def test_a_promised_length_takes_no_memory() -> None:
    """100 MB announced, 4 bytes sent: 4 bytes kept."""
    frames = FrameBuffer()
    tracemalloc.start()
    try:
        assert frames.receive_data(struct.pack(">i", 100 * 1024 * 1024)) == []
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_many_small_frames_in_one_read_and_a_rest() -> None:
    """20,000 frames and half of one more: the work grows with the bytes, not with their square."""
    stream = frame(b"x" * 10) * 20_000
    frames = FrameBuffer()
    assert frames.receive_data(b"\x00") == []  # a rest is there, so the slow way is taken
    received = frames.receive_data((stream + frame(b"tail"))[1:-2])
    assert received == [b"x" * 10] * 20_000
    assert frames.receive_data(b"il") == [b"tail"]
