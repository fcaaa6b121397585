"""In a rehearsal, both witnesses have each acknowledged admin write after every later phase.

The load of a rehearsal records what must hold once a request is acknowledged. After each phase the
load pauses, and the rehearsal reports what the witnesses have: KRaft's metadata log, and ZooKeeper
as long as it is written (also after a rollback). The znodes are reported, not taken from
ZooKeeper's transactions, because commit lines lack the content of quotas, credentials and tokens.

For each item, the last request about it counts. Without an acknowledgement, both outcomes are
possible, and the item is not judged. The deletion of a config is not judged if its topic is gone:
after a restart, Kafka's controller brings such configs back (a known bug). A report is ignored if
the last of its events is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from judge import sql
from judge.history import Event, History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="D12",
    name="migrated_write_is_kept",
    statement="after each phase of a migration and after a rollback, KRaft's metadata log and "
    "ZooKeeper have what was acknowledged until then",
    witnesses=("clients",),
    row="metadata of a rehearsal's load, once for each later report of a witness",
    key="<node>/<boot>/<seq>/<item>",
    gap_blocks_fail=True,  # the gap may hide a later request
)

ACKNOWLEDGED: Final = "acknowledged"
ANY: Final = "*"
KRAFT, ZOOKEEPER = "kraft", "zookeeper"
NAMES: Final = {KRAFT: "the metadata log of KRaft", ZOOKEEPER: "ZooKeeper"}
_CONFIG: Final = "config topic "

Report = tuple[str, str, str, int]  # node, boot, witness, phase_number


class _Write(NamedTuple):
    order: tuple[int, str, str, int, str]
    expected: str | None  # None: the item must not exist
    event: Event


def check(history: History) -> Iterator[Violation | None]:
    """Look up each item in each report."""
    writes = _writes(history)
    pages: dict[Report, list[Event]] = {}
    for event in _of_kind(history, "metadata_held"):
        report = event["node"], event["boot"], event["witness"], event["phase_number"]
        pages.setdefault(report, []).append(event)
    for events in pages.values():
        last = min((e for e in events if e["is_last"]), key=lambda e: int(e["seq"]), default=None)
        if last is None:
            continue
        held = _held(events)
        for item, of_item in writes.items():
            earlier = (write for write in of_item if write.order[0] <= last["phase_number"])
            write = max(earlier, key=lambda write: write.order, default=None)
            if write is None or not _is_judged(write, item, held):
                continue
            value = held.get(item)
            if _fits(write.expected, value):
                yield None
                continue
            rows = [row_of(write.event), row_of(last)]
            yield SPEC.violation(
                f"{place_of(last)}/{item}", rows, _sentence(item, write, last, value)
            )


def _of_kind(history: History, kind: str) -> list[Event]:
    return [event for event in history.evidence.clients if event["kind"] == kind]


def _writes(history: History) -> Mapping[str, list[_Write]]:
    """Return the sendings and acknowledgements of each item."""
    writes: dict[str, list[_Write]] = {}
    for event in _of_kind(history, "metadata_write"):
        place = event["phase_number"], event["node"], event["boot"], event["seq"]
        entries: list[tuple[str, str | None]] = [*map(_split, event["present"])]
        for item, expected in [*entries, *((item, None) for item in event["absent"])]:
            write = _Write((*place, expected or ""), expected, event)
            writes.setdefault(item, []).append(write)
    return writes


def _split(entry: str) -> tuple[str, str]:
    item, _, value = entry.partition("\t")
    return item, value


def _held(pages: list[Event]) -> Mapping[str, str]:
    return dict(sorted(_split(entry) for page in pages for entry in page["items"]))


def _is_judged(write: _Write, item: str, held: Mapping[str, str]) -> bool:
    if write.event["outcome"] != ACKNOWLEDGED:
        return False
    is_config_deletion = write.expected is None and item.startswith(_CONFIG)
    return not is_config_deletion or f"topic {item.split(' ')[2]}" in held


def _fits(expected: str | None, value: str | None) -> bool:
    if expected is None or value is None:
        return expected is value
    return expected == value or (
        expected.startswith(ANY) and value.endswith(expected.removeprefix(ANY))
    )


def _sentence(item: str, write: _Write, report: Event, value: str | None) -> str:
    what = "its deletion" if write.expected is None else write.expected
    witness = NAMES.get(report["witness"], report["witness"])
    return (
        f"{item}: {'its creation' if what == ANY else what} was acknowledged, but after "
        f"{report['name']}, {witness} has {'none' if value is None else value}"
    )


_REPORT: Final = "run, node, boot, witness, phase_number"
_SHOWN: Final = " ".join(f"WHEN '{name}' THEN '{shown}'" for name, shown in NAMES.items())

INPUTS: Final = ("silver/metadata_write", "silver/metadata_held")
SQL: Final = f"""
WITH entries AS (
  SELECT run, node, boot, seq, phase_number, outcome, split(entry, '\\t', 2) AS parts
  FROM metadata_write LATERAL VIEW explode(present) x AS entry),
writes AS (
  SELECT run, node, boot, seq, phase_number, outcome, parts[0] AS item,
    coalesce(try_element_at(parts, 2), '') AS expected FROM entries
  UNION ALL
  SELECT run, node, boot, seq, phase_number, outcome, item, NULL
  FROM metadata_write LATERAL VIEW explode(absent) x AS item),
reports AS (
  SELECT {_REPORT}, min_by(struct(node, boot, seq, name), seq) AS page
  FROM metadata_held WHERE is_last GROUP BY {_REPORT}),
pages AS (
  SELECT {_REPORT}, split(entry, '\\t', 2) AS parts
  FROM metadata_held LATERAL VIEW explode(items) x AS entry),
held AS (
  SELECT {_REPORT}, parts[0] AS item,
    max(coalesce(try_element_at(parts, 2), '')) AS value
  FROM pages GROUP BY {_REPORT}, parts[0]),
last AS (
  SELECT r.run, r.node, r.boot, r.witness, r.phase_number, first(r.page) AS page, w.item, max_by(
    struct(w.node, w.boot, w.seq, w.outcome, w.expected),
    struct(w.phase_number, w.node, w.boot, w.seq, coalesce(w.expected, ''))) AS write
  FROM writes w JOIN reports r ON w.run = r.run AND w.phase_number <= r.phase_number
  GROUP BY r.run, r.node, r.boot, r.witness, r.phase_number, w.item),
acknowledged AS (
  SELECT *, CASE WHEN write.expected IS NULL AND startswith(item, '{_CONFIG}')
    THEN concat('topic ', split(item, ' ')[2]) END AS topic
  FROM last WHERE write.outcome = '{ACKNOWLEDGED}'),
judged AS (
  SELECT a.*, h.value, CASE
    WHEN write.expected IS NULL OR h.value IS NULL THEN write.expected IS NULL AND h.value IS NULL
    ELSE write.expected = h.value OR startswith(write.expected, '{ANY}')
      AND endswith(h.value, substring(write.expected, 2)) END AS fits
  FROM acknowledged a LEFT JOIN held h USING ({_REPORT}, item)
    LEFT JOIN (SELECT {_REPORT}, item AS topic FROM held) t USING ({_REPORT}, topic)
  WHERE a.topic IS NULL OR t.topic IS NOT NULL)
SELECT run, CASE WHEN NOT fits THEN concat({sql.place_of("page")}, '/', item) END AS key,
  array({sql.row_of("write")}, {sql.row_of("page")}) AS rows,
  concat(item, ': ', CASE WHEN write.expected IS NULL THEN 'its deletion'
    WHEN write.expected = '{ANY}' THEN 'its creation' ELSE write.expected END,
    ' was acknowledged, but after ', page.name, ', ',
    CASE witness {_SHOWN} ELSE witness END,
    ' has ', coalesce(value, 'none')) AS sentence
FROM judged
"""
