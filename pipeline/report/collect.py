"""The rows that the report shows, queried from the pipeline's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pyspark.sql import DataFrame

from judge.verdicts import VerdictRow
from pipeline.evidence import Run
from pipeline.query import query

Rows = Sequence[Mapping[str, Any]]
VIOLATIONS_SHOWN_MAX: Final = 40
_ROWS_MAX: Final = 2_000
_THREADS: Final = 4


class Tables(Protocol):
    """The tables of the pipeline."""

    def read(self, name: str) -> DataFrame:
        """Return a table's rows of all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the report shows about one run."""

    run: Run
    verdicts: Sequence[VerdictRow]
    rows: Mapping[str, Rows]  # by the name of the query


# At most the first _ROWS_MAX rows of each query are kept for each run.
QUERIES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "timeline": (("gold/timeline",), "SELECT * FROM timeline ORDER BY slice_ms"),
    "terms": (("gold/controller_terms",), "SELECT * FROM controller_terms ORDER BY zxid"),
    "faults": (
        ("silver/fault_injected",),
        "SELECT run, wall_ms, action, target FROM fault_injected ORDER BY wall_ms",
    ),
    "latency": (
        ("gold/latency",),
        "SELECT * FROM latency ORDER BY route, api_key, hop",
    ),
    "propagation": (("gold/propagation",), "SELECT * FROM propagation ORDER BY node, boot"),
    "effects": (("gold/effects",), "SELECT * FROM effects ORDER BY response, effect"),
    "rejections": (
        ("gold/rejections",),
        "SELECT run, principal, sum(rejections) AS rejections, "
        "coalesce(sum(rejections) FILTER (WHERE is_denial), 0) AS denials "
        "FROM rejections GROUP BY run, principal ORDER BY rejections DESC, principal",
    ),
    "shares": (
        ("gold/forwarded_shares",),
        "SELECT run, node, sum(requests) AS requests, sum(forwarded) AS forwarded, "
        "sum(redirected) AS redirected, sum(resends) AS resends, sum(unfinished) AS unfinished "
        "FROM forwarded_shares GROUP BY run, node ORDER BY node",
    ),
    "counters": (
        ("gold/counters",),
        "SELECT run, node, counter, max_by(shown, seq) AS shown, max_by(counted, seq) AS counted, "
        "count_if(shown <> counted) AS different, count(*) AS snapshots "
        "FROM counters GROUP BY run, node, counter ORDER BY counter, node",
    ),
    "software": (
        ("gold/client_software",),
        "SELECT run, name, version, sum(requests) AS requests, max(connections) AS connections, "
        "array_join(sort_array(collect_set(CASE WHEN api_key IN (19, 20, 33, 37, 44) THEN "
        "concat(api_key, ' v', min_api_version, '-', max_api_version) END)), ', ') AS writes "
        "FROM client_software GROUP BY run, name, version ORDER BY requests DESC",
    ),
    "kafka_shares": (
        ("gold/kafka_forwarded",),
        "SELECT run, broker, api, sum(requests) AS requests, sum(forwarded) AS forwarded "
        "FROM kafka_forwarded GROUP BY run, broker, api ORDER BY forwarded DESC, requests DESC, "
        "broker, api",
    ),
    "kafka_writers": (
        ("gold/kafka_forwarded",),
        "SELECT run, principal, software, api, sum(forwarded) AS forwarded FROM kafka_forwarded "
        "WHERE forwarded > 0 GROUP BY run, principal, software, api "
        "ORDER BY forwarded DESC, principal, api",
    ),
    "kafka_latency": (
        ("gold/kafka_latency",),
        "SELECT * FROM kafka_latency ORDER BY requests DESC, api, is_forwarded",
    ),
    "kafka_denials": (
        ("gold/kafka_denials",),
        "SELECT run, principal, operation, resource_type, count(DISTINCT resource) AS resources, "
        "api, sum(denials) AS denials FROM kafka_denials "
        "GROUP BY run, principal, operation, resource_type, api "
        "ORDER BY denials DESC, principal",
    ),
    "unfenced": (
        ("gold/unfenced_writes",),
        "SELECT * FROM unfenced_writes ORDER BY unfenced DESC, below",
    ),
    "accounting": (("gold/accounting",), "SELECT * FROM accounting ORDER BY file"),
    "set_aside": (
        ("silver/set_aside",),
        "SELECT run, fate, array_join(reasons, ', ') AS reasons, count(*) AS lines, "
        "min(concat(file, ':', line_number)) AS first_place, "
        "min_by(substring(make_valid_utf8(line), 1, 160), struct(file, line_number)) AS example "
        "FROM set_aside GROUP BY run, fate, reasons ORDER BY lines DESC",
    ),
    # Violations with the file and line of each event.
    "violations": (
        ("gold/violations", "silver/events"),
        f"""
WITH shown AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY run, property
    ORDER BY length(key), key) AS place FROM violations) WHERE place <= {VIOLATIONS_SHOWN_MAX}),
pointed AS (SELECT run, property, key, explode_outer(rows) AS row FROM shown),
named AS (SELECT *, split(row, '/') AS parts FROM pointed),
found AS (
  SELECT /*+ BROADCAST(n) */ n.run, n.property, n.key, n.row, e.file, e.line_number
  FROM events e RIGHT JOIN named n ON e.run = n.run AND n.parts[0] = 'event'
    AND e.node = get(n.parts, 1) AND e.boot = get(n.parts, 2)
    AND e.seq = try_cast(get(n.parts, 3) AS BIGINT))
SELECT s.run, s.property, s.key, s.sentence, array_sort(collect_set(CASE WHEN f.file IS NULL
    THEN f.row ELSE concat(f.row, ' (', f.file, ':', f.line_number, ')') END)) AS rows
FROM shown s JOIN found f ON s.run = f.run AND s.property = f.property AND s.key = f.key
GROUP BY s.run, s.property, s.key, s.sentence ORDER BY s.property, length(s.key), s.key
""",
    ),
}


def collect(
    tables: Tables, runs: Sequence[Run], verdicts: Mapping[str, Sequence[VerdictRow]]
) -> list[Content]:
    """Run each query once for all runs; return the rows of each run."""
    collected: dict[str, dict[str, list[Mapping[str, Any]]]] = {run.id: {} for run in runs}

    def rows_of(name: str) -> None:
        inputs, sql = QUERIES[name]
        frame = query(sql, every_column=True)({table: tables.read(table) for table in inputs})
        for row in frame.toLocalIterator():
            held = collected[row["run"]].setdefault(name, [])
            if len(held) < _ROWS_MAX:
                held.append(row.asDict())

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(rows_of, QUERIES))
    return [
        Content(
            run=run,
            verdicts=verdicts[run.id],
            rows={name: collected[run.id].get(name, []) for name in QUERIES},
        )
        for run in runs
    ]
