"""The page in a real Chromium: replay and export of recorded runs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from bridgehead.ui.reading import find_run, read_run
from bridgehead.ui.server import Served
from event_log.commits import CommitLine
from judge.evidence.run_lookup import read_run as read_evidence
from tests import golden_histories
from tests.integration import ui_page
from tests.unit.bridgehead.test_ui import HOSTILE, change_lines, hostile

RUNS = 20
MOMENTS = 50
RECORDED = "kill_between_commit_and_reply"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with ui_page.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the controller is killed after a commit and before its replies."""
    return ui_page.simulated_run(RECORDED, 1, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return ui_page.export(run, tmp_path_factory.mktemp("export") / "run.html")


def first_recorded_resend(page: Page) -> int:
    """Return the position of the first resend whose outcome is recorded."""
    result = page.evaluate(
        """() => { const e = page.evidence;
        for (let at = e.first; at < e.count; at++) {
          const number = e.get("request", at);
          if (e.is(at, "forward_sent") && e.get("attempt", at) > 1
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
    expect(page.locator(".rows .caption").first).to_contain_text("gets request")
    ui_page.picture(page, "sequence")
    assert requested == []
    assert ui_page.errors(page) == []


def test_the_crown_moves_in_a_replay(chromium: Browser, run: Path) -> None:
    """The slider goes forward and back; the crown is at the controller of the moment."""
    served = Served(read_run(find_run(run)), str(run))
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
        for tab in ("sequence", "timeline", "metadata", "verdicts"):
            page.click(f"#tab-{tab}")
        expect(page.locator(".verdict").first).to_have_text("PASS", timeout=60_000)
        assert ui_page.errors(page) == []


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
    for tab in ("topology", "sequence", "timeline", "metadata", "verdicts"):
        page.click(f"#tab-{tab}")
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


def shown(page: Page) -> tuple[str | None, int, Mapping[str, Any]]:
    """Return controller, epoch and leaders as the page shows them."""
    now = page.locator("#now")
    controller = now.get_attribute("data-controller") or None
    rows = page.evaluate(
        "() => [...document.querySelectorAll('.metadata table')]"
        ".filter((each) => each.caption.textContent.startsWith('Partitions'))"
        ".flatMap((each) => [...each.tBodies[0].rows].map((row) => "
        "[row.cells[0].textContent, row.cells[1].textContent]))"
    )
    leaders = {name: -1 if leader == "none" else int(leader) for name, leader in rows}
    return controller, int(now.get_attribute("data-epoch") or 0), leaders


@pytest.mark.long
def test_the_page_agrees_with_zookeepers_log(chromium: Browser, tmp_path: Path) -> None:
    """At random moments of chaos runs: the controller, its epoch, the leader of each partition."""
    chance = random.Random(20260)
    for seed in range(31, 31 + RUNS):
        run = ui_page.simulated_run("random_faults", seed, tmp_path)
        commits = list(read_evidence(run).commits)
        page = ui_page.open_page(chromium, ui_page.export(run, tmp_path / f"{seed}.html"))
        page.click("#tab-metadata")
        count = int(page.evaluate("() => page.evidence.count"))
        for position in chance.sample(range(count), MOMENTS):
            zxid = page.evaluate(
                """async (position) => { page.go(position);
                const e = page.evidence; let zxid = 0;
                for (let at = e.first; at <= position; at++)
                  if (e.is(at, "transaction")) zxid = e.get("zxid", at);
                await page.views.metadata.show(position); return zxid; }""",
                position,
            )
            assert shown(page) == at_position(commits, zxid), (seed, position)
        assert ui_page.errors(page) == []
        page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits(
    chromium: Browser, exported: str, width: int, scheme: Any
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = ui_page.open_page(
        chromium,
        exported,
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        bypass_csp=True,  # axe is a script of its own
    )
    page.evaluate("(at) => page.go(at)", first_recorded_resend(page))
    for tab in ("topology", "sequence", "timeline", "metadata", "verdicts"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(200)
        result = Axe().run(page).response["violations"]
        serious = [
            (word["id"], word["nodes"][0]["html"][:200])
            for word in result
            if word["impact"] in ("serious", "critical")
        ]
        assert serious == [], tab
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, tab
        if (tab, width, scheme) == ("timeline", 1280, "light"):
            ui_page.picture(page, "timeline")
        if (tab, width, scheme) == ("topology", 390, "dark"):
            ui_page.picture(page, "narrow")
    page.evaluate("() => page.inspect(page.position)")
    serious = [
        word["id"]
        for word in Axe().run(page).response["violations"]
        if word["impact"] in ("serious", "critical")
    ]
    assert serious == []


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
    served = Served(read_run(find_run(run)), str(run), None)
    with ui_page.serving(served) as address:
        path, host = urlsplit(address).path, urlsplit(address).netloc
        assert response_of(address, "GET", path, {})[0] == 200
        assert (
            response_of(address, "GET", f"{path}about.json", {"Origin": f"http://{host}"})[0] == 200
        )
        for wrong in ("/", "/about.json", "/wrong/about.json", f"{path[:-2]}/about.json"):
            assert response_of(address, "GET", wrong, {})[0] == 404, wrong
        for headers in (
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example:80"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
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
