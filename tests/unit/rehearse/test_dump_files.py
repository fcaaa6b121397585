"""A dump keeps every znode, and no secret unless a key seals it; a damaged one is an error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from cluster_model.znodes.access import OPEN, ZnodeAcl
from rehearse.seeds import TOKEN, healthy
from rehearse.sources.dump import read_dump, read_key, write_dump
from rehearse.znodes import Hidden, SourceError, Znode, ZnodeTree

SECRETS = {
    "/config/users/carol": ("SCRAM-SHA-512", "salt=c2VjcmV0"),
    "/config/brokers/3": ("listener.name.tls.ssl.keystore.password", "changeit-7"),
    "/config/brokers/<default>": ("my.plugin.token", "hunter2-8"),
    "/config/topics/orders": ("vendor.key", "topsecret-9"),
    "/config/clients/c": ("SCRAM-SHA-256", "salt=Y2xpZW50"),
}


def tree_with_secrets() -> ZnodeTree:
    znodes = dict(healthy().znodes)
    for path, (name, value) in SECRETS.items():
        content = {"version": 1, "config": {name: value, "retention.ms": "77"}}
        znodes[path] = Znode(orjson.dumps(content), 5, acls=OPEN)
    znodes["/config/users/torn"] = Znode(b'{"config":{"SCRAM-SHA-256":"salt=dG9ybg==', acls=OPEN)
    znodes["/kafka-acl/Topic/odd"] = Znode(b"\xff\x00\xfe", acls=(ZnodeAcl(31, "sasl", "kafka"),))
    znodes["/config/brokers/9"] = Znode(hidden=Hidden.NO_AUTH)
    return ZnodeTree(znodes, 0x300000007, is_one_state=False)


def test_sealed_dump_has_the_same_tree(tmp_path: Path) -> None:
    key = read_key(tmp_path / "key", create=True)
    write_dump(tree_with_secrets(), tmp_path / "dump", key)
    assert read_dump(tmp_path / "dump", key) == tree_with_secrets()


def test_dump_without_key_has_no_secret(tmp_path: Path) -> None:
    assert write_dump(tree_with_secrets(), tmp_path / "dump") == len(SECRETS) + 3
    text = (tmp_path / "dump").read_text()
    secrets = [value for _, value in SECRETS.values()]
    for secret in (*secrets, "dG9ybg", "stored_key", "server_key", "renewers"):
        assert secret not in text


def test_sealed_dump_has_no_secret_in_clear(tmp_path: Path) -> None:
    key = read_key(tmp_path / "key", create=True)
    write_dump(tree_with_secrets(), tmp_path / "dump", key)
    text = (tmp_path / "dump").read_text()
    assert not [value for _, value in SECRETS.values() if value in text]


def test_dump_without_key_keeps_all_else_and_names_what_it_lacks(tmp_path: Path) -> None:
    write_dump(tree_with_secrets(), tmp_path / "dump")
    tree = read_dump(tmp_path / "dump")
    assert (tree.zxid, tree.is_one_state) == (0x300000007, False)
    assert tree.znodes.keys() == tree_with_secrets().znodes.keys()
    # `retention.ms` is no quota, and no broker config: its value may be a secret there.
    assert {path: tree.znodes[path].left_out for path in SECRETS} == {
        "/config/users/carol": ("SCRAM-SHA-512", "retention.ms"),
        "/config/brokers/3": ("listener.name.tls.ssl.keystore.password", "retention.ms"),
        "/config/brokers/<default>": ("my.plugin.token", "retention.ms"),
        "/config/topics/orders": ("vendor.key",),
        "/config/clients/c": ("SCRAM-SHA-256", "retention.ms"),
    }
    assert json.loads(tree.data("/config/topics/orders") or b"")["config"] == {"retention.ms": "77"}
    for path in ("/config/users/torn", f"/delegation_token/tokens/{TOKEN}"):
        assert tree.znodes[path] == Znode(None, acls=OPEN, hidden=Hidden.LEFT_OUT)
    hidden = {path for path, znode in tree.znodes.items() if znode.hidden}
    for path, znode in tree_with_secrets().znodes.items():
        if path not in hidden:
            assert tree.znodes[path] == znode


@pytest.mark.parametrize(
    "content",
    [
        b'"hunter2"',
        b'{"config":"hunter2"}',
        b'{"config":["hunter2"]}',
        b'{"version":1,"config":{},"password":"hunter2"}',
        b"hunter2",
    ],
)
def test_content_that_is_not_understood_may_be_secret(tmp_path: Path, content: bytes) -> None:
    tree = ZnodeTree({"/config/users/u": Znode(content)})
    write_dump(tree, tmp_path / "dump")
    assert "hunter2" not in (tmp_path / "dump").read_text()
    assert read_dump(tmp_path / "dump").znodes["/config/users/u"].hidden is Hidden.LEFT_OUT


def test_dump_of_a_dump_still_names_what_it_lacks(tmp_path: Path) -> None:
    write_dump(tree_with_secrets(), tmp_path / "first")
    write_dump(read_dump(tmp_path / "first"), tmp_path / "second")
    assert read_dump(tmp_path / "second") == read_dump(tmp_path / "first")


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    key = read_key(tmp_path / "key", create=True)
    write_dump(healthy(), tmp_path / "dump", key)
    for name in ("key", "dump"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump", "key"]


def test_another_key_is_an_error(tmp_path: Path) -> None:
    key, other = (read_key(tmp_path / name, create=True) for name in ("key", "other"))
    write_dump(healthy(), tmp_path / "dump", key)
    with pytest.raises(SourceError, match="the key does not open its secrets"):
        read_dump(tmp_path / "dump", other)


def test_existing_key_is_used_again(tmp_path: Path) -> None:
    assert read_key(tmp_path / "key", create=True) == read_key(tmp_path / "key", create=True)
    (tmp_path / "no-key").write_text("a word")
    with pytest.raises(SourceError, match="has no key"):
        read_key(tmp_path / "no-key")
    with pytest.raises(SourceError, match="No such file"):
        read_key(tmp_path / "missing")


def _damaged(folder: Path, change: Any) -> Path:
    write_dump(healthy(), folder / "dump")
    lines = (folder / "dump").read_bytes().splitlines(keepends=True)
    (folder / "dump").write_bytes(b"".join(change(lines)))
    return folder / "dump"


def _with_field(lines: list[bytes], **fields: Any) -> list[bytes]:
    return [lines[0], orjson.dumps({**orjson.loads(lines[1]), **fields}) + b"\n", *lines[2:]]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda _lines: [], "this is not a dump"),
        (lambda _lines: [b"[1]\n"], "not a JSON object"),
        (lambda lines: lines[1:], "this is not a dump"),
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":2')], "of version 1 only"),
        (lambda lines: lines[:-1], "it is cut off: [0-9]+ of [0-9]+ znodes"),
        (lambda lines: [*lines[:-1], lines[-1][:20]], "line [0-9]+: unexpected"),
        (lambda lines: [*lines, b"null\n"], "line [0-9]+: not a JSON object"),
        (lambda lines: _with_field(lines, path="/etc/passwd"), "line 2: its path is not"),
        (lambda lines: _with_field(lines, path=5), "line 2: its path is not"),
        (lambda lines: _with_field(lines, path="/admin" + "/a" * 40_000), "line 2: its path"),
        (lambda lines: _with_field(lines, version="1"), "line 2: its version or its data"),
        (lambda lines: _with_field(lines, data=[1]), "line 2: its version or its data"),
        (lambda lines: _with_field(lines, base64="!"), "line 2: "),
        (lambda lines: _with_field(lines, acls=[[1]]), "line 2: "),
        (lambda lines: _with_field(lines, hidden="why"), "line 2: "),
        (lambda lines: [lines[0], lines[1].replace(b'"path"', b'"way"')], "'path' is missing"),
        (lambda lines: [lines[0], b"[" * 5000 + b"\n"], "line 2: depth limit"),
    ],
)
def test_damaged_dump_is_an_error(tmp_path: Path, change: Any, error: str) -> None:
    with pytest.raises(SourceError, match=f"dump: .*({error})"):
        read_dump(_damaged(tmp_path, change))


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_dump(tmp_path / "none")
    with pytest.raises(SourceError, match="cannot be written: No such file"):
        write_dump(healthy(), tmp_path / "none" / "dump")


def test_dump_has_no_time_and_no_order_of_its_source(tmp_path: Path) -> None:
    """Two dumps of the same state are equal, so that they can be compared with diff."""
    shuffled = replace(healthy(), znodes=dict(reversed(list(healthy().znodes.items()))))
    write_dump(healthy(), tmp_path / "one")
    write_dump(shuffled, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
