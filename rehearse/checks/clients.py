"""Checks of client quotas and SCRAM credentials."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.config_codes import ConfigType
from bridgehead.kafka_wire.errors import ApiError
from cluster_model.client_quotas import CLIENT_KEYS, IP_KEYS, set_quota
from cluster_model.configs.types import ConfigException, parse
from cluster_model.records import ConfigResource
from cluster_model.scram import MECHANISM_NAMES
from cluster_model.znodes.entity_names import desanitize, sanitize
from rehearse.checks.topics import some
from rehearse.cluster import Cluster, is_default, java_int
from rehearse.findings import Evidence, Outcome, Place, Rule

_SCRAM: Final = frozenset(MECHANISM_NAMES.values())
_SCRAM_FIELDS: Final = frozenset({"salt", "stored_key", "server_key", "iterations"})
# Java reads the two characters after % as a number, which may have a sign.
BAD_ESCAPE: Final = re.compile(r"%(?!\+?[0-9a-fA-F]|-0)|%[0-9a-fA-F](?![0-9a-fA-F])")
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+)[fFdD]?")
_ADDRESS: Final = re.compile(r"[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")
_KEYS: Final[Mapping[str, Mapping[str, ConfigType]]] = {
    "users": CLIENT_KEYS,
    "users/clients": CLIENT_KEYS,
    "clients": CLIENT_KEYS,
    "ips": IP_KEYS,
}


def _quotas(cluster: Cluster) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the type, the path, and all configs that Kafka takes for quotas.

    A pair of user and client cannot have credentials, so there they are taken for quotas, too.
    """
    for entity_type, configs in cluster.client_configs():
        yield (
            entity_type,
            configs.path,
            {
                key: value
                for key, value in configs.values.items()
                if isinstance(value, str) and (key not in _SCRAM or entity_type == "users/clients")
            },
        )


def _number(text: str) -> float | None:
    """Return the number that Java's `Double.parseDouble` reads; None if it raises an exception."""
    try:
        if (hexadecimal := _HEXADECIMAL.fullmatch(text.strip())) is not None:
            return float.fromhex(hexadecimal[1])
        number = parse("", text, ConfigType.DOUBLE)
    except (ConfigException, ValueError, OverflowError):
        return None
    assert isinstance(number, float)
    return number


def _not_numbers(cluster: Cluster) -> Iterator[Place]:
    for _, path, quotas in _quotas(cluster):
        names = [key for key, value in quotas.items() if _number(value) is None]
        if names:
            yield Place(path, some(names))


def _unknown_keys(cluster: Cluster) -> Iterator[Place]:
    left_out = {configs.path: configs.left_out for _, configs in cluster.client_configs()}
    for entity_type, path, quotas in _quotas(cluster):
        numbers = [key for key, value in quotas.items() if _number(value) is not None]
        valid = (*_KEYS[entity_type], *_SCRAM)
        names = [key for key in (*numbers, *left_out[path]) if key not in valid]
        if names:
            yield Place(path, some(names))


def _fractions(cluster: Cluster) -> Iterator[Place]:
    for entity_type, path, quotas in _quotas(cluster):
        names = [key for key, value in quotas.items() if _is_fraction(entity_type, key, value)]
        if names:
            yield Place(path, some(names))


def _is_fraction(entity_type: str, key: str, value: str) -> bool:
    """Return whether a number cannot be written back as the whole number that its key needs."""
    number = _number(value)
    if number is None or key not in _KEYS[entity_type]:
        return False
    try:
        set_quota(ConfigResource(entity_type.partition("/")[0], ""), key, number)
    except ApiError:
        return True
    return False


def _entity_names(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the path and name of all entities whose names Kafka unescapes."""
    for entity_type in ("users", "clients", "ips"):
        for name in cluster.tree.children(f"/config/{entity_type}"):
            yield f"/config/{entity_type}/{name}", name
    for user in cluster.tree.children("/config/users"):
        parent = f"/config/users/{user}/clients"
        for name in cluster.tree.children(parent):
            yield f"{parent}/{name}", name


def _bad_escapes(cluster: Cluster) -> Iterator[Place]:
    for path, name in _entity_names(cluster):
        if BAD_ESCAPE.search(name):
            yield Place(path)


def _unescaped_names(cluster: Cluster) -> Iterator[Place]:
    for path, name in _entity_names(cluster):
        if not BAD_ESCAPE.search(name) and sanitize(desanitize(name)) != name:
            yield Place(path, f"KRaft writes it back as {sanitize(desanitize(name))}")


def _credentials(cluster: Cluster) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for entity_type, configs in cluster.client_configs():
        credentials = {key: value for key, value in configs.values.items() if key in _SCRAM}
        if credentials and entity_type != "users/clients":
            yield entity_type, configs.path, credentials


def _bad_credentials(cluster: Cluster) -> Iterator[Place]:
    for _, path, credentials in _credentials(cluster):
        names = [
            key
            for key, value in credentials.items()
            if isinstance(value, str) and not _is_credential(value)
        ]
        if names:
            yield Place(path, some(names))


def _is_credential(text: str) -> bool:
    """Return whether Kafka parses a credential. The text is never shown."""
    parts = [part.partition("=") for part in text.rstrip(",").split(",")]
    if any(not name or not equals for name, equals, _ in parts):
        return False
    fields = {name: value for name, _, value in parts}
    if fields.keys() != _SCRAM_FIELDS or java_int(fields.pop("iterations")) is None:
        return False
    try:
        for value in fields.values():
            unpadded = value.rstrip("=")
            padded = unpadded + "=" * (-len(unpadded) % 4)
            base64.b64decode(padded if value == unpadded else value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _misplaced_credentials(cluster: Cluster) -> Iterator[Place]:
    for entity_type, path, credentials in _credentials(cluster):
        if entity_type != "users" or is_default(path.rpartition("/")[2]):
            yield Place(path, some(list(credentials)))


def _foreign_children(cluster: Cluster) -> Iterator[Place]:
    for user in cluster.tree.children("/config/users"):
        parent = f"/config/users/{user}"
        for name in cluster.tree.children(parent):
            if name != "clients":
                yield Place(f"{parent}/{name}")
    for entity_type in ("clients", "ips", "brokers", "topics"):
        for entity in cluster.tree.children(f"/config/{entity_type}"):
            for name in cluster.tree.children(f"/config/{entity_type}/{entity}"):
                yield Place(f"/config/{entity_type}/{entity}/{name}")


def _odd_ips(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children("/config/ips"):
        address = desanitize(name)
        if address is not None and not re.fullmatch(
            r"[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", address
        ):
            yield Place(f"/config/ips/{name}")


RULES: Final = (
    Rule(
        id="quota-not-a-number",
        what="The value of a quota is not a number.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Unexpected client quota configuration value",
        remedy="Delete the quota with kafka-configs, or repair {where}.",
        find=_not_numbers,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="quota-unknown",
        what="There is a quota that Kafka does not know.",
        outcome=Outcome.STUCK,
        effect="The controller takes /controller, cannot write the quota back, and tries for ever. "
        "The brokers are never told. The log has no reason.",
        log="Encountered ZooKeeper error during event SyncKRaftMetadataEvent.",
        remedy="Delete the key from {where}.",
        find=_unknown_keys,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="quota-fraction",
        what="A quota that must be a whole number has a fraction, or is too large.",
        outcome=Outcome.STUCK,
        effect="The controller takes /controller, cannot write the quota back, and tries for ever. "
        "The brokers are never told.",
        log="must be a",
        remedy="Set the quota to a whole number with kafka-configs.",
        find=_fractions,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="entity-name-escape",
        what="The name of a user, client or ip has an incomplete escape.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="URLDecoder: ",
        remedy="Delete {where}, and set the quota for the right name.",
        find=_bad_escapes,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="entity-name-unescaped",
        what="The name of a user, client or ip is not escaped as Kafka escapes it.",
        outcome=Outcome.CHANGED,
        effect="KRaft has the unescaped name, and writes a second znode.",
        log="",
        remedy="Delete {where}, and set the quota again with kafka-configs.",
        find=_unescaped_names,
        issue="KAFKA-16222",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="scram-unreadable",
        what="A SCRAM credential cannot be read.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller. Its log shows the "
        "credential.",
        log="Credentials not valid",
        remedy="Set the user's password again with kafka-configs.",
        find=_bad_credentials,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="scram-misplaced",
        what="A SCRAM credential belongs to the default user, a client or an ip.",
        outcome=Outcome.CHANGED,
        effect="KRaft makes it the credential of a user with this name.",
        log="",
        remedy="Delete the credential from {where}.",
        find=_misplaced_credentials,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="entity-children",
        what="An entity has znodes below it that Kafka does not read.",
        outcome=Outcome.LOST,
        effect="They are not read, and stay in ZooKeeper.",
        log="",
        remedy="Delete {where}.",
        find=_foreign_children,
    ),
    Rule(
        id="ip-odd",
        what="There is a quota of an ip that is no address.",
        outcome=Outcome.KEPT,
        effect="It is copied. A name that cannot be resolved is an error when it is applied.",
        log="Unable to resolve address",
        remedy="Delete {where} if the name is wrong.",
        find=_odd_ips,
        evidence=Evidence.LIVE,
    ),
)
