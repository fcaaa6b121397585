"""The conditions that a valid line meets, as rows of a table.

All conditions are evaluated in one projection. A line violates a condition that is false or null
for it. Then the condition's `action` is taken: `quarantine` moves the line to silver/set_aside
with the names of the violated conditions (event_log.evidence.QUARANTINE_REASONS), `fail` rejects
the run, `count` keeps the line and counts it.

A condition may use these columns:

    line                   the text
    p                      the line as a struct, with the fields of all events or of its shape
    v                      the line as a variant; null if it is not JSON or has a duplicate key
    m                      the top-level values of the line by name
    is_json_with_any_keys  whether the line is JSON, duplicate keys allowed
    too_large              whether an integer is beyond 64 bits
    parts_are_right        whether identity, elements and counters are complete; events only
    kind, run              the kind of an event; the run of the file
    shape                  the expected form of a line that is not an event
    required, allowed      the maps of required_fields and allowed_types in pipeline.schemas
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from event_log.events import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class RowExpectation:
    """One row. `condition` must be true for every line for which `applies_to` is true."""

    name: str
    applies_to: str
    action: str
    condition: str


_IS_OBJECT: Final = "m IS NOT NULL"
# A line of a newer version is not compared with this version's kinds.
_IS_OURS: Final = (
    f"{_IS_OBJECT} AND NOT coalesce(try_variant_get(m['schema_version'], '$', 'bigint') > "
    f"{SCHEMA_VERSION} AND schema_of_variant(m['schema_version']) = 'BIGINT', false)"
)
_KIND_IS_TEXT: Final = "coalesce(schema_of_variant(m['kind']) = 'STRING', false)"
_KIND_IS_KNOWN: Final = (
    # The names of shapes that are not events begin with a slash.
    f"{_KIND_IS_TEXT} AND kind RLIKE '^[a-z]' AND map_contains_key(required, kind)"
)
# A line of unknown kind must have the common fields.
_SHAPE: Final = f"CASE WHEN {_KIND_IS_KNOWN} THEN kind ELSE '' END"

_IS_TEXT: Final = (
    RowExpectation("utf8", "true", "quarantine", "is_valid_utf8(line)"),
    RowExpectation(
        "not_json", "is_valid_utf8(line)", "quarantine", "v IS NOT NULL OR is_json_with_any_keys"
    ),
    RowExpectation("duplicate_key", "is_json_with_any_keys", "quarantine", "v IS NOT NULL"),
    RowExpectation("overflow", "v IS NOT NULL", "quarantine", "NOT too_large"),
    RowExpectation("not_an_object", "v IS NOT NULL AND NOT too_large", "quarantine", _IS_OBJECT),
)


def _has_all(shape: str) -> str:
    return f"forall(required[{shape}], f -> map_contains_key(m, f))"


def _has_types(of: str, shape: str) -> str:
    """Return SQL that tests the types of all values of the map `of`; null has the type VOID."""
    return (
        f"forall(map_entries({of}), e -> coalesce(coalesce(schema_of_variant(e.value), 'VOID') "
        f"RLIKE try_element_at(allowed, concat({shape}, '.', e.key)), true))"
    )


def _list_is_right(name: str, shape: str) -> str:
    """Return SQL that tests whether all objects of a list have their fields and types."""
    return (
        f"coalesce(forall(try_variant_get(m['{name}'], '$', 'array<map<string,variant>>'), x -> "
        f"x IS NOT NULL AND forall(required['{shape}'], f -> map_contains_key(x, f)) AND "
        f"{_has_types('x', repr(shape))}), NOT map_contains_key(m, '{name}'))"
    )


EVENT_EXPECTATIONS: Final[tuple[RowExpectation, ...]] = (
    *_IS_TEXT,
    RowExpectation(
        "wrong_run",
        f"{_IS_OBJECT} AND schema_of_variant(m['run_id']) = 'STRING'",
        "fail",
        "try_variant_get(m['run_id'], '$', 'string') = run",
    ),
    RowExpectation("schema_newer", _IS_OBJECT, "quarantine", _IS_OURS),
    RowExpectation("unknown_kind", f"{_IS_OURS} AND {_KIND_IS_TEXT}", "quarantine", _KIND_IS_KNOWN),
    RowExpectation("missing_field", _IS_OURS, "quarantine", _has_all(_SHAPE)),
    RowExpectation(
        "wrong_type", _IS_OURS, "quarantine", f"{_has_types('m', _SHAPE)} AND parts_are_right"
    ),
    RowExpectation(
        "unknown_field",
        _IS_OURS,
        "count",
        "forall(map_keys(m), k -> map_contains_key(allowed, concat(kind, '.', k)))",
    ),
)
COMMIT_EXPECTATIONS: Final[tuple[RowExpectation, ...]] = (
    *_IS_TEXT,
    RowExpectation("missing_field", _IS_OBJECT, "quarantine", _has_all("shape")),
    RowExpectation(
        "wrong_type",
        _IS_OBJECT,
        "quarantine",
        f"{_has_types('m', 'shape')} AND (shape <> '/commit' OR "
        f"({_list_is_right('operations', '/operation')} AND "
        f"{_list_is_right('outcomes', '/outcome')}))",
    ),
)
COUNTED: Final = ("unknown_field",)
REJECTING: Final = ("wrong_run",)
