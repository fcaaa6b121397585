"""Typed events, without duplicates and without last lines that a kill cut off.

The first pass keeps the lines in the exact format of our writer. Usually these are all lines. The
other steps run only if they are needed, and then the events are written again.

- If a file has more lines than events, its other lines are examined.
- If a sequence number occurs twice in a boot (a bitmap shows this), duplicates are removed: the
  first by file and line is kept.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK, numbered
from pipeline.frames import Frames
from pipeline.silver.reading import exact_events, is_good, parsed_events
from pipeline.table import Table

SOURCES: Final = ("node", "client", "harness")
_KEY: Final = ("run", "node", "boot", "seq")
_PLACE: Final = ("run", "file", "line_number")


def event_lines(frames: Frames) -> DataFrame:
    """Return the lines that should be events, with their numbers."""
    lines = numbered(frames)
    return lines.filter(F.col("source").isin(*SOURCES)).filter(~F.expr(IS_BLANK))


def _build(frames: Frames) -> DataFrame:
    return exact_events(event_lines(frames)).select(*EVENTS.columns())


def unaccounted(frames: Frames, kept: DataFrame) -> DataFrame:
    """Return the files with more lines than rows in `kept`, not counting blank ones."""
    counted = kept.groupBy("run", "file").agg(F.count("*").alias("kept"))
    lines = (
        frames["bronze/blocks"]
        .groupBy("run", "file", "source")
        .agg(F.sum(F.col("lines") - F.col("blank")).alias("lines"))
    )
    joined = lines.join(counted, on=["run", "file"], how="left")
    missing = F.col("lines") > F.coalesce(F.col("kept"), F.lit(0))
    return joined.filter(missing).select("run", "file", "source")


def _finalize(frames: Frames, exact: DataFrame) -> DataFrame | None:
    """Add the valid lines that are not in our writer's format; remove duplicates and cut lines."""
    files = unaccounted(frames, exact).filter(F.col("source").isin(*SOURCES))
    events = exact
    if not files.isEmpty():
        lines = event_lines(frames).join(F.broadcast(files), on=["run", "file"], how="left_semi")
        left = lines.join(exact.select(*_PLACE), on=list(_PLACE), how="left_anti")
        examined = parsed_events(left).filter(is_good()).select(*EVENTS.columns())
        # A checkpoint, because the frame is used several times below.
        events = exact.unionByName(examined.localCheckpoint())
    places = superfluous(frames, events)
    if places is not None:
        events = events.join(places, on=list(_PLACE), how="left_anti")
    return None if events is exact else events


def left_open(frames: Frames) -> DataFrame:
    """Return the last lines that a kill may have cut: run, file, number, boot."""
    files = frames["files"].filter(F.col("left_open") & F.col("is_there"))
    return files.select(
        "run", "file", F.col("lines").alias("line_number"), F.col("boot").alias("of")
    )


def cut_lines(frames: Frames, events: DataFrame) -> DataFrame:
    """Return the cut lines of boots that have no `stopped` event: run, file, number."""
    stopped = (
        events.filter(F.col("kind") == "stopped").select("run", F.col("boot").alias("of"))
    ).distinct()
    cut = left_open(frames).join(stopped, on=["run", "of"], how="left_anti")
    return cut.select("run", "file", "line_number")


def superfluous(frames: Frames, events: DataFrame) -> DataFrame | None:
    """Return the places of duplicates and cut lines; None, the usual case, if there are none."""
    doubled = (
        events.groupBy("run", "node", "boot", F.expr("bitmap_bucket_number(seq)").alias("bucket"))
        .agg(
            F.count("*").alias("rows"),
            F.expr("bitmap_count(bitmap_construct_agg(bitmap_bit_position(seq)))").alias("numbers"),
        )
        .filter(F.col("rows") > F.col("numbers"))
        .select("run", "node", "boot", "bucket")
    )
    cut = cut_lines(frames, events)
    if doubled.isEmpty() and cut.isEmpty():
        return None
    order = W.partitionBy(*_KEY).orderBy("file", "line_number")
    copies = (
        events.select(
            *_KEY, "file", "line_number", F.expr("bitmap_bucket_number(seq)").alias("bucket")
        )
        .join(F.broadcast(doubled), on=["run", "node", "boot", "bucket"], how="left_semi")
        .join(F.broadcast(cut), on=["run", "file", "line_number"], how="left_anti")
        .withColumn("place", F.row_number().over(order))
        .filter(F.col("place") > 1)
        .select("run", "file", "line_number")
    )
    return copies.unionByName(cut)


EVENTS: Final = Table(
    name="silver/events",
    inputs=("files", "bronze/lines", "bronze/blocks"),
    schema="run STRING, file STRING, line_number BIGINT, source STRING, "
    f"{schemas.ddl(schemas.union())}, ext MAP<STRING, STRING>",
    build=_build,
    finalize=_finalize,
    expectations={
        "an event has a place in its boot": "seq >= 0",
        "an event belongs to the run of its folder": "run_id = run",
    },
)
