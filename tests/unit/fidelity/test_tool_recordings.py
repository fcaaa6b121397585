"""Sessions of Kafka's tools: the file format, and what is masked, dropped and sorted."""

from __future__ import annotations

from pathlib import Path

from tests.fidelity.tool_differences import as_ours
from tests.fidelity.tool_recordings import (
    FOLDER,
    Output,
    load_session,
    mask,
    save_session,
    sorted_blocks,
    without_java,
)


def test_session_is_written_as_it_was_read(tmp_path: Path) -> None:
    for path in FOLDER.glob("*.txt"):
        copy = tmp_path / path.name
        save_session(copy, load_session(path))
        assert copy.read_bytes() == path.read_bytes()


def test_values_that_differ_between_runs_are_masked() -> None:
    text = "A\tTopicId: AAAAAAAAAAAAAAAAAAAAAg\tB\n127.0.0.1:9092 at 2026-01-02T03:04  \n\n"
    assert mask(text, {"A\t": "named\t"}) == [
        "named\tTopicId: TOPIC-ID\tB",
        "HOST:PORT at YYYY-MM-DDTHH:MM",
    ]


def test_first_line_of_a_stack_trace_is_kept_if_only_it_has_the_reason() -> None:
    """The first line is dropped if an earlier line has the reason. Option tables are dropped."""
    assert without_java(
        ["It failed", "java.lang.A$BException: org.apache.CError: why", "\tat x", "Caused by: y"]
    ) == ["It failed", "java.lang.A$BException: org.apache.CError: why"]
    assert without_java(["It failed: why", "java.lang.BException: why", "\tat x"]) == [
        "It failed: why"
    ]
    assert without_java(["wrong", "Option        Description  ", "--list  List"]) == ["wrong"]


def test_acls_are_compared_in_any_order_but_not_across_resources() -> None:
    one = ["Current ACLs for resource `A`:", " \t(b)", "\t(a)", ""]
    two = ["Current ACLs for resource `B`:", " \t(c)"]
    assert sorted_blocks([*one, *two]) == sorted_blocks([*two, one[0], "\t(a)", "\t(b)"])
    moved = [one[0], "\t(a)", two[0], "\t(b)", "\t(c)"]
    assert sorted_blocks([*one, *two]) != sorted_blocks(moved)


def test_known_difference_changes_its_line_only() -> None:
    kafkas = Output(["Error : Topic 'Optional[a]' does not exist as expected", "x"], [], 1)
    changed, used = as_ours(kafkas)
    assert changed.stdout == ["Error : Topic 'a' does not exist as expected", "x"]
    assert (changed.status, used) == (1, {"topic-name"})


def test_difference_of_the_brokers_does_not_apply_when_our_tool_uses_a_real_kafka() -> None:
    kafkas = Output(["\tOffsetCommit(8): 0 to 9 [usable: 9],"])
    assert as_ours(kafkas)[0].stdout == ["\tOffsetCommit(8): 1 to 9 [usable: 9],"]
    assert as_ours(kafkas, on_kafka=True)[0] == kafkas
