"""Every line of every file, with its number.

A line that has exactly our writer's format for its kind of event is split: the table has the fields
of every event as columns, and the texts of the kind's own fields in one column. One regular
expression for each kind checks and splits a line. Every other line is kept verbatim. On the disk,
each kind has a folder of its own.

Spark does not number lines. It reads a text file in blocks; one task reads a block, in order. The
number of a line is therefore its position in its block plus the number of lines in earlier blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from event_log.evidence import EVENT_SOURCES, KAFKA_LOGS
from judge.evidence.gaps import witness_of
from pipeline import schemas
from pipeline.evidence import Run
from pipeline.frames import Frames, local_frame
from pipeline.table import Table

KINDS: Final = (*EVENT_SOURCES, "commits", "dump", *KAFKA_LOGS.values())
IS_BLANK: Final = r"line RLIKE '\\A\\s*\\z'"
# A line of an event source that is not split must be examined, unless it is blank.
IS_EXAMINED: Final = f"kind IS NULL AND source IN {EVENT_SOURCES} AND NOT {IS_BLANK}"
FILES_SCHEMA: Final = (
    "run STRING, file STRING, source STRING, witness STRING, lines BIGINT, bytes BIGINT, "
    "left_open BOOLEAN, boot STRING, is_there BOOLEAN"
)
_RAW: Final = "run STRING, file STRING, line_number BIGINT, source STRING, line STRING"
_FILE: Final = re.compile("^file:/*")
_SEGMENT: Final = re.compile(r"(?P<of>.*/events-(?P<boot>.+))-[^-/]+\.jsonl")
# The most frequent first: kinds are compared one after the other.
_FREQUENT: Final = (
    *("request_received", "responded", "image_advanced", "forward_sent", "forward_replied"),
    *("envelope_received", "execution_started", "request_decided", "commit_sent"),
    *("commit_acknowledged", "client_invoked", "client_completed"),
)


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


def raw_lines(spark: SparkSession, runs: Sequence[Run], *, few: bool) -> DataFrame:
    """Read the files verbatim, and number their lines from 1.

    `few`: sort the lines to number them, instead of reading them twice.
    """
    files = {
        (run.folder / file.path).uri: (run.id, file.path, file.kind)
        for run in runs
        for file in run.files(*KINDS)
    }
    if not files:
        return local_frame(spark, [], _RAW)
    text = spark.read.option("lineSep", "\n").text(sorted(files))
    # As Spark names the files: encoded, and with one slash or three after `file:`.
    named = [
        (spelled, *files[_FILE.sub("file:///", unquote(path))])
        for path in text.inputFiles()
        for spelled in {_FILE.sub("file:/", path), _FILE.sub("file:///", path)}
    ]
    names = local_frame(spark, named, "path STRING, run STRING, file STRING, source STRING")
    lines = text.select(
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("place"),
        F.col("value").alias("line"),
    )
    if few:
        order = W.partitionBy("path").orderBy("block", "place")
        numbered = lines.withColumn("line_number", F.row_number().over(order).cast("bigint"))
        joined = numbered.join(F.broadcast(names), on="path", how="inner")
    else:
        blocks = F.broadcast(_blocks(lines).join(names, on="path", how="inner"))
        joined = lines.join(blocks, on=["path", "block"], how="inner").withColumn(
            "line_number", F.expr("place - first_place + first_number")
        )
    return joined.select("run", "file", "line_number", "source", "line")


def _blocks(lines: DataFrame) -> DataFrame:
    """Return, for each block of a file, the place and the number of its first line.

    A query that joins lines with their blocks scans the files twice. Both scans cut the files into
    the same blocks, so both give a line the same place.
    """
    earlier = W.partitionBy("path").orderBy("block").rowsBetween(W.unboundedPreceding, -1)
    counted = lines.groupBy("path", "block").agg(
        F.count("*").alias("lines"), F.min("place").alias("first_place")
    )
    first = F.coalesce(F.sum("lines").over(earlier), F.lit(0)) + 1
    return counted.withColumn("first_number", first).drop("lines")


def _split(frames: Frames) -> DataFrame:
    texts = {name: f"texts[{at}]" for at, name in enumerate(schemas.HEAD)}
    columns = {
        **{name: f"CAST({texts[name]} AS BIGINT)" for name in ("seq", "mono_ns", "wall_ms")},
        **{name: schemas.unescaped(texts[name]) for name in ("node", "boot", "host_boot_id")},
        "fields": f"texts[{len(texts)}]",
    }
    return (
        frames["raw"]
        .withColumn("named", F.expr(_NAMED_KIND))
        .withColumn("replaced", _values_or_line())
        .withColumn("texts", F.expr(_TEXTS))
        .withColumn("kind", F.expr(f"CASE WHEN {texts['run_id']} = run THEN named END"))
        .select(
            *("run", "file", "line_number", "source", "kind"),
            *(
                F.expr(f"CASE WHEN kind IS NOT NULL THEN {sql} END").alias(name)
                for name, sql in columns.items()
            ),
            F.expr("CASE WHEN kind IS NULL THEN line END").alias("line"),
        )
    )


_BEGIN: Final = '{"kind":"'
_NAMED_KIND: Final = (
    f"CASE WHEN source IN {EVENT_SOURCES} AND startswith(line, '{_BEGIN}') "
    f"THEN substring_index(substring(line, {len(_BEGIN) + 1}, 50), '\"', 1) END"
)
_MAPS: Final = ", ".join(f"'{kind}'" for kind in schemas.KINDS if schemas.has_map(kind))
_KEYS: Final = f"regexp_extract_all(line, {schemas.quoted(schemas.KEY_OF_A_MAP)}, 1)"
# A CASE, because Spark computes what occurs twice in an OR for every line.
_HAS_DISTINCT_KEYS: Final = (
    f"CASE WHEN named IN ({_MAPS}) THEN size(array_distinct({_KEYS})) = size({_KEYS}) ELSE true END"
)
# Invalid bytes could match a pattern.
_TEXTS: Final = (
    f"CASE WHEN NOT startswith(replaced, '{{') AND is_valid_utf8(line) AND {_HAS_DISTINCT_KEYS} "
    f"THEN split(replaced, {schemas.quoted(schemas.SEPARATOR)}, {len(schemas.HEAD) + 1}) END"
)


def _values_or_line() -> Column:
    """Return the values of a line with `SEPARATOR` between them; the line if it is not exact.

    Java does not compile the method of a query in which all patterns are inlined. Spark interprets
    a function of an array's elements, so the patterns are inside one, and the method stays small.
    """
    kinds = (*_FREQUENT, *(kind for kind in schemas.KINDS if kind not in _FREQUENT))

    def replaced(x: Column) -> Column:
        column = None
        for kind in kinds:
            pattern, values = schemas.exact_pattern(kind), schemas.exact_replacement(kind)
            split = F.regexp_replace(x["line"], F.lit(pattern), F.lit(values))
            is_kind = x["named"] == kind
            column = F.when(is_kind, split) if column is None else column.when(is_kind, split)
        assert column is not None
        return column

    return F.get(F.transform(F.array(F.struct("named", "line")), replaced), 0)


def _count(frames: Frames) -> DataFrame:
    blank = F.count(F.when(F.expr(f"kind IS NULL AND {IS_BLANK}"), True))
    grouped = frames["bronze/lines"].groupBy("run", "file", "source", "kind")
    return grouped.agg(F.count("*").alias("lines"), blank.alias("blank"))


_kinds: WeakKeyDictionary[DataFrame, frozenset[str]] = WeakKeyDictionary()


def kinds_of(counts: DataFrame) -> frozenset[str]:
    """Return the kinds of the lines that were split. The rows are read once."""
    if counts not in _kinds:
        rows = counts.select("kind").distinct().collect()
        _kinds[counts] = frozenset(row["kind"] for row in rows if row["kind"] is not None)
    return _kinds[counts]


LINES: Final = Table(
    name="bronze/lines",
    inputs=("raw",),
    schema="run STRING, file STRING, line_number BIGINT, source STRING, kind STRING, seq BIGINT, "
    "mono_ns BIGINT, wall_ms BIGINT, node STRING, boot STRING, host_boot_id STRING, "
    "fields STRING, line STRING",
    build=_split,
    divided_by="kind",
)
COUNTS: Final = Table(
    name="bronze/counts",
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, source STRING, kind STRING, lines BIGINT, blank BIGINT",
    build=_count,
)
