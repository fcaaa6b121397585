"""Reads of any sizes give the same frames, and announced lengths are not trusted."""

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
def test_frames_do_not_depend_on_the_size_of_reads(size: int) -> None:
    stream = b"".join(frame(payload) for payload in PAYLOADS)
    frames = FrameBuffer()

    received = [whole for piece in pieces(stream, size) for whole in frames.receive_data(piece)]

    assert received == PAYLOADS


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), min_size=1))
def test_frames_do_not_depend_on_random_read_sizes(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(payload) for payload in payloads)
    frames, received, at, turn = FrameBuffer(), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        received += frames.receive_data(stream[at : at + size])
        at, turn = at + size, turn + 1

    assert received == payloads


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_invalid_length_is_rejected_at_once(length: int) -> None:
    """The buffer does not wait for the rest of the frame."""
    with pytest.raises(FrameError, match="the limit is 100"):
        FrameBuffer(frame_bytes_max=100).receive_data(struct.pack(">i", length))


def test_frame_of_exactly_the_limit_is_accepted() -> None:
    assert FrameBuffer(frame_bytes_max=5).receive_data(frame(b"12345")) == [b"12345"]
    with pytest.raises(FrameError):
        FrameBuffer(frame_bytes_max=5).receive_data(frame(b"123456"))


def test_frame_error_carries_the_complete_frames_that_precede_it() -> None:
    with pytest.raises(FrameError) as caught:
        FrameBuffer().receive_data(frame(b"good") + struct.pack(">i", -1))
    assert caught.value.frames == [b"good"]


def test_frame_error_is_a_wire_error() -> None:
    assert issubclass(FrameError, WireError)


def test_announced_length_takes_no_memory() -> None:
    """The stream announces 100 MB and sends 4 bytes."""
    frames = FrameBuffer()
    tracemalloc.start()
    try:
        assert frames.receive_data(struct.pack(">i", 100 * 1024 * 1024)) == []
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_many_small_frames_in_one_read_are_split() -> None:
    """Frame 1 of 20,001 began in an earlier read. The last frame ends in a later read."""
    stream = frame(b"x" * 10) * 20_000
    frames = FrameBuffer()
    assert frames.receive_data(b"\x00") == []  # A partial frame makes the buffer use its slow path.
    received = frames.receive_data((stream + frame(b"tail"))[1:-2])
    assert received == [b"x" * 10] * 20_000
    assert frames.receive_data(b"il") == [b"tail"]
