"""A cluster's folder has one owner, and nothing in it leads out of it."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.cli.options import duration_seconds
from bridgehead.cluster.data_directory import DataDirectory, make_private, read_json, write_json
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


@pytest.mark.parametrize("text", ["", "s", "-1s", "5d", "five"])
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


ENTRIES = ("supervisor.pid", "nodes", "evidence", "zookeeper", "nodes/1/node.log", "tls/ca.pem")


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("mode", [0o777, 0o700], ids=oct)
def test_a_planted_link_is_neither_followed_nor_accepted(
    name: str, mode: int, tmp_path: Path
) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "data"
    is_file = "." in name
    if is_file:
        victim.write_text("thesis")
    else:
        victim.mkdir()
        (victim / "kept").write_text("thesis")
    victim.chmod(0o755)
    (folder / name).parent.mkdir(parents=True)
    folder.chmod(mode)
    (folder / name).symlink_to(victim)
    with pytest.raises(ClusterError, match="is a symbolic link, which no cluster creates"):
        DataDirectory(folder).claim()
    assert (victim if is_file else victim / "kept").read_text() == "thesis"
    assert victim.stat().st_mode & 0o777 == 0o755
    assert not DataDirectory(folder).is_claimed()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["supervisor.pid", "cluster.json", "nodes/1/node.log"])
def test_a_planted_pipe_blocks_nobody(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    directory = DataDirectory(tmp_path)
    assert not directory.is_claimed()
    assert directory.owner_text() == "unknown"
    assert read_json(directory.cluster_json) is None
    with pytest.raises(ClusterError, match="is a pipe or a device, which no cluster creates"):
        directory.claim()


def test_a_folder_that_others_can_write_is_used_only_if_it_is_a_clusters(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    os.close(DataDirectory(tmp_path).claim())
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    (tmp_path / "notes").touch()
    for mode in (0o707, 0o770, 0o1777):
        tmp_path.chmod(mode)
        with pytest.raises(ClusterError, match="run `chmod go-w` on it"):
            DataDirectory(tmp_path).claim()
    tmp_path.chmod(0o755)
    os.close(DataDirectory(tmp_path).claim())


@pytest.mark.parametrize("name", ["", "nodes", "nodes/1/node.log"])
def test_nothing_of_another_user_is_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes" / "1").mkdir(parents=True)
    (tmp_path / "nodes" / "1" / "node.log").touch()
    theirs, lstat, stat = tmp_path / name, Path.lstat, Path.stat

    def owned(status: os.stat_result, path: Path) -> os.stat_result:
        uid = os.geteuid() + (path == theirs)
        return os.stat_result((*status[:4], uid, *status[5:]))

    monkeypatch.setattr(Path, "lstat", lambda path: owned(lstat(path), path))
    monkeypatch.setattr(Path, "stat", lambda path, **how: owned(stat(path, **how), path))
    with pytest.raises(ClusterError, match="belongs to another user"):
        DataDirectory(tmp_path).claim()


def test_sockets_of_an_earlier_run_are_accepted(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "control.sock"))
    os.close(DataDirectory(tmp_path).claim())
    assert (tmp_path / "control.sock").lstat().st_mode & 0o077 == 0


def test_a_folder_is_private_before_its_entries_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another user could plant an entry between the check and the change of the mode."""
    folder = tmp_path / "nodes"
    folder.mkdir()
    folder.chmod(0o777)
    modes, iterdir = [], Path.iterdir

    def listed(path: Path) -> Iterator[Path]:
        modes.append(path.stat().st_mode & 0o777)
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    make_private([folder])
    assert modes == [0o700]


def test_documents_are_replaced_and_never_written_through_a_link(tmp_path: Path) -> None:
    victim, document = tmp_path / "victim", tmp_path / "cluster.json"
    victim.write_text("thesis")
    document.with_name("cluster.json.tmp").symlink_to(victim)
    write_json(document, {"port": 7})
    assert (read_json(document), victim.read_text()) == ({"port": 7}, "thesis")
    document.unlink()
    document.symlink_to(victim)
    write_json(victim, {"port": 8})
    assert read_json(document) is None


@pytest.mark.parametrize(
    "content", [b"[" * 200_000, b'{"a":' * 200_000, b"\xff", b"[]", b"9" * 5000]
)
def test_a_document_that_is_not_an_object_counts_as_missing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_bytes(content)
    assert read_json(tmp_path / "ready.json") is None
