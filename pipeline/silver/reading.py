"""How a line that bronze did not split becomes a row.

The line is parsed as a variant and checked against every expectation. This takes thirty times as
long as splitting a line in our writer's format (`pipeline.bronze.lines`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.expectations import (
    COMMIT_EXPECTATIONS,
    COUNTED,
    EVENT_EXPECTATIONS,
    RowExpectation,
)

# Spark's JSON parser is lenient by default.
STRICT: Final = {
    "mode": "PERMISSIVE",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_STRICT_SQL: Final = "map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')"
_TOO_LARGE: Final = (
    "exists(regexp_extract_all(plain, '(-?[0-9]{19,})(?![0-9.eE])', 1), "
    "x -> try_cast(x AS BIGINT) IS NULL)"
)
# Identities, elements and counters are complete, where they exist.
_PARTS_ARE_RIGHT: Final = (
    "(p.identity IS NULL OR (identity.broker_id IS NOT NULL AND "
    "identity.incarnation IS NOT NULL AND identity.sequence IS NOT NULL)) AND "
    "coalesce(forall(elements, e -> e.element IS NOT NULL AND "
    "(kind = 'client_invoked' OR e.error IS NOT NULL)), true) AND "
    "coalesce(forall(map_values(values), x -> x IS NOT NULL), true)"
)
_CORRUPT: Final = "_corrupt"


def _literal(values: dict[str, str] | dict[str, list[str]], type_: str) -> Column:
    return F.from_json(F.lit(json.dumps(values)), type_)


def _examined(frame: DataFrame) -> DataFrame:
    """Add the columns that the expectations use; Spark computes them only for inexact lines."""
    listed = "concat('[', line, ']')"
    return (
        frame.withColumn(
            "required", _literal(schemas.required_fields(), "MAP<STRING,ARRAY<STRING>>")
        )
        .withColumn("allowed", _literal(schemas.allowed_types(), "MAP<STRING,STRING>"))
        .withColumn(
            # The line is parsed as the only element of an array, because the parser ignores text
            # after an object.
            "listed",
            F.expr(
                f"CASE WHEN NOT exact AND is_valid_utf8(line) THEN try_parse_json({listed}) END"
            ),
        )
        .withColumn(
            "v",
            F.expr(
                "CASE WHEN try_variant_get(listed, '$[1]', 'variant') IS NULL "
                "THEN try_variant_get(listed, '$[0]', 'variant') END"
            ),
        )
        .withColumn(
            "is_json_with_any_keys",
            F.expr(
                "NOT exact AND is_valid_utf8(line) AND coalesce(size("
                f"from_json({listed}, 'ARRAY<STRING>', {_STRICT_SQL})) = 1, false)"
            ),
        )
        .withColumn(
            "plain",
            F.expr(r"""CASE WHEN v IS NOT NULL
                   THEN regexp_replace(line, '"(?:[^"\\\\]|\\\\.)*+"', '""') END"""),
        )
        .withColumn("too_large", F.expr(f"coalesce({_TOO_LARGE}, false)"))
        .withColumn(
            "m",
            F.expr(
                "CASE WHEN NOT too_large AND schema_of_variant(v) LIKE 'OBJECT<%' "
                "THEN try_variant_get(v, '$', 'map<string,variant>') END"
            ),
        )
    )


def _broken(expectation: RowExpectation) -> Column:
    applies = F.coalesce(F.expr(expectation.applies_to), F.lit(False))
    holds = F.coalesce(F.expr(expectation.condition), F.lit(False))
    return F.when(applies & ~holds, F.lit(expectation.name))


def _names(expectations: Sequence[RowExpectation]) -> Column:
    names = F.array_compact(F.array(*(_broken(expectation) for expectation in expectations)))
    return F.when(F.col("exact"), F.array().cast("array<string>")).otherwise(names)


def is_good(broken: str = "broken") -> Column:
    """Return the condition for accepting a line: it breaks no expectation outside `COUNTED`."""
    counted = F.array(*(F.lit(name) for name in COUNTED))
    return F.size(F.array_except(broken, counted)) == 0


def parsed_events(lines: DataFrame) -> DataFrame:
    """Parse and check lines of events; return the columns of an event table, `broken` and `ext`.

    `lines` has at least `run` and `line`; all its columns stay. `broken` names the expectations
    that the line breaks; `ext` has the fields that the event's kind does not have, as JSON.
    """
    kept = lines.columns
    columns = [F.expr(column) for column in schemas.table_columns()]
    schema = f"{schemas.line_schema()}, {_CORRUPT} STRING"
    options = {**STRICT, "columnNameOfCorruptRecord": _CORRUPT}
    structs = lines.withColumn("p", F.from_json("line", schema, options))
    frame = _examined(structs.select(*kept, "p", F.lit(False).alias("exact"), *columns))
    frame = frame.withColumn("parts_are_right", F.expr(_PARTS_ARE_RIGHT))
    ext = F.when(
        F.array_contains("broken", "unknown_field"),
        F.expr(
            "transform_values(map_filter(m, (k, x) -> NOT map_contains_key(allowed, "
            "concat(kind, '.', k))), (k, x) -> to_json(x))"
        ),
    )
    return (
        frame.withColumn("broken", _names(EVENT_EXPECTATIONS))
        .withColumn("ext", ext)
        .select(*kept, *(f"`{name}`" for name in schemas.union()), "broken", "ext")
    )


def parsed_others(lines: DataFrame, shape: str) -> DataFrame:
    """Parse lines of commits (`/commit`) or of a dump (`/dump`); add their columns and `broken`.

    A line that is equal to the JSON of its parsed struct needs no further check.
    """
    kept = lines.columns
    written = F.to_json("p", {"ignoreNullFields": "false"})
    frame = (
        lines.withColumn("p", F.from_json("line", schemas.ddl(schemas.OTHERS[shape]), STRICT))
        .withColumn("exact", F.coalesce(written == F.col("line"), F.lit(False)))
        .withColumn("shape", F.lit(shape))
    )
    columns = [F.col(f"p.{name}") for name in schemas.OTHERS[shape]]
    frame = _examined(frame).withColumn("broken", _names(COMMIT_EXPECTATIONS))
    return frame.select(*kept, *columns, "broken")
