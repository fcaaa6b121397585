"""Lines that no table of events, commits, znodes or Kafka's logs accepted, with the reasons.

`fate` is quarantined, duplicate (the same event again), two_writers (another event with the same
sequence number), or cut (the process was killed while it wrote the line). Only files that have such
lines are read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK, numbered
from pipeline.frames import Frames, local_frame
from pipeline.silver.events import SOURCES, cut_lines, unaccounted
from pipeline.silver.reading import is_good, parsed_events, parsed_others
from pipeline.table import Table

_KEY: Final = ("run", "node", "boot", "seq")
_PLACE: Final = ("run", "file", "line_number")
_KEPT: Final = (
    *("silver/events", "silver/commits", "silver/dumps"),
    *("silver/kafka_requests", "silver/kafka_decisions"),
)


def _incomplete(frames: Frames) -> DataFrame:
    """Return the files with lines that are not accounted for: run, file."""
    kept = [frames[name].select("run", "file") for name in _KEPT]
    return unaccounted(frames, reduce(DataFrame.unionByName, kept))


def content() -> Column:
    """Return a hash of an event's fields."""
    columns = [
        F.expr(f"array_sort(map_entries(`{name}`))") if type_.startswith("MAP") else F.col(name)
        for name, (type_, _) in {**schemas.union(), "ext": schemas.Column("MAP")}.items()
    ]
    return F.xxhash64(*columns)


def _build(frames: Frames) -> DataFrame:
    incomplete = _incomplete(frames)
    if incomplete.isEmpty():
        return local_frame(incomplete.sparkSession, [], SET_ASIDE.schema)
    incomplete_files = F.broadcast(incomplete.select("run", "file"))
    lines = numbered(frames).join(incomplete_files, on=["run", "file"], how="left_semi")
    lines = lines.filter(~F.expr(IS_BLANK))
    events = lines.filter(F.col("source").isin(*SOURCES))
    accepted = frames["silver/events"].join(incomplete_files, on=["run", "file"], how="left_semi")
    remaining = parsed_events(events).join(
        accepted.select(*_PLACE), on=list(_PLACE), how="left_anti"
    )
    cut = cut_lines(frames, frames["silver/events"]).withColumn("is_cut", F.lit(True))
    remaining = remaining.join(F.broadcast(cut), on=list(_PLACE), how="left")
    remaining = remaining.withColumn("is_cut", F.coalesce("is_cut", F.lit(False)))
    good = remaining.filter(is_good() & ~F.col("is_cut")).withColumn("content", content())
    keys = good.select(*_KEY).distinct()
    kept = frames["silver/events"].join(F.broadcast(keys), on=list(_KEY), how="left_semi")
    kept = kept.select(*_KEY, content().alias("kept_content"))
    copies = good.join(kept, on=list(_KEY), how="left").select(
        *_PLACE,
        "line",
        F.when(F.col("content") == F.col("kept_content"), "duplicate")
        .otherwise("two_writers")
        .alias("fate"),
        F.array().cast("array<string>").alias("reasons"),
        "node",
        "boot",
        "seq",
    )
    bad = remaining.filter(~is_good() | F.col("is_cut"))
    fate = F.when(F.col("is_cut"), "cut").otherwise("quarantined")
    reasons = F.expr("filter(broken, x -> NOT is_cut AND x != 'unknown_field')")
    others = (
        _without_key(bad, fate, reasons),
        *_others(lines),
        _kafka(frames, lines),
    )
    return reduce(DataFrame.unionByName, others, copies)


def _without_key(lines: DataFrame, fate: Column, reasons: Column) -> DataFrame:
    """Return rows without node, boot and seq."""
    return lines.select(
        *_PLACE,
        "line",
        fate.alias("fate"),
        reasons.alias("reasons"),
        *(F.lit(None).cast("string").alias(name) for name in ("node", "boot")),
        F.lit(None).cast("bigint").alias("seq"),
    )


def _others(lines: DataFrame) -> Iterator[DataFrame]:
    for source, shape in (("commits", "/commit"), ("dump", "/dump")):
        of_source = lines.filter(F.col("source") == source).select(*_PLACE, "line")
        bad = parsed_others(of_source, shape).filter(~is_good())
        yield _without_key(bad, F.lit("quarantined"), F.col("broken"))


def _kafka(frames: Frames, lines: DataFrame) -> DataFrame:
    """Return lines of a real Kafka's logs that match no pattern."""
    of_kafka = lines.filter(F.col("source").startswith("kafka_"))
    kept = [frames[name].select(*_PLACE) for name in _KEPT[3:]]
    remaining = of_kafka.join(kept[0].unionByName(kept[1]), on=list(_PLACE), how="left_anti")
    reason = F.when(F.expr("is_valid_utf8(line)"), "not_of_this_log").otherwise("utf8")
    return _without_key(remaining, F.lit("quarantined"), F.array(reason))


SET_ASIDE: Final = Table(
    name="silver/set_aside",
    inputs=("files", "bronze/lines", "bronze/blocks", *_KEPT),
    schema="run STRING, file STRING, line_number BIGINT, line STRING, fate STRING, "
    "reasons ARRAY<STRING>, node STRING, boot STRING, seq BIGINT",
    build=_build,
    expectations={"a quarantined line has a reason": "fate <> 'quarantined' OR size(reasons) > 0"},
)
