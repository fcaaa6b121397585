"""The page of a running cluster: a failover by its button, watched in a real Chromium."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Page, expect

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics
from bridgehead.ui.reading import find_run, read_run
from bridgehead.ui.server import Served, open_run
from bridgehead.ui.vocabulary import KINDS, NUMBERS
from tests.integration import ui_page
from tests.integration.conftest import StartCluster

SESSION_MS = 2_500


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
            "() => { const found = {}; const e = page.evidence; for (let at = e.first; at < "
            "e.count; at++) { const key = e.kinds[e.get('kind', at)].key; "
            "found[key] = (found[key] ?? 0) + 1; } return found; }"
        )
    )


def test_a_failover_is_watched_live_and_no_event_is_lost_or_doubled(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """The controller is killed with the page's button. The browser is offline for a while."""
    cluster = start_cluster(
        brokers=3,
        data_dir=tmp_path / "cluster",
        properties={"zookeeper.session.timeout.ms": str(SESSION_MS)},
    )
    folder = tmp_path / "cluster"
    served = Served(open_run(find_run(folder)), str(folder), folder)
    with ui_page.browser() as chromium, ui_page.serving(served) as address:
        page = ui_page.open_page(chromium, address)
        first = str(cluster.controller_id())
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
            expect(page.locator(f"[data-broker='{first}'] .status")).to_contain_text(
                "stopped", timeout=30_000
            )
            page.context.set_offline(True)
            page.wait_for_timeout(1_000)
            page.context.set_offline(False)
            expect(page.locator("#now")).to_contain_text("epoch 2", timeout=30_000)
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


def test_a_read_only_page_has_no_buttons(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(brokers=1, data_dir=tmp_path / "cluster")
    folder = tmp_path / "cluster"
    served = Served(open_run(find_run(folder)), str(folder), folder, read_only=True)
    with ui_page.browser() as chromium, ui_page.serving(served) as address:
        page = ui_page.open_page(chromium, address)
        expect(page.locator("#tab-topology")).to_be_visible()
        assert page.locator("#tab-break").count() == 0
        status = page.evaluate(
            "(token) => fetch('actions', { method: 'POST', headers: { 'X-Bridgehead-Action': "
            'token }, body: \'{"action":"kill"}\' }).then((answer) => answer.status)',
            served.action_token,
        )
        assert status == 403
        assert cluster.controller_id() == 1
