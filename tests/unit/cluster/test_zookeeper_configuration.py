"""What the embedded ZooKeeper is told, and durations as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bridgehead.cli.options import duration_seconds
from bridgehead.cluster.properties import parse_properties
from bridgehead.cluster.zookeeper import Member, server_configuration

MEMBERS = tuple(Member(n, Path(f"/d/{n}"), 100 + n, 200 + n, 300 + n) for n in (1, 2, 3))


def test_one_member_listens_on_loopback_and_keeps_every_log() -> None:
    """Nothing is purged, no snapshot rolls the log, the admin server is off, short sessions go."""
    told = parse_properties(server_configuration(MEMBERS[0], MEMBERS[:1]))
    assert told["clientPortAddress"] == "127.0.0.1"
    assert told["admin.enableServer"] == "false"
    assert told["autopurge.purgeInterval"] == "0"
    assert int(told["snapCount"]) > 10_000_000
    assert (told["tickTime"], told["minSessionTimeout"]) == ("500", "1000")
    assert told["maxClientCnxns"] == "0"
    assert not [key for key in told if key.startswith("server.")]


def test_three_members_know_each_other_on_loopback() -> None:
    """Quorum and election ports of all three stand in each member's configuration."""
    told = parse_properties(server_configuration(MEMBERS[1], MEMBERS))
    assert [told[f"server.{n}"] for n in (1, 2, 3)] == [f"127.0.0.1:20{n}:30{n}" for n in (1, 2, 3)]
    assert told["clientPort"] == "102"


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5.0), ("500ms", 0.5), ("1m", 60.0), ("2", 2.0), ("1.5s", 1.5)]
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: float) -> None:
    """Seconds unless a unit says otherwise."""
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "5h", "five"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """As a usage error, before anything is frozen."""
    with pytest.raises(typer.BadParameter):
        duration_seconds(text)
