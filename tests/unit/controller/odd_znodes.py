"""Znodes of every kind in the layout, and odd values for them: any JSON type, any size.

`VALID` has one valid content for each kind of znode that nodes read. `contents` also draws contents
that are valid except for one value, because an entirely different content seldom passes the first
check of its decoder.
"""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st

ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_REGISTRATION: Final = {
    "features": {},
    "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    "endpoints": ["PLAINTEXT://localhost:9077"],
    "rack": "rack-77",
    "jmx_port": -1,
    "port": 9077,
    "host": "localhost",
    "version": 5,
    "timestamp": "1700000000000",
}
_TOPIC: Final = {
    "partitions": {"0": [1, 2]},
    "topic_id": ID,
    "adding_replicas": {"0": [2]},
    "removing_replicas": {},
    "version": 3,
}
_STATE: Final = {
    "controller_epoch": 1,
    "leader": 1,
    "version": 1,
    "leader_epoch": 3,
    "isr": [1, 2],
    "leader_recovery_state": 0,
}
_ACL: Final = {"principal": "User:odd", "permissionType": "Allow", "operation": "Read", "host": "*"}
_TOKEN: Final = {
    "issueTimestamp": 1,
    "renewers": ["User%3Abob"],
    "tokenRequester": "User%3Aodd",
    "tokenId": "odd",
    "owner": "User%3Aodd",
    "expiryTimestamp": 2**50,
    "maxTimestamp": 2**50,
    "version": 3,
}
_SCRAM: Final = "salt=b2Rk,stored_key=b2Rk,server_key=b2Rk,iterations=4096"
_OUTCOMES: Final = {
    "epoch": 1,
    "outcomes": [{"id": [1, "abc", 8], "request": "r", "elements": [["t", 0, None, ID, [5]]]}],
}


def _config(**configs: str) -> dict[str, Any]:
    return {"version": 1, "config": configs}


VALID: Final[dict[str, Any]] = {
    "/brokers/ids/77": _REGISTRATION,
    "/bridgehead/nodes/77": {"version": 1, "grpc": "127.0.0.1:1", "incarnation": "abc"},
    "/brokers/topics/odd": _TOPIC,
    "/brokers/topics/odd/partitions/0/state": _STATE,
    "/config/topics/odd": _config(
        **{"retention.ms": "1000", "unclean.leader.election.enable": "1"}
    ),
    "/config/brokers/77": _config(**{"log.retention.ms": "1000"}),
    "/config/brokers/<default>": _config(**{"log.retention.ms": "1000"}),
    "/config/users/odd": _config(**{"SCRAM-SHA-256": _SCRAM, "controller_mutation_rate": "5"}),
    "/config/users/odd/clients/odd": _config(producer_byte_rate="1000"),
    "/config/clients/odd": _config(consumer_byte_rate="1000"),
    "/config/ips/10.0.0.9": _config(connection_creation_rate="7"),
    "/config/changes/config_change_0000000007": {"version": 2, "entity_path": "topics/odd"},
    "/kafka-acl/Topic/odd": {"version": 1, "acls": [_ACL]},
    "/kafka-acl-extended/prefixed/Topic/odd": {"version": 1, "acls": [_ACL]},
    "/kafka-acl-extended-changes/acl_changes_0000000007": {
        "version": 1,
        "resourceType": "TOPIC",
        "name": "odd",
        "patternType": "PREFIXED",
    },
    "/delegation_token/tokens/odd": _TOKEN,
    "/latest_producer_id_block": {
        "version": 1,
        "broker": 1,
        "block_start": "1000",
        "block_end": "1999",
    },
    "/bridgehead/outcomes/0000000007": _OUTCOMES,
    # These contents are not JSON.
    "/bridgehead/floors/77-abc": "7",
    "/bridgehead/commit": "7",
    "/kafka-acl-changes/acl_changes_0000000007": "Topic:odd",
    "/delegation_token/token_changes/token_change_0000000007": "odd",
    # No node reads the contents of these.
    "/admin/delete_topics/odd": "",
    "/feature": {"features": {}, "version": 2, "status": 1},
    "/brokers/seqid": "",
    "/isr_change_notification/isr_change_0000000007": {"version": 1, "partitions": []},
    "/log_dir_event_notification/log_dir_event_0000000007": {"version": 1, "broker": 1, "event": 1},
}
# Folders whose children may have any name that ZooKeeper accepts.
FOLDERS: Final = tuple(sorted({path.rpartition("/")[0] for path in VALID} - {"", "/brokers"}))

_BOUNDARIES: Final = tuple(
    sign * (2**bits + offset)
    for bits in (15, 16, 31, 32, 40, 53, 63, 64, 70)
    for offset in (-1, 0, 1)
    for sign in (1, -1)
)
_NUMBERS: Final = st.sampled_from((-2, -1, 0, 1, 77, 10**400, *_BOUNDARIES))
_TEXTS: Final = st.text(max_size=10) | st.sampled_from(
    ("", ".", "..", "/", "a/b", "a:b", "77", "-1", "\u0663", "NaN", "9" * 5_000, "x" * 40_000)
)
_SCALARS: Final = st.none() | st.booleans() | _NUMBERS | st.floats(allow_nan=False) | _TEXTS
_VALUES: Final = st.recursive(
    _SCALARS | st.just([1] * 40_000),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(st.text(max_size=5) | _TEXTS, values, max_size=3)
    ),
    max_leaves=5,
)
_ODD_NAMES: Final = (
    *("zzz", "007", "-1", "\u0663", "1099511627776", "2147483647", "9" * 23, "9" * 5_000, "a b"),
    *("x" * 40_000, "acl_changes_9999999999", "token_change_0000000001x", "config_change_x", "1-z"),
)
NAMES: Final = st.sampled_from(_ODD_NAMES) | st.from_regex(r"[A-Za-z0-9_<>-]{1,12}", fullmatch=True)


_NOT_JSON: Final = (None, b"", b"\xff\xfe", b"{", b"[" * 100_000)


def _places(value: Any, *place: Any) -> list[tuple[Any, ...]]:
    """Return the place of every value in a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    below = (_places(part, *place, key) for key, part in parts if isinstance(part, dict | list))
    here: list[tuple[Any, ...]] = [(*place, key) for key in _keys(value)]
    return here + [nested for places in below for nested in places]


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value)))


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    copied = json.loads(json.dumps(value))
    target = copied
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = new
    return copied


def contents(path: str) -> st.SearchStrategy[bytes | None]:
    """Return a strategy for odd contents of a znode."""
    valid = VALID.get(path, "")
    odd: st.SearchStrategy[Any] = _VALUES
    if isinstance(valid, dict):
        changed = st.builds(_with, st.just(valid), st.sampled_from(_places(valid)), _VALUES)
        odd = changed | changed | changed | odd
    in_json = odd.map(lambda value: json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    plain = _TEXTS.map(lambda word: word.encode(errors="replace"))
    plain |= _NUMBERS.map(lambda number: b"%d" % number)
    return st.just(as_bytes(valid)) | in_json | in_json | plain | st.sampled_from(_NOT_JSON)


def as_bytes(document: Any) -> bytes:
    """Return the content of a znode that holds a text or a JSON document."""
    return document.encode() if isinstance(document, str) else json.dumps(document).encode()


def odd_trees() -> st.SearchStrategy[dict[str, bytes | None]]:
    """Return a strategy for trees with a znode of every kind, and a few more with odd names."""
    every = st.fixed_dictionaries({path: contents(path) for path in VALID})
    paths = st.builds("{}/{}".format, st.sampled_from(FOLDERS), NAMES)
    named = st.dictionaries(paths, st.sampled_from(sorted(VALID)).flatmap(contents), max_size=3)
    return st.builds(lambda valid, more: valid | more, every, named)
