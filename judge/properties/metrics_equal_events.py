"""A counter that a node reports equals the number of earlier events that it counts.

Only events of the same boot (the life of a node's process) count. Only the counters in `COUNTERS`
are judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from judge import sql
from judge.history import Boot, Event, History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K1",
    name="metrics_equal_events",
    statement="five counters of requests equal the number of events that they count",
    witnesses=("events",),
    row="the values of `num_messages_redirected_count`, "
    "`request_forwarding_to_controller_authorization_fail_count`, "
    "`not_controller_responses_count`, `kafka_network_requestmetrics_requests_count` and, if it is "
    "there, `bridgehead_client_requests_forwarded_total` in metrics_snapshot events",
    key="<node>/<boot>/<seq>/<counter>",
    gap_blocks_fail=True,
)

_CLUSTER_AUTHORIZATION_FAILED, _NOT_CONTROLLER = 31, 41
# Older evidence does not have this counter.
_OF_CLIENTS: Final = "bridgehead_client_requests_forwarded_total"


Received = frozenset[str] | set[str]  # the ids of the requests that this boot has read so far


def _redirects(event: Event, _: Received) -> str | None:
    """Return the request id of an Envelope to another process: all its resends count as one."""
    return None if event["local"] else str(event["request_id"])


def _redirects_of_clients(event: Event, received: Received) -> str | None:
    """Leave out the node's own requests, which no client sent."""
    return _redirects(event, received) if event["request_id"] in received else None


def _all(event: Event, _: Received) -> str | None:
    return str(event["seq"])


def _with(**fields: object) -> Callable[[Event, Received], str | None]:
    def counts(event: Event, _: Received) -> str | None:
        if any(event[name] != value for name, value in fields.items()):
            return None
        return str(event["seq"])

    return counts


# For each kind of event, the counters that count it. The function of a counter returns a key for an
# event that the counter counts, else None. Events with equal keys count once.
COUNTED: Final[Mapping[str, Mapping[str, Callable[[Event, Received], str | None]]]] = {
    "forward_sent": {
        "num_messages_redirected_count": _redirects,
        _OF_CLIENTS: _redirects_of_clients,
    },
    "envelope_rejected": {
        "request_forwarding_to_controller_authorization_fail_count": _with(
            error=_CLUSTER_AUTHORIZATION_FAILED
        )
    },
    "responded": {
        "not_controller_responses_count": _with(route="NOT_CONTROLLER", error=_NOT_CONTROLLER),
        "kafka_network_requestmetrics_requests_count": _all,
    },
}
COUNTERS: Final = tuple(name for counters in COUNTED.values() for name in counters)


def check(history: History) -> Iterator[Violation | None]:
    """Judge each counter of each snapshot."""
    boots: dict[Boot, list[Event]] = defaultdict(list)
    for kind in (*COUNTED, "request_received", "metrics_snapshot"):
        for event in history.of_kind[kind]:
            boots[boot_of(event)].append(event)
    for events in boots.values():
        counted: dict[str, set[str]] = {name: set() for name in COUNTERS}
        received: set[str] = set()
        for event in sorted(events, key=lambda value: value["seq"]):
            if event["kind"] == "metrics_snapshot":
                for name, elements in counted.items():
                    if name != _OF_CLIENTS or name in event["values"]:
                        yield _compared(event, name, len(elements))
                continue
            if event["kind"] == "request_received":
                received.add(event["request_id"])
                continue
            for name, counts in COUNTED[event["kind"]].items():
                if (one := counts(event, received)) is not None:
                    counted[name].add(one)


def _compared(event: Event, name: str, counted: int) -> Violation | None:
    """Compare a counter, summed over its labels, with the number of events that it counts."""
    values: Mapping[str, float] = event["values"]
    shown = sum(v for key, v in values.items() if key == name or key.startswith(f"{name}{{"))
    if shown == counted:
        return None
    number = int(shown) if float(shown).is_integer() else shown
    sentence = f"node {event['node']} reports {name} = {number}, but its events add up to {counted}"
    return SPEC.violation(f"{place_of(event)}/{name}", [row_of(event)], sentence)


# For each counter, the condition for the events that it counts. A request that is sent to another
# process counts as redirected once, however often it is sent.
_CONDITIONS: Final = {
    "num_messages_redirected_count": "is_first_remote",
    "request_forwarding_to_controller_authorization_fail_count": "kind = 'envelope_rejected' "
    "AND error = 31",
    "not_controller_responses_count": "kind = 'responded' "
    "AND route = 'NOT_CONTROLLER' AND error = 41",
    "kafka_network_requestmetrics_requests_count": "kind = 'responded'",
    _OF_CLIENTS: "is_of_client",
}
_FLAGS: Final = ", ".join(
    f"CAST(coalesce({condition}, false) AS BIGINT) AS c{at}"
    for at, condition in enumerate(_CONDITIONS.values())
)
_EACH: Final = [f"c{at}" for at in range(len(_CONDITIONS))]
_INSIDE: Final = ", ".join(
    f"coalesce(sum({c}) OVER (PARTITION BY run, node, boot, bucket ORDER BY seq ROWS BETWEEN "
    f"UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS {c}"
    for c in _EACH
)
_BEFORE: Final = ", ".join(
    f"coalesce(sum(sum({c})) OVER (PARTITION BY run, node, boot ORDER BY bucket ROWS BETWEEN "
    f"UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS {c}"
    for c in _EACH
)
_PAIRS: Final = ", ".join(
    f"struct('{name}' AS name, '{name}' <> '{_OF_CLIENTS}' OR map_contains_key(i.shown, '{name}') "
    f"AS is_judged, i.c{at} + b.c{at} AS counted, coalesce(aggregate(map_values("
    f"map_filter(i.shown, (k, v) -> k = '{name}' OR startswith(k, '{name}{{'))), 0D, "
    "(a, v) -> a + v), 0D) AS shown)"
    for at, name in enumerate(_CONDITIONS)
)

# Events are counted in two steps, so that Spark does not process a large boot in one task: first
# the sum for each range of 65,536 sequence numbers, then a running count within each range.
SNAPSHOTS: Final = f"""
WITH firsts AS (
  SELECT run, node, boot, request_id, min(seq) AS seq FROM forward_sent
  WHERE NOT local GROUP BY run, node, boot, request_id),
received AS (
  SELECT DISTINCT run, node, boot, request_id FROM request_received),
seen AS (
  SELECT run, node, boot, seq, wall_ms, 'metrics_snapshot' AS kind, NULL AS route, NULL AS error,
    false AS is_first_remote, false AS is_of_client, `values` AS shown
  FROM metrics_snapshot WHERE source <> 'client'
  UNION ALL
  SELECT run, node, boot, seq, wall_ms, 'responded', route, error, false, false, NULL
  FROM responded WHERE source <> 'client'
  UNION ALL
  SELECT run, node, boot, seq, wall_ms, 'envelope_rejected', NULL, error, false, false, NULL
  FROM envelope_rejected WHERE source <> 'client'
  UNION ALL
  SELECT f.run, f.node, f.boot, f.seq, NULL, 'forward_sent', NULL, NULL, true,
    r.request_id IS NOT NULL, NULL
  FROM firsts f LEFT JOIN received r ON f.run = r.run AND f.node = r.node AND f.boot = r.boot
    AND f.request_id = r.request_id),
counted AS (
  SELECT run, node, boot, seq, wall_ms, seq DIV 65536 AS bucket, shown, {_FLAGS} FROM seen),
before AS (
  SELECT run, node, boot, bucket, {_BEFORE} FROM counted GROUP BY run, node, boot, bucket),
inside AS (
  SELECT run, node, boot, bucket, seq, wall_ms, shown, {_INSIDE} FROM counted),
snapshots AS (
  SELECT i.run, i.node, i.boot, i.seq, i.wall_ms,
    explode(filter(array({_PAIRS}), p -> p.is_judged)) AS p
  FROM inside i JOIN before b ON i.run = b.run AND i.node = b.node AND i.boot = b.boot
    AND i.bucket = b.bucket
  WHERE i.shown IS NOT NULL)
"""

INPUTS: Final = (
    *("silver/forward_sent", "silver/responded"),
    *("silver/envelope_rejected", "silver/metrics_snapshot", "silver/request_received"),
)
SQL: Final = f"""{SNAPSHOTS}
SELECT run, CASE WHEN p.shown <> p.counted THEN concat({sql.place_of("snapshots")}, '/', p.name) END
    AS key,
  array({sql.row_of("snapshots")}) AS rows,
  concat('node ', node, ' reports ', p.name, ' = ', CASE
      WHEN p.shown = try_cast(p.shown AS BIGINT) THEN CAST(try_cast(p.shown AS BIGINT) AS STRING)
      ELSE CAST(p.shown AS STRING) END, ', but its events add up to ', p.counted) AS sentence
FROM snapshots
"""
