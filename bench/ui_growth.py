"""How the time to open a run's page grows with its events."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.generated_evidence.__main__ import generate
from bench.report import Plan, progress
from bridgehead.application import module_command, module_environment

_SIZES = (10_000, 100_000, 1_000_000)
_FRAMES = 120
# Scrolls one row for each frame; returns the frames a second.
_SCROLL = f"""async () => {{
  page.openTab("sequence");
  const scroller = document.querySelector(".scroller");
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const begun = performance.now();
  for (let at = 0; at < {_FRAMES}; at++) {{ scroller.scrollTop += 24; await frame(); }}
  return {_FRAMES * 1000} / (performance.now() - begun);
}}"""


def run(plan: Plan) -> list[str]:
    """Return the lines of the report."""
    sizes = _SIZES[:2] if plan.quick else _SIZES
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return ["ui-growth: Chromium is missing, so nothing was measured"]
    lines = []
    for size in sizes:
        progress(f"ui-growth: {size:,} events")
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), size)
            serves_s, opens_s, complete_s, frames = _opened(Path(folder), chromium)
        lines.append(
            f"{size:>9,} events: served after {serves_s:5.2f} s; Chromium shows the page after "
            f"{opens_s:5.2f} s more, has all events after {complete_s:5.2f} s, and scrolls at "
            f"{frames:3.0f} frames a second"
        )
    return lines


def _opened(folder: Path, chromium: str) -> tuple[float, float, float, float]:
    """Return the seconds to serve, to show and to read a run, and the frames a second."""
    from playwright.sync_api import sync_playwright

    begun = time.monotonic()
    server: subprocess.Popen[Any] = subprocess.Popen(
        module_command("bridgehead", "ui", str(folder)),
        env=module_environment(),
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        serves_s = time.monotonic() - begun
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            begun = time.monotonic()
            page.goto(address)
            page.wait_for_selector("body[data-ready=true]", timeout=120_000)
            opens_s = time.monotonic() - begun
            page.wait_for_selector("body[data-complete=true]", timeout=240_000)
            complete_s = time.monotonic() - begun
            frames = float(page.evaluate(_SCROLL))
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return serves_s, opens_s, complete_s, frames
