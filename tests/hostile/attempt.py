"""One attempt of the attacker: what it does, and the outcomes that are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.hostile.target import Target


class Attempt(NamedTuple):
    """`run` returns the outcome as text; any outcome that is not in `right` is a finding."""

    group: str
    name: str
    run: Callable[[Target], str]
    right: frozenset[str]


def attempt(group: str, name: str, run: Callable[[Target], str], *right: str) -> Attempt:
    return Attempt(group, name, run, frozenset(right))
