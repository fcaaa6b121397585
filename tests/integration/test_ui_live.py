"""The page of a running cluster in a real Chromium: its buttons, and a failover that is watched.

The tests share a cluster. The last one stops it.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from bridgehead.cluster import Cluster
from bridgehead.cluster.data_directory import DataDirectory
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics
from bridgehead.ui.actions import ACTIONS
from bridgehead.ui.reading import find_run, read_run
from bridgehead.ui.server import Served, open_run
from bridgehead.ui.vocabulary import KINDS, NUMBERS
from tests.integration import ui_page

SESSION_MS = 2_500
START_MS = 60_000  # for what waits for an election or for a process


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with ui_page.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live") / "cluster"


@pytest.fixture(scope="module")
def cluster(folder: Path, chromium: Browser) -> Iterator[Cluster]:
    """A cluster, started only if there is a browser."""
    properties = {
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "bridgehead.faults.allow": "true",
    }
    with Cluster(brokers=3, data_dir=folder, properties=properties) as running:
        yield running


def served(folder: Path, **options: Any) -> Served:
    return Served(open_run(find_run(folder)), str(folder), folder, **options)


@contextmanager
def requests(cluster: Cluster) -> Iterator[None]:
    """Create topics at every broker in turn, until the block ends; errors are expected."""
    stop = threading.Event()

    def run() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            address = cluster.bootstrap_server(number % 3 + 1)
            with suppress(OSError), Connection(address, timeout_s=3) as connection:
                connection.exchange(create_topics([f"orders-{number}"]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def counts(page: Page) -> Counter[str]:
    """Return how many rows of each kind the page has."""
    return Counter(
        page.evaluate(
            "() => { const counts = {}; const e = page.evidence; for (let at = e.first; at < "
            "e.count; at++) { const key = e.kinds[e.get('kind', at)].key; "
            "counts[key] = (counts[key] ?? 0) + 1; } return counts; }"
        )
    )


def press(page: Page, action: str, says: str, **values: str) -> str:
    """Fill in the fields of an action, press its button and wait; return the command."""
    section = page.locator(f"[data-action={action}]")
    for name, value in values.items():
        field = section.locator(f"#{action}-{name}")
        if field.evaluate("(input) => Boolean(input.closest('details:not([open])'))"):
            section.locator("summary").click()
        if field.evaluate("(input) => input.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    command = section.locator("code").inner_text()
    section.locator("> button").first.click()
    result = page.locator(".result")
    expect(result).to_contain_text(re.compile(says), timeout=START_MS)
    assert "bad" not in (result.get_attribute("class") or ""), result.inner_text()
    return command


def test_a_read_only_page_has_no_buttons(cluster: Cluster, chromium: Browser, folder: Path) -> None:
    """Its server rejects actions, too, even with the token of a page that has buttons."""
    shown = served(folder, read_only=True)
    with ui_page.serving(shown) as address:
        page = ui_page.open_page(chromium, address)
        expect(page.locator("#tab-topology")).to_be_visible()
        assert page.locator("#tab-break").count() == 0
        assert page.locator("[data-action]").count() == 0
        status = page.evaluate(
            "(token) => fetch('actions', { method: 'POST', headers: { 'X-Bridgehead-Action': "
            'token }, body: \'{"action":"kill"}\' }).then((answer) => answer.status)',
            shown.action_token,
        )
        assert status == 403
        assert cluster.controller_id() in (1, 2, 3)


# Each returns the status of a response, or 0 if the browser gives the page none.
KILLS = """async ([address, token]) => {
  const send = (headers, mode) => fetch(`${address}actions`, { method: "POST", headers, mode,
    body: '{"action":"kill"}' }).then((response) => response.status, () => 0);
  const named = { "X-Bridgehead-Action": token };
  return [await send({}, "cors"), await send(named, "cors"), await send({}, "no-cors"),
    await send(named, "no-cors")];
}"""


def test_only_the_page_that_has_the_action_token_can_press_buttons(
    cluster: Cluster, chromium: Browser, folder: Path
) -> None:
    shown = served(folder)
    before = cluster.controller_id()
    with ui_page.serving(shown) as address:
        page = ui_page.open_page(chromium, address)
        statuses = page.evaluate(KILLS, [address, f"{shown.action_token[:-1]}!"])
        assert statuses == [403, 403, 403, 403]
        with ui_page.page_of_another_origin(chromium) as foreign:
            assert foreign.evaluate(KILLS, [address, shown.action_token]) == [0, 0, 0, 0]
    assert cluster.controller_id() == before


def test_every_button_does_what_its_command_says(
    cluster: Cluster, chromium: Browser, folder: Path
) -> None:
    pressed = {}
    with ui_page.serving(served(folder)) as address:
        page = ui_page.open_page(chromium, f"{address}#break")

        def use(action: str, says: str, **values: str) -> None:
            pressed[action] = press(page, action, says, **values)

        def leads(broker: str) -> None:
            expect(page.locator("#now")).to_contain_text(f"broker {broker}", timeout=START_MS)

        values = {"rule": "error", "api": "CreateTopics", "error": "POLICY_VIOLATION"}
        use("add_rule", r"rule-1", **values, times="0", principal="User:ANONYMOUS")
        expected = "faults add error --api CreateTopics --principal User:ANONYMOUS"
        expected += f" --error POLICY_VIOLATION --times 0 --data-dir {folder}"
        assert pressed["add_rule"] == f"bridgehead {expected}"
        with Connection(cluster.bootstrap_server(1), timeout_s=30) as connection:
            connection.exchange(create_topics(["refused"]))
        assert cluster.faults.hits("rule-1") == 1
        use("remove_rules", r"Rules removed: 3")
        assert cluster.faults.list() == []

        first = str(cluster.controller_id())
        second = str(int(first) % 3 + 1)
        use("move", rf"moved from broker {first} to broker {second}", broker=second)
        leads(second)
        epoch = page.locator("#now").get_attribute("data-epoch")
        use("expire", rf"broker {second}, has expired")
        elected = "(epoch) => Number(document.getElementById('now').dataset.epoch) > Number(epoch)"
        page.wait_for_function(elected, arg=epoch, timeout=START_MS)
        expect(page.locator("#now")).to_contain_text("broker", timeout=START_MS)
        frozen = str(cluster.controller_id())
        use("freeze", rf"broker {frozen}, is frozen for 0\.2 s", seconds="0.2")
        stopped = next(id_ for id_ in ("1", "2", "3") if id_ != frozen)
        use("stop_broker", rf"Broker {stopped} .* has stopped", broker=stopped)
        page.click("#tab-topology")
        status = page.locator(f"[data-broker='{stopped}'] .status")
        expect(status).to_contain_text("stopped", timeout=START_MS)
        page.click("#tab-break")
        use("start_broker", rf"Broker {stopped} serves", broker=stopped)
        use("kill_broker", rf"Broker {stopped} .* was killed", broker=stopped)
        use("start_broker", rf"Broker {stopped} serves", broker=stopped)
        page.click("#tab-topology")
        expect(status).to_contain_text("running", timeout=START_MS)
        assert ui_page.errors(page) == []
    others = {"kill", "run_scenario"}  # the next tests
    assert set(pressed) | others == {action.name for action in ACTIONS}


def test_a_scenario_runs_and_is_watched(cluster: Cluster, chromium: Browser, folder: Path) -> None:
    """Its page is one of its own. It ends with the page that started it."""
    assert cluster.controller_id() is not None
    name, seed = "polite_stop", "7"
    runs = folder.with_name(f"{folder.name}-scenarios")
    with ui_page.serving(served(folder)) as address:
        page = ui_page.open_page(chromium, f"{address}#break")
        command = press(page, "run_scenario", f"{name}, seed {seed}", scenario=name, seed=seed)
        assert command.splitlines() == [
            f"bridgehead chaos run {name} --seed {seed} --out {runs}",
            f"bridgehead ui {runs}/{name}-{seed} --read-only",
        ]
        section = page.locator("[data-action=run_scenario]")
        link = page.locator(".result").get_by_role("link", name="Watch it").get_attribute("href")
        section.get_by_role("button", name="Run a scenario", exact=True).click()
        expect(page.locator(".result")).to_contain_text("A scenario runs already")
        with page.context.expect_page() as opened:
            page.evaluate("(link) => window.open(link, '_blank', 'noopener')", link)
        watched = opened.value
        expect(watched.locator("#run")).to_contain_text(
            f"scenario {name}, seed {seed}", timeout=START_MS
        )
        expect(watched.locator("#now")).to_contain_text("epoch", timeout=START_MS)
        assert watched.locator("#tab-break").count() == 0
        assert ui_page.errors(page) == []
    data = DataDirectory(runs / f"{name}-{seed}")
    assert not data.is_claimed(), "the scenario's cluster still runs"


def test_a_failover_is_watched_live_and_no_event_is_lost_or_doubled(
    cluster: Cluster, chromium: Browser, folder: Path
) -> None:
    """The controller is killed with the page's button. The browser is offline for a while."""
    with ui_page.serving(served(folder)) as address:
        page = ui_page.open_page(chromium, address)
        first = str(cluster.controller_id())
        epoch = int(page.locator("#now").get_attribute("data-epoch") or 0)
        expect(page.locator("#now")).to_contain_text(f"Controller: broker {first}")
        with requests(cluster):
            page.click("#tab-break")
            ui_page.picture(page, "break-it")
            killing = page.locator("[data-action=kill]")
            expect(killing.locator("code")).to_have_text(
                f"bridgehead controller kill --data-dir {folder}"
            )
            killing.get_by_role("button", name="Kill the controller", exact=True).click()
            expect(page.locator(".result")).to_contain_text(f"broker {first} (pid", timeout=30_000)
            page.click("#tab-topology")
            expect(page.locator(f"[data-broker='{first}'] .status")).to_have_text(
                re.compile("killed|stopped"), timeout=30_000
            )
            page.context.set_offline(True)
            page.wait_for_timeout(1_000)
            page.context.set_offline(False)
            expect(page.locator("#now")).to_contain_text(f"epoch {epoch + 1}", timeout=30_000)
            crowned = page.locator(".broker:has(.crown)")
            expect(crowned).not_to_have_attribute("data-broker", first)
        cluster.stop()
        expect(page.locator("#notices")).to_contain_text("has stopped", timeout=60_000)
        live = counts(page)
        problems = [error for error in ui_page.errors(page) if "ERR_INTERNET" not in error]
        assert problems == []
    replayed = read_run(find_run(folder)).collector.rows
    recorded = Counter(KINDS[kind].key for kind in replayed.columns["kind"])
    assert live == recorded
    assert recorded["received"] > 20
    assert replayed.value("kind", 0) != NUMBERS["other"]
