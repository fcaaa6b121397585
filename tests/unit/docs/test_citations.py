"""Everything that code, tests and pages cite exists: pages, headings, ADRs, files, tests, names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.docs.test_kip_tests_exist import functions_of
from tests.unit.project.test_tidy import files, modules

ROOT = Path(__file__).parents[3]
PAGE = re.compile(r"docs/[\w/-]+\.md(?:#[\w-]+)?")  # in code, relative to the root
LINK = re.compile(r"\]\(([\w./-]+\.md)?(#[\w-]+)?\)")  # in a page, relative to the page
RELATIVE = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)\s]*)?\)")
# Documents that are not in the repository. Their names are split here, so that this file does not
# break its own rule.
MISSING = re.compile(r"kafka-" r"semantics|chaos " r"reference|\bdesign \d+\.\d")
ADR = re.compile(r"docs/adr/(\d{4})\b")
FILE = re.compile(r"`([\w/.-]+/[\w.-]+\.(?:py|md|tsv|proto|toml|ya?ml))`")
NAME_IN_FILE = re.compile(r"`([\w/]+\.py)` `([\w.]+)`")
TEST_IN_FILE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROW = re.compile(r"\b(?:4|108|117|201|590)\.\d+\b")  # a statement of docs/kips.md


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub derives them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def pages() -> list[Path]:
    return [path for path in files() if path.suffix == ".md"]


def targets() -> Iterator[tuple[str, Path, str]]:
    """Yield each reference as the file that has it, the page and the anchor ("" for none)."""
    for path in [*modules(), *pages()]:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        for reference in PAGE.findall(text) if path.suffix == ".py" else ():
            page, _, anchor = reference.partition("#")
            yield name, ROOT / page, anchor
        for file, anchor in LINK.findall(text) if path.suffix == ".md" else ():
            yield name, path.parent / file if file else path, anchor[1:]


def test_every_reference_names_a_page_and_a_heading() -> None:
    references = list(targets())
    assert len(references) > 50
    anchors_of = {page.resolve(): anchors(page) for page in pages()}
    assert [
        (name, str(page), anchor)
        for name, page, anchor in references
        if page.resolve() not in anchors_of or (anchor and anchor not in anchors_of[page.resolve()])
    ] == []


def test_every_relative_link_names_a_file_or_folder() -> None:
    links = [
        (page, file)
        for page in pages()
        for file in RELATIVE.findall(re.sub(r"`[^`\n]*`", "", page.read_text("utf-8")))
    ]
    assert len(links) > 200
    assert [(str(page), file) for page, file in links if not (page.parent / file).exists()] == []


def test_no_document_outside_the_repository_is_cited() -> None:
    texts = {path: path.read_text("utf-8") for path in [*modules(), *pages()]}
    assert [str(path) for path, text in texts.items() if MISSING.search(text)] == []


def test_every_cited_adr_exists() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")}
    cited = {number for path in modules() for number in ADR.findall(path.read_text("utf-8"))}
    assert cited - numbers == set()


def test_every_row_that_the_kips_page_cites_exists() -> None:
    kips = (ROOT / "docs" / "kips.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([\d.]+) \|", kips, re.MULTILINE))
    assert {row for row in ROW.findall(kips) if row not in rows} == set()


def test_every_file_that_a_page_names_exists() -> None:
    named = {
        (page.name, file)
        for page in pages()
        # Another test checks kips.md; policies.md names files of users.
        if page.name not in ("kips.md", "policies.md")
        for file in FILE.findall(page.read_text(encoding="utf-8"))
        if "<" not in file
    }
    assert len(named) > 50
    assert [mention for mention in sorted(named) if not (ROOT / mention[1]).exists()] == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        test for page in pages() for test in TEST_IN_FILE.findall(page.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert [
        mention for mention in sorted(named) if mention[1] not in functions_of(mention[0])
    ] == []


def test_every_class_and_function_in_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = NAME_IN_FILE.findall(text)
    assert len(names) > 10
    for file, name in names:
        code = (ROOT / file).read_text(encoding="utf-8")
        for part in name.split("."):
            assert f"class {part}" in code or f"def {part}(" in code, (file, name)
