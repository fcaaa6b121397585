"""The next steps for the real cluster, with the changes of each server.properties.

Kafka's documentation of the migration has the same steps; what a rehearsal found comes first.
Values of the given files are never repeated: they may be secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rehearse.cluster import ServerProperties

_MIGRATING: Final = {
    "zookeeper.metadata.migration.enable": "true",
    "controller.quorum.voters": "3000@HOST:PORT,…",
    "controller.listener.names": "CONTROLLER",
}
_OF_ZOOKEEPER: Final = (
    "broker.id",
    "zookeeper.connect",
    "zookeeper.metadata.migration.enable",
    "inter.broker.protocol.version",
)
_ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
_STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def next_steps(
    reached: str | None, remedies: Iterable[str], files: Sequence[ServerProperties], level: str
) -> list[str]:
    """Return sentences, and lines of a diff that begin with `+` or `-`.

    `reached` is the last phase of a good rehearsal; None if none was good. `remedies` are those of
    findings that block the migration or lose metadata.
    """
    steps = [f"First: {remedy}" for remedy in dict.fromkeys(remedies)]
    if reached is None:
        return [
            *steps,
            "Then rehearse again, and begin the migration after a good rehearsal.",
        ]
    steps += [
        "Start the controllers (zookeeper.metadata.migration.enable=true), and wait until one "
        "logs `Controller Quorum is ready for Zk to KRaft migration`.",
        "Restart the brokers in migration mode, one by one. Before that, a rollback needs nothing.",
        *_diffs(files, lambda values: migrating_diff(values, level)),
    ]
    if reached in ("dual-write", "finalize"):
        steps += [
            "Restart each broker in KRaft mode, one by one. Roll back by the same way: in "
            "migration mode first, then stop the controllers, delete /controller and /migration.",
            *_diffs(files, kraft_diff),
        ]
    if reached == "finalize":
        steps.append(
            "Restart the controllers without zookeeper.metadata.migration.enable and "
            "zookeeper.connect. After that there is no way back."
        )
    return steps


def _diffs(files: Sequence[ServerProperties], diff: object) -> Iterator[str]:
    assert callable(diff)
    brokers = [file for file in files if file.is_zookeeper_broker]
    if not brokers:
        yield "Changes of each broker's server.properties:"
        yield from diff({})
    for file in brokers:
        yield f"Changes of {file.file}:"
        yield from diff(file.values)


def migrating_diff(values: Mapping[str, str], level: str) -> Iterator[str]:
    """Yield how a broker's properties change for the migration mode."""
    for name, value in _MIGRATING.items():
        if not values.get(name):
            yield f"+ {name}={value}"
    if values.get("inter.broker.protocol.version", level) != level:
        yield "- inter.broker.protocol.version"
        yield f"+ inter.broker.protocol.version={level}"
    protocols = values.get("listener.security.protocol.map", "")
    if "CONTROLLER:" not in protocols:
        yield f"+ listener.security.protocol.map={'…,' if protocols else ''}CONTROLLER:PLAINTEXT"


def kraft_diff(values: Mapping[str, str]) -> Iterator[str]:
    """Yield how a migrating broker's properties change for the KRaft mode."""
    yield "+ process.roles=broker"
    yield f"+ node.id={values.get('broker.id', 'ID')}"
    yield from (f"- {name}" for name in _OF_ZOOKEEPER if not values or name in values)
    if not values or values.get("authorizer.class.name") == _ACL_AUTHORIZER:
        yield f"- authorizer.class.name={_ACL_AUTHORIZER}"
        yield f"+ authorizer.class.name={_STANDARD_AUTHORIZER}"
