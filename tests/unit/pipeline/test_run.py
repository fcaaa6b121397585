"""An interrupt of the main thread ends the pipeline even while a query hangs in Spark."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock
from xml.etree import ElementTree

import pytest
from rich.console import Console

from judge.properties import PROPERTY_SPECS
from judge.verdicts import Verdict, VerdictRow
from pipeline import run
from pipeline.__main__ import ProgressLines, show_verdicts, shown_progress
from pipeline.report.junit import junit
from pipeline.run import NEEDED, TABLES, BuiltTable
from pipeline.table import Table


class Interrupted(Exception):
    """What Ctrl-C or the time limit of a test raises in the main thread."""


def table(name: str) -> Table:
    return Table(name=name, inputs=(), schema="run STRING", build=lambda frames: frames["none"])


def test_a_hanging_query_does_not_block_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, ended = threading.Event(), threading.Event()

    def make(self: run.Pipeline, table: Table, runs: Sequence[str]) -> int:
        if table.name == "gold/hangs":
            released.wait(10)
            ended.set()
        return 0

    def interrupt(progress: run.BuiltTable) -> None:
        raise Interrupted

    monkeypatch.setattr(run.Pipeline, "_make", make)
    monkeypatch.setattr(run.Pipeline, "_missing", lambda self, table: ["one"])
    monkeypatch.setattr(run, "_CANCELLED_WITHIN_S", 0.0)
    spark = MagicMock()
    pipeline = run.Pipeline(spark, [], tmp_path, in_memory=False)
    try:
        with pytest.raises(Interrupted):
            pipeline.make([table("gold/hangs"), table("gold/ends")], interrupt)
        assert not ended.is_set()
        spark.sparkContext.cancelAllJobs.assert_called_once()
    finally:
        released.set()


def test_tables_that_no_thread_has_begun_do_not_delay_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For `concurrent.futures.wait`, a future that `shutdown` cancelled is never done."""

    def make(self: run.Pipeline, table: Table, runs: Sequence[str]) -> int:
        raise Interrupted

    monkeypatch.setattr(run.Pipeline, "_make", make)
    monkeypatch.setattr(run.Pipeline, "_missing", lambda self, table: ["one"])
    began_s = time.monotonic()
    pipeline = run.Pipeline(MagicMock(), [], tmp_path, in_memory=False, threads=1)
    with pytest.raises(Interrupted):
        pipeline.make([table(f"gold/{number}") for number in range(1_000)])
    assert time.monotonic() - began_s < run._CANCELLED_WITHIN_S


# The JUnit document of the verdicts is well-formed, whatever names the evidence has.


def test_a_character_that_xml_cannot_contain_is_escaped() -> None:
    why = "0:user=a\x01\ud800\ufffe\u00e9 was lost"
    row = VerdictRow(
        property="D1",
        name="kept",
        verdict=Verdict.FAIL,
        judged=1,
        violations=1,
        decides=True,
        why=why,
    )
    suite = ElementTree.fromstring(junit({"r": [row]}).encode())
    failure = suite.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "0:user=a\\x01\\ud800\\ufffe\u00e9 was lost"


# The output of `pipeline run`: its progress with and without a terminal, and the verdicts.


def test_a_line_is_shown_at_most_every_five_seconds() -> None:
    output = io.StringIO()
    lines = ProgressLines(output)
    for second in range(2, 13, 2):
        lines.show(BuiltTable("silver/events", 1000 * second, second, 24), float(second))
    assert output.getvalue().splitlines() == [
        "silver/events: 6,000 rows, 6 of 24 tables, 6 s, about 18 s left",
        "silver/events: 12,000 rows, 12 of 24 tables, 12 s, about 12 s left",
    ]


def test_the_bar_fits_80_columns() -> None:
    output = io.StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None)
    with shown_progress(console, time.monotonic()) as show:
        for table in TABLES:
            show(BuiltTable(table.name, 123_456_789, 57, 62))
    shown = [line.strip() for line in re.split(r"\x1b\[[0-9?]*[A-Za-z]|\r|\n", output.getvalue())]
    bars = [line for line in shown if line]
    assert max(map(len, bars)) <= 80
    assert bars[0].startswith("starting Spark"), bars[0]
    last = TABLES[-1].name
    assert re.fullmatch(
        rf"{last}: 123,456,789 rows \S+ +57/62 \d:\d\d:\d\d [-\d]:[-\d]{{2}}:[-\d]{{2}}", bars[-1]
    ), bars[-1]


def test_verdicts_fit_80_columns_with_the_whole_names_of_properties() -> None:
    why = "the run has no authorizer, and its users have no rights"
    rows = [
        VerdictRow(
            property=spec.id,
            name=spec.name,
            verdict=Verdict.UNKNOWN,
            judged=12_345_678,
            violations=1_234_567,
            decides=True,
            why=why,
        )
        for spec in PROPERTY_SPECS
    ]
    output = io.StringIO()
    show_verdicts(Console(file=output, width=80), "8d0f27a9c1b2e3d4", rows)
    shown = output.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    for spec in PROPERTY_SPECS:
        assert f"{spec.id} {spec.name} " in shown
    assert shown.count(why) == 1, "properties with the same reason share one line"


def test_only_tables_that_no_verdict_and_no_page_needs_are_left_out() -> None:
    unread = (
        *("connected", "authentication_failed", "channel_rejected", "session_expired"),
        *("topics_auto_created", "fault_rule_acted", "broker_registered"),
    )
    assert [table.name for table in TABLES if table not in NEEDED] == [
        *(f"silver/{kind}" for kind in unread),
        "gold/forwarding_windows",
    ]
