"""Attempts on the metrics port. The outcome is the HTTP status codes in order, or `closed`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tests.hostile.attempt import Attempt, attempt
from tests.hostile.target import Target
from tests.hostile.wire import CLOSED, Field, Wire, framed

_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_SECRETS: Final = (b"-secret", b"token-master-key", b"PRIVATE KEY", b"root:")


def _sent(data: bytes, *, then_close: bool = True) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with Wire(target.metrics_address(), timeout_s=8) as wire:
            wire.raw(data)
            if then_close:
                wire.half_close()
            response = wire.rest()
        if any(secret in response for secret in _SECRETS):
            return "a secret"
        return " ".join(code.decode() for code in _STATUS.findall(response)) or CLOSED

    return run


def _get(path: bytes, headers: bytes = b"") -> Callable[[Target], str]:
    return _sent(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")


def _method(method: bytes) -> Callable[[Target], str]:
    return _sent(method + b" /metrics HTTP/1.1\r\nHost: x\r\n\r\n")


_TWO_LENGTHS: Final = b"Content-Length: 5\r\nContent-Length: 60\r\n"
_SECOND: Final = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
ROWS: Final = (
    ("GET /metrics", _get(b"/metrics"), "200"),
    ("GET /health", _get(b"/health"), "200"),
    ("a path upwards", _get(b"/../../../../etc/passwd"), "404"),
    ("a path upwards after /metrics", _get(b"/metrics/../../etc/passwd"), "404"),
    ("an encoded path upwards", _get(b"/%2e%2e/%2e%2e/etc/passwd"), "404"),
    ("a path with backslashes", _get(b"\\..\\..\\etc\\passwd"), "404"),
    ("a path with NUL", _get(b"/metrics\0/etc/passwd"), "404"),
    ("a file address", _get(b"file:///etc/passwd"), "404"),
    ("an absolute address", _get(b"http://127.0.0.1/metrics"), "404"),
    ("the node's properties", _get(b"/node.properties"), "404"),
    ("no path", _sent(b"GET\r\n\r\n"), "404", "405"),
    ("an empty path", _sent(b"GET  HTTP/1.1\r\n\r\n"), "404"),
    ("POST", _method(b"POST"), "405"),
    ("PUT", _method(b"PUT"), "405"),
    ("DELETE", _method(b"DELETE"), "405"),
    ("TRACE", _method(b"TRACE"), "405"),
    ("CONNECT", _sent(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n"), "405"),
    ("get in small letters", _method(b"get"), "405"),
    ("a method of 4 KB", _method(b"G" * 4096), "405"),
    ("a header of 9 KB", _get(b"/metrics", b"X: " + b"a" * 9000 + b"\r\n"), CLOSED),
    ("a header of 1 MB", _get(b"/metrics", b"X: " + b"a" * 1_000_000 + b"\r\n"), CLOSED),
    ("600 headers", _get(b"/metrics", b"X: aaaaaaaaaa\r\n" * 600), CLOSED),
    ("a head without end", _sent(b"GET /metrics HTTP/1.1\r\nX: "), CLOSED),
    ("a head that stays open for 5 s", _sent(b"GET /metrics HT", then_close=False), CLOSED),
    ("two lengths", _get(b"/metrics", _TWO_LENGTHS), "200"),
    ("a length and chunks", _get(b"/metrics", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), "200"),
    ("a second request after the first", _sent(_SECOND + _SECOND), "200"),
    ("a second request in a body", _sent(b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n" + _SECOND), "405"),
    ("a header split by CR", _get(b"/metrics", b"X: a\rSet-Cookie: b\r\n"), "200"),
    ("HTTP/0.9", _sent(b"GET /metrics\r\n"), CLOSED),
    ("HTTP/2's preface", _sent(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "405"),
    ("an upgrade", _get(b"/metrics", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"), "200"),
    ("a Kafka frame", _sent(framed(bytes(40))), CLOSED),
    ("a TLS ClientHello", _sent(b"\x16\x03\x01\x00\x05hello"), CLOSED),
    ("nothing", _sent(b""), CLOSED),
)  # fmt: skip


def heads() -> list[list[Field]]:
    """Return heads of requests, field by field, for the mutations."""
    lines = ((b"GET", b"/metrics"), (b"GET", b"/health"), (b"POST", b"/metrics?a=b"))
    return [
        [
            *(Field("text", part) for part in (method, b" ", path, b" HTTP/1.1", b"\r\n")),
            *(Field("text", part) for part in (b"Host", b": ", b"127.0.0.1", b"\r\n", b"\r\n")),
        ]
        for method, path in lines
    ]


def metrics_attempts() -> list[Attempt]:
    """Return the attempts of this module."""
    return [attempt("metrics over HTTP", name, run, *right) for name, run, *right in ROWS]
