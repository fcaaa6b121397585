"""README links every page, `make first-hour` can follow guides, and quoted messages exist."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tools import first_hour
from tools.first_hour import PAGES, TOOLS, Block, Follower, PageFailedError, blocks, recipe

ROOT = Path(__file__).parents[3]
LINES_OF_README_MAX = 150
QUOTED = re.compile(r"^\| (?:`status` shows phase )?`([^`]+)`", re.MULTILINE)
# Kafka's error codes. Every other quotation is a message of ours.
NOT_OURS = re.compile(r"[A-Z_]+")


def test_readme_is_short_and_links_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= LINES_OF_README_MAX
    pages = [page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").glob("*.md")]
    pages += [page.relative_to(ROOT).as_posix() for page in (ROOT / "docs/guides").glob("*.md")]
    pages.remove("docs/index.md")  # It replaces README on the site.
    assert len(pages) > 20
    assert [page for page in sorted(pages) if f"]({page})" not in text] == []


def test_each_page_has_its_place_on_the_site() -> None:
    """`make docs-site` fails otherwise. Its packages are not in this environment."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    placed = re.findall(r"- (?:[^\[\]:\n]+: )?(\S+\.md)$", navigation, re.MULTILINE)
    outside = {page for page in placed if page.startswith("project/")}  # listed in tools/site.py
    folders = ("docs", "docs/guides")
    pages = {path for folder in folders for path in (ROOT / folder).glob("*.md")}
    inside = {page.relative_to(ROOT / "docs").as_posix() for page in pages}
    assert sorted(placed) == sorted({*inside, *outside, "reference/python.md"})


def test_every_page_that_is_followed_has_commands() -> None:
    for page in PAGES:
        printed = list(blocks((ROOT / page).read_text("utf-8")))
        assert any(block.language == "sh" or recipe(block) for block in printed), page


def test_languages_of_the_guide_are_known() -> None:
    guide = (ROOT / "docs/guides/moving-controller.md").read_text("utf-8")
    sections = {block.section for block in blocks(guide)}
    assert set(TOOLS) < sections


def test_messages_that_the_guide_quotes_are_in_the_code() -> None:
    guide = (ROOT / "docs/guides/troubleshooting.md").read_text("utf-8")
    quoted = [text for text in QUOTED.findall(guide) if not NOT_OURS.fullmatch(text)]
    assert len(quoted) > 8
    code = "".join(
        path.read_text("utf-8")
        for package in ("bridgehead", "judge", "event_log")
        for path in sorted((ROOT / package).rglob("*.py"))
    )
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # joins the parts of a literal
    missing = [text for text in quoted if re.sub(r"\b9092\b", "{port}", text) not in code]
    assert missing == []


def test_blocks_have_section_language_and_file() -> None:
    page = "## A\n```sh\nls\n```\n```python\n# a/b.py\nx = 1\n```\n## B\n```\nnot run\n```\n"
    one, two, three = blocks(page)
    assert (one.section, one.language, one.file) == ("A", "sh", None)
    assert (two.text, two.file) == ("# a/b.py\nx = 1\n", "a/b.py")
    assert (three.section, three.language, three.file) == ("B", "", None)


def test_recipe_lists_the_commands_of_github_actions_and_gitlab_ci() -> None:
    github = "# a.yml\non: [push]\njobs:\n  t:\n    steps:\n      - uses: x\n      - run: make a\n"
    assert recipe(Block("", "yaml", github)) == ["make a"]
    assert recipe(Block("", "yaml", "# b.yml\nt:\n  script:\n    - make b\n")) == ["make b"]
    assert recipe(Block("", "yaml", "# c.yaml\nbrokers: 3\n")) == []


def write(folder: Path, page: str) -> Follower:
    (folder / "clone").mkdir()
    (folder / "clone" / "page.md").write_text(page)
    return Follower(folder / "clone")


def test_follower_writes_files_and_keeps_variables(tmp_path: Path) -> None:
    page = "```text\n# a/b.txt\nx\n```\n```sh\nexport A=1\n```\n```sh\ncp a/b.txt got-$A\n```\n"
    write(tmp_path, page).follow("page.md")
    assert (tmp_path / "clone" / "got-1").read_text() == "# a/b.txt\nx\n"


def test_follower_stops_at_a_command_that_fails(tmp_path: Path) -> None:
    with pytest.raises(PageFailedError, match="exit code 1 of\nfalse"):
        write(tmp_path, "```sh\nfalse\ntrue\n```\n").follow("page.md")


def test_follower_reports_a_process_that_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_hour, "_GONE_WITHIN_S", 0.2)
    page = '```sh\ntail -f "$PWD/page.md" > /dev/null & echo $! > pid\n```\n'
    follower = write(tmp_path, page)
    try:
        with pytest.raises(PageFailedError, match="leaves processes"):
            follower.follow("page.md")
    finally:
        os.kill(int((follower.clone / "pid").read_text()), signal.SIGKILL)


def test_section_whose_packages_cannot_be_downloaded_counts_as_not_tested(tmp_path: Path) -> None:
    follower = write(tmp_path, "## Java\n```sh\nfalse\n```\n```sh\nexit 9\n```\n")
    follower.follow("page.md")
    (line,) = follower.untested
    assert line.startswith("NOT TESTED: Java of page.md")
