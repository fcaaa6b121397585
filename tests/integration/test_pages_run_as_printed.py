"""Pages whose blocks run as printed, except for the ports, which must be free."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.first_hour import Follower, clean_environment, shell

ROOT = Path(__file__).resolve().parents[2]
PRINTED_PORT = 9092
BROKERS = 3
LINKED = (".venv", "bridgehead")


def free_base_port() -> int:
    """Return the first of three consecutive free ports."""
    for base in range(21_000, 32_000, BROKERS):
        sockets = [socket.socket() for _ in range(BROKERS)]
        try:
            for number, each in enumerate(sockets):
                each.bind(("127.0.0.1", base + number))
            return base
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
    raise AssertionError("there are no free ports")


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    """Follows pages in a folder with this checkout's package and its installed ones only."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in LINKED:
        (clone / name).symlink_to(ROOT / name)
    try:
        yield Follower(clone)
    finally:
        for pid_file in clone.rglob("supervisor.pid"):
            shell(
                f".venv/bin/bridgehead down --data-dir {pid_file.parent}",
                clone,
                clean_environment(),
            )


def follow(follower: Follower, page: str) -> None:
    """Follow a page at free ports."""
    text = (ROOT / page).read_text(encoding="utf-8")
    base = free_base_port()
    for number in range(BROKERS):
        text = text.replace(str(PRINTED_PORT + number), str(base + number))
    text, starts = re.subn("bridgehead up --detach", f"\\g<0> --base-port {base}", text)
    assert starts == 1
    (follower.clone / "page.md").write_text(text, encoding="utf-8")
    follower.follow("page.md")
    assert not list(follower.clone.glob("my_*")), "the page left a folder behind"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_example_of_a_policy_runs(
    follower: Follower, capfd: pytest.CaptureFixture[str]
) -> None:
    follow(follower, "docs/policies.md")
    shown = capfd.readouterr().out
    assert "POLICY_VIOLATION orders needs 3 replicas." in shown
    assert "1 passed" in shown


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_upgrade_is_judged_under_load(
    follower: Follower, capfd: pytest.CaptureFixture[str]
) -> None:
    follow(follower, "docs/upgrade.md")
    shown = capfd.readouterr().out
    judged = {words[1] for words in map(str.split, shown.splitlines()) if words[:1] == ["PASS"]}
    assert judged >= {"D1", "D2", "D3", "D5", "F1", "F2", "F5", "W6"}
