"""How the time to open a run's page grows with its events.

On a busy machine, the browser's processor time says more than its times and frames a second.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

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
            shown = _opened(Path(folder), chromium)
        lines.append(
            f"{size:,} events: served after {shown.serves_s:.1f} s; Chromium shows the page after "
            f"{shown.opens_s:.1f} s more ({shown.opens_cpu_s:.1f} s of processor time), has all "
            f"events after {shown.complete_s:.1f} s ({shown.complete_cpu_s:.1f} s), and scrolls at "
            f"{shown.frames:.0f} frames a second ({shown.frame_cpu_ms:.0f} ms for a frame)"
        )
    return lines


@dataclass(frozen=True, slots=True)
class _Shown:
    """Times to serve, to show and to read a run, and to scroll; `cpu`: of the browser."""

    serves_s: float
    opens_s: float
    opens_cpu_s: float
    complete_s: float
    complete_cpu_s: float
    frames: float
    frame_cpu_ms: float


def _browser_s() -> float:
    """Return the processor time of all processes of the browser so far."""
    children = psutil.Process().children(recursive=True)
    return sum(sum(p.cpu_times()[:2]) for p in children if "chrom" in p.name())


def _opened(folder: Path, chromium: str) -> _Shown:
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
            begun, used_s = time.monotonic(), _browser_s()
            page.goto(address)
            page.wait_for_selector("body[data-ready=true]", timeout=120_000)
            opens_s, opens_cpu_s = time.monotonic() - begun, _browser_s() - used_s
            page.wait_for_selector("body[data-complete=true]", timeout=240_000)
            complete_s, complete_cpu_s = time.monotonic() - begun, _browser_s() - used_s
            used_s = _browser_s()
            frames = float(page.evaluate(_SCROLL))
            frame_cpu_ms = (_browser_s() - used_s) / _FRAMES * 1000
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return _Shown(serves_s, opens_s, opens_cpu_s, complete_s, complete_cpu_s, frames, frame_cpu_ms)
