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
from bridgehead.ui.rows import COLUMNS, FAILED, NO_ERROR, packed
from bridgehead.ui.vocabulary import LANES, NUMBERS, described

_TRANSACTION: Final = NUMBERS["transaction"]
_FLAGS: Final = (
    *("LOCAL", "CLOSED", "FAILED", "CONTROLLER_CREATED", "CONTROLLER_DELETED", "WRITES"),
    "REPEATED",
)
_DESCRIBED: Final = ("run_id", "scenario", "seed", "brokers", "session_timeout_ms", "versions")
_HIDDEN: Final = "/bridgehead"
ROWS_OF_DETAILS_MAX: Final = 500


def about(reader: RunReader) -> dict[str, Any]:
    """Return what a page must know first: kinds, APIs, error codes, columns, and the run."""
    run = description(reader.run)
    return {
        "columns": list(COLUMNS.items()),
        "kinds": described(),
        "lanes": LANES,
        "flags": {name: getattr(row_flags, name) for name in _FLAGS},
        "noError": NO_ERROR,
        "apis": {int(key): spec.name for key, spec in API_SPECS.items()},
        "errors": {int(code): code.name for code in ErrorCode},
        "run": {name: run.get(name) for name in _DESCRIBED},
        "startedMs": run["started_ms"],
        "zookeeperMembers": reader.zookeeper_members,
    }


class Batches:
    """Packs rows for one page, with the names that it does not know yet.

    Its first batch has all names: after a new connection, a page may have missed some.
    """

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._is_first = True
        self._nodes = self._clients = self._texts = 0

    def pack(self, start: int, stop: int, share_read: float = 1.0) -> bytes:
        """Return the rows from `start` to `stop`: what `unpack` of evidence.js reads.

        These are 8 bytes with the length of a JSON text, the text, then the columns.
        """
        head = orjson.dumps(self._head(start, stop, share_read))
        padding = bytes(-len(head) % 8)
        columns = packed(self._reader.collector.rows, start, stop)
        return b"".join([len(head).to_bytes(8, "little"), head, padding, columns])

    def _head(self, start: int, stop: int, share_read: float) -> dict[str, Any]:
        rows = self._reader.collector.rows
        numbers = set(rows.columns["request"][start - rows.base : stop - rows.base]) - {0}
        links = [link for link in rows.links_since(start) if link[0] < stop]
        numbers.update(number for _, number in links)
        first_ms = rows.value("t", start) if start < stop else float("inf")
        head = {
            "start": start,
            "count": stop - start,
            "isFirst": self._is_first,
            "nodes": rows.nodes.values[self._nodes :],
            "clients": rows.clients.values[self._clients :],
            "texts": rows.texts.values[self._texts :],
            "requests": [[number, *rows.requests[number].described()] for number in numbers],
            "links": links,
            "samples": rows.samples_since(first_ms),
            "hasTransactions": self._reader.has_transactions,
            "shareRead": share_read,
            **notices(self._reader),
        }
        self._is_first = False
        self._nodes, self._clients = len(rows.nodes.values), len(rows.clients.values)
        self._texts = len(rows.texts.values)
        return head


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


def operations(reader: RunReader, since: int, until: int | None = None) -> Iterator[list[Any]]:
    """Yield `[position, zxid, [[kind, path, data], ...]]` of each transaction that wrote znodes."""
    rows = reader.collector.rows
    for position in range(max(since, rows.base), len(rows) if until is None else until):
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


def drop(reader: RunReader, count: int) -> None:
    """Drop the first rows; what they wrote becomes the state before the first row."""
    rows = reader.collector.rows
    znodes = dict(first_znodes(reader))
    for _, _, written in operations(reader, 0, rows.base + count):
        for kind, path, data in written:
            if kind == "delete":
                znodes.pop(path, None)
            else:
                znodes[path] = data
    reader.znodes = znodes
    rows.drop(count)


def first_znodes(reader: RunReader) -> list[tuple[str, Any]]:
    """Return path and data of every znode before the first row."""
    if reader.znodes is not None:
        return list(reader.znodes.items())
    try:
        data = (reader.run / "zookeeper" / "first.jsonl").read_bytes()
    except OSError:
        return []
    znodes = (orjson.loads(line) for line in data.splitlines() if line)
    return [(z["path"], z["data"]) for z in znodes if not z["path"].startswith(_HIDDEN)]
