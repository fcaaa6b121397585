"""An interrupt of the main thread ends the pipeline even while a query hangs in Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from pipeline import run
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
