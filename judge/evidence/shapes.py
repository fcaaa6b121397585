"""The fields and types that a line must have, derived from the dataclasses of `event_log`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from operator import itemgetter
from typing import Any, Final

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.events import EVENT_KINDS

Test = Callable[[Any], bool]


class Shape:
    """The annotations of a line's fields.

    Whether a scalar fits its annotation depends only on its type. So after a valid line, only the
    lists and maps of later lines with the same types are tested.
    """

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self.annotations = annotations
        self.tests = {name: TESTS[annotation] for name, annotation in annotations.items()}
        self.deep = tuple(
            (name, self.tests[name])
            for name, annotation in annotations.items()
            if annotation not in SCALARS
        )
        self.values = itemgetter(*annotations)
        self.fitting: set[tuple[type, ...]] = set()


def _is(*types: type) -> Test:
    return lambda value: type(value) in types


_is_str, _is_int = _is(str), _is(int)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _is_list_of(test: Test) -> Test:
    return lambda value: type(value) is list and all(map(test, value))


def _is_array_of(*types: type) -> Test:
    return lambda value: type(value) is list and tuple(map(type, value)) == types


def _is_map_of(test: Test) -> Test:
    return lambda value: type(value) is dict and all(map(test, value.values()))


def _shape(kind: Any) -> Shape:
    return Shape({field.name: str(field.type) for field in fields(kind)})


def _is_line_of(kind: Any) -> Test:
    shape = _shape(kind)
    return lambda value: type(value) is dict and not faults_of(value, shape)


# The test for each annotation; annotations are spelled as in the dataclasses.
SCALARS: Final[Mapping[str, Test]] = {
    "str": _is_str,
    "int": _is_int,
    "bool": _is(bool),
    "float": _is(int, float),
    "str | None": _or_none(_is_str),
    "int | None": _or_none(_is_int),
}
TESTS: Final[dict[str, Test]] = {
    **SCALARS,
    "Identity": _is_array_of(int, str, int),
    "list[str]": _is_list_of(_is_str),
    "list[tuple[str, int]]": _is_list_of(_is_array_of(str, int)),
    "dict[str, float]": _is_map_of(_is(int, float)),
}
TESTS["list[CommitOperation]"] = _is_list_of(_is_line_of(CommitOperation))
TESTS["list[CommitOutcome]"] = _is_list_of(_is_line_of(CommitOutcome))

_COMMON: Final[Mapping[str, str]] = {
    **dict.fromkeys(("kind", "run_id", "node", "boot", "host_boot_id"), "str"),
    **dict.fromkeys(("seq", "mono_ns", "wall_ms", "schema_version"), "int"),
}
COMMON: Final = Shape(_COMMON)


EVENT_SHAPES: Final[Mapping[str, Shape]] = {
    kind: Shape({**_COMMON, **{field.name: str(field.type) for field in fields(event)}})
    for kind, event in EVENT_KINDS.items()
}
# Fields that earlier versions did not write, with their defaults.
ADDED_LATER: Final[Mapping[str, Mapping[str, Any]]] = {
    kind: {field.name: field.default for field in fields(event) if field.default is not MISSING}
    for kind, event in EVENT_KINDS.items()
}
COMMIT_SHAPE: Final = _shape(CommitLine)
DUMP_SHAPE: Final = _shape(DumpLine)


def faults_of(line: Mapping[str, Any], shape: Shape) -> tuple[str, ...]:
    """Return `missing_field`, `wrong_type`, both or none."""
    try:
        types = tuple(map(type, shape.values(line)))
    except KeyError:
        pass
    else:
        if types in shape.fitting and all(test(line[name]) for name, test in shape.deep):
            return ()
        if all(test(line[name]) for name, test in shape.tests.items()):
            shape.fitting.add(types)
            return ()
    missing = any(name not in line for name in shape.tests)
    wrong = any(name in line and not test(line[name]) for name, test in shape.tests.items())
    return ("missing_field",) * missing + ("wrong_type",) * wrong
