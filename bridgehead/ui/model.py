"""What the page gets: the rows with their names, captions, znodes. For server and export alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.ui import rows as row_flags
from bridgehead.ui.captions import Captions
from bridgehead.ui.reading import RunReader, description
from bridgehead.ui.rows import COLUMNS, FAILED, NO_ERROR
from bridgehead.ui.vocabulary import LANES, NUMBERS, described

_TRANSACTION: Final = NUMBERS["transaction"]
_FLAGS: Final = ("LOCAL", "CLOSED", "FAILED", "CONTROLLER_CREATED", "CONTROLLER_DELETED", "WRITES")
_DESCRIBED: Final = ("run_id", "scenario", "seed", "brokers", "session_timeout_ms", "versions")
_HIDDEN: Final = "/bridgehead"
ROWS_OF_DETAILS_MAX: Final = 500


def names() -> dict[str, Any]:
    """Return what does not depend on the run: kinds, APIs, error codes, columns."""
    return {
        "columns": list(COLUMNS.items()),
        "kinds": described(),
        "lanes": LANES,
        "flags": {name: getattr(row_flags, name) for name in _FLAGS},
        "noError": NO_ERROR,
        "apis": {int(key): spec.name for key, spec in API_SPECS.items()},
        "errors": {int(code): code.name for code in ErrorCode},
    }


def state(reader: RunReader) -> dict[str, Any]:
    """Return what the rows refer to, and how many rows there are."""
    rows = reader.collector.rows
    run = description(reader.run)
    return {
        "run": {name: run.get(name) for name in _DESCRIBED},
        "startedMs": run["started_ms"],
        "base": rows.base,
        "count": len(rows),
        "nodes": rows.nodes.values,
        "clients": rows.clients.values,
        "texts": rows.texts.values,
        "requests": [[number, *request.described()] for number, request in rows.requests.items()],
        "links": rows.links,
        "samples": rows.samples,
        "hasTransactions": reader.has_transactions,
        **notices(reader),
    }


def notices(reader: RunReader) -> dict[str, int]:
    """Return the counts of what the page does not show as it was."""
    rows = reader.collector.rows
    return {
        "skipped": rows.skipped,
        "late": rows.late,
        "unnamed": rows.texts.rejected + rows.clients.rejected + rows.nodes.rejected,
    }


def details(reader: RunReader, start: int, count: int) -> list[dict[str, Any]]:
    """Return the events and the captions of some rows; rows that were dropped are left out."""
    rows = reader.collector.rows
    captions = Captions(rows)
    shown = []
    stop = min(start + min(count, ROWS_OF_DETAILS_MAX), len(rows))
    for position in range(max(start, rows.base), stop):
        shown.append(detail(reader, captions, position))
    return shown


def detail(reader: RunReader, captions: Captions, position: int) -> dict[str, Any]:
    """Return one row's event and caption."""
    line = reader.line(position)
    try:
        event = orjson.loads(line)
    except ValueError:
        return {"position": position, "caption": "The evidence file is gone.", "event": None}
    return {"position": position, "caption": captions.of(position, event), "event": event}


def operations(reader: RunReader, since: int) -> Iterator[list[Any]]:
    """Yield `[position, zxid, [[kind, path, data], ...]]` of each transaction that wrote znodes."""
    rows = reader.collector.rows
    for position in range(max(since, rows.base), len(rows)):
        if rows.value("kind", position) != _TRANSACTION or rows.value("flags", position) & FAILED:
            continue
        try:
            line = orjson.loads(reader.line(position))
        except ValueError:
            continue
        written = [
            [operation["kind"], operation["path"], operation["data"]]
            for operation in line["operations"]
            if operation["kind"] in ("create", "set", "delete")
            and not operation["path"].startswith(_HIDDEN)
        ]
        if written:
            yield [position, line["zxid"], written]


def first_znodes(reader: RunReader) -> list[list[Any]]:
    """Return `[path, data]` of every znode that existed before the run."""
    try:
        data = (reader.run / "zookeeper" / "first.jsonl").read_bytes()
    except OSError:
        return []
    znodes = (orjson.loads(line) for line in data.splitlines() if line)
    return [[z["path"], z["data"]] for z in znodes if not z["path"].startswith(_HIDDEN)]
