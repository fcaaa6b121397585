"""Generated pages are current."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

from event_log import events
from metrics.names import METRICS, Dialect, exposed_names
from tools.generate import FOLDER, PAGES


@cache
def generated(name: str) -> str:
    """Return the text of a page."""
    return PAGES[name]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_page_is_current(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert generated(name) == written, f"docs/{name} is stale: run make docs."


def test_every_event_has_a_section_with_its_fields() -> None:
    """The page is generated from the source text; this test compares it with the classes."""
    page = generated("events.md")
    for event in events.EVENT_KINDS.values():
        section = page.partition(f"\n## {event.kind}\n")[2].partition("\n## ")[0]
        fields = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        assert fields == [field.name for field in dataclasses.fields(event)], event.kind


def test_every_metric_has_a_row() -> None:
    page = generated("metrics.md")
    for metric in METRICS:
        for name in exposed_names(metric, Dialect.BOTH):
            assert f"`{name}`" in page


def test_help_cuts_no_summary_and_fits_80_columns() -> None:
    """A summary that is cut ends with three dots."""
    lines = generated("commands.md").splitlines()
    assert [line for line in lines if line.startswith("  ") and line.endswith("...")] == []
    shown = "\n".join(lines).split("```")[1::2]
    assert max(len(line) for block in shown for line in block.splitlines()) <= 80
