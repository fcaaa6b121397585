"""Requests by raw frame, for demos that must say exactly what they ask."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from chaos.connection import Connection

Body = dict[str, Any]


class NotAsPromisedError(Exception):
    """A demo's cluster answered something else than the demo says."""


def ask(
    cluster: Cluster,
    broker: int,
    key: int,
    version: int,
    body: Body,
    *,
    listener: str | None = None,
    dialect: str = "shipped",
) -> Body | str:
    """Return the answer, or how the connection ended."""
    connection = Connection(cluster.bootstrap_server(broker, listener))
    try:
        head = encode_request_header(RequestHeader(key, version, 1, "demo"))
        answer = connection.ask(head + encode_body(key, "request", version, body, dialect))
    finally:
        connection.close()
    if isinstance(answer, str):
        return answer
    _, at = decode_response_header(key, version, answer)
    return decode_body(key, "response", version, answer[at:], dialect)


def told(answer: Body | str) -> str:
    """Return the first element's code and text, as a person reads them."""
    if isinstance(answer, str):
        return "the connection is closed"
    rows = next((answer[n] for n in ("topics", "responses", "results") if n in answer), [answer])
    row = rows[0]
    if "errorCode" not in row:
        row = row["partitions"][0]
    name, text = ErrorCode(row["errorCode"]).name, row.get("errorMessage")
    return f"{name}: {text}" if text else name


def creation(name: str, partitions: int = 1, replicas: int = 3, **fields: Any) -> Body:
    """Return a CreateTopics request of one topic."""
    topic = {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": replicas,
        "assignments": [],
        "configs": [],
    }
    return {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False, **fields}


def growth(name: str, count: int) -> Body:
    """Return a CreatePartitions request."""
    topic = {"name": name, "count": count, "assignments": None}
    return {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}


def deletion(name: str, **fields: Any) -> Body:
    """Return a DeleteTopics request of versions 0 to 5."""
    return {"topicNames": [name], "timeoutMs": 10_000, **fields}


@contextlib.contextmanager
def folder_with_code(module: str, code: str) -> Iterator[Path]:
    """A folder for a demo's data, and a module of the user's own that nodes can import."""
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
