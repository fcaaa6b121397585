"""`bridgehead configs`: kafka-configs.sh."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    forbid,
    read_text,
    text,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import (
        AdminClient,
        ClientQuotaFilterComponent,
        ConfigEntry,
        ConfigResource,
        ConfigSource,
        ScramDeletion,
        ScramUpsertion,
    )

_TYPES: Final = ("topics", "clients", "users", "brokers", "ips", "broker-loggers")
# Options that give the type and the name of an entity.
_NAMED: Final = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
}
_DEFAULTS: Final = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
_QUOTA_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_QUOTA_WORDS: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS: Final = {
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
    "controller_mutation_rate",
}
_IP_QUOTAS: Final = {"connection_creation_rate"}
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS = 4096  # the default, and the least that Kafka accepts
_OUTSIDE_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?\d*),)?password=(.*)")


def entity_types(options: Options) -> list[str]:
    """Return the types of the entities, in Kafka's order."""
    named = {**_NAMED, **_DEFAULTS}
    return [*options.texts("entity-type"), *(named[option] for option in options.used(named))]


def entity_names(options: Options) -> list[str]:
    """Return the names of the entities; "" is the default entity of its type."""
    names = iter(options.texts("entity-name"))
    ordered = []
    for word in options.arguments:
        if word == "--entity-default":
            ordered.append("")
        elif word.partition("=")[0] == "--entity-name":
            ordered.extend([next(names)])
    named = [options.needed(option) for option in options.used(_NAMED)]
    return [*ordered, *named, *("" for _ in options.used(_DEFAULTS))]


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's ConfigCommandOptions."""
    if len(options.used(("describe", "alter"))) != 1:
        raise UsageFault("Command must include exactly one action: --describe, --alter")
    forbid(options, "describe", "add-config", "delete-config")
    types, names = entity_types(options), entity_names(options)
    _check_types(options, types)
    for broker in names if types[0] in ("brokers", "broker-loggers") else ():
        if broker and not broker.isdigit():
            raise UsageFault(
                f"The entity name for {types[0]} must be a valid integer broker id, but it is: "
                f"{broker}"
            )
    if options.has("describe"):
        _check_describe(options, types, names)
    else:
        _check_alter(options, types, names)


def _check_types(options: Options, types: list[str]) -> None:
    if len(set(types)) != len(types):
        twice = sorted({kind for kind in types if types.count(kind) > 1})
        raise UsageFault(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in _TYPES:
            raise UsageFault(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)}"
            )
    if not types:
        raise UsageFault("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise UsageFault("Only 'users' and 'clients' entity types may be specified together")
    if options.used(("entity-type", "entity-name", "entity-default")) and options.used(
        (*_NAMED, *_DEFAULTS)
    ):
        raise UsageFault(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )


def _check_describe(options: Options, types: list[str], names: list[str]) -> None:
    if options.has("entity-default") and not {"users", "clients", "brokers", "ips"} & set(types):
        raise UsageFault(
            f"--entity-default must not be specified with --describe of {','.join(types)}"
        )
    if "broker-loggers" in types and not any(names):
        raise UsageFault(f"an entity name must be specified with --describe of {','.join(types)}")


def _check_alter(options: Options, types: list[str], names: list[str]) -> None:
    if {"users", "clients", "brokers", "ips"} & set(types):
        if not names:
            raise UsageFault(
                "an entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
    elif not any(names):
        raise UsageFault(f"an entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise UsageFault("Only one of --add-config or --add-config-file must be specified")
    if not options.used(("add-config", "add-config-file", "delete-config")):
        raise UsageFault(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )
    if len(types) != len(names):
        raise UsageFault("An entity name must be specified for every entity type")


def parse_added(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v2,v3]` of --add-config.

    Raises:
        ToolError: a part is not key=value, or a key has an invalid character.
    """
    parts = re.split("," + _OUTSIDE_BRACKETS, text)
    while len(parts) > 1 and not parts[-1]:  # Java's `split` drops empty parts at the end
        parts.pop()
    added = {}
    for part in parts:
        pair = re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, part)
        if len(pair) != 2:
            raise ToolError(
                "requirement failed: Invalid entity config: all configs to be added must be in the "
                'format "key=val".',
                terse=True,
            )
        added[pair[0].strip()] = re.sub(r"[\[\]]", "", pair[1]).strip()
    for key in added:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", key):
            raise ToolError(f"Invalid character found for config key: {key}", terse=True)
    return added


def _added(options: Options) -> dict[str, str]:
    from bridgehead.cluster.properties import parse_properties

    if options.has("add-config-file"):
        file = options.needed("add-config-file")
        try:
            return parse_properties(read_text(file))
        except ValueError as error:
            raise ToolError(f"{file} cannot be read: {error}", terse=True) from None
    return parse_added(options.needed("add-config")) if options.has("add-config") else {}


def _deleted(options: Options) -> list[str]:
    return [
        key.strip() for text in options.texts("delete-config") for key in text.split(",") if key
    ]


def java_double(value: float) -> str:
    """Return a number as Java prints a double.

    >>> java_double(1e8), java_double(2048.5), java_double(10.0), java_double(0.0001)
    ('1.0E8', '2048.5', '10.0', '1.0E-4')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{len(digits) - 1 + int(exponent)}"


def config_line(entry: ConfigEntry) -> str:
    """Return the line of one config."""
    synonyms = ", ".join(
        f"{_source(synonym.source)}:{synonym.name}={_null(synonym.value)}"
        for synonym in entry.synonyms
    )
    sensitive = str(entry.sensitive).lower()
    value = _null(entry.value)
    return f"  {entry.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _null(value: str | None) -> str:
    return "null" if value is None else value


def _source(source: ConfigSource) -> str:
    return "DYNAMIC_TOPIC_CONFIG" if source.name == "TOPIC_CONFIG" else source.name


def quota_line(entity: Iterable[tuple[str, str | None]], quotas: Mapping[str, float]) -> str:
    """Return the line of one entity's quotas."""
    names = dict(entity)
    words = []
    for kind, word in _QUOTA_WORDS.items():
        if kind in names:
            words.append(
                f"the default {word}" if names[kind] is None else f"{word} '{names[kind]}'"
            )
    values = ", ".join(f"{key}={java_double(value)}" for key, value in quotas.items())
    return f"Quota configs for {', '.join(words)} are {values}"


def updated_line(entity_type: str, name: str) -> str:
    """Return the line that is printed after a change."""
    if name:
        return f"Completed updating config for {entity_type[:-1]} {name}."
    return f"Completed updating default config for {entity_type} in the cluster."


def parse_credential(user: str, mechanism: str, text: str) -> ScramUpsertion:
    """Parse `iterations=8192,password=…`. Raises ToolError, whose text omits the password."""
    from bridgehead.admin import ScramMechanism, ScramUpsertion

    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise ToolError(
            f"Invalid credential property {mechanism}: write [iterations=N,password=PASSWORD].",
            terse=True,
        )
    iterations = int(match[1]) if match[1] not in (None, "", "-1") else _ITERATIONS
    if iterations < _ITERATIONS:
        raise ToolError(
            f"Iterations {iterations} is less than the minimum {_ITERATIONS} required for "
            f"{mechanism}",
            terse=True,
        )
    code = ScramMechanism[mechanism.replace("-", "_")]
    return ScramUpsertion(user, code, match[2], iterations)


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    action = _alter if options.has("alter") else _describe
    action(admin, options, out)


def _resource(entity_type: str, name: str) -> ConfigResource:
    from bridgehead.admin import ConfigResource, ConfigResourceType

    types = {
        "topics": ConfigResourceType.TOPIC,
        "brokers": ConfigResourceType.BROKER,
        "broker-loggers": ConfigResourceType.BROKER_LOGGER,
    }
    return ConfigResource(types[entity_type], name)


def _configs(
    admin: AdminClient, entity_type: str, name: str, *, every: bool, synonyms: bool
) -> list[ConfigEntry]:
    """Return the configs that are set on the entity itself; with `every`, return all.

    For a broker's loggers, always return all levels.
    """
    from bridgehead.admin import ConfigSource

    resource = _resource(entity_type, name)
    entries = admin.describe_configs([resource], include_synonyms=synonyms)[resource].get()
    wanted_source = {
        "topics": ConfigSource.TOPIC_CONFIG,
        "brokers": (
            ConfigSource.DYNAMIC_BROKER_CONFIG
            if name
            else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        ),
    }.get(entity_type)
    ordered = sorted(entries.values(), key=lambda entry: entry.name)
    return [
        entry
        for entry in ordered
        if every or wanted_source is None or entry.source == wanted_source
    ]


def _describe(admin: AdminClient, options: Options, out: Output) -> None:
    types, names = entity_types(options), entity_names(options)
    if types[0] in _QUOTA_TYPES:
        _describe_quotas(admin, types, names, out)
        if types == ["users"] and "" not in names:
            _describe_credentials(admin, names, out)
        return
    every = options.has("all")
    out.result(entities=[])
    for name in names or _all_names(admin, types[0]):
        scope = "All" if every else "Dynamic"
        out.line(
            f"{scope} configs for {types[0][:-1]} {name} are:"
            if name
            else f"Default configs for {types[0]} in the cluster are:"
        )
        entries = _configs(admin, types[0], name, every=every, synonyms=True)
        for entry in entries:
            out.line(config_line(entry))
        out.document["entities"].append(
            {"type": types[0], "name": name, "configs": [_as_json(item) for item in entries]}
        )


def _as_json(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry.source),
        "sensitive": entry.sensitive,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": _source(synonym.source)}
            for synonym in entry.synonyms
        ],
    }


def _all_names(admin: AdminClient, entity_type: str) -> list[str]:
    from bridgehead.admin import ListTopicsFlags

    if entity_type == "topics":
        every = ListTopicsFlags.INCLUDE_INTERNAL | ListTopicsFlags.INCLUDE_EXTERNAL
        return sorted(admin.list_topics(every))
    return [*(str(node.id) for node in admin.describe_cluster().nodes), ""]


def quota_filter(types: Sequence[str], names: Sequence[str]) -> list[ClientQuotaFilterComponent]:
    """Return a component per type. A type without a name matches every name. Raises ToolError."""
    from bridgehead.admin import ClientQuotaFilterComponent, QuotaMatch

    if len(names) > len(types):
        raise ToolError("More entity names specified than entity types", terse=True)
    components = []
    for index, kind in enumerate(types):
        name = names[index] if index < len(names) else None
        match = QuotaMatch.ANY if name is None else QuotaMatch.EXACT if name else QuotaMatch.DEFAULT
        components.append(ClientQuotaFilterComponent(_QUOTA_TYPES[kind], match, name or None))
    return components


def _describe_quotas(admin: AdminClient, types: list[str], names: list[str], out: Output) -> None:
    described = admin.describe_client_quotas(quota_filter(types, names), strict=True)
    out.result(quotas=[])
    for entity, quotas in described.items():
        out.line(quota_line(entity, quotas))
        out.document["quotas"].append({"entity": dict(entity), "quotas": quotas})


def _describe_credentials(admin: AdminClient, names: list[str], out: Output) -> None:
    from bridgehead.cli.tools.connection import java_text

    out.result(credentials={})
    for user, result in admin.describe_user_scram_credentials(names or None).items():
        if result.error is not None:
            code = getattr(result.error, "code", None)
            if code is not None and code.name == "RESOURCE_NOT_FOUND":
                continue  # Kafka's client does not list users without credentials
            reason = java_text(result.error).rpartition(".errors.")[2]
            out.line(
                f"Error retrieving SCRAM credential configs for user-principal '{user}': {reason}"
            )
            continue
        infos = [
            (credential.mechanism.name.replace("_", "-"), credential.iterations)
            for credential in result.get()
        ]
        described = ", ".join(f"{name}=iterations={count}" for name, count in infos)
        out.line(f"SCRAM credential configs for user-principal '{user}' are {described}")
        out.document["credentials"][user] = dict(infos)


def _alter(admin: AdminClient, options: Options, out: Output) -> None:
    types, names = entity_types(options), entity_names(options)
    added, deleted = _added(options), _deleted(options)
    match types[0]:
        case "topics" | "brokers":
            _alter_resource(admin, types[0], names[0], added, deleted)
        case "broker-loggers":
            _alter_loggers(admin, names[0], added, deleted)
        case "ips":
            unknown = [key for key in (*added, *deleted) if key not in _IP_QUOTAS]
            if unknown:
                raise ToolError(
                    "Only connection quota configs can be added for 'ips' using "
                    f"--bootstrap-server. Unexpected config names: {','.join(unknown)}",
                    terse=True,
                )
            _alter_quotas(admin, types, names, added, deleted)
        case _:
            _alter_user(admin, types, names, added, deleted)
    out.result(entity_types=types, entity_names=names)
    out.line(updated_line(types[0], names[0]))


def _first_error(errors: Mapping[Any, Exception | None]) -> None:
    for error in filter(None, errors.values()):
        raise error


def _require_known(deleted: Iterable[str], existing: Iterable[str]) -> None:
    invalid = [key for key in deleted if key not in set(existing)]
    if invalid:
        raise ToolError(f"Invalid config(s): {','.join(invalid)}", terse=True)


def _changes(added: Mapping[str, str], deleted: Iterable[str]) -> list[Any]:
    from bridgehead.admin import AlterConfigOp, AlterConfigOpType

    return [
        *(AlterConfigOp(key, value) for key, value in added.items()),
        *(AlterConfigOp(key, None, AlterConfigOpType.DELETE) for key in deleted),
    ]


def _alter_resource(
    admin: AdminClient, entity_type: str, name: str, added: dict[str, str], deleted: list[str]
) -> None:
    old = _configs(admin, entity_type, name, every=False, synonyms=False)
    _require_known(deleted, (config.name for config in old))
    resource = _resource(entity_type, name)
    _first_error(admin.incremental_alter_configs({resource: _changes(added, deleted)}))


def _alter_loggers(
    admin: AdminClient, broker: str, added: dict[str, str], deleted: list[str]
) -> None:
    entries = _configs(admin, "broker-loggers", broker, every=True, synonyms=False)
    loggers = {entry.name for entry in entries}
    invalid = [key for key in (*deleted, *added) if key not in loggers]
    if invalid:
        raise ToolError(f"Invalid broker logger(s): {','.join(invalid)}", terse=True)
    resource = _resource("broker-loggers", broker)
    _first_error(admin.incremental_alter_configs({resource: _changes(added, deleted)}))


def check_user_keys(
    types: Sequence[str], names: Sequence[str], added: Iterable[str], deleted: Iterable[str]
) -> None:
    """Raise ToolError if one of the configs does not exist for this type of entity.

    Also raise it if SCRAM credentials are for the default user, or come together with quotas.
    """
    clients = types[0] == "clients" or len(types) == 2
    kind, which = ("clients", "quota") if clients else ("users", "quota and SCRAM credential")
    for verb, keys in (("added", added), ("deleted", deleted)):
        allowed = _QUOTAS if clients else {*_QUOTAS, *_SCRAM}
        unknown = [key for key in keys if key not in allowed]
        if unknown:
            raise ToolError(
                f"Only {which} configs can be {verb} for '{kind}' using --bootstrap-server. "
                f"Unexpected config names: Set({', '.join(unknown)})",
                terse=True,
            )
    keys = {*added, *deleted}
    if keys & set(_SCRAM):
        if "" in names:
            raise ToolError(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
                "Credentials using --bootstrap-server.",
                terse=True,
            )
        if keys & _QUOTAS:
            raise ToolError(
                "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' "
                "using --bootstrap-server.",
                terse=True,
            )


def _alter_user(
    admin: AdminClient,
    types: list[str],
    names: list[str],
    added: dict[str, str],
    deleted: list[str],
) -> None:
    from bridgehead.admin import ScramDeletion, ScramMechanism

    check_user_keys(types, names, added, deleted)
    if {*added, *deleted} & _QUOTAS:
        _alter_quotas(admin, types, names, added, deleted)
        return
    changes: list[ScramUpsertion | ScramDeletion] = [
        ScramDeletion(names[0], ScramMechanism[key.replace("-", "_")]) for key in deleted
    ]
    changes += [parse_credential(names[0], key, value) for key, value in added.items()]
    _first_error(admin.alter_user_scram_credentials(changes))


def parse_quota(key: str, value: str) -> float:
    """Return a quota's number. Raises ToolError."""
    try:
        if "_" in value:  # Python accepts 1_000, Java does not
            raise ValueError
        return float(value)
    except ValueError:
        raise ToolError(
            f"Cannot parse quota configuration value for {key}: {value}", terse=True
        ) from None


def _alter_quotas(
    admin: AdminClient,
    types: list[str],
    names: list[str],
    added: dict[str, str],
    deleted: list[str],
) -> None:
    from bridgehead.admin import quota_entity

    described = admin.describe_client_quotas(quota_filter(types, names), strict=True)
    _require_known(deleted, next(iter(described.values()), {}))
    kinds = [_QUOTA_TYPES[kind] for kind in types]
    entity = quota_entity(dict(zip(kinds, (name or None for name in names), strict=True)))
    values: dict[str, float | None] = {key: parse_quota(key, text) for key, text in added.items()}
    values.update(dict.fromkeys(deleted))
    _first_error(admin.alter_client_quotas({entity: values}))


TOOL: Final = Tool(
    name="configs",
    help="Alter configs, quotas and SCRAM credentials.\n\nWorks like kafka-configs.sh.",
    options=(
        Option("describe", "Describe configs."),
        Option("alter", "Add and delete configs."),
        Option("all", "Describe all configs, including default and static ones."),
        texts("entity-type", "TYPE", "topics, brokers, broker-loggers, users, clients or ips."),
        texts("entity-name", "NAME", "The name of the entity; for a broker, its id."),
        Option("entity-default", "The defaults for all entities of the type."),
        text("topic", "TOPIC", "A topic."),
        text("broker", "ID", "A broker."),
        text("broker-logger", "ID", "The loggers of a broker."),
        text("user", "USER", "A user."),
        text("client", "ID", "A client id."),
        text("ip", "ADDRESS", "An IP address."),
        Option("broker-defaults", "The defaults for all brokers."),
        Option("user-defaults", "The defaults for all users."),
        Option("client-defaults", "The defaults for all clients."),
        Option("ip-defaults", "The defaults for all addresses."),
        text("add-config", "K=V,K=[V,V]", "Configs to set; put a value with commas in brackets."),
        text("add-config-file", "FILE", "A properties file with configs to set."),
        texts("delete-config", "K,K", "Configs to delete."),
        Option("force", "Has no effect, because there is no prompt."),
    ),
    run=_run,
    check=check,
    failure="Error while executing config command: {error}",
)
