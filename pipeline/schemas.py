"""The schemas of events, transactions and dumps, derived from the dataclasses of `event_log`.

In a line, `identity` is an array, [1, "abc", 7], and each of the `elements` is an array of name and
error code, ["topic", 0]. In a table these arrays are structs. The elements of `client_invoked` are
plain names, because they have no error codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, NamedTuple

from event_log.commits import CommitLine, CommitOperation, CommitOutcome, DumpLine
from event_log.events import EVENT_KINDS, SCHEMA_VERSION


class Column(NamedTuple):
    """One column: Spark's type, and whether it may be null."""

    type: str
    nullable: bool = False


Columns = Mapping[str, Column]

IDENTITY: Final = "STRUCT<broker_id: BIGINT, incarnation: STRING, sequence: BIGINT>"
ELEMENTS: Final = "ARRAY<STRUCT<element: STRING, error: BIGINT>>"
# Spark's type for each annotation of a field in the dataclasses.
_TYPES: Final[dict[str, str]] = {
    "str": "STRING",
    "int": "BIGINT",
    "bool": "BOOLEAN",
    "float": "DOUBLE",
    "Identity": IDENTITY,
    "list[str]": "ARRAY<STRING>",
    "list[tuple[str, int]]": ELEMENTS,
    "dict[str, float]": "MAP<STRING, DOUBLE>",
}


def _columns(kind: Any) -> Columns:
    """Return the columns of a dataclass."""
    columns = {}
    for field in fields(kind):
        type_, _, none = str(field.type).partition(" | ")
        columns[field.name] = Column(_TYPES[type_], bool(none))
    return columns


def ddl(columns: Columns) -> str:
    """Return the schema of a table with these columns. In Spark, all columns are nullable."""
    return ", ".join(f"`{name}` {column.type}" for name, column in columns.items())


# The fields that the writer adds to every event, in the order in which it writes them.
COMMON: Final[Columns] = {
    "kind": Column("STRING"),
    **dict.fromkeys(("seq", "mono_ns", "wall_ms"), Column("BIGINT")),
    **dict.fromkeys(("run_id", "node", "boot", "host_boot_id"), Column("STRING")),
    "schema_version": Column("BIGINT"),
}
KINDS: Final[Mapping[str, Columns]] = {
    kind: {**COMMON, **_columns(event)} for kind, event in EVENT_KINDS.items()
}
OPERATION, OUTCOME, DUMP = map(_columns, (CommitOperation, CommitOutcome, DumpLine))
_TYPES["list[CommitOperation]"] = f"ARRAY<STRUCT<{ddl(OPERATION)}>>"
_TYPES["list[CommitOutcome]"] = f"ARRAY<STRUCT<{ddl(OUTCOME)}>>"
COMMIT: Final = _columns(CommitLine)
# Shapes that are not events. The first two are lines; the others are parts of a commit's line.
OTHERS: Final = {
    "/commit": COMMIT,
    "/dump": DUMP,
    "/operation": OPERATION,
    "/outcome": OUTCOME,
}

# Types that differ between a line and a table.
_IN_A_LINE: Final[Mapping[str, str]] = {
    IDENTITY: "ARRAY<STRING>",
    ELEMENTS: "ARRAY<STRING>",
    "MAP<STRING, DOUBLE>": "MAP<STRING, STRING>",
}
# Columns of the same name have the same type in all kinds. The exception is this column, whose
# elements have no codes.
_WITHOUT_CODES: Final = ("client_invoked", "elements")


def union() -> Columns:
    """Return every column of a table of events. Kinds may differ only in `_WITHOUT_CODES`."""
    result: dict[str, Column] = {}
    for kind, columns in KINDS.items():
        for name, column in columns.items():
            existing = result.setdefault(name, column)
            if (kind, name) != _WITHOUT_CODES and existing.type != column.type:
                raise AssertionError(f"{kind}.{name} is {column.type}, elsewhere {existing.type}")
    return result


def line_schema() -> str:
    """Return the schema that a line of JSON is read with."""
    return ", ".join(f"`{name}` {_IN_A_LINE.get(c.type, c.type)}" for name, c in union().items())


# SQL that converts a column of a line (`p.`) to a column of the table.
_CONVERSIONS: Final[Mapping[str, str]] = {
    IDENTITY: "CASE WHEN size(p.`{0}`) = 3 THEN named_struct("
    "'broker_id', try_cast(p.`{0}`[0] AS BIGINT), 'incarnation', p.`{0}`[1], "
    "'sequence', try_cast(p.`{0}`[2] AS BIGINT)) END",
    ELEMENTS: "CASE WHEN p.kind = 'client_invoked' THEN transform(p.`{0}`, "
    "e -> named_struct('element', e, 'error', CAST(NULL AS BIGINT))) "
    "ELSE transform(transform(p.`{0}`, e -> from_json(e, 'ARRAY<STRING>')), e -> named_struct("
    "'element', try_element_at(e, 1), 'error', try_cast(try_element_at(e, 2) AS BIGINT))) END",
    "MAP<STRING, DOUBLE>": "transform_values(p.`{0}`, (k, v) -> try_cast(v AS DOUBLE))",
}


def table_columns() -> list[str]:
    """Return SQL that converts a line's struct `p` to the columns of a table of events."""
    return [
        f"{_CONVERSIONS.get(column.type, 'p.`{0}`').format(name)} AS `{name}`"
        for name, column in union().items()
    ]


# A line that has exactly our writer's format is split into the texts of its values by one regular
# expression. `SEPARATOR` is between them: no string in JSON may contain it.
SEPARATOR: Final = "\x1f"
# Strings with a Unicode escape (\u0041) or an escaped slash do not match; their lines are examined
# field by field. So every character has one spelling, and equal keys of a map have equal texts.
_TEXT: Final = r'[^"\\\x00-\x1f]*+(?:\\["\\bfnrt][^"\\\x00-\x1f]*+)*+'
_INTEGER: Final = r"-?(?:0|[1-9][0-9]{0,17})"
_NUMBER: Final = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?+(?:[eE][+-]?[0-9]{1,2})?+"
_ELEMENT: Final = rf'\["{_TEXT}",{_INTEGER}\]'
# Patterns of values. Each has one group for each text that `_SQL` needs.
_PATTERNS: Final[Mapping[str, str]] = {
    "STRING": f'"({_TEXT})"',
    "BIGINT": f"({_INTEGER})",
    "BOOLEAN": "(true|false)",
    "DOUBLE": f"({_NUMBER})",
    IDENTITY: rf'\[({_INTEGER}),"({_TEXT})",({_INTEGER})\]',
    ELEMENTS: rf"(\[(?:{_ELEMENT}(?:,{_ELEMENT})*+)?+\])",
    "ARRAY<STRING>": rf'(\[(?:"{_TEXT}"(?:,"{_TEXT}")*+)?+\])',
    "MAP<STRING, DOUBLE>": rf'(\{{(?:"{_TEXT}":{_NUMBER}(?:,"{_TEXT}":{_NUMBER})*+)?+\}})',
}
_OR_NULL: Final[Mapping[str, str]] = {
    "STRING": f'("{_TEXT}"|null)',
    "BIGINT": f"({_INTEGER}|null)",
}
KEY_OF_A_MAP: Final = rf'"({_TEXT})":'
# The fields in front of a kind's own fields, without the two whose value is known.
HEAD: Final = tuple(name for name in COMMON if name not in ("kind", "schema_version"))


def has_map(kind: str) -> bool:
    """Return whether a kind has a map. A pattern does not detect duplicate keys."""
    return any(column.type.startswith("MAP") for column in KINDS[kind].values())


def fields_of(kind: str) -> Columns:
    """Return a kind's columns that not every event has."""
    return {name: column for name, column in KINDS[kind].items() if name not in COMMON}


def own_columns(kind: str) -> list[str]:
    """Return SQL for a kind's own columns from a row with the columns of `union`."""
    return [
        "transform(elements, e -> e.element) AS elements"
        if (kind, name) == _WITHOUT_CODES
        else f"`{name}`"
        for name in fields_of(kind)
    ]


def exact_pattern(kind: str) -> str:
    """Return the pattern of a line of this kind as our writer writes it; groups have the values.

    A line that matches has every field once, with the right type and range. Only its maps must
    still be checked for duplicate keys. Other lines may be valid too.
    """
    literals = {"kind": f'"{kind}"', "schema_version": str(SCHEMA_VERSION)}
    parts = []
    for name, column in KINDS[kind].items():
        patterns = _OR_NULL if column.nullable else _PATTERNS
        parts.append(f'"{name}":{literals.get(name) or patterns[column.type]}')
    return r"\A\{" + ",".join(parts) + r"\}\z"


def exact_replacement(kind: str) -> str:
    """Return what replaces a matching line: the values with `SEPARATOR` between them."""
    groups = len(HEAD) + sum(_width(column) for column in fields_of(kind).values())
    return SEPARATOR.join(f"${at}" for at in range(1, groups + 1))


def _width(column: Column) -> int:
    return 3 if column.type == IDENTITY else 1


def unescaped(text: str) -> str:
    """Return SQL that replaces JSON's short escapes in a text."""
    # A backslash becomes a character that no JSON has until the other escapes are replaced.
    escapes = {r"\\": "\x00", r"\"": '"', r"\b": "\b", r"\f": "\f", r"\n": "\n", r"\r": "\r"}
    replaced = text
    for escape, character in {**escapes, r"\t": "\t", "\x00": "\\"}.items():
        replaced = f"replace({replaced}, {quoted(escape)}, {quoted(character)})"
    return f"CASE WHEN contains({text}, {quoted(chr(92))}) THEN {replaced} ELSE {text} END"


def quoted(text: str) -> str:
    """Return a SQL literal."""
    return "'" + "".join(f"\\u{ord(character):04x}" for character in text) + "'"


# SQL that converts the texts of a value, from the one at {0} on: `v` has the texts as they are in
# the line, `t` has them without escapes.
_SQL: Final[Mapping[str, str]] = {
    "STRING": "t[{0}]",
    **{type_: f"CAST(v[{{0}}] AS {type_})" for type_ in ("BIGINT", "BOOLEAN", "DOUBLE")},
    IDENTITY: "named_struct('broker_id', CAST(v[{0}] AS BIGINT), 'incarnation', t[{0} + 1], "
    "'sequence', CAST(v[{0} + 2] AS BIGINT))",
    ELEMENTS: "transform(from_json(v[{0}], 'ARRAY<ARRAY<STRING>>'), "
    "e -> named_struct('element', e[0], 'error', CAST(e[1] AS BIGINT)))",
    **{
        type_: f"from_json(v[{{0}}], '{type_}')"
        for type_ in ("ARRAY<STRING>", "MAP<STRING, DOUBLE>")
    },
}
_SQL_OR_NULL: Final[Mapping[str, str]] = {
    "STRING": "CASE WHEN v[{0}] <> 'null' THEN substring(t[{0}], 2, length(t[{0}]) - 2) END",
    "BIGINT": "CAST(nullif(v[{0}], 'null') AS BIGINT)",
}


def split_columns(kind: str) -> list[str]:
    """Return SQL for a kind's own columns from `v` and `t`, the texts of their values."""
    columns, at = [], 0
    for name, column in fields_of(kind).items():
        sql = (_SQL_OR_NULL if column.nullable else _SQL)[column.type]
        columns.append(f"{sql.format(at)} AS `{name}`")
        at += _width(column)
    return columns


# The types that Spark's schema_of_variant may report.
_ALLOWED: Final[Mapping[str, str]] = {
    **{type_: type_ for type_ in ("STRING", "BIGINT", "BOOLEAN")},
    "DOUBLE": r"BIGINT|DOUBLE|DECIMAL\(\d+,\d+\)",
    IDENTITY: "ARRAY<VARIANT>",
    ELEMENTS: r"ARRAY<(?:ARRAY<VARIANT>|VOID)>",
    "ARRAY<STRING>": "ARRAY<(?:STRING|VOID)>",
    "MAP<STRING, DOUBLE>": r"OBJECT<(?s:.*)>",  # A key may contain a newline.
    **{column.type: "ARRAY<.*>" for column in COMMIT.values() if column.type.startswith("ARRAY")},
}


def allowed_types() -> dict[str, str]:
    """Return, by "kind.field", a pattern for the types that the field's value may have."""
    return {
        f"{kind}.{name}": f"^(?:{_ALLOWED[type_]}{'|VOID' if nullable else ''})$"
        for kind, columns in {**KINDS, **OTHERS}.items()
        for name, (type_, nullable) in columns.items()
    }


def required_fields() -> dict[str, list[str]]:
    """Return, by kind, the fields that a line must have. The kind "" has those of every event.

    The value of a required field may be null. Fields with a default are not required, because
    earlier versions did not write them.
    """
    added_later = {
        kind: {field.name for field in fields(event) if field.default is not MISSING}
        for kind, event in EVENT_KINDS.items()
    }
    return {
        kind: [name for name in columns if name not in added_later.get(kind, ())]
        for kind, columns in {"": COMMON, **KINDS, **OTHERS}.items()
    }
