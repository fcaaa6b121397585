"""Whatever other programs have written, a scan ends soon, and with a report."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rehearse.cluster import Cluster
from rehearse.scan_report import Report
from rehearse.seeds import SEEDS, healthy
from rehearse.sources.dump import read_dump, write_dump
from rehearse.znodes import Hidden, Znode, ZnodeTree
from tests.unit.rehearse.test_seeds import BROKER, CONTROLLER

PATHS = sorted({*healthy().znodes, *(path for seed in SEEDS for path in seed.put)})
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def contents(draw: st.DrawFn, path: str) -> bytes | None:
    """Draw bytes: any, JSON of any shape, or the good content with one value changed or cut."""
    kind = draw(st.sampled_from(["none", "bytes", "json", "changed", "cut"]))
    good = healthy().data(path) or b"{}"
    match kind:
        case "none":
            return None
        case "bytes":
            return draw(st.binary(max_size=40))
        case "json":
            return json.dumps(draw(VALUES)).encode()
        case "cut":
            return good[: draw(st.integers(0, len(good)))]
    document = orjson.loads(good)
    if not isinstance(document, dict) or not document:
        return json.dumps(draw(VALUES)).encode()
    key = draw(st.sampled_from(sorted(document)))
    inner = document[key]
    if isinstance(inner, dict) and inner and draw(st.booleans()):
        inner[draw(st.sampled_from(sorted(inner)))] = draw(VALUES)
    elif isinstance(inner, list) and inner and draw(st.booleans()):
        inner[0] = draw(VALUES)
    else:
        document[key] = draw(VALUES)
    return json.dumps(document).encode()


@st.composite
def trees(draw: st.DrawFn) -> ZnodeTree:
    znodes = dict(healthy().znodes)
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=6, unique=True)):
        change = draw(st.sampled_from(["data", "data", "data", "gone", "denied", "child"]))
        if change == "gone":
            znodes.pop(path, None)
        elif change == "denied":
            znodes[path] = Znode(hidden=Hidden.NO_AUTH)
        elif change == "child":
            name = draw(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1))
            znodes[f"{path}/{name}"] = Znode(draw(contents(path)))
        else:
            znodes[path] = Znode(draw(contents(path)))
    return ZnodeTree(znodes)


@given(trees())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_scan_of_any_tree_ends_with_a_report(tree: ZnodeTree) -> None:
    report = Report.of("s", Cluster(tree, (BROKER, CONTROLLER)), "3.9.1")
    assert list(report.lines())[-1].endswith(".")
    assert orjson.dumps(report.document())
    assert len(report.junit()) > 80


@given(trees())
@settings(max_examples=60, deadline=None)
def test_any_tree_can_be_dumped_and_read_again(tmp_path_factory: Any, tree: ZnodeTree) -> None:
    file = tmp_path_factory.mktemp("dump") / "dump"
    write_dump(tree, file)
    read = read_dump(file)
    assert read.znodes.keys() == tree.znodes.keys()
    assert all(z == tree.znodes[p] or z.hidden for p, z in read.znodes.items())


LONG = 1_000_000
SLOW = {
    "/brokers/topics/audit": (b"[" * LONG, b'{"a":' * (LONG // 5), b'"' + b"x" * LONG + b'"'),
    "/config/users/alice": (
        b'{"config":{"SCRAM-SHA-256":"' + b"a=b," * (LONG // 4) + b'"}}',
        b'{"config":{"producer_byte_rate":"' + b"9" * LONG + b'"}}',
    ),
    "/controller_epoch": (b"9" * LONG,),
    "/latest_producer_id_block": (b'{"broker":1,"block_start":"' + b"1" * LONG + b'"}',),
    "/config/brokers/2": (b'{"config":{"ssl.key.password":"' + b"a:b," * (LONG // 4) + b'"}}',),
    "/config/users/" + "%zz" * 10_000: (b"{}",),
}


def test_long_contents_take_little_time() -> None:
    started = time.perf_counter()
    for path, datas in SLOW.items():
        for data in datas:
            tree = ZnodeTree({**healthy().znodes, path: Znode(data)})
            Report.of("s", Cluster(tree, (BROKER, CONTROLLER)), "3.9.1")
    assert time.perf_counter() - started < 20


def test_many_different_states_take_little_time() -> None:
    """Ten thousand topics with three partitions each: seconds, not minutes."""
    znodes = dict(healthy().znodes)
    for number in range(10_000):
        topic = f"/brokers/topics/t{number}"
        partitions = {str(p): [1 + (p + number + k) % 3 for k in range(3)] for p in range(3)}
        content = {
            "partitions": partitions,
            "topic_id": f"AAAAAAAAAAAAAAAAA{number:05}",
            "version": 3,
        }
        znodes[topic] = Znode(orjson.dumps(content))
        for p in range(3):
            state = {"leader": partitions[str(p)][0], "isr": partitions[str(p)]}
            state |= {"leader_epoch": number, "controller_epoch": 7}
            znodes[f"{topic}/partitions/{p}/state"] = Znode(orjson.dumps(state))
    started = time.perf_counter()
    report = Report.of("s", Cluster(ZnodeTree(znodes), (BROKER, CONTROLLER)), "3.9.1")
    assert time.perf_counter() - started < 20
    assert report.summary.startswith("10,003 topics, 30,006 partitions")
    assert {finding.rule.id for finding in report.findings} <= {
        "topic-ids-shared",
        "topic-unreadable",
    }
