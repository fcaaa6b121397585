"""Requests of the demos, their results as text, and user code that nodes can import."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.raw_client.blocking import call_once
from bridgehead.raw_client.codec import Body


def first_result(address: str, key: int, version: int, body: Body, **options: Any) -> str:
    """Send a request; return the error code and message of the response's first element."""
    try:
        response = call_once(address, key, version, body, **options)
    except ConnectionError as failed:
        return str(failed)
    lists = (response[name] for name in ("topics", "responses", "results") if name in response)
    row = next(lists, [response])[0]
    if "errorCode" not in row:
        row = row["partitions"][0]
    name, text = ErrorCode(row["errorCode"]).name, row.get("errorMessage")
    return f"{name}: {text}" if text else name


def more_partitions(name: str, count: int) -> Body:
    """Return a CreatePartitions request."""
    topic = {"name": name, "count": count, "assignments": None}
    return {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}


def deletion(name: str, **fields: Any) -> Body:
    """Return a DeleteTopics request of versions 0 to 5."""
    return {"topicNames": [name], "timeoutMs": 10_000, **fields}


@contextlib.contextmanager
def folder_with_code(module: str, code: str) -> Iterator[Path]:
    """Create a folder for a demo's data, with a module that nodes can import."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="bridgehead-demo-") as name:
        folder = Path(name)
        (folder / f"{module}.py").write_text(code, encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (name, before)))
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
