"""Every operation of the control API, and the check of a request's fields. No I/O.

The path of an operation has the words of the `bridgehead` command that does the same: the command
`bridgehead controller kill` is `POST /controller/kill`. To add an operation, add it to OPERATIONS
and its function to `bridgehead.cluster.control_commands.COMMANDS`, then run `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bridgehead.fault_rules import RULE_FIELDS

Kind = Literal["integer", "number", "string", "object"]
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "object": (dict,),
}
TOKEN_CHARACTERS_MIN: Final = 16
WAIT_S_MAX: Final = 600
LINES_MAX: Final = 10_000


class FieldError(ValueError):
    """A field of a request is unknown, missing or invalid. The text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a request: a member of the JSON body, or of a GET's query."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. `returns` has the JSON type and the meaning of each member of the response."""

    words: tuple[str, ...]
    method: Literal["GET", "POST"]
    does: str
    fields: tuple[Field, ...] = ()
    returns: Mapping[str, tuple[str, str]]
    is_public: bool = False
    """Whether it needs no token."""
    takes_more_fields: bool = False
    """Whether the command checks the fields itself: fault rules have a parser of their own."""
    is_file: bool = False
    """Whether the response is a file instead of a JSON object."""

    @property
    def path(self) -> str:
        """The path of the URL."""
        return "/" + "/".join(self.words)

    @property
    def command(self) -> str:
        """The name in `control_commands.COMMANDS`."""
        return "_".join(self.words)


_BROKER: Final = Field(name="id", kind="integer", meaning="The broker's id.", required=True, low=1)
_TIMEOUT: Final = Field(
    name="timeout_s",
    kind="number",
    meaning="How long to wait, in seconds.",
    default=30.0,
    low=0,
    high=WAIT_S_MAX,
)
_KILLED: Final = {
    "id": ("integer", "the broker's id"),
    "pid": ("integer", "the pid of its process"),
}
_RULE: Final = (
    *(
        Field(
            name=field.name,
            kind=field.kind,
            meaning=field.meaning,
            default=field.default,
            low=field.low,
            high=field.high,
            choices=field.choices,
            required=field.name == "action",
        )
        for field in RULE_FIELDS
    ),
    Field(name="broker", kind="integer", meaning="Only requests at this broker.", low=1),
)

OPERATIONS: Final = (
    Operation(
        words=("health",),
        method="GET",
        does="Return status 200 if the cluster is ready: each broker that was started answers, "
        "knows all brokers, and names the same active controller. Otherwise return status 503.",
        returns={"ready": ("boolean", "true"), "controller_id": ("integer", "the controller")},
        is_public=True,
    ),
    Operation(
        words=("openapi",),
        method="GET",
        does="Return this document.",
        returns={"openapi": ("string", "the version of the OpenAPI Specification")},
        is_public=True,
    ),
    Operation(
        words=("status",),
        method="GET",
        does="Return brokers, controller and ZooKeeper, like `bridgehead status --json`.",
        returns={
            "phase": ("string", "starting, waiting, ready, degraded, sealed or stopping"),
            "controller_id": ("integer", "the active controller; null if there is none"),
            "controller_epoch": ("integer", "its epoch; null if there is none"),
            "brokers": ("array", "the condition, the addresses and the state of each broker"),
        },
    ),
    Operation(
        words=("client",),
        method="GET",
        does="Return what a Kafka client needs to connect. The client must bring its own user name "
        "and password.",
        returns={
            "bootstrap_servers": ("string", "`host:port,...`, the first listener of each broker"),
            "security_protocol": ("string", "the protocol of this listener"),
            "sasl_mechanisms": ("array", "the enabled SASL mechanisms; empty without SASL"),
            "certificate_authority": ("string", "the authority in PEM; null without TLS"),
        },
    ),
    Operation(
        words=("advertise",),
        method="POST",
        does="Tell a cluster that waits for them the addresses that its brokers advertise. The "
        "brokers start, and the response is sent when the cluster is ready.",
        fields=(
            Field(
                name="addresses",
                kind="object",
                meaning="`host:port` of each broker's first listener, by the broker's id.",
                required=True,
            ),
        ),
        returns={"bootstrap_servers": ("string", "`host:port,...` of all brokers")},
    ),
    Operation(
        words=("controller", "show"),
        method="GET",
        does="Return the active controller and its epoch; null if there is none.",
        returns={
            "controller_id": ("integer", "the active controller; null if there is none"),
            "controller_epoch": ("integer", "its epoch; null if there is none"),
        },
    ),
    Operation(
        words=("controller", "wait"),
        method="POST",
        does="Wait until a controller is active and every broker that answers names it.",
        fields=(
            Field(
                name="other_than",
                kind="integer",
                meaning="A broker that does not count, such as the one that was killed.",
                low=1,
            ),
            _TIMEOUT,
        ),
        returns={"controller_id": ("integer", "the active controller")},
    ),
    Operation(
        words=("controller", "move"),
        method="POST",
        does="Make a broker the controller; return when every broker knows it.",
        fields=(_BROKER,),
        returns={
            "id": ("integer", "the controller"),
            "from": ("integer", "the controller before"),
            "moved": ("boolean", "false if the broker was the controller already"),
        },
    ),
    Operation(
        words=("controller", "kill"),
        method="POST",
        does="Kill the controller's process (SIGKILL).",
        returns=_KILLED,
    ),
    Operation(
        words=("controller", "freeze"),
        method="POST",
        does="Freeze the controller's process (SIGSTOP) for a while; return immediately.",
        fields=(
            Field(
                name="seconds",
                kind="number",
                meaning="How long.",
                default=5.0,
                low=0,
                high=WAIT_S_MAX,
            ),
        ),
        returns={**_KILLED, "seconds": ("number", "how long it stays frozen")},
    ),
    Operation(
        words=("controller", "expire"),
        method="POST",
        does="Expire the controller's ZooKeeper session.",
        returns=_KILLED,
    ),
    Operation(
        words=("node", "start"),
        method="POST",
        does="Start a stopped broker; return when it serves.",
        fields=(_BROKER,),
        returns={**_KILLED, "listeners": ("object", "the address of each listener")},
    ),
    Operation(
        words=("node", "stop"),
        method="POST",
        does="Stop a broker (SIGTERM); return when its process has ended.",
        fields=(_BROKER,),
        returns=_KILLED,
    ),
    Operation(
        words=("node", "kill"),
        method="POST",
        does="Kill a broker (SIGKILL).",
        fields=(_BROKER,),
        returns=_KILLED,
    ),
    Operation(
        words=("zookeeper", "start"),
        method="POST",
        does="Start the embedded ZooKeeper again; return when it serves.",
        returns={
            "connect": ("string", "`host:port,...` of ZooKeeper"),
            "pids": ("array", "the pids of the servers that were started"),
        },
    ),
    Operation(
        words=("heal",),
        method="POST",
        does="Undo faults: resume and start processes, and remove fault rules. Return when every "
        "broker serves and knows all others.",
        returns={"started": ("array", "the brokers that were started")},
    ),
    Operation(
        words=("reset",),
        method="POST",
        does="Make the cluster like new: undo faults like `/heal`, and remove what clients have "
        "written: topics, configs, quotas, users, ACLs.",
        returns={"started": ("array", "the brokers that were started")},
    ),
    Operation(
        words=("upgrade",),
        method="POST",
        does="Restart the next broker of an upgrade to forwarding; return when all brokers know "
        "each other. Repeat the request while `remaining` is not 0; `bridgehead upgrade` does "
        "this, too.",
        returns={
            "id": ("integer", "the broker that was restarted; null if every broker forwards"),
            "bounce": ("integer", "which of the two rolling restarts this belongs to"),
            "purpose": ("string", "what the broker has after this restart"),
            "seconds": ("number", "how long the restart took"),
            "pid": ("integer", "the pid of the new process"),
            "controller_id": ("integer", "the controller after the restart"),
            "remaining": ("integer", "how many restarts are left"),
        },
    ),
    Operation(
        words=("faults", "add"),
        method="POST",
        does="Add a fault rule to one broker or to all running brokers. They need "
        "bridgehead.faults.allow=true.",
        fields=_RULE,
        returns={
            "name": ("string", "the rule's name"),
            "brokers": ("array", "the brokers that have the rule"),
        },
        takes_more_fields=True,
    ),
    Operation(
        words=("faults", "list"),
        method="GET",
        does="List the fault rules, and how often each has acted.",
        returns={"rules": ("array", "each rule of each broker, with `matches` and `hits`")},
    ),
    Operation(
        words=("faults", "remove"),
        method="POST",
        does="Remove one fault rule, or all rules, from all brokers.",
        fields=(
            Field(name="name", kind="string", meaning="The rule's name; without it: all rules."),
        ),
        returns={"removed": ("integer", "how many rules were removed, summed over the brokers")},
    ),
    Operation(
        words=("logs",),
        method="GET",
        does="Return the last lines of the brokers' logs.",
        fields=(
            Field(name="broker", kind="integer", meaning="Only this broker's log.", low=1),
            Field(
                name="lines",
                kind="integer",
                meaning="How many lines of each log.",
                default=20,
                low=0,
                high=LINES_MAX,
            ),
        ),
        returns={"logs": ("object", "the lines, by the broker's id")},
    ),
    Operation(
        words=("evidence", "seal"),
        method="POST",
        does="Stop the brokers and ZooKeeper, and seal the evidence of the run. After this, only "
        "`judge`, `evidence`, `logs`, `status` and `down` are possible.",
        returns={"folder": ("string", "the folder of the evidence")},
    ),
    Operation(
        words=("judge",),
        method="POST",
        does="Judge the sealed run; return the document of `bridgehead judge --json`.",
        returns={
            "verdict": ("string", "PASS, FAIL, or another word if the run is undecided"),
            "properties": ("array", "the verdict of each property, with violations"),
        },
    ),
    Operation(
        words=("evidence",),
        method="GET",
        does="Return the sealed evidence as an archive (tar, gzip).",
        returns={},
        is_file=True,
    ),
    Operation(
        words=("down",),
        method="POST",
        does="Stop everything; the evidence is sealed. The API then ends.",
        returns={"stopping": ("boolean", "true")},
    ),
)
BY_PATH: Final[Mapping[str, Operation]] = {operation.path: operation for operation in OPERATIONS}


def to_message(operation: Operation, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that executes an operation, with defaults for missing fields.

    Raises:
        FieldError: a field is unknown, missing, or has a wrong type or value.
    """
    fields = {field.name: field for field in operation.fields}
    for name in document:
        if name not in fields and not operation.takes_more_fields:
            names = ", ".join(fields) or "none"
            raise FieldError(f"{operation.path} has no field {name!r}; its fields: {names}.")
    values = {}
    for name, field in fields.items():
        value = document.get(name)
        if value is None and field.required:
            raise FieldError(f"{operation.path} needs the field `{name}`: {field.meaning}")
        if value is not None:
            _check(field, value)
            values[name] = value
        elif field.default is not None and not operation.takes_more_fields:
            values[name] = field.default
    if operation.takes_more_fields:
        broker = values.pop("broker", None)
        rule = {name: value for name, value in document.items() if name != "broker"}
        return {"command": operation.command, "rule": rule, "broker": broker}
    return {"command": operation.command, **values}


def from_query(operation: Operation, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a GET's query, with numbers as numbers.

    Raises:
        FieldError: a number is expected.
    """
    integers = {field.name for field in operation.fields if field.kind == "integer"}
    result: dict[str, Any] = dict(query)
    for name in integers & query.keys():
        text = query[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise FieldError(f"`{name}` is a number, not {text[:20]!r}.")
        result[name] = int(text)
    return result


def _check(field: Field, value: object) -> None:
    types = _PYTHON_TYPES[field.kind]
    if not isinstance(value, types) or isinstance(value, bool):
        raise FieldError(f"`{field.name}` is of type {field.kind}, not {value!r:.60}.")
    if field.choices and value not in field.choices:
        raise FieldError(f"`{field.name}` is one of {', '.join(field.choices)}.")
    if isinstance(value, int | float):
        low = -float("inf") if field.low is None else field.low
        high = float("inf") if field.high is None else field.high
        if not low <= value <= high:
            limits = f"at least {low:g}" if field.high is None else f"from {low:g} to {high:g}"
            raise FieldError(f"`{field.name}` is {limits}, not {value}.")
