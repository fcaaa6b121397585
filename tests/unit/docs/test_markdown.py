"""Each paragraph of our Markdown is one line, and so is each item of a list."""

from __future__ import annotations

import pytest

from tests.unit.project.test_tidy import files, name
from tools.markdown import one_line_per_paragraph


def test_each_paragraph_of_each_page_is_one_line() -> None:
    """`one_line_per_paragraph` joins the lines of a page that fails."""
    texts = {name(path): path.read_text("utf-8") for path in files() if path.suffix == ".md"}
    assert len(texts) > 50
    assert [page for page, text in texts.items() if one_line_per_paragraph(text) != text] == []


@pytest.mark.parametrize(
    ("wrapped", "joined"),
    [
        ("One\ntwo.\n\nThree\n", "One two.\n\nThree\n"),
        ("- one\n  two\n- three\n", "- one two\n- three\n"),
        ("1. one\n   two\n\n   more\n   text\n", "1. one two\n\n   more text\n"),
        ("Text:\n- one\n", "Text:\n- one\n"),
    ],
    ids=["paragraphs", "items", "paragraphs of an item", "a list below a paragraph"],
)
def test_lines_of_a_paragraph_are_joined(wrapped: str, joined: str) -> None:
    assert one_line_per_paragraph(wrapped) == joined


@pytest.mark.parametrize(
    "text",
    [
        "Text\n```sh\nls\nls -l\n```\nText\n",
        "Text\n\n    x = 1\n    y = 2\n",
        "# Title\nText\n## Title\n",
        "| a | b |\n|---|---|\n| c | d |\n",
        "<!-- one\n     two -->\n",
    ],
    ids=["fence", "indented code", "headings", "table", "comment"],
)
def test_other_lines_stay(text: str) -> None:
    assert one_line_per_paragraph(text) == text
