"""The documentation site is built without warnings, and needs no other origin in a browser."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Response

from tests.integration import ui_page

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / "build" / "site"
MEGABYTE: Final = 1_000_000
PAGES_MIN: Final = 60
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

# What a browser fetches to show a page. A link that a reader may follow is not among it.
FETCHED: Final = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(https?:)?//[^"]*"'
    r'|<link\b(?![^>]*rel="(?:canonical|prev|next)")[^>]*\bhref="(https?:)?//[^"]*"'
)


# The files of the site that a page names as its scripts, styles and pictures.
NAMED: Final = re.compile(r'<(?:script|img)\b[^>]*\bsrc="([^"?]+)"|<link\b[^>]*\bhref="([^"?]+)"')


def weight(page: Path) -> int:
    """Return the bytes of a page and of what it names, before compression.

    Pictures count, although a browser fetches those far below only when they come near.
    """
    text = page.read_text(encoding="utf-8")
    named = {(page.parent / (src or href)).resolve() for src, href in NAMED.findall(text)}
    files = {page, *(file for file in named if file.is_file() and file.suffix != ".html")}
    return sum(file.stat().st_size for file in files)


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, made anew. A broken link or anchor fails the build."""
    done = subprocess.run(
        ["make", "docs-site"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(site))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with ui_page.browser() as started:
        yield started


class Visit:
    """A page in a browser, and what it fetched."""

    def __init__(self, chromium: Browser, address: str, width: int = 1280) -> None:
        self.page: Page = chromium.new_page(viewport={"width": width, "height": 900})
        self._address = address
        self.foreign: list[str] = []
        self.responses: list[Response] = []
        self.page.on("request", lambda request: self._note(request.url))
        self.page.on("response", lambda response: self.responses.append(response))

    def open(self, path: str) -> None:
        """Open a page of the site; return when everything that it fetches is there."""
        self.page.goto(f"{self._address}/{path}", wait_until="networkidle")

    def _note(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https") and not url.startswith(f"{self._address}/"):
            self.foreign.append(url)

    def bytes_fetched(self) -> int:
        """Return the bytes of the page and of all that it fetched, before compression."""
        return sum(len(response.body()) for response in self.responses if response.ok)


def test_pages_are_small_and_fetch_nothing_from_other_origins(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > PAGES_MIN
    heavy = {page.name: weight(page) for page in pages if weight(page) > MEGABYTE}
    assert heavy == {}
    fetched = {
        f"{page.name}: {match.group()}"
        for page in pages
        for match in FETCHED.finditer(page.read_text(encoding="utf-8"))
    }
    assert fetched == set()


def test_a_page_weighs_what_it_names(tmp_path: Path) -> None:
    """A page is too heavy because of its text, a picture, or a script of its folder."""
    page, picture = tmp_path / "page.html", tmp_path / "ui" / "picture.png"
    picture.parent.mkdir()
    picture.write_bytes(bytes(MEGABYTE))
    page.write_text('<img loading="lazy" src="ui/picture.png"><a href="ui/picture.png">it</a>')
    assert weight(page) == MEGABYTE + page.stat().st_size
    page.write_text('<link rel="next" href="page.html"><script src="https://a.example/b.js">')
    assert weight(page) == page.stat().st_size


def test_the_check_of_origins_finds_a_script_and_a_font() -> None:
    assert FETCHED.search('<script src="https://cdn.example/x.js"></script>')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/css">')
    assert not FETCHED.search('<a href="https://github.com/example">issue</a>')


def test_reference_has_the_docstrings_of_the_public_modules(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in ("bridgehead.admin.AdminClient", "bridgehead.policy.TopicManagementPolicy"):
        assert f'id="{name}"' in page


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("index.html", "Bridgehead"),
        ("guides/moving-controller.html", "Test your client against a moving controller"),
        ("project/examples/projects.html", "Examples"),
        ("control-api.html", "The control API"),
        ("project/ARCHITECTURE.html", "Architecture"),
    ],
)
def test_a_browser_shows_the_page_at_this_width(
    chromium: Browser, address: str, path: str, title: str, width: int
) -> None:
    visit = Visit(chromium, address, width)
    visit.open(path)
    page = visit.page
    assert page.locator("h1").inner_text().rstrip("¶ ") == title
    # Nothing has to be scrolled sideways.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter((image) => !image.naturalWidth).map((image) => image.src)"
    assert page.evaluate(broken) == []
    assert visit.foreign == []
    assert 0 < visit.bytes_fetched() < MEGABYTE
    page.close()


@pytest.mark.parametrize("path", ["ui.html", "reference/python.html", "kips.html"])
def test_the_heaviest_pages_open_with_less_than_a_megabyte(
    chromium: Browser, address: str, site: Path, path: str
) -> None:
    """What a script of the theme fetches counts here, too."""
    visit = Visit(chromium, address)
    visit.open(path)
    assert (site / path).stat().st_size < visit.bytes_fetched() < MEGABYTE
    assert visit.foreign == []
    visit.page.close()


def test_search_fetches_its_index_when_it_is_used_and_finds_a_section(
    chromium: Browser, address: str
) -> None:
    visit = Visit(chromium, address)
    visit.open("guides/ci.html")
    assert "search_index.json" not in " ".join(response.url for response in visit.responses)
    visit.page.locator(".md-search__input").fill("lost response")
    result = visit.page.locator("a.md-search-result__link[href*='fault-rules.html']").first
    result.wait_for(timeout=30_000)
    result.click()
    visit.page.wait_for_url("**/fault-rules.html**")
    assert visit.foreign == []
    visit.page.close()


def test_a_request_to_another_origin_is_noticed(chromium: Browser, address: str) -> None:
    """A script that a script adds is not in the page's text."""
    visit = Visit(chromium, address)
    visit.open("index.html")
    visit.page.evaluate("fetch('http://127.0.0.1:9/statistics').catch(() => 0)")
    assert visit.foreign == ["http://127.0.0.1:9/statistics"]
    visit.page.close()
