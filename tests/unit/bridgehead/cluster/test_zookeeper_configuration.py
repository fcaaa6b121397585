"""The configuration of the embedded ZooKeeper, and the durations that options accept."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bridgehead.cli.options import duration_seconds
from bridgehead.cluster.properties import parse_properties
from bridgehead.cluster.zookeeper import Member, server_configuration

MEMBERS = tuple(Member(n, Path(f"/d/{n}"), 100 + n, 200 + n, 300 + n) for n in (1, 2, 3))


def test_a_single_zookeeper_member_keeps_every_transaction_log() -> None:
    config = parse_properties(server_configuration(MEMBERS[0], MEMBERS[:1]))
    assert config["clientPortAddress"] == "127.0.0.1"
    assert config["admin.enableServer"] == "false"
    assert config["autopurge.purgeInterval"] == "0"
    assert int(config["snapCount"]) > 10_000_000
    assert (config["tickTime"], config["minSessionTimeout"]) == ("500", "1000")
    assert config["maxClientCnxns"] == "0"
    assert not [key for key in config if key.startswith("server.")]


def test_three_members_list_each_other() -> None:
    config = parse_properties(server_configuration(MEMBERS[1], MEMBERS))
    assert [config[f"server.{n}"] for n in (1, 2, 3)] == [
        f"127.0.0.1:20{n}:30{n}" for n in (1, 2, 3)
    ]
    assert config["clientPort"] == "102"


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5.0), ("500ms", 0.5), ("1m", 60.0), ("2", 2.0), ("1.5s", 1.5)]
)
def test_duration_is_parsed(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "5d", "five"])
def test_malformed_duration_is_rejected(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration_seconds(text)
