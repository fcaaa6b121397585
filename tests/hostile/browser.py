"""The report on hostile evidence, opened in a real browser: no name in it becomes code."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.hostile.evidence import DEEP, RUN, write_run
from tests.hostile.family import Report
from tests.hostile.target import bridgehead

OWNED: Final = "owned-by-evidence"
_DO: Final = f"document.documentElement.setAttribute('data-owned','{OWNED}')"
PAYLOADS: Final = (
    f"<img src=x onerror=\"{_DO}\">",
    f"<script>{_DO}</script>",
    f"</script><script>{_DO}</script>",
    f"</title></style></textarea><svg onload=\"{_DO}\">",
    f"\" onmouseover=\"{_DO}\" autofocus onfocus=\"{_DO}\" x=\"",
    f"' onfocus='{_DO}' autofocus tabindex=1 x='",
    f"javascript:{_DO}",
    f"${{{_DO}}}`;{_DO}//",
    f"\u2028{_DO}\u2029",
    f"-->\"]]><img src=x onerror=\"{_DO}\">",
)  # fmt: skip


def attack_the_report(folder: Path, report: Report) -> None:
    """Build the report of evidence whose texts are code, and open it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        report.figures.append("browser: not tried, because chromium is not installed")
        return
    control = folder / "control.html"
    control.write_text(f"<html><body>{PAYLOADS[0]}</body></html>")
    dom = _opened(browser, control, folder)
    report.expect(_is_owned(dom), "the browser does not execute the payload: the test is blind")
    events = [event for payload in PAYLOADS for event in _events(payload)]
    run = write_run(folder / "data", *events, run=_description("".join(PAYLOADS)))
    with (run / "node=1" / "events-z-0000.jsonl").open("w") as lines:
        lines.write("\n".join([DEEP, *PAYLOADS, ""]))
    out = folder / "out"
    pipeline = bridgehead(
        *("pipeline", "run", "--unsealed", "--memory", "1g"),
        *("--evidence", str(folder / "data"), "--out", str(out)),
        check=False,
    )
    report.expect(pipeline.returncode in (1, 3), f"the pipeline: {pipeline.stderr[-800:]}")
    pages = sorted(out.glob("report/**/*.html"))
    report.expect(bool(pages), "the pipeline wrote no report")
    texts = "".join(page.read_text(encoding="utf-8", errors="replace") for page in pages)
    report.expect(OWNED in texts, "no payload reached the report: the test is blind")
    for page in pages:
        dom = _opened(browser, page, folder)
        report.expect(not _is_owned(dom), f"{page.name} executed a name of the evidence")
        handlers = re.findall(rf"<[^>]*\son\w+=\"[^\"]*{OWNED}", dom)
        report.expect(not handlers, f"{page.name} has an element of the evidence: {handlers[:2]}")
        links = re.findall(r"(?:src|href)=\"(?:https?:|javascript:)[^\"]*", dom)
        report.expect(not links, f"{page.name} loads or opens {links[:2]}")


def _description(payload: str) -> dict[str, Any]:
    return {
        **RUN,
        "scenario": payload,
        "seed": 1,
        "versions": {"bridgehead": payload, "python": payload},
        "host_boot_id": payload,
        "super_users": [payload],
        "chroot": payload,
    }


def _events(payload: str) -> list[dict[str, Any]]:
    """Return events of one node with the payload in each text."""
    return [
        {"kind": "started", "incarnation": payload, "version": payload, "pid": 7},
        {
            "kind": "connected",
            "connection": payload,
            "listener": payload,
            "security_protocol": payload,
            "client_host": payload,
            "principal": payload,
        },
        {"kind": payload},
        {"kind": "fault_injected", "action": payload, "target": payload},
        {"kind": "fault_healed", "action": payload, "target": payload},
    ]


def _opened(browser: str, page: Path, folder: Path) -> str:
    """Return the document after its scripts have run."""
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def _is_owned(dom: str) -> bool:
    return bool(re.search(rf"<html[^>]*data-owned=\"{OWNED}\"", dom))
