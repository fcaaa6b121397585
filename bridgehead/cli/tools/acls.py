"""`bridgehead acls`: kafka-acls.sh."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    forbid,
    text,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import AclBinding, AclBindingFilter, AdminClient

_ACTIONS: Final = ("add", "remove", "list")
# A resource consists of a type, a name and a pattern type. An entry consists of a principal, a
# host, an operation and a permission. Types, operations and permissions have Kafka's names.
Resource = tuple[str, str, str]
Entry = tuple[str, str, str, str]
_CLUSTER: Final = ("CLUSTER", "kafka-cluster", "LITERAL")
_RESOURCES: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
_PATTERNS: Final = ("ANY", "MATCH", "LITERAL", "PREFIXED")
# The operations of each resource type, in the order in which Kafka's tool lists them.
_OPERATIONS: Final = {
    "TOPIC": "READ ALL ALTER_CONFIGS DESCRIBE_CONFIGS DELETE WRITE ALTER CREATE DESCRIBE",
    "GROUP": "READ ALL DELETE DESCRIBE",
    "TRANSACTIONAL_ID": "ALL WRITE DESCRIBE",
    "CLUSTER": "CLUSTER_ACTION ALL ALTER_CONFIGS DESCRIBE_CONFIGS IDEMPOTENT_WRITE ALTER CREATE "
    "DESCRIBE",
    "DELEGATION_TOKEN": "ALL DESCRIBE",
    "USER": "CREATE_TOKENS DESCRIBE_TOKENS ALL",
}
_PRODUCER: Final = ("WRITE", "DESCRIBE", "CREATE")


def check(options: Options) -> None:
    """Raise UsageFault if the options break the rules of Kafka's AclCommandOptions."""
    if len(options.used(_ACTIONS)) != 1:
        raise UsageFault("Command must include exactly one action: --list, --add, --remove. ")
    principals = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    forbid(options, "list", "producer", "consumer", *principals)
    for role in ("producer", "consumer"):
        forbid(options, role, "operation", "deny-principal", "deny-host")
    if options.has("principal") and not options.has("list"):
        raise UsageFault("The --principal option is only available if --list is set")
    if options.has("producer") and not options.has("topic"):
        raise UsageFault("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        raise UsageFault("The --idempotent option is only available if --producer is set")
    if options.has("consumer") and (
        not options.has("topic")
        or not options.has("group")
        or (not options.has("producer") and options.used(("cluster", "transactional-id")))
    ):
        raise UsageFault(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )
    pattern = pattern_type(options)
    if options.has("list"):
        return
    if options.has("add") and pattern not in ("LITERAL", "PREFIXED"):
        raise UsageFault(
            f"A '--resource-pattern-type' value of '{pattern}' is not valid when adding acls."
        )
    if not resources(options):
        raise UsageFault(
            "You must provide at least one resource: --topic <topic> or --cluster or "
            "--group <group> or --delegation-token <Delegation Token ID>"
        )


def pattern_type(options: Options) -> str:
    """Return Kafka's name of the pattern type. Raises ToolError."""
    pattern = options.text("resource-pattern-type") or "literal"
    if pattern.upper() not in _PATTERNS:
        raise ToolError(f"Cannot parse argument '{pattern}' of option resource-pattern-type")
    return pattern.upper()


def resources(options: Options) -> list[Resource]:
    """Return the resources that the options name."""
    pattern = pattern_type(options)
    result: list[Resource] = [
        (kind, name.strip(), pattern)
        for option, kind in _RESOURCES.items()
        for name in options.texts(option)
    ]
    if pattern == "LITERAL" and options.used(("cluster", "idempotent")):
        result.append(_CLUSTER)
    return result


def operation_name(text: str) -> str:
    """Return Kafka's name of an operation; UNKNOWN for any other text.

    >>> operation_name("CreateTokens"), operation_name("describe_configs")
    ('CREATE_TOKENS', 'DESCRIBE_CONFIGS')
    """
    joined = text.strip().replace("_", "").upper()
    names = {word.replace("_", ""): word for line in _OPERATIONS.values() for word in line.split()}
    return names.get(joined, "UNKNOWN")


def _spoken(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


def _principals(options: Options, option: str) -> list[str]:
    principals = [word.strip() for word in options.texts(option)]
    for principal in principals:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ToolError(
                f"expected a string in format principalType:principalName but got {principal}"
            )
    return principals


def entries(options: Options, operations: Iterable[str]) -> list[Entry]:
    """Return the entries of the allowed and denied principals. Raises ToolError."""
    result = []
    for permission in ("ALLOW", "DENY"):
        option = permission.lower()
        hosts = [word.strip() for word in options.texts(f"{option}-host")] or ["*"]
        for principal in _principals(options, f"{option}-principal"):
            for operation in operations:
                result += [(principal, host, operation, permission) for host in hosts]
    return list(dict.fromkeys(result))


def wanted(options: Options) -> dict[Resource, list[Entry]]:
    """Return the entries that --add creates or --remove deletes, by resource.

    Raises:
        ToolError: a principal is malformed.
        UsageFault: a resource type does not support one of the operations.
    """
    result: dict[Resource, list[Entry]] = {}

    def add(resource: Resource, operations: Iterable[str]) -> None:
        entries_of_resource = result.setdefault(resource, [])
        entries_of_resource += [
            entry for entry in entries(options, operations) if entry not in entries_of_resource
        ]

    producer, consumer = options.has("producer"), options.has("consumer")
    for resource in resources(options):
        kind = resource[0]
        if not producer and not consumer:
            add(
                resource,
                [operation_name(operation) for operation in options.texts("operation") or ["All"]],
            )
        if producer and kind in ("TOPIC", "TRANSACTIONAL_ID"):
            add(resource, _PRODUCER if kind == "TOPIC" else _PRODUCER[:2])
        if producer and kind == "CLUSTER" and options.has("idempotent"):
            add(resource, ("IDEMPOTENT_WRITE",))
        if consumer and kind in ("TOPIC", "GROUP"):
            add(resource, ("READ", "DESCRIBE") if kind == "TOPIC" else ("READ",))
    for (kind, _, _), acls in result.items():
        valid = _OPERATIONS[kind].split()
        if any(operation not in valid for _, _, operation, _ in acls):
            names = ", ".join(map(_spoken, valid))
            raise UsageFault(f"ResourceType {kind} only supports operations {names}")
    return result


def resource_text(resource: Resource, kind: str = "ResourcePattern") -> str:
    """Return a resource in Kafka's words."""
    return f"{kind}(resourceType={resource[0]}, name={resource[1]}, patternType={resource[2]})"


def entry_text(entry: Entry) -> str:
    """Return an entry in Kafka's words."""
    return "(principal={}, host={}, operation={}, permissionType={})".format(*entry)


def paragraph(title: str, acls: Iterable[Entry]) -> str:
    """Return a title, the sorted entries and an empty line, with the spaces of Kafka's tool."""
    lines = "\n".join(f"\t{entry_text(acl)}" for acl in sorted(acls))
    return f"{title} \n {lines} \n"


def by_resource(bindings: Iterable[AclBinding]) -> dict[Resource, list[Entry]]:
    """Return the entries of each resource, sorted."""
    grouped: dict[Resource, list[Entry]] = {}
    for binding in bindings:
        resource = (binding.resource_type.name, binding.resource_name, binding.pattern_type.name)
        entry = (
            binding.principal,
            binding.host,
            binding.operation.name,
            binding.permission_type.name,
        )
        grouped.setdefault(resource, []).append(entry)
    return {resource: sorted(set(grouped[resource])) for resource in sorted(grouped)}


def _filter(resource: Resource, entry: Entry | None = None) -> AclBindingFilter:
    from bridgehead.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        PatternType,
        ResourceType,
    )

    kind, name, pattern = resource
    where = (ResourceType[kind], name, PatternType[pattern])
    if entry is None:
        return AclBindingFilter(*where)
    principal, host, operation, permission = entry
    return AclBindingFilter(
        *where, principal, host, AclOperation[operation], AclPermissionType[permission]
    )


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    [action] = options.used(_ACTIONS)
    {"add": _add, "remove": _remove, "list": _list}[action](admin, options, out)


def _add(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import AclBinding

    added = wanted(options)
    if not all(added.values()):
        raise UsageFault(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    out.result(added=[])
    for resource, acls in added.items():
        out.line(paragraph(f"Adding ACLs for resource `{resource_text(resource)}`:", acls))
        bindings = [AclBinding(*_filter(resource, acl)) for acl in acls]  # type: ignore[arg-type]
        for error in filter(None, admin.create_acls(bindings).values()):
            raise error
        out.document["added"].append(_as_json(resource, acls))


def _remove(admin: AdminClient, options: Options, out: Output) -> None:
    out.result(removed=[])
    for resource, acls in wanted(options).items():
        if not (options.has("force") or _confirmed(resource, acls)):
            continue
        filters = [_filter(resource, acl) for acl in acls] or [_filter(resource)]
        bindings = []
        for result in admin.delete_acls(filters).values():
            bindings += [outcome.get() for outcome in result.get()]
        out.document["removed"] += [
            _as_json(where, removed) for where, removed in by_resource(bindings).items()
        ]


def question(resource: Resource, acls: list[Entry]) -> str:
    """Return the question that --remove asks, unless --force is given."""
    where = resource_text(resource, "ResourcePatternFilter")
    if not acls:
        return f"Are you sure you want to delete all ACLs for resource filter `{where}`? (y/n)"
    lines = "\n".join(f"\t{entry_text(acl)}" for acl in acls)
    return (
        f"Are you sure you want to remove ACLs: \n {lines} \n from resource filter `{where}`? (y/n)"
    )


def _confirmed(resource: Resource, acls: list[Entry]) -> bool:
    sys.stderr.write(question(resource, acls) + "\n")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() == "y"


def _list(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import AclBindingFilter

    filters = [_filter(resource) for resource in resources(options)] or [AclBindingFilter()]
    bindings = [acl for chosen in filters for acl in admin.describe_acls(chosen)]
    listed = by_resource(bindings)
    principals = _principals(options, "principal")
    out.result(acls=[_as_json(resource, acls) for resource, acls in listed.items()])
    if not principals:
        for line in _listed(listed):
            out.line(line)
    for principal in principals:
        out.line(f"ACLs for principal `{principal}`")
        of_principal = {
            resource: [acl for acl in acls if acl[0] == principal]
            for resource, acls in listed.items()
        }
        for line in _listed({resource: acls for resource, acls in of_principal.items() if acls}):
            out.line(line)


def _listed(acls_of_resource: Mapping[Resource, list[Entry]]) -> Iterator[str]:
    for resource, acls in acls_of_resource.items():
        yield paragraph(f"Current ACLs for resource `{resource_text(resource)}`:", acls)


def _as_json(resource: Resource, acls: Iterable[Entry]) -> dict[str, object]:
    names = ("principal", "host", "operation", "permission_type")
    return {
        "resource_type": resource[0],
        "name": resource[1],
        "pattern_type": resource[2],
        "acls": [dict(zip(names, acl, strict=True)) for acl in acls],
    }


TOOL: Final = Tool(
    name="acls",
    help="Add, remove and list ACLs.\n\nWorks like kafka-acls.sh.",
    options=(
        Option("add", "Add ACLs."),
        Option("remove", "Remove ACLs."),
        Option("list", "List ACLs."),
        texts("topic", "TOPIC", "A topic; * means all topics."),
        texts("group", "GROUP", "A consumer group; * means all groups."),
        Option("cluster", "The cluster."),
        texts("transactional-id", "ID", "A transactional id; * means all."),
        texts("delegation-token", "ID", "A delegation token; * means all."),
        texts("user-principal", "PRINCIPAL", "A user, for rights on the user's tokens."),
        text(
            "resource-pattern-type",
            "TYPE",
            "literal or prefixed; with --list and --remove also any or match.",
        ),
        texts("allow-principal", "PRINCIPAL", "A principal to allow, such as User:alice."),
        texts("deny-principal", "PRINCIPAL", "A principal to deny."),
        texts("allow-host", "HOST", "An address of the allowed principals; default: *."),
        texts("deny-host", "HOST", "An address of the denied principals; default: *."),
        texts("operation", "OPERATION", "An operation, such as Read; default: All."),
        texts("principal", "PRINCIPAL", "With --list: show only the ACLs of this principal."),
        Option("producer", "The rights of a producer: WRITE, DESCRIBE and CREATE on the topic."),
        Option(
            "consumer",
            "The rights of a consumer: READ and DESCRIBE on the topic, and READ on the group.",
        ),
        Option("idempotent", "With --producer: IDEMPOTENT_WRITE on the cluster."),
        Option("force", "Remove without asking."),
    ),
    run=_run,
    check=check,
    failure="Error while executing ACL command: {java}",
    failure_on_stdout=True,
)
