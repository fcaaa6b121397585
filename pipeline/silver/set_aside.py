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

from event_log.evidence import EVENT_SOURCES
from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK
from pipeline.frames import Frames, has_no_rows, local_frame
from pipeline.silver.events import PLACE
from pipeline.silver.reading import is_good, parsed_events, parsed_others
from pipeline.table import Table

_KEPT: Final = (
    *("silver/commits", "silver/dumps"),
    *("silver/kafka_requests", "silver/kafka_decisions"),
)


def content() -> Column:
    """Return a hash of an event's fields."""
    columns = [
        F.expr(f"array_sort(map_entries(`{name}`))") if type_.startswith("MAP") else F.col(name)
        for name, (type_, _) in {**schemas.union(), "ext": schemas.Column("MAP")}.items()
    ]
    return F.xxhash64(*columns)


def _build(frames: Frames) -> DataFrame:
    parts = [*_examined(frames), *_superfluous(frames), *_others(frames)]
    if not parts:
        return local_frame(frames["bronze/lines"].sparkSession, [], SET_ASIDE.schema)
    return reduce(DataFrame.unionByName, parts)


def _examined(frames: Frames) -> Iterator[DataFrame]:
    """Yield lines of events that break an expectation; a cut line is reported as cut."""
    examined, superfluous = frames["silver/examined"], frames["silver/superfluous"]
    if has_no_rows(examined):
        return
    bad = examined.filter(~is_good())
    if not has_no_rows(superfluous):
        places = F.broadcast(superfluous.select(*PLACE))
        bad = bad.join(places, on=list(PLACE), how="left_anti")
    reasons = F.expr("filter(broken, x -> x != 'unknown_field')")
    yield _without_key(bad, F.lit("quarantined"), reasons)


def _superfluous(frames: Frames) -> Iterator[DataFrame]:
    """Yield duplicates and cut lines. They are read again, because a split line has no text."""
    superfluous = frames["silver/superfluous"]
    if has_no_rows(superfluous):
        return
    firsts = superfluous.filter("NOT is_cut").select("run", "first.*").distinct()
    wanted = superfluous.select(*PLACE).unionByName(firsts)
    lines = frames["raw"].filter(f"NOT {IS_BLANK}")
    texts = lines.join(F.broadcast(wanted.distinct()), on=list(PLACE), how="left_semi")
    parsed = parsed_events(texts.select(*PLACE, "line")).withColumn("content", content())
    parsed = parsed.localCheckpoint()
    cut = parsed.join(superfluous.filter("is_cut").select(*PLACE), on=list(PLACE), how="left_semi")
    yield _without_key(cut, F.lit("cut"), F.array().cast("array<string>"))
    kept = parsed.select(
        "run",
        F.struct("file", "line_number").alias("first"),
        F.col("content").alias("kept_content"),
    )
    copies = parsed.join(superfluous.filter("NOT is_cut"), on=list(PLACE), how="inner")
    yield copies.join(kept, on=["run", "first"], how="left").select(
        *PLACE,
        "line",
        F.when(F.col("content") == F.col("kept_content"), "duplicate")
        .otherwise("two_writers")
        .alias("fate"),
        F.array().cast("array<string>").alias("reasons"),
        *("node", "boot", "seq"),
    )


def _without_key(lines: DataFrame, fate: Column, reasons: Column) -> DataFrame:
    """Return rows without node, boot and seq."""
    return lines.select(
        *PLACE,
        "line",
        fate.alias("fate"),
        reasons.alias("reasons"),
        *(F.lit(None).cast("string").alias(name) for name in ("node", "boot")),
        F.lit(None).cast("bigint").alias("seq"),
    )


def _others(frames: Frames) -> Iterator[DataFrame]:
    """Yield invalid lines of transactions and dumps, and lines that are not of a Kafka's log."""
    kept = [frames[name].select("run", "file") for name in _KEPT]
    accepted = reduce(DataFrame.unionByName, kept).groupBy("run", "file").count()
    counted = (
        frames["bronze/counts"]
        .filter("kind IS NULL")
        .join(accepted, on=["run", "file"], how="left")
    )
    is_event = F.col("source").isin(*EVENT_SOURCES)
    incomplete = counted.filter(~is_event & F.expr("lines - blank > coalesce(count, 0)"))
    if incomplete.isEmpty():
        return
    files = F.broadcast(incomplete.select("run", "file"))
    unsplit = frames["bronze/lines"].filter(f"kind IS NULL AND NOT {IS_BLANK}")
    lines = unsplit.join(files, on=["run", "file"], how="left_semi")
    for source, shape in (("commits", "/commit"), ("dump", "/dump")):
        of_source = lines.filter(F.col("source") == source).select(*PLACE, "line")
        bad = parsed_others(of_source, shape).filter(~is_good())
        yield _without_key(bad, F.lit("quarantined"), F.col("broken"))
    of_kafka = lines.filter(F.col("source").startswith("kafka_"))
    places = [frames[name].select(*PLACE) for name in _KEPT[2:]]
    remaining = of_kafka.join(places[0].unionByName(places[1]), on=list(PLACE), how="left_anti")
    reason = F.when(F.expr("is_valid_utf8(line)"), "not_of_this_log").otherwise("utf8")
    yield _without_key(remaining, F.lit("quarantined"), F.array(reason))


SET_ASIDE: Final = Table(
    name="silver/set_aside",
    inputs=(
        *("raw", "bronze/lines", "bronze/counts", "silver/examined", "silver/superfluous"),
        *_KEPT,
    ),
    schema="run STRING, file STRING, line_number BIGINT, line STRING, fate STRING, "
    "reasons ARRAY<STRING>, node STRING, boot STRING, seq BIGINT",
    build=_build,
    expectations={"a quarantined line has a reason": "fate <> 'quarantined' OR size(reasons) > 0"},
)
