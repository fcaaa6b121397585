"""Real Chromium for tests of the page, and runs to look at."""

from __future__ import annotations

import base64
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from bridgehead.ui.export import exported_page
from bridgehead.ui.reading import find_run, read_run
from bridgehead.ui.server import Served, build_app
from bridgehead.ui.verdicts import judged
from chaos.scenarios import SCENARIOS
from chaos.simulated.run import run as run_simulated

PICTURES: Final = Path(__file__).parents[2] / "docs" / "ui"
RENEW: Final = "RENEW_PICTURES"  # an environment variable: write the pictures of the docs
_READY: Final = "body[data-ready=true]"


def chromium_path() -> str:
    """Return the path of Chromium; without one, skip the test and say how to get it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
    if path is None:
        pytest.skip("the page is NOT tested: Chromium is missing (apt-get install chromium)")
    return path


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium."""
    path = chromium_path()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            chromium.close()


def open_page(chromium: Browser, address: str, **options: Any) -> Page:
    """Open the page; an error of a script or of the policy fails the test at its next step."""
    context = chromium.new_context(
        **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
    )
    page = context.new_page()
    page.on("pageerror", lambda error: _fail(page, f"{error} {error.stack}"))
    page.on("console", lambda said: _fail(page, said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: _fail(page, f"a dialog: {dialog.message}"))
    page.goto(address)
    page.wait_for_selector(_READY, timeout=60_000)
    return page


def _fail(page: Page, why: str) -> None:
    errors(page).append(why)


_ERRORS: Final[dict[Page, list[str]]] = {}


def errors(page: Page) -> list[str]:
    """Return what went wrong in the page so far."""
    return _ERRORS.setdefault(page, [])


def simulated_run(scenario: str, seed: int, folder: Path, *bugs: str) -> Path:
    """Run a scenario on simulated nodes; return its folder."""
    (chosen,) = (scenario_ for scenario_ in SCENARIOS if scenario_.name == scenario)
    if bugs:
        chosen = replace(chosen, topology=replace(chosen.topology, seeded_bugs=bugs))
    target = folder / f"{scenario}-{seed}"
    run_simulated(chosen, seed, target, lambda _: None)
    return target


def export(run: Path, file: Path) -> str:
    """Export a run; return the address of the file."""
    reader = read_run(find_run(run))
    file.write_text(exported_page(reader, judged(reader, live=False), str(run)), encoding="utf-8")
    reader.close()
    return file.as_uri()


@contextmanager
def serving(served: Served) -> Iterator[str]:
    """Serve a page in a thread; yield its address."""
    config = uvicorn.Config(build_app(served), port=0, access_log=False, log_level="critical")
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive(), "the server ended"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/{served.token}/"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def page_of_another_origin(chromium: Browser) -> Iterator[Page]:
    """Open an empty page that another server on this machine serves."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>another page</title>")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    page = chromium.new_page()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        yield page
    finally:
        page.close()
        server.shutdown()
        thread.join()
        server.server_close()


# A lossless WebP has fewer bytes than Chromium's PNG.
_AS_WEBP: Final = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes]));
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const reader = new FileReader();
  reader.readAsDataURL(await canvas.convertToBlob({ type: "image/webp", quality: 1 }));
  await new Promise((done) => { reader.onload = done; });
  return reader.result.split(",")[1];
}"""


def picture(page: Page, name: str, folder: Path = PICTURES) -> None:
    """Take a picture for the docs if pictures are to be renewed."""
    if os.environ.get(RENEW):
        folder.mkdir(exist_ok=True)
        png = base64.b64encode(page.screenshot()).decode()
        webp = base64.b64decode(page.evaluate(_AS_WEBP, png))
        (folder / f"{name}.webp").write_bytes(webp)
