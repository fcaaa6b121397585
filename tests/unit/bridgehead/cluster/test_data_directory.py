"""A cluster's folder has one owner."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.cli.options import duration_seconds
from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties, parse_properties
from bridgehead.cluster.zookeeper import Member, server_configuration


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    mask = os.umask(0o077)
    yield
    os.umask(mask)


def test_only_one_process_owns_a_folder(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    assert not directory.is_claimed()
    owner = directory.claim()
    assert directory.is_claimed()
    with pytest.raises(ClusterError, match=f"already running in .* as pid {os.getpid()}"):
        directory.claim()
    os.close(owner)
    assert not directory.is_claimed()


def test_a_command_that_looks_for_the_owner_does_not_prevent_a_start(
    tmp_path: Path,
) -> None:
    directory = DataDirectory(tmp_path)
    os.close(directory.claim())
    looking = os.open(directory.supervisor_pid, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)  # the lock that is_claimed takes
    threading.Timer(0.05, os.close, (looking,)).start()
    os.close(directory.claim())


# The configuration of the embedded ZooKeeper, and the durations that options accept.

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


@pytest.mark.parametrize("text", ["", "s", "-1s", "5h", "five"])
def test_malformed_duration_is_rejected(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration_seconds(text)


# Java's .properties format, as Kafka's server.properties uses it.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t\f= 1", {"a": "1"}),
        ("a==1", {"a": "=1"}),
        ("a", {"a": ""}),
        ("a=\n", {"a": ""}),
        ("# a=1\n! b=2\n  #c=3\n\n", {}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# no comment here", {"a": "1# no comment here"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00e9\\t\\n\\x", {"a": "é\t\nx"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=1\na=2", {"a": "2"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("  a  =  b c  ", {"a": "b c  "}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_malformed_unicode_escape_is_rejected() -> None:
    """Java also rejects such an escape."""
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties("a=\\u12")


def test_error_of_a_malformed_escape_names_the_property_and_not_its_value() -> None:
    with pytest.raises(ValueError, match="Malformed") as raised:
        parse_properties('a=1\nsasl.jaas.config=Module required password="secr\\user";')
    assert "sasl.jaas.config" in str(raised.value)
    assert "secr" not in str(raised.value)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_TEXT, _TEXT, max_size=5))
def test_formatted_properties_are_parsed_to_the_same_properties(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties
