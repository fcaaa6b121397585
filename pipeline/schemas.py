"""One schema for each kind of event, as DDL; and the union that a line is read with.

The dataclasses of event_log know nothing of Spark; a test holds them equal to these strings.
How a JSON value becomes a column: `identity` [1, "abc", 7] and `elements` [["topic", 0], …] are
arrays in a line and structs in a table. `client_invoked` has its elements without codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from event_log.events import SCHEMA_VERSION

_IDENTITY: Final = "STRUCT<broker_id: BIGINT, incarnation: STRING, sequence: BIGINT>"
_ELEMENTS: Final = "ARRAY<STRUCT<element: STRING, error: BIGINT>>"
_CLIENT: Final = (
    "principal STRING NOT NULL, token_authenticated BOOLEAN NOT NULL, "
    "client_host STRING NOT NULL, listener STRING NOT NULL, security_protocol STRING NOT NULL"
)

# What the writer adds to every event, in its order.
COMMON: Final = (
    "kind STRING NOT NULL, seq BIGINT NOT NULL, mono_ns BIGINT NOT NULL, wall_ms BIGINT NOT NULL, "
    "run_id STRING NOT NULL, node STRING NOT NULL, boot STRING NOT NULL, "
    "host_boot_id STRING NOT NULL, schema_version BIGINT NOT NULL"
)
KINDS: Final[Mapping[str, str]] = {
    "started": "incarnation STRING NOT NULL, version STRING NOT NULL, pid BIGINT NOT NULL",
    "protocol_level": "level STRING NOT NULL, envelope_supported BOOLEAN NOT NULL",
    "stopped": "reason STRING NOT NULL",
    "connected": "connection STRING NOT NULL, listener STRING NOT NULL, "
    "security_protocol STRING NOT NULL, client_host STRING NOT NULL, principal STRING NOT NULL",
    "disconnected": "connection STRING NOT NULL",
    "authenticated": "connection STRING NOT NULL, mechanism STRING NOT NULL, "
    "principal STRING NOT NULL, token_authenticated BOOLEAN NOT NULL, renewed BOOLEAN NOT NULL",
    "authentication_failed": "connection STRING NOT NULL, listener STRING NOT NULL, "
    "client_host STRING NOT NULL, mechanism STRING, reason STRING NOT NULL, "
    "renewed BOOLEAN NOT NULL",
    "channel_refused": "broker_id BIGINT NOT NULL, principal STRING, reason STRING NOT NULL",
    "session_expired": "connection STRING NOT NULL",
    "topics_auto_created": "request_id STRING NOT NULL, cause STRING NOT NULL, "
    "principal STRING NOT NULL, topics ARRAY<STRING> NOT NULL",
    "request_received": "request_id STRING NOT NULL, connection STRING NOT NULL, "
    "api_key BIGINT NOT NULL, api_version BIGINT NOT NULL, correlation_id BIGINT NOT NULL, "
    f"client_id STRING, {_CLIENT}, dialect STRING NOT NULL, route STRING NOT NULL, "
    "body_sha256 STRING, client_software_name STRING NOT NULL, "
    "client_software_version STRING NOT NULL",
    "forward_sent": f"request_id STRING NOT NULL, identity {_IDENTITY} NOT NULL, "
    "attempt BIGINT NOT NULL, controller_id BIGINT NOT NULL, local BOOLEAN NOT NULL",
    "forward_answered": "request_id STRING NOT NULL, attempt BIGINT NOT NULL, error BIGINT, "
    "zxid BIGINT NOT NULL, answer_sha256 STRING",
    "envelope_received": f"request_id STRING NOT NULL, identity {_IDENTITY} NOT NULL, "
    "attempt BIGINT NOT NULL, sender STRING NOT NULL",
    "envelope_refused": f"request_id STRING NOT NULL, identity {_IDENTITY} NOT NULL, "
    "error BIGINT NOT NULL, reason STRING NOT NULL",
    "execution_started": f"request_id STRING NOT NULL, identity {_IDENTITY} NOT NULL, "
    "epoch BIGINT NOT NULL, image_zxid BIGINT NOT NULL, api_key BIGINT NOT NULL, "
    f"api_version BIGINT NOT NULL, client_id STRING, {_CLIENT}, body_sha256 STRING",
    "request_decided": f"request_id STRING NOT NULL, identity {_IDENTITY} NOT NULL, "
    "api_key BIGINT NOT NULL, principal STRING NOT NULL, epoch BIGINT NOT NULL, "
    f"image_zxid BIGINT NOT NULL, zxid BIGINT NOT NULL, elements {_ELEMENTS} NOT NULL, "
    "unchanged ARRAY<STRING> NOT NULL, error BIGINT NOT NULL, validate_only BOOLEAN NOT NULL, "
    "answer_sha256 STRING",
    "commit_sent": "number BIGINT NOT NULL, epoch BIGINT NOT NULL, operations BIGINT NOT NULL, "
    "bytes BIGINT NOT NULL",
    "commit_answered": "number BIGINT NOT NULL, zxid BIGINT NOT NULL, session STRING NOT NULL",
    "commit_unknown": "number BIGINT NOT NULL, epoch BIGINT NOT NULL",
    "answered": "request_id STRING NOT NULL, api_key BIGINT NOT NULL, "
    "api_version BIGINT NOT NULL, route STRING NOT NULL, error BIGINT, closed BOOLEAN NOT NULL, "
    "zxid BIGINT NOT NULL",
    "image_advanced": "zxid BIGINT NOT NULL, side STRING NOT NULL, epoch BIGINT NOT NULL",
    "session_opened": "role STRING NOT NULL, session STRING NOT NULL",
    "session_lost": "role STRING NOT NULL, session STRING NOT NULL",
    "claim_sent": "epoch BIGINT NOT NULL",
    "became_active": "epoch BIGINT NOT NULL, epoch_zk_version BIGINT NOT NULL, "
    "zxid BIGINT NOT NULL, elected_ms DOUBLE NOT NULL, loaded_ms DOUBLE NOT NULL",
    "resigned": "epoch BIGINT NOT NULL, reason STRING NOT NULL",
    "broker_registered": "broker_epoch BIGINT NOT NULL, incarnation STRING NOT NULL, "
    "session STRING NOT NULL",
    "metrics_snapshot": "values MAP<STRING, DOUBLE> NOT NULL",
    "fault_injected": "action STRING NOT NULL, target STRING NOT NULL",
    "node_ended": "ended_node STRING NOT NULL, ended_boot STRING NOT NULL, status BIGINT NOT NULL",
    "fault_healed": "action STRING NOT NULL, target STRING NOT NULL",
    "client_invoked": "op_id STRING NOT NULL, api_key BIGINT NOT NULL, "
    "elements ARRAY<STRING> NOT NULL",
    "client_completed": "op_id STRING NOT NULL, outcome STRING NOT NULL, "
    f"elements {_ELEMENTS} NOT NULL",
}

# event_log.commits: a transaction's line, and a znode's in a dump.
OPERATION: Final = (
    "kind STRING NOT NULL, path STRING NOT NULL, role STRING NOT NULL, version BIGINT NOT NULL, "
    "ephemeral BOOLEAN NOT NULL, error BIGINT NOT NULL, data STRING, digest STRING"
)
OUTCOME: Final = (
    "broker_id BIGINT NOT NULL, incarnation STRING NOT NULL, sequence BIGINT NOT NULL, "
    "request_id STRING NOT NULL, element STRING NOT NULL, error BIGINT NOT NULL"
)
_OPERATIONS: Final = f"ARRAY<STRUCT<{OPERATION}>>".replace(" NOT NULL", "")
_OUTCOMES: Final = f"ARRAY<STRUCT<{OUTCOME}>>".replace(" NOT NULL", "")
COMMIT: Final = (
    "zxid BIGINT NOT NULL, session STRING NOT NULL, time_ms BIGINT NOT NULL, "
    "kind STRING NOT NULL, failed BOOLEAN NOT NULL, "
    f"operations {_OPERATIONS} NOT NULL, outcomes {_OUTCOMES} NOT NULL"
)
DUMP: Final = (
    "path STRING NOT NULL, czxid BIGINT NOT NULL, mzxid BIGINT NOT NULL, "
    "version BIGINT NOT NULL, ephemeral_owner STRING, digest STRING NOT NULL, data STRING"
)
# What is not an event; the first two are lines, the others stand in a line of `commit`.
OTHERS: Final = {
    "/commit": COMMIT,
    "/dump": DUMP,
    "/operation": OPERATION,
    "/outcome": OUTCOME,
}

# Where a column has another form in a line than in a table.
_IN_A_LINE: Final[Mapping[str, str]] = {
    _IDENTITY: "ARRAY<STRING>",
    _ELEMENTS: "ARRAY<STRING>",
    "MAP<STRING, DOUBLE>": "MAP<STRING, STRING>",
}
# The same value in all kinds that have it, but for one: its elements have no codes.
_WITHOUT_CODES: Final = ("client_invoked", "elements")


def columns(ddl: str) -> dict[str, tuple[str, bool]]:
    """Read a DDL string: each column's type, and whether it may be null."""
    found = {}
    for part in re.split(r",\s*(?![^<]*>)", ddl):
        name, _, rest = part.strip().partition(" ")
        found[name] = (rest.removesuffix(" NOT NULL"), not rest.endswith(" NOT NULL"))
    return found


def union() -> dict[str, str]:
    """Every column of a table of events with its type; none of two kinds may disagree."""
    found = {name: type_ for name, (type_, _) in columns(COMMON).items()}
    for kind, ddl in KINDS.items():
        for name, (type_, _) in columns(ddl).items():
            if (kind, name) != _WITHOUT_CODES and found.setdefault(name, type_) != type_:
                raise AssertionError(f"{kind}.{name} is {type_}, elsewhere it is {found[name]}")
    return found


def line_schema() -> str:
    """Return the schema that a line of JSON is read with."""
    return ", ".join(f"`{name}` {_IN_A_LINE.get(type_, type_)}" for name, type_ in union().items())


# From one column of a line (`p.`) to a column of the table.
_CONVERSIONS: Final[Mapping[str, str]] = {
    _IDENTITY: "CASE WHEN size(p.`{0}`) = 3 THEN named_struct("
    "'broker_id', try_cast(p.`{0}`[0] AS BIGINT), 'incarnation', p.`{0}`[1], "
    "'sequence', try_cast(p.`{0}`[2] AS BIGINT)) END",
    _ELEMENTS: "CASE WHEN p.kind = 'client_invoked' THEN transform(p.`{0}`, "
    "e -> named_struct('element', e, 'error', CAST(NULL AS BIGINT))) "
    "ELSE transform(transform(p.`{0}`, e -> from_json(e, 'ARRAY<STRING>')), e -> named_struct("
    "'element', try_element_at(e, 1), 'error', try_cast(try_element_at(e, 2) AS BIGINT))) END",
    "MAP<STRING, DOUBLE>": "transform_values(p.`{0}`, (k, v) -> try_cast(v AS DOUBLE))",
}


def table_columns() -> list[str]:
    """Return SQL that makes the columns of a table of events out of a line's struct `p`."""
    return [
        f"{_CONVERSIONS.get(type_, 'p.`{0}`').format(name)} AS `{name}`"
        for name, type_ in union().items()
    ]


def table_schema() -> str:
    """Return the schema of a table of events, without what says where a row came from."""
    return ", ".join(f"`{name}` {type_}" for name, type_ in union().items())


# An escape by number (\u0041) is left to the careful look.
_STRING: Final = r'"[^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+"'
_INTEGER: Final = r"-?(?:0|[1-9][0-9]{0,17})"
_NUMBER: Final = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?+(?:[eE][+-]?[0-9]{1,2})?+"
_ELEMENT: Final = rf"\[{_STRING},{_INTEGER}\]"
_PATTERNS: Final[Mapping[str, str]] = {
    "STRING": _STRING,
    "BIGINT": _INTEGER,
    "BOOLEAN": "(?:true|false)",
    "DOUBLE": _NUMBER,
    _IDENTITY: rf"\[{_INTEGER},{_STRING},{_INTEGER}\]",
    _ELEMENTS: rf"\[(?:{_ELEMENT}(?:,{_ELEMENT})*+)?+\]",
    "ARRAY<STRING>": rf"\[(?:{_STRING}(?:,{_STRING})*+)?+\]",
    "MAP<STRING, DOUBLE>": rf"\{{(?:{_STRING}:{_NUMBER}(?:,{_STRING}:{_NUMBER})*+)?+\}}",
}
KEY_OF_A_MAP: Final = _STRING + ":"


def maps(kind: str) -> list[str]:
    """Return the names of a kind's columns that are maps."""
    return [name for name, (type_, _) in columns(KINDS[kind]).items() if type_.startswith("MAP")]


def exact_pattern(kind: str) -> str:
    """Return what a line of this kind looks like when our writer wrote it.

    A line that matches needs no further look: every field is there, once, in its type and in
    range (but for the keys of a map). Others may be right too; they are examined field by field.
    """
    parts = []
    for name, (type_, nullable) in {**columns(COMMON), **columns(KINDS[kind])}.items():
        pattern = _PATTERNS[type_]
        if name == "kind":
            pattern = f'"{kind}"'
        elif name == "schema_version":
            pattern = str(SCHEMA_VERSION)
        parts.append(f'"{name}":' + (f"(?:{pattern}|null)" if nullable else pattern))
    return r"\A\{" + ",".join(parts) + r"\}\z"


_ALLOWED: Final[Mapping[str, str]] = {
    "STRING": "STRING",
    "BIGINT": "BIGINT",
    "BOOLEAN": "BOOLEAN",
    "DOUBLE": r"BIGINT|DOUBLE|DECIMAL\(\d+,\d+\)",
    _IDENTITY: "ARRAY<VARIANT>",
    _ELEMENTS: r"ARRAY<(?:ARRAY<VARIANT>|VOID)>",
    "ARRAY<STRING>": "ARRAY<(?:STRING|VOID)>",
    "MAP<STRING, DOUBLE>": r"OBJECT<.*>",
    _OPERATIONS: "ARRAY<.*>",
    _OUTCOMES: "ARRAY<.*>",
}


def allowed_types() -> dict[str, str]:
    """For "kind.field", a pattern of what Spark's schema_of_variant may say of its value."""
    found = {}
    for kind, ddl in KINDS.items():
        for name, (type_, nullable) in {**columns(COMMON), **columns(ddl)}.items():
            found[f"{kind}.{name}"] = f"^(?:{_ALLOWED[type_]}{'|VOID' if nullable else ''})$"
    for kind, ddl in OTHERS.items():
        for name, (type_, nullable) in columns(ddl).items():
            found[f"{kind}.{name}"] = f"^(?:{_ALLOWED[type_]}{'|VOID' if nullable else ''})$"
    return found


def required_fields() -> dict[str, list[str]]:
    """For each kind the fields that must be there, null or not; under "" what all have."""
    common = list(columns(COMMON))
    events = {kind: common + list(columns(ddl)) for kind, ddl in KINDS.items()}
    return {"": common, **events, **{kind: list(columns(ddl)) for kind, ddl in OTHERS.items()}}
