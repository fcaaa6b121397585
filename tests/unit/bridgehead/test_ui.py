"""The page without a browser: rows in causal order, captions, export, diagrams, actions."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Sequence
from inspect import signature
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.generated_evidence.__main__ import generate
from bridgehead.cli import faults
from bridgehead.cluster.errors import ClusterError
from bridgehead.control_api.operations import OPERATIONS
from bridgehead.fault_rules import RULE_FIELDS
from bridgehead.pytest_plugin import _page_of
from bridgehead.ui import model, reading
from bridgehead.ui.actions import ACTIONS, arguments
from bridgehead.ui.captions import Captions
from bridgehead.ui.diagram import as_mermaid, as_svg, diagram_of
from bridgehead.ui.export import MODULES, STATIC, exported_page, script
from bridgehead.ui.ordering import causal_order
from bridgehead.ui.processes import Scenarios
from bridgehead.ui.reading import RunReader, find_run, read_run
from bridgehead.ui.rows import COLUMNS, CONTROLLER_CREATED, REPEATED, Collector, Rows
from bridgehead.ui.server import Served, _catch_up, open_run
from bridgehead.ui.verdicts import judged
from bridgehead.ui.vocabulary import KINDS, NUMBERS, NUMBERS_BY_NAME
from event_log.events import EVENT_KINDS
from tests import golden_histories

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e&"
PAGE_BYTES_MAX = 200_000


def keys(reader: RunReader) -> list[str]:
    rows = reader.collector.rows
    return [KINDS[rows.value("kind", at)].key for at in range(len(rows))]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run of a golden history: broker 2 forwards a creation to the controller, broker 1."""
    return golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path)


def change_lines(run: Path, pattern: str, change: Any) -> None:
    """Change every event in files that match a pattern."""
    for path in run.glob(pattern):
        events = [change(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(event) + "\n" for event in events))


def test_the_page_knows_exactly_the_kinds_of_events() -> None:
    assert set(NUMBERS_BY_NAME) == set(EVENT_KINDS)


@given(
    st.lists(st.lists(st.floats(0, 100), max_size=8), min_size=1, max_size=4),
    st.data(),
)
def test_no_row_precedes_its_cause_or_an_earlier_row_of_its_stream(
    clocks: list[list[float]], data: st.DataObject
) -> None:
    times = [t for stream in clocks for t in stream]
    streams: list[list[int]] = []
    for stream in clocks:
        start = sum(map(len, streams))
        streams.append(list(range(start, start + len(stream))))
    # Causes that follow a hidden order of all rows have no cycle.
    hidden = data.draw(st.permutations(range(len(times))))
    hidden_place = {row: at for at, row in enumerate(hidden)}
    for rows in streams:
        rows.sort(key=hidden_place.__getitem__)
    pairs = data.draw(
        st.lists(st.tuples(st.sampled_from(hidden), st.sampled_from(hidden)))
        if times
        else st.just([])
    )
    causes = {b: a for a, b in pairs if hidden_place[a] < hidden_place[b]}
    order, ordered_times = causal_order(streams, times, causes)
    place = {row: at for at, row in enumerate(order)}
    assert sorted(order) == list(range(len(times)))
    assert all(place[cause] < place[row] for row, cause in causes.items())
    assert all(place[a] < place[b] for rows in streams for a, b in pairwise(rows))
    assert ordered_times == sorted(ordered_times)


def test_a_cycle_of_causes_ends() -> None:
    order, _ = causal_order([[0, 1], [2, 3]], [5.0, 6.0, 1.0, 2.0], {0: 3, 2: 1})
    assert sorted(order) == [0, 1, 2, 3]
    assert order[0] == 2, "the cycle is cut at its earliest row"


def test_a_clock_that_runs_behind_does_not_put_the_effect_first(run: Path) -> None:
    """The controller's clock is ten seconds behind the broker's."""

    def behind(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "mono_ns": event["mono_ns"] - 10_000_000_000}

    change_lines(run, "node=1/*.jsonl", behind)
    reader = read_run(run)
    positions = keys(reader)
    flow = ["received", "forward_sent", "envelope_received", "executing", "commit_sent"]
    flow += ["transaction", "committed", "decided", "forward_replied", "responded"]
    places = [positions.index(key) for key in flow[:5]]
    zxids = reader.collector.rows.columns["zxid"]
    written = [at for at, key in enumerate(positions) if key == "transaction" and zxids[at] == 5]
    places += written
    places += [positions.index(key) for key in flow[6:]]
    assert places == sorted(places)


def test_rows_read_bit_by_bit_equal_rows_read_at_once(run: Path, tmp_path: Path) -> None:
    """A live page and a replay show the same, even if a line is written in two parts."""
    whole = read_run(run)
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "manifest.json").write_bytes((run / "manifest.json").read_bytes())
    live = RunReader.of(parts)
    files = [path for path in run.rglob("*.jsonl") if "dump" not in path.name]
    content = {path: path.read_bytes() for path in files}
    for share in (0.31, 0.77, 1.0):
        for path, data in content.items():
            copy = parts / path.relative_to(run)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data[: round(len(data) * share)])
        live.poll()
        live.collector.release(-1.0)
    live.collector.release()
    rows, expected = live.collector.rows, whole.collector.rows
    assert [rows.value("t", at) for at in range(len(rows))] == list(expected.columns["t"])
    assert keys(live) == keys(whole)
    assert rows.skipped == 0


@pytest.mark.parametrize("step_bytes", [3_000, 60_000])
def test_rows_read_in_steps_equal_rows_read_at_once(
    step_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large run is shown before it is read; the steps end in the middle of everything."""
    monkeypatch.setattr(reading, "_RELEASED_AFTER_BYTES", step_bytes)
    monkeypatch.setattr(reading, "_MARGIN_MS", 30.0)
    generate(tmp_path, 3_000)
    whole = RunReader.of(find_run(tmp_path))
    whole.poll()
    whole.collector.release()
    reader = RunReader.of(whole.run)
    counts = [len(reader.collector.rows) for _ in reader.read_in_steps(step_bytes)]
    assert sum(0 < count < counts[-1] for count in counts) > 5
    rows, expected = reader.collector.rows, whole.collector.rows
    for name in set(rows.columns) - {"node", "peer", "text", "file"}:  # numbers of other reads
        assert rows.columns[name] == expected.columns[name], name
    lines = [reader.line(at) for at in range(len(rows))]
    assert lines == [whole.line(at) for at in range(len(expected))]


def test_rows_that_come_late_are_counted_and_time_does_not_go_back(run: Path) -> None:
    reader = RunReader.of(run)
    reader._find_files()
    first, *others = reader.files
    for file in others:
        reader._read(file, 1 << 20)
    reader.collector.release()
    reader._read(first, 1 << 20)
    reader.collector.release()
    times = list(reader.collector.rows.columns["t"])
    assert times == sorted(times)
    assert reader.collector.rows.late > 0


def test_dropped_rows_leave_the_others_where_they_were(run: Path) -> None:
    reader = read_run(run)
    rows = reader.collector.rows
    before = {at: (rows.value("kind", at), reader.line(at)) for at in range(7, len(rows))}
    requests = len(rows.requests)
    rows.drop(7)
    assert {at: (rows.value("kind", at), reader.line(at)) for at in before} == before
    rows.drop(len(rows) - rows.base)
    assert requests > 0
    assert (rows.requests, rows.links, rows.number_of("r1")) == ({}, [], None)


def test_a_reader_that_drops_rows_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reader keeps is bounded by the rows that it has, not by those that it read."""
    kept = 500
    monkeypatch.setattr(reading, "_RELEASED_AFTER_BYTES", 60_000)
    monkeypatch.setattr(reading, "_MARGIN_MS", 10.0)
    generate(tmp_path, 25_000)
    reader = RunReader.of(find_run(tmp_path))
    rows, collector = reader.collector.rows, reader.collector
    largest: dict[str, int] = {}
    for _ in reader.read_in_steps(20_000):
        if len(rows) - rows.base > kept:
            model.drop(reader, len(rows) - rows.base - kept)
        for part in (rows, collector):
            names = vars(collector) if part is collector else Rows.__slots__
            for name in names:
                value = getattr(part, name)
                if isinstance(value, dict | list | set):
                    largest[name] = max(largest.get(name, 0), len(value))
    assert len(rows) > 20 * kept
    assert {name: size for name, size in largest.items() if size > 4 * kept} == {}
    assert {"_by_id", "_by_handle", "_given", "_needed", "requests", "links"} <= largest.keys()


def test_what_dropped_rows_wrote_stays(run: Path) -> None:
    reader = read_run(run)

    def znodes() -> dict[str, Any]:
        result = dict(model.first_znodes(reader))
        for _, _, written in model.operations(reader, 0):
            for kind, path, data in written:
                result[path] = data
                if kind == "delete":
                    del result[path]
        return result

    at_end = znodes()
    rows = reader.collector.rows
    assert {"/brokers/topics/orders", "/controller_epoch"} <= at_end.keys()
    while rows.base < len(rows):
        model.drop(reader, min(3, len(rows) - rows.base))
        assert znodes() == at_end


def test_requests_are_numbered_in_the_order_of_their_first_rows(run: Path) -> None:
    rows = read_run(run).collector.rows
    first_rows = list(dict.fromkeys(number for number in rows.columns["request"] if number))
    assert first_rows == list(range(1, len(first_rows) + 1))
    for number, request in rows.requests.items():
        assert rows.number_of(request.request_id) == number


def test_lines_that_are_no_events_are_counted(run: Path) -> None:
    path = next(run.glob("node=2/*.jsonl"))
    damaged = b'{"kind":"responded"}\n\xff\xfe\nnull\n[1]\n{"kind":7}\n'
    path.write_bytes(damaged + path.read_bytes())
    rows = read_run(run).collector.rows
    assert rows.skipped == 5


@pytest.mark.parametrize(
    "values",
    [
        {"attempt": -1},
        {"attempt": "two"},
        {"controller_id": [1]},
        {"request_id": 17},
        {"request_id": None},
        {"epoch": 2**40},
        {"error": 99_999},
        {"zxid": "0x5"},
        {"number": 1.5},
    ],
)
def test_a_field_with_a_wrong_value_costs_only_its_event(values: dict[str, Any], run: Path) -> None:
    """The others stay, and the page can still be built."""
    count = len(read_run(run).collector.rows)
    path = next(run.glob("node=2/*.jsonl"))
    event = {"mono_ns": 1, "wall_ms": 1, "host_boot_id": "h", "node": "2", "kind": "forward_sent"}
    path.write_bytes(path.read_bytes() + json.dumps({**event, **values}).encode() + b"\n")
    reader = read_run(run)
    rows = reader.collector.rows
    assert count <= len(rows) <= count + 1
    assert rows.skipped <= 1
    assert exported_page(reader, None, "run")


def test_a_collector_limits_the_texts_of_hostile_clients() -> None:
    collector = Collector(1.0)
    event = {"mono_ns": 1, "wall_ms": 1, "host_boot_id": "h", "node": "1", "kind": "resigned"}
    lines = b"\n".join(json.dumps({**event, "reason": f"r{n}"}).encode() for n in range(101_000))
    collector.add_lines(lines, 0, 0, "s")
    collector.release()
    texts = collector.rows.texts
    assert (len(texts.values), texts.rejected) == (100_000, 1_001)


def test_a_resend_of_a_recorded_request_says_that_nothing_runs_twice(run: Path) -> None:
    """The reply is lost after the commit, so the broker sends the Envelope again."""
    path = next(run.glob("node=2/*.jsonl"))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    replied = next(e for e in events if e["kind"] == KINDS[NUMBERS["forward_replied"]].name)
    sent = next(e for e in events if e["kind"] == "forward_sent")
    later = replied["mono_ns"] + 1_000_000
    end = max(e["seq"] for e in events) + 1
    lost = {**replied, "error": None, "zxid": 0, "seq": end, "mono_ns": later}
    resent = {**sent, "attempt": 2, "controller_id": 3, "seq": end + 1, "mono_ns": later + 1}
    with path.open("a") as file:
        file.writelines(json.dumps(item) + "\n" for item in (lost, resent))
    reader = read_run(run)
    captions = [item["caption"] for item in model.details(reader, 0, 500)]
    (resend,) = [caption for caption in captions if "resends" in caption]
    assert re.fullmatch(
        r"Broker 2 resends request \d+ \(CreateTopics\) to the controller, broker 3; its outcome "
        r"is recorded \(zxid 0x5\), so nothing runs twice\.",
        resend,
    )


def test_a_broker_is_down_from_its_kill_until_it_starts_again(run: Path) -> None:
    """An Envelope to it gets nothing, whatever its attempt; the page says so."""
    path = next(run.glob("node=2/*.jsonl"))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    sent = next(e for e in events if e["kind"] == "forward_sent")
    started = next(e for e in events if e["kind"] == "started")
    end, later = max(e["seq"] for e in events) + 1, sent["mono_ns"] + 10**9
    changes = (
        {"kind": "fault_injected", "action": "kill", "target": "3"},
        {**sent, "controller_id": 3, "attempt": 2},
        {**started, "node": "3"},
        {**sent, "controller_id": 3, "attempt": 3},
        {"kind": "node_ended", "ended_node": "3", "status": 1},
        {**sent, "controller_id": 3, "attempt": 4},
    )
    with path.open("a") as file:
        for at, change in enumerate(changes):
            event = {**sent, **change, "seq": end + at, "mono_ns": later + at}
            if change["kind"] != "forward_sent":
                del event["controller_id"]
            file.write(json.dumps(event) + "\n")
    reader = read_run(run)
    captions = [item["caption"] for item in model.details(reader, 0, 500)]
    down = [" which is down" in caption for caption in captions if "resends" in caption]
    assert down == [True, False, True]
    rows = reader.collector.rows
    rows.drop(len(rows))
    node = rows.nodes.values.index("3")
    assert (rows.is_running(node, len(rows)), len(rows.lives[node])) == (False, 1)


def test_vain_resends_are_told_once_and_the_resend_to_another_controller_is_told(run: Path) -> None:
    path = next(run.glob("node=2/*.jsonl"))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    replied = next(e for e in events if e["kind"] == KINDS[NUMBERS["forward_replied"]].name)
    sent = next(e for e in events if e["kind"] == "forward_sent")
    end, later = max(e["seq"] for e in events) + 1, replied["mono_ns"] + 10**6
    no_reply = {**replied, "error": None, "zxid": 0, "request_id": "2.other.1"}
    request = {**sent, "request_id": "2.other.1"}
    attempts = [(attempt, 3) for attempt in range(1, 5)] + [(5, 1), (6, 1)]
    steps = [
        step
        for attempt, controller in attempts
        for step in (
            {**request, "attempt": attempt, "controller_id": controller},
            {**no_reply, "attempt": attempt},
        )
    ]
    with path.open("a") as file:
        for at, step in enumerate(steps):
            file.write(json.dumps({**step, "seq": end + at, "mono_ns": later + at}) + "\n")
    rows = read_run(run).collector.rows
    number = rows.number_of("2.other.1")
    shown = [
        (KINDS[rows.value("kind", at)].key, rows.value("attempt", at))
        for at in range(len(rows))
        if rows.value("request", at) == number and not rows.value("flags", at) & REPEATED
    ]
    told = [("forward_sent", 1), ("forward_replied", 1), ("forward_sent", 2), ("forward_sent", 5)]
    assert shown == told


def test_the_kill_of_the_controller_says_what_requests_wait_for(run: Path) -> None:
    """The kill of another broker does not. A page knows it also after old rows were dropped."""
    lines = next(run.glob("node=2/*.jsonl")).read_text().splitlines()
    sent = next(e for e in map(json.loads, lines) if e["kind"] == "forward_sent")
    kept = {name: sent[name] for name in ("run_id", "boot", "host_boot_id", "wall_ms", "mono_ns")}
    harness = run / "harness=test" / "events-00000.jsonl"
    harness.parent.mkdir()
    with harness.open("w") as file:
        for seq, target in enumerate(("2", "1"), start=1):
            fault = {"kind": "fault_injected", "action": "kill", "target": target}
            file.write(json.dumps({**kept, **fault, "node": "harness", "seq": seq}) + "\n")
    reader = read_run(run)
    rows = reader.collector.rows
    faults = keys(reader).index("fault")
    for dropped in (0, faults):
        rows.drop(dropped)
        captions = [item["caption"] for item in model.details(reader, 0, 500)]
        other, controller = (text for text in captions if text.startswith("Fault"))
        assert other == "Fault: kill at broker 2."
        assert controller.startswith("Fault: broker 1, the controller, is killed. Requests wait")


def test_a_live_page_shows_rows_before_a_long_history_has_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that has run for hours has written more than can be read at once."""
    monkeypatch.setattr(reading, "_RELEASED_AFTER_BYTES", 1 << 20)
    generate(tmp_path, 40_000)
    served = Served(open_run(find_run(tmp_path)), str(tmp_path), follows=True, rows_max=3_000)
    rows = served.reader.collector.rows
    seen = list[tuple[float, int, int]]()

    async def watch() -> None:
        async with served.news:
            reads = asyncio.create_task(_catch_up(served))
            while served.share_read < 1:
                await served.news.wait()
                seen.append((served.share_read, len(rows), len(rows) - rows.base))
        await reads

    asyncio.run(watch())
    shares, counts, kept = zip(*seen, strict=True)
    assert 0 < shares[0] < 0.9
    assert list(counts) == sorted(counts)
    assert 0 < counts[0] < counts[-1]
    assert max(kept) <= 3_000


def test_an_election_follows_its_claim(run: Path) -> None:
    """ZooKeeper's time has no fractions of a millisecond."""
    positions = keys(read_run(run))
    flags = read_run(run).collector.rows.columns["flags"]
    elections = [at for at, flag in enumerate(flags) if flag & CONTROLLER_CREATED]
    assert elections
    assert positions.index("claimed") < elections[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name], ids=lambda k: k.key)
def test_every_kind_has_a_caption_even_without_fields(kind: Any, run: Path) -> None:
    event = {"mono_ns": 1, "wall_ms": 1, "host_boot_id": "h", "node": "2", "kind": kind.name}
    path = next(run.glob("node=2/*.jsonl"))
    path.write_text(json.dumps(event) + "\n")
    reader = read_run(run)
    rows = reader.collector.rows
    positions = [at for at in range(len(rows)) if rows.value("kind", at) == NUMBERS[kind.key]]
    captions = Captions(rows)
    for position in positions:
        caption = captions.of(position, event)
        assert caption.endswith(".")
        assert "None" not in caption


def hostile(event: dict[str, Any]) -> dict[str, Any]:
    names = {"client_id", "principal", "client_software_name"}
    changed = {**event, **dict.fromkeys(names & event.keys(), HOSTILE)}
    if "elements" in event:
        changed["elements"] = [[HOSTILE, code] for _, code in event["elements"]]
    return changed


def test_an_export_is_one_file_that_loads_nothing(run: Path) -> None:
    change_lines(run, "node=*/*.jsonl", hostile)
    page = exported_page(read_run(run), None, HOSTILE)
    assert "<img" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;")
    code = re.search(r'<script type="module">(.*)</script>', page, re.DOTALL)
    assert code is not None
    digest = base64.b64encode(hashlib.sha256(code[1].encode()).digest()).decode()
    assert f"sha256-{digest}" in policy[1]


def test_the_page_is_small_and_names_no_other_origin() -> None:
    content = {path: path.read_text(encoding="utf-8") for path in STATIC.iterdir()}
    assert sum(len(text.encode()) for text in content.values()) <= PAGE_BYTES_MAX
    assert {p.stem for p in content if p.suffix == ".js"} == set(MODULES)
    allowed = "http://www.w3.org/2000/svg"  # a namespace, which nothing loads
    for text in content.values():
        assert re.findall(r"https?://[^\"' ]+", text.replace(allowed, "")) == []
        assert "innerHTML" not in text
    assert "import " not in script()


def test_a_diagram_shows_the_stops_of_one_request(run: Path) -> None:
    diagram = diagram_of(read_run(run), "r1")
    assert diagram.lanes == ("Client", "Broker 2", "Controller", "ZooKeeper")
    said = " ".join(step.caption for step in diagram.steps)
    order = ["gets request", "forwards request", "gets the Envelope", "sends commit"]
    order += ["applies", "learns that commit", "decides request", "gets the response", "answers"]
    assert [said.find(word) for word in order] == sorted(said.find(word) for word in order)
    assert min(said.find(word) for word in order) >= 0


def test_a_diagram_keeps_hostile_names_as_text(run: Path) -> None:
    change_lines(run, "node=*/*.jsonl", hostile)
    diagram = diagram_of(read_run(run), "r1")
    assert any(HOSTILE in step.caption for step in diagram.steps)
    texts = [item.text or "" for item in ElementTree.fromstring(as_svg(diagram)).iter()]
    assert any("</script><img" in text for text in texts)
    assert re.search(r"[<>&\"]", as_mermaid(diagram).replace("->>", "")) is None


def test_an_unknown_request_is_an_error(run: Path) -> None:
    with pytest.raises(ClusterError, match="no request 'r99'"):
        diagram_of(read_run(run), "r99")


FOLDERS = {"data_dir": "/c d", "scenarios": "/s"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"action": "kill"}, ["controller", "kill", "--data-dir", "/c d"]),
        ({"action": "move", "broker": "3"}, ["controller", "move", "3", "--data-dir", "/c d"]),
        (
            {"action": "freeze", "seconds": "2.5"},
            ["controller", "freeze", "--for", "2.5s", "--data-dir", "/c d"],
        ),
        (
            {"action": "run_scenario", "scenario": "kill_under_load", "seed": "8"},
            ["chaos", "run", "kill_under_load", "--seed", "8", "--out", "/s"],
        ),
        (
            {"action": "add_rule", "rule": "delay", "api": "", "error": "X", "delay_ms": "4s"}
            | {"side": "envelope", "times": "0", "nth": "3", "broker": "2"},
            [
                *("faults", "add", "delay", "--delay", "4s", "--side", "envelope", "--nth", "3"),
                *("--times", "0", "--broker", "2", "--data-dir", "/c d"),
            ],
        ),
        (
            {"action": "add_rule", "rule": "duplicate", "api": "AlterConfigs", "error": ""}
            | {"delay_ms": "", "side": "client", "times": "7", "principal": "User:eve"},
            [
                *("faults", "add", "duplicate", "--api", "AlterConfigs", "--principal", "User:eve"),
                *("--times", "7", "--side", "envelope", "--data-dir", "/c d"),
            ],
        ),
    ],
)
def test_an_action_runs_the_command_that_it_shows(
    document: dict[str, str], expected: Sequence[str]
) -> None:
    assert arguments(document, FOLDERS) == list(expected)


@pytest.mark.parametrize(
    "document",
    [
        *({"action": "move", "broker": item} for item in ("", "-1", "--data-dir", "1 2", "1\n")),
        *({"action": "run_scenario", "scenario": item, "seed": "1"} for item in ("", "-h", "../x")),
        {"action": "run_scenario", "scenario": "kill_under_load", "seed": ""},
        {"action": "add_rule", "rule": "error", "api": "CreateTopics", "error": ""},
        *({"action": item} for item in ("down", "", None)),
        *(None, [], "kill"),
    ],
)
def test_an_action_with_a_wrong_value_is_rejected(document: object) -> None:
    with pytest.raises(ClusterError):
        arguments(document, FOLDERS)


def test_a_scenario_that_cannot_start_says_why(tmp_path: Path) -> None:
    scenarios = Scenarios(tmp_path / "scenarios")
    with pytest.raises(ClusterError, match="There is no scenario 'kill_nobody'"):
        scenarios.start("kill_nobody", "3")
    scenarios.close()


def test_every_field_of_an_action_is_in_its_command() -> None:
    for action in ACTIONS:
        used = {n for part in action.parts for n in re.findall(r"\{(\w+)\}", part.arguments)}
        assert used - set(FOLDERS) == {field.name for field in action.fields}, action.name


def test_command_control_api_and_page_have_every_field_of_a_fault_rule() -> None:
    names = {field.name for field in RULE_FIELDS}
    (operation,) = (item for item in OPERATIONS if item.words == ("faults", "add"))
    assert {field.name for field in operation.fields} == names | {"broker"}
    options = {name: name.removesuffix("_ms") for name in names}
    command = set(signature(faults.add).parameters) - {"data_dir"}
    assert command == set(options.values()) | {"broker"}
    (button,) = (action for action in ACTIONS if action.name == "add_rule")
    assert {field.name for field in button.fields} == names - {"action"} | {"rule", "broker"}


def test_columns_have_the_size_of_a_typed_array() -> None:
    assert set(COLUMNS.values()) <= set("dIHhB")


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="has no run"):
        find_run(tmp_path)
    with pytest.raises(ClusterError, match="is not a folder"):
        find_run(tmp_path / "missing")


def test_the_plug_in_writes_the_page_of_a_failed_tests_cluster(tmp_path: Path) -> None:
    golden = golden_histories.load("forwarded_creation")
    folder = tmp_path / "cluster" / "evidence" / "run=golden"
    golden_histories.expand(golden, folder)
    cluster: Any = SimpleNamespace(evidence_dir=folder)
    sentence = _page_of(cluster, "test_it[a/b <c>]")
    page = tmp_path / "test_it-a-b-c-.html"
    assert sentence == f"what the cluster did: {page}"
    assert "Content-Security-Policy" in page.read_text(encoding="utf-8")
    missing: Any = SimpleNamespace(evidence_dir=tmp_path / "no" / "evidence" / "run=no")
    assert _page_of(missing, "x").startswith("no page: bridgehead: ")


def test_while_a_cluster_runs_only_a_violation_is_final(tmp_path: Path) -> None:
    golden = golden_histories.load("timed_out_request_committed_twice")
    reader = read_run(golden_histories.expand(golden, tmp_path / "run"))
    live = judged(reader, live=True)
    verdicts = {row["property"]: row["verdict"] for row in live["properties"]}
    assert (live["verdict"], verdicts.pop("D3")) == ("FAIL", "FAIL")
    assert "OPEN" in verdicts.values()
    assert set(verdicts.values()) <= {"OPEN", "FAIL"}
    (violated,) = (row for row in live["properties"] if row["property"] == "D3")
    zxids = reader.collector.rows.columns["zxid"]
    assert [zxids[violation["position"]] for violation in violated["violations"]] == [8]
