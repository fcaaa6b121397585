"""What a line must look like: the fields and types of every kind, out of the event dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, get_args

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.events import Event

Test = Callable[[Any], bool]

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_str(value: Any) -> bool:
    return type(value) is str


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _is_list_of(test: Test) -> Test:
    return lambda value: type(value) is list and all(map(test, value))


def _is_identity(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and _is_int(value[0])
        and _is_str(value[1])
        and _is_int(value[2])
    )


def _is_element(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and _is_str(value[0]) and _is_int(value[1])


def _is_values(value: Any) -> bool:
    return type(value) is dict and all(map(_is_number, value.values()))


def _is_line_of(kind: Any) -> Test:
    shape = {each.name: TESTS[str(each.type)] for each in fields(kind)}

    def test(value: Any) -> bool:
        return type(value) is dict and all(
            name in value and holds(value[name]) for name, holds in shape.items()
        )

    return test


# The annotations of the dataclasses, as they are written there.
TESTS: Final[dict[str, Test]] = {
    "str": _is_str,
    "int": _is_int,
    "bool": _is_bool,
    "float": _is_number,
    "str | None": _or_none(_is_str),
    "int | None": _or_none(_is_int),
    "Identity": _is_identity,
    "list[str]": _is_list_of(_is_str),
    "list[tuple[str, int]]": _is_list_of(_is_element),
    "dict[str, float]": _is_values,
}
TESTS["list[CommitOperation]"] = _is_list_of(_is_line_of(CommitOperation))
TESTS["list[CommitOutcome]"] = _is_list_of(_is_line_of(CommitOutcome))

COMMON: Final[Mapping[str, Test]] = {
    **dict.fromkeys(("kind", "run_id", "node", "boot", "host_boot_id"), _is_str),
    **dict.fromkeys(("seq", "mono_ns", "wall_ms", "schema_version"), _is_int),
}


def _shape(kind: Any) -> Mapping[str, Test]:
    return {each.name: TESTS[str(each.type)] for each in fields(kind)}


EVENT_SHAPES: Final[Mapping[str, Mapping[str, Test]]] = {
    event.kind: {**COMMON, **_shape(event)} for event in get_args(Event)
}
COMMIT_SHAPE: Final = _shape(CommitLine)
DUMP_SHAPE: Final = _shape(DumpLine)


def faults_of(line: Mapping[str, Any], shape: Mapping[str, Test]) -> tuple[str, ...]:
    """Return `missing_field` and `wrong_type`, whichever apply."""
    missing = any(name not in line for name in shape)
    wrong = any(name in line and not test(line[name]) for name, test in shape.items())
    return ("missing_field",) * missing + ("wrong_type",) * wrong
