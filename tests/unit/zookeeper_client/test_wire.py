"""MultiRead decodes ZooKeeper's replies."""

from __future__ import annotations

import struct

import pytest

from zookeeper_client.wire import (
    MultiRead,
    Read,
    ReadChildren,
    ReadData,
    ReadDenied,
    Stat,
    ZnodeData,
)

STAT = Stat(
    czxid=1,
    mzxid=2,
    ctime=3,
    mtime=4,
    version=5,
    cversion=6,
    aversion=7,
    ephemeral_owner=8,
    data_length=9,
    num_children=10,
    pzxid=11,
)
GET_DATA, GET_CHILDREN, ERROR = 4, 8, -1
NO_NODE, NO_AUTH = -101, -102
END = struct.pack("!iBi", -1, 1, -1)


def result(kind: int, body: bytes) -> bytes:
    return struct.pack("!iBi", kind, 0, -1) + body


def text(value: bytes) -> bytes:
    return struct.pack("!i", len(value)) + value


def test_a_reply_has_data_children_and_missing_znodes_in_order() -> None:
    prefix = b"header of the reply"
    reply = prefix + b"".join(
        (
            result(GET_DATA, text(b"content") + STAT.pack()),
            result(GET_CHILDREN, struct.pack("!i", 2) + text(b"a") + text("ü".encode())),
            result(ERROR, struct.pack("!i", NO_NODE)),
            result(GET_DATA, struct.pack("!i", -1) + STAT.pack()),
            result(GET_DATA, text(b"") + STAT.pack()),
            result(GET_CHILDREN, struct.pack("!i", 0)),
            END,
        )
    )
    reads: list[Read] = [ReadData("/a"), ReadChildren("/b")]
    data, children, missing, null, empty, none = MultiRead(reads, "").deserialize(
        reply, len(prefix)
    )
    assert data == (b"content", STAT.pack())
    assert isinstance(data, ZnodeData)
    assert data.stat == STAT
    assert data.version == STAT.version
    assert children == ["a", "ü"]
    assert missing is None
    assert null == (None, STAT.pack())
    assert empty == (b"", STAT.pack())
    assert none == []


def test_an_empty_reply_has_no_results() -> None:
    assert MultiRead([], "").deserialize(END, 0) == []


def test_an_error_other_than_no_node_is_raised() -> None:
    reply = result(ERROR, struct.pack("!i", NO_AUTH)) + END
    with pytest.raises(ValueError, match="-102"):
        MultiRead([ReadData("/a")], "").deserialize(reply, 0)


def test_denied_read_is_a_result_if_it_may_be_denied() -> None:
    """Only who asks for it gets past a znode that it may not read."""
    reply = result(ERROR, struct.pack("!i", NO_AUTH)) + END
    reads: list[Read] = [ReadData("/a")]
    assert MultiRead(reads, "", may_be_denied=True).deserialize(reply, 0) == [ReadDenied()]
    with pytest.raises(ValueError, match="MultiRead returned error -102"):
        MultiRead(reads, "").deserialize(reply, 0)
