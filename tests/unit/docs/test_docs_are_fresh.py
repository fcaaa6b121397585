"""Generated pages are current."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

import pytest

from cluster_model.configs.broker_configs.table import BROKER_CONFIGS, DYNAMIC_ONLY
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from event_log import events
from metrics.names import METRICS, CounterSpelling, exposed_names
from tools.generate import FOLDER, PAGES, text_of
from tools.generate_reference import command_names, help_of


@cache
def generated(name: str) -> str:
    """Return the text of a page."""
    return text_of(name)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_page_is_current(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert generated(name) == written, f"docs/{name} is stale: run make docs."


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_names_files_that_exist(name: str) -> None:
    assert [file for file in PAGES[name].written_in if not (FOLDER.parent / file).exists()] == []


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
        for name in exposed_names(metric, CounterSpelling.BOTH):
            assert f"`{name}`" in page


def test_every_config_is_on_the_page() -> None:
    words = set(re.findall(r"[\w.]+", generated("configuration.md")))
    names = {*BROKER_CONFIGS, *DYNAMIC_ONLY, *TOPIC_CONFIGS}
    assert len(names) > 300
    assert names - words == set()


def test_help_cuts_no_summary_and_fits_80_columns() -> None:
    """A summary that is cut ends with three dots."""
    lines = [line for words in command_names() for line in help_of(words).splitlines()]
    assert len(lines) > 500
    assert [line for line in lines if line.startswith("  ") and line.endswith("...")] == []
    assert max(map(len, lines)) <= 80
