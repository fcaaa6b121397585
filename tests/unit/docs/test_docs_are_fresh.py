"""Generated pages are current."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.kafka_wire.apis import API_SPECS, DRAFTED_SPECS, UNSERVED, ApiSpec
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS, DYNAMIC_ONLY
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from event_log import events
from metrics.names import METRICS, CounterSpelling, exposed_names
from tests.unit.project.test_tidy import files, name
from tools.generate import FOLDER, PAGES, apis_page, possible_errors, text_of
from tools.generate_reference import command_names, help_of
from tools.markdown import one_line_per_paragraph
from tools.reachable_code import ROOT, rights_and_errors


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
        for exposed in exposed_names(metric, CounterSpelling.BOTH):
            assert f"`{exposed}`" in page


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


# Each paragraph of our Markdown is one line, and so is each item of a list.


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


# docs/apis.md has the rights that the code checks and the errors that Kafka returns.

SERVED = [spec for spec in DRAFTED_SPECS.values() if spec.route is not None]
EVERY_RIGHT = ("ALL", "CLUSTER")  # the code checks each operation that ALL stands for


@pytest.mark.parametrize("spec", SERVED, ids=lambda spec: spec.name)
def test_rights_of_an_api_equal_the_rights_that_its_code_checks(spec: Any) -> None:
    rights, _ = rights_and_errors(spec.key)
    assert {*spec.rights, *spec.rights_to_see} - {EVERY_RIGHT} == rights


def recorded_errors() -> Iterator[tuple[int, str]]:
    """Yield key and error name of every error in the recordings of a real Kafka."""
    keys = {spec.enum_name: key for key, spec in API_SPECS.items()}
    for file in sorted((ROOT / "tests" / "recordings").glob("[df]*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            for step in json.loads(line)["steps"]:
                if step.get("api") in keys and "response" in step:
                    for code in codes(step["response"]):
                        yield keys[step["api"]], ErrorCode(code).name


def codes(value: Any) -> Iterator[int]:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from codes(item)
    if isinstance(value, dict):
        yield from (code for key, code in value.items() if key.lower().endswith("errorcode"))


def test_page_names_every_recorded_error_of_a_served_api() -> None:
    served: dict[int, ApiSpec] = {spec.key: spec for spec in SERVED}
    seen = {pair for pair in recorded_errors() if pair[0] in served and pair[1] != "NONE"}
    assert len(seen) > 60
    assert {(key, name) for key, name in seen if name not in possible_errors(served[key])} == set()


def test_operations_resource_types_and_errors_have_kafkas_names() -> None:
    for spec in SERVED:
        for operation, kind in (*spec.rights, *spec.rights_to_see):
            assert operation in get_args(Operation) or (operation, kind) == EVERY_RIGHT
            assert kind in get_args(ResourceType)
        assert possible_errors(spec) <= set(ErrorCode.__members__)


def test_every_api_of_a_zookeeper_broker_is_served_or_unserved_with_a_reason() -> None:
    page = apis_page()
    for key, spec in API_SPECS.items():
        assert (spec.route is None) == (key in UNSERVED), spec.name
        assert f"| `{spec.name}` | {key} |" in page
