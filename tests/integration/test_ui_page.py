"""The page in a real Chromium: replay and export of recorded runs."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from bridgehead.ui.reading import find_run, read_run, recorded_run
from bridgehead.ui.server import Served, open_run
from event_log.commits import CommitLine
from judge.evidence.run_lookup import read_run as read_evidence
from tests import golden_histories
from tests.integration import ui_page
from tests.unit.bridgehead.test_ui import HOSTILE, change_lines, hostile

RUNS = 20
MOMENTS = 50
RECORDED = "kill_between_commit_and_reply"
SEED = 7  # with which four recorded requests are resent to a new controller on another broker


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with ui_page.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the controller is killed after a commit and before its replies."""
    return ui_page.simulated_run(RECORDED, SEED, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return ui_page.export(run, tmp_path_factory.mktemp("export") / "run.html")


def first_recorded_resend(page: Page) -> int:
    """Return the first resend to another broker, the new controller, of a recorded request."""
    result = page.evaluate(
        """() => { const e = page.evidence;
        for (let at = e.first; at < e.count; at++) {
          const number = e.get("request", at);
          if (e.is(at, "forward_sent") && e.get("attempt", at) > 1
            && e.partner(at) > at && e.node(at) !== e.peer(at)
            && e.links.some(([link, of]) => of === number && link < at)) return at;
        } return -1; }"""
    )
    assert result > 0, "the run has no such resend"
    return int(result)


def test_an_exported_page_opens_offline_and_tells_why_nothing_was_lost(
    chromium: Browser, exported: str
) -> None:
    """The network is off; the file is all there is."""
    page = ui_page.open_page(chromium, exported, offline=True)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    position = first_recorded_resend(page)
    page.evaluate("(at) => page.go(at)", position)
    current = page.locator(".captions li[aria-current]")
    expect(current).to_contain_text("so nothing runs twice")
    ui_page.picture(page, "topology")
    page.evaluate("(at) => page.inspect(at)", position)
    stops = page.locator(".stops .sentence")
    expect(stops.first).to_contain_text("gets request")
    told = " ".join(stops.all_inner_texts())
    story = ["forwards request", "sends commit", "ZooKeeper applies", "gets no reply"]
    story += ["so nothing runs twice", "the client sees one success"]
    assert [told.find(word) for word in story] == sorted(told.find(word) for word in story)
    assert told.find(story[0]) >= 0
    page.get_by_role("button", name="Only this request").click()
    page.get_by_role("button", name="Close").click()
    page.evaluate("() => page.go(page.views.sequence.position(0))")
    expect(page.locator(".rows .caption").first).to_contain_text("gets request")
    ui_page.picture(page, "sequence")
    assert requested == []
    assert ui_page.errors(page) == []


def test_the_crown_moves_in_a_replay(chromium: Browser, run: Path) -> None:
    """The slider goes forward and back; the crown is at the controller of the moment."""
    served = Served(recorded_run(find_run(run)), str(run))
    with ui_page.serving(served) as address:
        page = ui_page.open_page(chromium, address)
        terms = page.evaluate("() => page.cluster.terms().filter(([, controller]) => controller)")
        assert len({controller for _, controller, _ in terms}) > 1, "no controller changed"
        for t, controller, epoch in [*terms, *reversed(terms)]:
            page.evaluate("(t) => page.go(page.evidence.at(t))", t)
            expect(page.locator("#now")).to_have_text(
                f"Controller: broker {controller}, epoch {epoch}"
            )
            expect(page.locator(".broker:has(.crown)")).to_have_attribute("data-broker", controller)
        page.click("#play")
        expect(page.locator("#play")).to_have_text("Pause")
        for view in ("sequence", "timeline", "metadata"):
            open_view(page, view)
        page.click("#tab-verdicts")
        expect(page.locator(".verdict").first).to_have_text("PASS", timeout=60_000)
        assert ui_page.errors(page) == []


STATE_AT_END = """async () => {
  const state = page.cluster.at(page.evidence.last);
  await page.views.metadata.show(page.evidence.last);
  const znodes = [...page.views.metadata.znodes(page.evidence.last)[0]].sort();
  return [state.controller, state.epoch, [...state.brokers].sort(), znodes];
}"""


def test_a_live_page_drops_old_rows_and_keeps_what_they_said(
    chromium: Browser, run: Path, tmp_path: Path
) -> None:
    """A run grows while a page follows it; server and browser keep a few rows."""
    copy, run = tmp_path / "run", find_run(run)
    content = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    def grow(share: float) -> int:
        for path, data in content.items():
            whole = share == 1 or path.suffix != ".jsonl"
            target = copy / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data if whole else data[: round(len(data) * share)])
        reader = read_run(copy)
        return len(reader.collector.rows)

    grow(0.2)
    served = Served(open_run(copy), str(copy), follows=True, rows_max=900)
    with ui_page.serving(served) as address:
        page = ui_page.open_page(chromium, address)
        for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):  # never more than a page keeps
            count = grow(share)
            expect(page.locator("#clock")).to_contain_text(f"of {count:,}", timeout=30_000)
            if share < 1:
                page.evaluate(STATE_AT_END)
        assert page.evaluate("() => page.evidence.count - page.evidence.base") <= 900
        expect(page.locator("#notices")).to_contain_text("are no longer on this page")
        shown = page.evaluate(STATE_AT_END)
        open_view(page, "timeline")
        assert ui_page.errors(page) == []
    replayed = ui_page.open_page(chromium, ui_page.export(run, tmp_path / "run.html"))
    assert shown == replayed.evaluate(STATE_AT_END)
    assert shown[1] > 1
    assert shown[3]


def test_search_finds_requests_by_what_they_are(chromium: Browser, exported: str) -> None:
    page = ui_page.open_page(chromium, f"{exported}#sequence")

    def count(text: str) -> int:
        result = page.evaluate(
            "(text) => { page.views.sequence.filter(text); return page.views.sequence.length; }",
            text,
        )
        return int(result)

    everything = count("")
    name, request_id = page.evaluate(
        "() => { const r = [...page.evidence.requests.values()].find((r) => r[5].length);"
        " return [r[5][0], r[0]]; }"
    )
    assert 0 < count(f"topic:{name}") < everything
    assert 0 < count(f"id:{request_id}") <= count("api:CreateTopics") < everything
    assert count("principal:nobody") == 0
    assert ui_page.errors(page) == []


def test_a_violation_opens_the_sequence_at_its_counterexample(
    chromium: Browser, tmp_path: Path
) -> None:
    golden = golden_histories.load("timed_out_request_committed_twice")
    run = golden_histories.expand(golden, tmp_path / "run")
    page = ui_page.open_page(chromium, ui_page.export(run, tmp_path / "run.html"))
    page.click("#tab-verdicts")
    expect(page.locator(".verdict").first).to_have_text("FAIL")
    result = page.evaluate("() => page.evidence.search('error:request_timed', 0, Infinity).length")
    assert result > 0
    page.locator("button.violation").first.click()
    expect(page.locator("#tab-sequence")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("() => page.evidence.get('zxid', page.position)") in (5, 8)
    assert ui_page.errors(page) == []


def test_hostile_names_stay_text(chromium: Browser, tmp_path: Path) -> None:
    golden = golden_histories.load("forwarded_creation")
    run = golden_histories.expand(golden, tmp_path / "run")
    change_lines(run, "node=*/*.jsonl", hostile)
    commits = run / "zookeeper" / "commits.jsonl"
    escaped = json.dumps(HOSTILE.replace("/", ""))[1:-1]
    commits.write_text(
        commits.read_text().replace("/brokers/topics/orders", f"/brokers/topics/{escaped}")
    )
    page = ui_page.open_page(chromium, ui_page.export(run, tmp_path / "run.html"))
    for view in VIEWS:
        page.click(f"#tab-{view}")
        for at in range(int(page.evaluate("() => page.evidence.count"))):
            page.evaluate("(at) => page.inspect(at)", at)
    page.click("#tab-topology")
    expect(page.locator(".client .name title").first).to_contain_text("<img src=x")
    page.click("#tab-metadata")
    page.evaluate("() => page.go(page.evidence.last)")
    expect(page.locator(".metadata").get_by_role("cell").first).to_contain_text("<img src=x")
    assert page.locator("img").count() == 0
    assert ui_page.errors(page) == []


def at_position(commits: list[CommitLine], zxid: float) -> tuple[str | None, int, dict[str, Any]]:
    """Recompute controller, epoch and leaders from ZooKeeper's log up to a zxid."""
    znodes: dict[str, str | None] = {}
    for commit in commits:
        if commit.zxid > zxid or commit.failed:
            continue
        for operation in commit.operations:
            if operation.kind == "delete":
                znodes.pop(operation.path, None)
            elif operation.kind in ("create", "set"):
                znodes[operation.path] = operation.data
    controller = znodes.get("/controller")
    epoch = int(znodes.get("/controller_epoch") or 0)
    leaders = {
        f"{path.split('/')[3]}-{path.split('/')[5]}": json.loads(data or "{}").get("leader")
        for path, data in znodes.items()
        if path.startswith("/brokers/topics/") and path.endswith("/state")
    }
    return str(json.loads(controller)["brokerid"]) if controller else None, epoch, leaders


VIEWS = {
    "topology": ".captions li[aria-current]",
    "sequence": ".rows .row",
    "timeline": "canvas.chart",
    "metadata": ".metadata table",
    "verdicts": "table .verdict",
}


def open_view(page: Page, name: str) -> None:
    """Open a view, and wait until it shows something."""
    page.click(f"#tab-{name}")
    expect(page.locator(f"#view-{name} {VIEWS[name]}").first).to_be_visible()


def serious_problems(page: Page) -> list[tuple[str, str]]:
    """Return what axe finds on the page."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (problem["id"], problem["nodes"][0]["html"][:200])
        for problem in Axe().run(page).response["violations"]
        if problem["impact"] in ("serious", "critical")
    ]


# Both widths and both schemes are checked with axe; no rule depends on their combination.
@pytest.mark.parametrize(
    ("width", "scheme", "with_axe"),
    [(1280, "light", True), (390, "dark", True), (1280, "dark", False), (390, "light", False)],
)
def test_the_page_is_accessible_and_fits(
    chromium: Browser, exported: str, width: int, scheme: Any, with_axe: bool
) -> None:
    page = ui_page.open_page(
        chromium,
        exported,
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        bypass_csp=True,  # axe is a script of its own
    )
    page.evaluate("(at) => page.go(at)", first_recorded_resend(page))
    for view in VIEWS:
        open_view(page, view)
        assert not with_axe or serious_problems(page) == [], view
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, view
        if (view, width, scheme) == ("timeline", 1280, "light"):
            ui_page.picture(page, "timeline")
        if (view, width, scheme) == ("topology", 390, "dark"):
            ui_page.picture(page, "narrow")
    page.evaluate("() => page.inspect(page.position)")
    expect(page.locator(".stops li").first).to_be_visible()
    assert not with_axe or serious_problems(page) == []


def test_dragging_in_the_timeline_selects_what_the_sequence_shows(
    chromium: Browser, exported: str
) -> None:
    page = ui_page.open_page(chromium, exported)
    open_view(page, "timeline")
    box = page.locator("canvas.chart").bounding_box()
    assert box is not None
    x = [box["x"] + 130 + (box["width"] - 142) * share for share in (0.3, 0.6)]
    page.mouse.move(x[0], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(x[1], box["y"] + 120, steps=4)
    page.mouse.up()
    start, end = page.evaluate("() => page.selection")
    everything = page.evaluate("() => page.evidence.count")
    first, last = page.evaluate(
        "() => { const { t } = page.evidence.column; return [t[0], t[t.length - 1]]; }"
    )
    assert start == pytest.approx(first + 0.3 * (last - first), abs=0.01 * (last - first))
    assert end == pytest.approx(first + 0.6 * (last - first), abs=0.01 * (last - first))
    expect(page.locator(".summary")).to_contain_text("are selected")
    open_view(page, "sequence")
    expect(page.locator(".search output").first).to_contain_text("in the selected time")
    shown = page.evaluate(
        "() => { const view = page.views.sequence, t = (at) => page.evidence.get('t', at);"
        " return [view.length, t(view.position(0)), t(view.position(view.length - 1))]; }"
    )
    assert 0 < shown[0] < everything
    assert shown[1] >= start
    assert shown[2] <= end
    open_view(page, "timeline")
    page.get_by_role("button", name="Whole run").click()
    assert page.evaluate("() => page.views.sequence.length") == everything
    assert ui_page.errors(page) == []


def test_metadata_shows_what_changed_between_two_moments(chromium: Browser, exported: str) -> None:
    page = ui_page.open_page(chromium, exported)
    open_view(page, "metadata")
    page.evaluate("() => page.go(page.evidence.last)")
    names = "() => [...document.querySelectorAll('.metadata tr')].map((row) => row.innerText)"
    expect(page.locator(".metadata caption").first).to_have_text("Topics")
    at_end = set(page.evaluate(names))
    middle = page.evaluate("() => Math.floor(page.evidence.count / 2)")
    page.evaluate("(at) => page.go(at)", middle)
    page.get_by_role("button", name="Compare with this moment").click()
    expect(page.locator(".metadata")).to_contain_text("Nothing changed.")
    before = page.evaluate("() => page.views.metadata.znodes(page.position)[0].size")
    page.evaluate("() => page.go(page.evidence.last)")
    expect(page.locator(".metadata tr.added").first).to_be_visible()
    assert page.evaluate("() => page.views.metadata.znodes(page.position)[0].size") > before
    added = page.locator(".metadata tr.added").all_inner_texts()
    assert {row.removeprefix("added\t") for row in added} <= at_end
    assert page.locator(".metadata tr").count() < len(at_end)
    page.get_by_role("button", name="Stop comparing").click()
    expect(page.locator(".metadata tr.added")).to_have_count(0)
    assert ui_page.errors(page) == []


def test_a_rejected_write_bounces_and_much_traffic_is_not_drawn_one_by_one(
    chromium: Browser, tmp_path: Path
) -> None:
    golden = golden_histories.load("failed_multi")
    run = golden_histories.expand(golden, tmp_path / "run")
    commits = run / "zookeeper" / "commits.jsonl"
    content = commits.read_text()
    assert '"0xf"' in content
    commits.write_text(content.replace('"0xf"', '"0xa"'))  # the session of a broker
    page = ui_page.open_page(chromium, ui_page.export(run, tmp_path / "run.html"))
    position = page.evaluate(
        "() => { const e = page.evidence; for (let at = e.first; at < e.count; at++) "
        "if (e.has(at, 'FAILED')) return at; return -1; }"
    )
    assert position >= 0
    page.evaluate("(at) => page.go(at)", position)
    expect(page.locator(".dot .cross")).to_have_count(1)
    expect(page.locator(".captions li[aria-current]")).to_contain_text("ZooKeeper rejects")
    for rate, said in ((50, ""), (51, "More than 50 requests a second")):
        page.evaluate(
            "(received) => { page.views.topology.window = [];"
            " page.views.topology.measure({ received, forward_sent: 0, commit_sent: 0 }, 1); }",
            rate,
        )
        expect(page.locator(".rate")).to_contain_text(said)
        assert page.evaluate("() => page.views.topology.aggregated") == bool(said)
    assert ui_page.errors(page) == []


def test_the_keyboard_reaches_everything(chromium: Browser, exported: str) -> None:
    page = ui_page.open_page(chromium, exported)
    start = page.evaluate("() => page.position")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => page.position") == start + 1
    page.focus("#tab-topology")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-sequence")).to_be_focused()
    page.focus(".scroller")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".inspector")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".inspector")).to_be_hidden()


def response_of(
    address: str, method: str, path: str, headers: Mapping[str, str]
) -> tuple[int, str]:
    port = urlsplit(address).port
    assert port is not None
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=dict(headers))
    response = connection.getresponse()
    body = response.read().decode("utf-8", "replace")
    connection.close()
    return response.status, body


def test_only_the_page_itself_gets_responses(run: Path, tmp_path: Path) -> None:
    """The token, `Host` and `Origin` are checked, and actions need a token of their own."""
    served = Served(recorded_run(find_run(run)), str(run), None)
    with ui_page.serving(served) as address:
        path, host = urlsplit(address).path, urlsplit(address).netloc
        assert response_of(address, "GET", path, {})[0] == 200
        assert (
            response_of(address, "GET", f"{path}about.json", {"Origin": f"http://{host}"})[0] == 200
        )
        # A link may lead to the page, as the link to the page of a scenario does.
        link = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
        assert response_of(address, "GET", path, {**link, "Sec-Fetch-Dest": "document"})[0] == 200
        for wrong in ("/", "/about.json", "/wrong/about.json", f"{path[:-2]}/about.json"):
            assert response_of(address, "GET", wrong, {})[0] == 404, wrong
        for headers in (
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example:80"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
            {**link, "Sec-Fetch-Dest": "iframe"},
        ):
            assert response_of(address, "GET", f"{path}about.json", headers)[0] == 403, headers
        for name in ("..%2fserver.py", "server.py", "%2e%2e/server.py", "style.css/"):
            assert response_of(address, "GET", path + name, {})[0] in (404, 307), name
        for token in ("", "wrong", served.action_token):
            headers = {"X-Bridgehead-Action": token, "Content-Length": "0"}
            assert response_of(address, "POST", f"{path}actions", headers)[0] == 403, (
                "a replay acts"
            )
        assert served.action_token not in response_of(address, "GET", f"{path}about.json", {})[1]


# What a page of another origin can try; each line returns what it got.
FOREIGN = """async (address) => {
  const loads = (tag, name, values) => new Promise((done) => {
    const element = Object.assign(document.createElement(tag), values);
    element.onload = () => done(true);
    element.onerror = () => done(false);
    element[name] = address + (tag === "script" ? "main.js" : "style.css");
    document.body.append(element);
  });
  const follows = () => new Promise((done) => {
    const stream = new EventSource(`${address}stream`);
    stream.onopen = () => done(true);
    stream.onerror = () => { stream.close(); done(false); };
  });
  const reads = (options) => fetch(`${address}about.json`, options).then(() => true, () => false);
  return {
    "reads what the page shows": await reads({}),
    "sends a request without reading": await reads({ mode: "no-cors" }),
    "runs the page's script": await loads("script", "src", { type: "text/javascript" }),
    "uses its style": await loads("link", "href", { rel: "stylesheet" }),
    "follows its stream": await follows(),
  };
}"""


def test_a_page_of_another_origin_gets_nothing_even_with_the_address(
    chromium: Browser, run: Path
) -> None:
    served = Served(recorded_run(find_run(run)), str(run))
    with (
        ui_page.serving(served) as address,
        ui_page.page_of_another_origin(chromium) as foreign,
    ):
        allowed = ui_page.open_page(chromium, address).evaluate(FOREIGN, address)
        assert all(allowed.values()), allowed
        responses = list[Response]()
        foreign.on("response", lambda response: responses.append(response))
        got = foreign.evaluate(FOREIGN, address)
        assert not any(got.values()), got
        foreign.set_content(f'<iframe src="{address}"></iframe><a href="{address}">the page</a>')
        framed = foreign.frames[-1]
        framed.wait_for_load_state()
        assert framed.locator("#tabs").count() == 0
        statuses = {got.url: got.status for got in responses if got.url.startswith(address)}
        # The browser reports none of those responses that it keeps from the page's scripts.
        assert statuses[address] == 403
        assert set(statuses.values()) == {403}, statuses
        foreign.get_by_role("link", name="the page").click()  # A link may be followed.
        foreign.wait_for_selector("body[data-ready=true]")


def test_a_wrong_token_opens_nothing(chromium: Browser, run: Path) -> None:
    served = Served(recorded_run(find_run(run)), str(run))
    with ui_page.serving(served) as address:
        page = chromium.new_page()
        for wrong in (address.replace(served.token, "0" * len(served.token)), address[:-2]):
            response = page.goto(wrong)
            assert response is not None
            assert response.status == 404
            assert page.locator("#tabs").count() == 0
            assert served.token not in page.content()
        page.close()


def test_a_stream_continues_exactly_after_the_last_event_id(run: Path) -> None:
    served = Served(recorded_run(find_run(run)), str(run))
    with ui_page.serving(served) as address:
        count = 0
        for header in ({}, {"Last-Event-ID": "7"}, {"Last-Event-ID": "999999999"}):
            status, body = response_of(address, "GET", f"{urlsplit(address).path}stream", header)
            assert status == 200
            ids = re.findall(r"^id: (\d+)$", body, re.MULTILINE)
            batches = re.findall(r"^data: (\S{20,})$", body, re.MULTILINE)
            heads = [json.loads(head_of(base64.b64decode(batch))) for batch in batches]
            if header.get("Last-Event-ID") == "999999999":
                assert (heads, "event: reset" in body) == ([], True)
                continue
            count = count or int(ids[-1])
            assert int(ids[-1]) == count == heads[-1]["start"] + heads[-1]["count"]
            assert heads[0]["start"] == int(header.get("Last-Event-ID", 0))
            assert body.rstrip().endswith("event: ended\ndata: {}")
    assert count == len(read_run(find_run(run)).collector.rows)


def head_of(batch: bytes) -> bytes:
    """Return the JSON text of a packed batch."""
    return batch[8 : 8 + int.from_bytes(batch[:8], "little")]


# Goes to each position; returns the zxid there, and what the page then shows.
SHOWN = """async (positions) => {
  const e = page.evidence, zxids = [];
  for (let at = e.first, zxid = 0; at < e.count; at++)
    zxids.push(zxid = e.is(at, "transaction") ? e.get("zxid", at) : zxid);
  const moments = [];
  for (const position of positions) {
    page.go(position);
    await page.views.metadata.show(position);
    const { controller, epoch } = document.getElementById("now").dataset;
    const tables = [...document.querySelectorAll(".metadata table")];
    const shown = tables.filter((table) => table.caption.textContent.startsWith("Partitions"));
    const rows = shown.flatMap((table) => [...table.tBodies[0].rows]);
    const leaders = rows.map(({ cells }) => [cells[0].textContent, cells[1].textContent]);
    moments.push([zxids[position], controller || null, Number(epoch), leaders]);
  }
  return moments;
}"""


@pytest.mark.long
@pytest.mark.parametrize(
    "seed",
    [pytest.param(31 + run, marks=pytest.mark.soak if run > 2 else ()) for run in range(RUNS)],
)
def test_the_page_agrees_with_zookeepers_log(chromium: Browser, seed: int, tmp_path: Path) -> None:
    """At random moments of a chaos run: the controller, its epoch, each partition's leader."""
    run = ui_page.simulated_run("random_faults", seed, tmp_path)
    commits = list(read_evidence(run).commits)
    page = ui_page.open_page(chromium, ui_page.export(run, tmp_path / "run.html"))
    page.click("#tab-metadata")
    count = int(page.evaluate("() => page.evidence.count"))
    positions = random.Random(seed).sample(range(count), MOMENTS)
    changes = set()
    for position, moment in zip(positions, page.evaluate(SHOWN, positions), strict=True):
        zxid, controller, epoch, rows = moment
        leaders = {name: -1 if leader == "none" else int(leader) for name, leader in rows}
        assert (controller, epoch, leaders) == at_position(commits, zxid), position
        changes.add((controller, epoch))
    assert len(changes) > 1, "nothing changed in this run, so nothing was compared"
    assert ui_page.errors(page) == []
    page.context.close()
