"""Every line of every file, verbatim, with the block of the file in which Spark read it.

Spark does not number lines. It reads a text file in blocks; one task reads a block, in order. The
number of a line is therefore its position in its block plus the number of lines in earlier blocks.
The table `blocks` counts the lines of each block, and `numbered` computes the numbers from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from event_log.evidence import EVENT_SOURCES, KAFKA_LOGS
from judge.evidence.gaps import witness_of
from pipeline.evidence import Run
from pipeline.frames import Frames, local_frame
from pipeline.table import Table

KINDS: Final = (*EVENT_SOURCES, "commits", "dump", *KAFKA_LOGS.values())
IS_BLANK: Final = r"line RLIKE '\\A\\s*\\z'"
FILES_SCHEMA: Final = (
    "run STRING, file STRING, source STRING, witness STRING, lines BIGINT, bytes BIGINT, "
    "left_open BOOLEAN, boot STRING, is_there BOOLEAN"
)
_SEGMENT: Final = re.compile(r"(?P<of>.*/events-(?P<boot>.+))-[^-/]+\.jsonl")


def files_frame(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Return one row for each file of lines (`KINDS`), as the manifests describe it.

    `left_open` is true if the last line has no newline and the boot has no later segment.
    """
    rows = []
    for run in runs:
        files = [f for f in run.manifest.files if f.kind in KINDS]
        segments = {f.path: _SEGMENT.fullmatch(f.path) for f in files}
        last: dict[str, str] = {}
        for path, segment in sorted(segments.items()):
            if segment:
                last[segment["of"]] = path
        for f in files:
            segment = segments[f.path]
            left_open = f.cut and (segment is None or last[segment["of"]] == f.path)
            witness = witness_of(f.kind)
            boot = segment["boot"] if segment else None
            is_there = f.path not in run.missing
            rows.append(
                (run.id, f.path, f.kind, witness, f.lines, f.bytes, left_open, boot, is_there)
            )
    return local_frame(spark, rows, FILES_SCHEMA)


def raw_lines(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Read the files verbatim."""
    places = {
        (run.folder / file.path).uri: (run.id, file.path, file.kind)
        for run in runs
        for file in run.files(*KINDS)
    }
    if not places:
        return local_frame(spark, [], LINES.schema)
    uris = local_frame(
        spark,
        [(uri, *place) for uri, place in places.items()],
        "uri STRING, run STRING, file STRING, source STRING",
    )
    # A path may contain a `+`, which url_decode would replace with a blank.
    decoded = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
    lines = (
        spark.read.option("lineSep", "\n")
        .text(sorted(places))
        .select(
            F.regexp_replace(F.expr(decoded), "^file:/*", "file:///").alias("uri"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("place"),
            F.col("value").alias("line"),
        )
    )
    return lines.join(F.broadcast(uris), on="uri", how="inner")


def _blocks(frames: Frames) -> DataFrame:
    counted = (
        frames["bronze/lines"]
        .groupBy("run", "file", "source", "block")
        .agg(
            F.count("*").alias("lines"),
            F.min("place").alias("first_place"),
            F.count(F.when(F.expr(IS_BLANK), True)).alias("blank"),
        )
    )
    before = W.partitionBy("run", "file").orderBy("block").rowsBetween(W.unboundedPreceding, -1)
    earlier = F.coalesce(F.sum("lines").over(before), F.lit(0))
    return counted.withColumn("first_number", earlier + 1)


def numbered(frames: Frames) -> DataFrame:
    """Return lines with their number, counted from 1."""
    blocks = frames["bronze/blocks"].select("run", "file", "block", "first_place", "first_number")
    joined = frames["bronze/lines"].join(
        F.broadcast(blocks), on=["run", "file", "block"], how="inner"
    )
    number = F.col("place") - F.col("first_place") + F.col("first_number")
    return joined.select("run", "file", "source", number.alias("line_number"), "line")


LINES: Final = Table(
    name="bronze/lines",
    inputs=("raw",),
    schema="run STRING, file STRING, source STRING, block BIGINT, place BIGINT, line STRING",
    build=lambda frames: frames["raw"],
)
BLOCKS: Final = Table(
    name="bronze/blocks",
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, source STRING, block BIGINT, lines BIGINT, "
    "first_place BIGINT, blank BIGINT, first_number BIGINT",
    build=_blocks,
)
