"""Waiting for conditions, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    read: Callable[[], T],
    is_good: Callable[[T], object] = bool,
    *,
    timeout_s: float = 60.0,
) -> T:
    """Poll until `read` returns a good value; return it. Fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not is_good(value := read()):
        assert time.monotonic() < deadline, f"still {value!r} after {timeout_s:g} s"
        time.sleep(0.02)
    return value
