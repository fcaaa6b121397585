"""The documentation site is built without warnings, and needs no other origin in a browser."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / "build" / "site"
MEGABYTE: Final = 1_000_000
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

# What a browser fetches to show a page. A link that a reader may follow is not among it.
FETCHED: Final = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(https?:)?//[^"]*"'
    r'|<link\b(?![^>]*rel="(?:canonical|prev|next)")[^>]*\bhref="(https?:)?//[^"]*"'
)
# Shows a page in a frame, and writes what the browser made of it into the document.
PROBE: Final = """<!doctype html><iframe src="{page}" style="width:{width}px;height:800px"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const page = frame.contentDocument;
  const broken = [...page.images].filter((image) => !image.naturalWidth).map((image) => image.src);
  document.body.append(`WIDTH=${{page.documentElement.scrollWidth}} BROKEN=${{broken.length}} `);
  document.body.append(`TITLE=${{page.querySelector("h1").textContent}}.`);
}};
</script>"""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, made anew. A broken link or anchor fails the build."""
    done = subprocess.run(
        ["make", "docs-site"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Serve the site, and a page that shows one of its pages in a frame."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/probe/"):
                super().do_GET()
                return
            width, page = self.path.removeprefix("/probe/").split("/", 1)
            body = PROBE.format(page=f"/{page}", width=width).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

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


def test_pages_are_small_and_fetch_nothing_from_other_origins(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    assert [page.name for page in pages if page.stat().st_size > MEGABYTE] == []
    fetched = {
        f"{page.name}: {match.group()}"
        for page in pages
        for match in FETCHED.finditer(page.read_text(encoding="utf-8"))
    }
    assert fetched == set()


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
    ("page", "title"),
    [
        ("index.html", "Bridgehead"),
        ("guides/moving-controller.html", "Test your client against a moving controller"),
        ("project/ARCHITECTURE.html", "Architecture"),
    ],
)
def test_a_browser_shows_the_page_at_this_width(
    address: str, tmp_path: Path, page: str, title: str, width: int
) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("NOT TESTED: the site in a browser, because there is no Chromium")
    shown = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update"),
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            *(
                "--window-size=1400,900",
                f"--user-data-dir={tmp_path}",
                "--virtual-time-budget=8000",
            ),
            *("--dump-dom", f"{address}/probe/{width}/{page}"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    result = re.search(r"WIDTH=(\d+) BROKEN=(\d+) TITLE=(.*?)¶?\.", shown)
    assert result, shown[-2000:]
    assert int(result.group(1)) <= width  # nothing has to be scrolled sideways
    assert (result.group(2), result.group(3)) == ("0", title)
