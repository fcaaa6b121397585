"""The fields and types that a line must have, derived from the dataclasses of `event_log`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.events import EVENT_KINDS

Test = Callable[[Any], bool]


def _is(*types: type) -> Test:
    return lambda value: type(value) in types


_is_str, _is_int = _is(str), _is(int)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _is_list_of(test: Test) -> Test:
    return lambda value: type(value) is list and all(map(test, value))


def _is_array_of(*tests: Test) -> Test:
    return lambda value: (
        type(value) is list
        and len(value) == len(tests)
        and all(test(each) for test, each in zip(tests, value, strict=True))
    )


def _is_map_of(test: Test) -> Test:
    return lambda value: type(value) is dict and all(map(test, value.values()))


def _shape(kind: Any) -> Mapping[str, Test]:
    return {each.name: TESTS[str(each.type)] for each in fields(kind)}


def _is_line_of(kind: Any) -> Test:
    shape = _shape(kind)
    return lambda value: type(value) is dict and not faults_of(value, shape)


# The test for each annotation; annotations are spelled as in the dataclasses.
TESTS: Final[dict[str, Test]] = {
    "str": _is_str,
    "int": _is_int,
    "bool": _is(bool),
    "float": _is(int, float),
    "str | None": _or_none(_is_str),
    "int | None": _or_none(_is_int),
    "Identity": _is_array_of(_is_int, _is_str, _is_int),
    "list[str]": _is_list_of(_is_str),
    "list[tuple[str, int]]": _is_list_of(_is_array_of(_is_str, _is_int)),
    "dict[str, float]": _is_map_of(_is(int, float)),
}
TESTS["list[CommitOperation]"] = _is_list_of(_is_line_of(CommitOperation))
TESTS["list[CommitOutcome]"] = _is_list_of(_is_line_of(CommitOutcome))

COMMON: Final[Mapping[str, Test]] = {
    **dict.fromkeys(("kind", "run_id", "node", "boot", "host_boot_id"), _is_str),
    **dict.fromkeys(("seq", "mono_ns", "wall_ms", "schema_version"), _is_int),
}


EVENT_SHAPES: Final[Mapping[str, Mapping[str, Test]]] = {
    kind: {**COMMON, **_shape(event)} for kind, event in EVENT_KINDS.items()
}
# Fields that evidence of earlier versions lacks, with their defaults.
ADDED_LATER: Final[Mapping[str, Mapping[str, Any]]] = {
    kind: {each.name: each.default for each in fields(event) if each.default is not MISSING}
    for kind, event in EVENT_KINDS.items()
}
COMMIT_SHAPE: Final = _shape(CommitLine)
DUMP_SHAPE: Final = _shape(DumpLine)


def faults_of(line: Mapping[str, Any], shape: Mapping[str, Test]) -> tuple[str, ...]:
    """Return `missing_field`, `wrong_type`, both or none."""
    try:
        for name, test in shape.items():
            if not test(line[name]):
                break
        else:
            return ()
    except KeyError:
        pass
    missing = any(name not in line for name in shape)
    wrong = any(name in line and not test(line[name]) for name, test in shape.items())
    return ("missing_field",) * missing + ("wrong_type",) * wrong
