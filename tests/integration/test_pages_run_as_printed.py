"""The blocks of the pages in FOLLOWED run as printed, but with free ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from bridgehead.cluster.ports import Ports
from tools.first_hour import TOOLS, Follower, clean_environment, shell

# The pages, each with the sections whose blocks are not run here.
# For each such section, tests/unit/docs/test_examples_are_run.py names the test that runs the
# blocks, or says why no test does.
FOLLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "README.md": ("Start",),
    "docs/control-api.md": (),
    "docs/evidence.md": (),
    "docs/guides/admin-client.md": (),
    "docs/guides/fault-rules.md": (),
    "docs/guides/from-zookeeper-to-kraft.md": ("Rehearse", "Back"),  # need Kafka's jars
    "docs/guides/moving-controller.md": tuple(TOOLS),
    "docs/guides/secure-client.md": (),
    "docs/guides/troubleshooting.md": (),
    "docs/guides/your-metadata.md": (),
    "docs/policies.md": (),
    "docs/security.md": (),
    "docs/upgrade.md": (),
}
ROOT = Path(__file__).resolve().parents[2]
PRINTED_PORT = 9092
BROKERS = 3
LINKED = (".venv", "bridgehead")


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A folder that has only this checkout's package and the packages installed for it."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in LINKED:
        (clone / name).symlink_to(ROOT / name)
    try:
        yield clone
    finally:
        for pid_file in clone.rglob("supervisor.pid"):
            shell(
                f".venv/bin/bridgehead down --data-dir {pid_file.parent}",
                clone,
                clean_environment(),
            )


def follow(clone: Path, page: str, base: int) -> None:
    """Run the blocks of a page, with the ports from `base` on instead of the printed ones."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for number in range(BROKERS):
        text = text.replace(str(PRINTED_PORT + number), str(base + number))
    text = re.sub(
        "^bridgehead up --detach(?!.* --ports auto)",
        f"\\g<0> --base-port {base}",
        text,
        flags=re.MULTILINE,
    )
    (clone / "page.md").write_text(text, encoding="utf-8")
    Follower(clone, FOLLOWED[page]).follow("page.md")
    left = {path.name for path in clone.iterdir() if path.is_dir()}
    caches = {".pytest_cache", "__pycache__"}  # pytest writes them beside a test
    assert left - caches == set(LINKED), "the page left a folder behind"


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", FOLLOWED)
def test_the_commands_of_a_page_succeed(
    clone: Path, page: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with Ports() as ports:
        follow(clone, page, ports.choose_row(BROKERS))
    SHOWS.get(page, lambda shown: None)(capfd.readouterr().out)


def shows_the_rejection(shown: str) -> None:
    """Check that the policy rejected the topic, and that the policy's own test passed."""
    assert "POLICY_VIOLATION orders needs 3 replicas." in shown
    assert "1 passed" in shown


def shows_the_verdicts(shown: str) -> None:
    """Check that the judge printed PASS for each of these properties."""
    judged = {words[1] for words in map(str.split, shown.splitlines()) if words[:1] == ["PASS"]}
    assert judged >= {"D1", "D2", "D3", "D5", "F1", "F2", "F5", "W6"}


SHOWS: Final = {"docs/policies.md": shows_the_rejection, "docs/upgrade.md": shows_the_verdicts}
