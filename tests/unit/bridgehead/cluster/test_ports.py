"""The search for ports, without sockets."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports, Use, ephemeral_ports, outside


def test_ports_for_outgoing_connections_are_not_chosen() -> None:
    assert list(outside(range(20_000, 32_000), range(32_768, 61_000))) == [*range(20_000, 32_000)]
    assert list(outside(range(20_000, 32_000), range(25_000, 61_000))) == [*range(20_000, 25_000)]


def test_if_nearly_all_ports_are_for_outgoing_connections_they_are_chosen() -> None:
    assert list(outside(range(20_000, 32_000), range(1024, 65_536))) == [*range(20_000, 32_000)]
    assert list(outside(range(20_000, 32_000), range(20_999, 65_536))) == [*range(20_000, 32_000)]


@pytest.mark.parametrize("text", [None, "", "32768", "low high"])
def test_without_a_readable_range_linux_default_applies(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "range"
    if text is not None:
        file.write_text(text)
    assert ephemeral_ports(file) == range(32_768, 61_000)


def test_the_range_of_the_kernel_applies(tmp_path: Path) -> None:
    file = tmp_path / "range"
    file.write_text("1024\t2047\n")
    assert ephemeral_ports(file) == range(1024, 2048)


def test_the_search_ends_with_an_error_if_no_port_is_free() -> None:
    asked: list[int] = []

    def nothing(_host: str, port: int, _use: Use) -> None:
        asked.append(port)

    ports = Ports(nothing)
    with pytest.raises(ClusterError, match=r"No port between \d+ and \d+ is free"):
        ports.choose()
    assert len(asked) == len(set(asked)), "it asked for a port twice"
    with pytest.raises(ClusterError, match=r"No row of 3 ports between \d+ and \d+ is free"):
        ports.choose_row(3)


def test_a_row_that_is_taken_in_part_is_released() -> None:
    held: list[int] = []

    def all_but_every_ninth(_host: str, port: int, _use: Use) -> ExitStack | None:
        if port % 9 == 1:
            return None
        stack = ExitStack()
        stack.callback(held.remove, port)
        held.append(port)
        return stack

    ports = Ports(all_but_every_ninth)
    rows = [ports.choose_row(3) for _ in range(200)]
    assert sorted(held) == sorted(first + number for first in rows for number in range(3))
    ports.close()
    assert not held


def test_one_owner_gets_a_port_once() -> None:
    ports = Ports(lambda _host, _port, _use: ExitStack())
    assert ports.demand(LOOPBACK, 9092) == 9092
    with pytest.raises(ClusterError, match="Port 9092 is in use"):
        ports.demand(LOOPBACK, 9092)
    assert ports.prefer(LOOPBACK, 9092) != 9092
