"""What proves that a fault had an effect, as a value with two checks that share only data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import Template

from judge.history import Event, History


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One kind of effect that evidence other than `fault_injected` must show.

    Both checks must agree on every fault.
    """

    name: str
    actions: tuple[str, ...]
    """The faults that must have this effect: the field `action` of `fault_injected`."""
    check: Callable[[History, Event, Event | None], bool]
    """The arguments are the history, `fault_injected`, and `fault_healed` (None: not healed)."""
    reads: tuple[str, ...] = ()
    """The silver tables that the query reads, except `sessions` and `commits`."""
    sql: str
    """A query of the keys (run, node, boot, seq) of the faults that had the effect.

    `$faults` stands for the faults with these actions: the fields of `fault_injected` and, of their
    first `fault_healed`, `healed_ns` and `healed_ms` (NULL: not healed). Faults are few, so joins
    with larger tables broadcast them.
    """

    def query(self) -> str:
        """Return the query, in which `faults` is a table of all faults."""
        actions = ", ".join(f"'{action}'" for action in self.actions)
        return Template(self.sql).substitute(
            faults=f"(SELECT * FROM faults WHERE action IN ({actions}))"
        )
