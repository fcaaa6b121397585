"""The checks of the plain judge: one module for each property, named as in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Final

from event_log.properties import PROPERTY_SPECS, Violation
from judge.history import History

# Yields one item for each row judged: a violation, or None if the property holds.
Check = Callable[[History], Iterator[Violation | None]]

CHECKS: Final[Mapping[str, Check]] = {
    spec.id: import_module(f"{__name__}.{spec.name}").check for spec in PROPERTY_SPECS
}
