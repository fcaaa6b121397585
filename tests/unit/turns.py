"""Counts how often other tasks run while a coroutine works."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def turns_during(work: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """Return the result, and how many turns the event loop gave to another task meanwhile."""
    task = asyncio.create_task(work)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return task.result(), turns
