"""One row for each of ZooKeeper's transactions."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK, numbered
from pipeline.frames import Frames
from pipeline.silver.reading import is_good, parsed_others
from pipeline.table import Table


def good_lines(frames: Frames, source: str, shape: str) -> DataFrame:
    """Return the valid lines of the files of one source, parsed as `shape`."""
    lines = numbered(frames).filter((F.col("source") == source) & ~F.expr(IS_BLANK))
    return parsed_others(lines, shape).filter(is_good())


def _commits(frames: Frames) -> DataFrame:
    return good_lines(frames, "commits", "/commit")


COMMITS: Final = Table(
    name="silver/commits",
    inputs=("bronze/lines", "bronze/blocks"),
    schema=f"run STRING, file STRING, line_number BIGINT, {schemas.ddl(schemas.COMMIT)}",
    build=_commits,
)
