"""Checks of the configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.config_codes import ConfigType
from cluster_model.configs.broker_configs.table import config_key
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from cluster_model.configs.types import ConfigException
from rehearse.checks.topics import some
from rehearse.cluster import Cluster, Configs, is_default, java_int
from rehearse.findings import Evidence, Outcome, Place, Rule
from rehearse.passwords import is_encoded_with, is_password

_READ_TYPES: Final = ("topics", "brokers", "users", "clients", "ips", "changes")


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _migrated_types(cluster: Cluster) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the type, the path and the configs of each entity that the migration reads."""
    names = {topic.name for topic in cluster.topics}
    for name, configs in cluster.configs("topics"):
        if name in names:
            yield "topics", configs.path, configs.values
    for _, configs in cluster.configs("brokers"):
        yield "brokers", configs.path, configs.values
    for _, configs in cluster.client_configs():
        yield "clients", configs.path, configs.values


def _not_strings(cluster: Cluster) -> Iterator[Place]:
    for _, path, values in _migrated_types(cluster):
        names = [name for name, value in values.items() if not isinstance(value, str)]
        if names:
            yield Place(path, f"{some(names)}: not a JSON string")


def _ghosts(cluster: Cluster) -> Iterator[tuple[Configs, bool]]:
    """Yield configs of topics that do not exist, and whether Kafka raises an exception for them."""
    for name, configs in cluster.configs("topics"):
        if f"/brokers/topics/{name}" not in cluster.tree:
            is_odd = any(not isinstance(value, str) for value in configs.values.values())
            # Kafka takes this name for the default entity, and asks for a path without a name.
            yield configs, is_odd or is_default(name)


def _deleted_ghosts(cluster: Cluster) -> Iterator[Place]:
    for configs, is_odd in _ghosts(cluster):
        if not is_odd and (configs.values or configs.left_out):
            yield Place(configs.path)


def _odd_ghosts(cluster: Cluster) -> Iterator[Place]:
    for configs, is_odd in _ghosts(cluster):
        if is_odd:
            yield Place(configs.path)


def _unreadable(cluster: Cluster) -> Iterator[Place]:
    for entity_type in ("topics", "brokers"):
        for name, configs in cluster.configs(entity_type):
            is_read = entity_type == "brokers" or f"/brokers/topics/{name}" in cluster.tree
            if configs.is_unreadable and is_read:
                yield Place(configs.path)
    for _, configs in cluster.client_configs():
        if configs.is_unreadable:
            yield Place(configs.path)


def _invalid_topic_configs(cluster: Cluster) -> Iterator[Place]:
    for _, configs in cluster.configs("topics"):
        problems = [
            name
            for name, value in _texts(configs.values).items()
            if _is_invalid_for_topic(name, value)
        ]
        problems += [name for name in configs.left_out if name not in TOPIC_CONFIGS]
        if problems:
            yield Place(configs.path, some(problems))


def _is_invalid_for_topic(name: str, value: str) -> bool:
    key = TOPIC_CONFIGS.get(name)
    try:
        return key is None or key.parse(value) is None
    except ConfigException:
        return True


def _broker_names(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children("/config/brokers"):
        if not is_default(name) and java_int(name) is None:
            yield Place(f"/config/brokers/{name}")


def _unknown_brokers(cluster: Cluster) -> Iterator[Place]:
    if not cluster.registered:
        return
    for name, configs in cluster.configs("brokers"):
        number = java_int(name)
        if number is not None and number not in cluster.registered and configs.values:
            yield Place(configs.path)


def _invalid_broker_configs(cluster: Cluster) -> Iterator[Place]:
    for _, configs in cluster.configs("brokers"):
        problems = [
            name
            for name, value in _texts(configs.values).items()
            if not is_password(name) and _is_invalid_for_broker(name, value)
        ]
        if problems:
            yield Place(configs.path, some(problems))


def _is_invalid_for_broker(name: str, value: str) -> bool:
    key = config_key(name)
    try:
        # The validators of plug-ins' configs are not known.
        return key is not None and key.type is not ConfigType.UNKNOWN and key.parse(value) is None
    except ConfigException:
        return True


def _controller_defaults(cluster: Cluster) -> Iterator[Place]:
    for name, configs in cluster.configs("brokers"):
        if is_default(name) and configs.values:
            yield Place(configs.path, some(list(configs.values)))


def _passwords(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Yield path, config and value of the stored passwords; the value may be left out."""
    for _, configs in cluster.configs("brokers"):
        for name, value in _texts(configs.values).items():
            if is_password(name):
                yield configs.path, name, value
        for name in configs.left_out:
            if is_password(name):
                yield configs.path, name, ""


def _passwords_without_secret(cluster: Cluster) -> Iterator[Place]:
    files = list(cluster.controller_files())
    if files and all(file.get("password.encoder.secret") for file in files):
        return
    for path, name, _ in _passwords(cluster):
        yield Place(path, name)


def _passwords_of_another_secret(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.controller_files():
        secret = file.get("password.encoder.secret")
        if secret is None:
            continue
        for path, name, value in _passwords(cluster):
            if value and not is_encoded_with(value, secret):
                yield Place(path, f"{name}, with the secret in {file.file}")


def _other_types(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children("/config"):
        children = cluster.tree.children(f"/config/{name}")
        if name not in _READ_TYPES and (children or cluster.tree.data(f"/config/{name}")):
            yield Place(f"/config/{name}", some(list(children)))


RULES: Final = (
    Rule(
        id="config-not-a-string",
        what="The value of a config is not a JSON string.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Expected `String` value, received",
        remedy="Write the value in quotes into {where}.",
        find=_not_strings,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="config-of-no-topic",
        what="There are configs of a topic that does not exist.",
        outcome=Outcome.DELETED,
        effect="The configs are not migrated, and are deleted in ZooKeeper.",
        log="DeleteTopicConfig=",
        remedy="Delete {where}, unless the topic is missing by mistake.",
        find=_deleted_ghosts,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="config-of-no-topic-odd",
        what="There are configs of a topic that does not exist, and they cannot be read.",
        outcome=Outcome.STUCK,
        effect="The migration does not read them. But when the controller writes the metadata "
        "back, it fails at them for ever, and owns /controller. The brokers are never told.",
        log="Unhandled error in SyncKRaftMetadataEvent",
        remedy="Delete {where}.",
        find=_odd_ghosts,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="config-unreadable",
        what="The configs of an entity cannot be read.",
        outcome=Outcome.LOST,
        effect="The entity has no configs in KRaft. Nothing is logged.",
        log="",
        remedy="Repair {where}, or delete its data.",
        find=_unreadable,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="topic-config-invalid",
        what="A topic has a config that Kafka 3.9 does not know, or an invalid value.",
        outcome=Outcome.KEPT,
        effect="It is copied. Then every change of the topic's configs is rejected until it is "
        "deleted.",
        log="",
        remedy="Delete the config with kafka-configs before the migration.",
        find=_invalid_topic_configs,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-config-name",
        what="There are configs of a broker whose id is not a number.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="NumberFormatException: For input string",
        remedy="Delete {where}.",
        find=_broker_names,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-config-of-absent-broker",
        what="There are configs of a broker that is not registered.",
        outcome=Outcome.KEPT,
        effect="The configs are copied.",
        log="",
        remedy="Delete {where} if the broker is gone for good.",
        find=_unknown_brokers,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-config-invalid",
        what="A broker config has an invalid value.",
        outcome=Outcome.KEPT,
        effect="It is copied, and ignored.",
        log="cluster config contains invalid values in",
        remedy="Delete the config with kafka-configs.",
        find=_invalid_broker_configs,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-defaults",
        what="There are cluster-wide broker configs.",
        outcome=Outcome.KEPT,
        effect="They are copied, and apply to the KRaft controllers too.",
        log="",
        remedy="Check that each of these values suits a controller.",
        find=_controller_defaults,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="password-without-secret",
        what="Broker configs have encrypted passwords, and no controller is known to have the "
        "secret.",
        outcome=Outcome.CHANGED,
        effect="A controller without password.encoder.secret takes the encrypted text as the "
        "password.",
        log="",
        remedy="Set password.encoder.secret on the controllers, and scan with their files.",
        find=_passwords_without_secret,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="password-of-another-secret",
        what="A password is not encrypted with the controllers' secret.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Aborting the metadata migration from ZooKeeper to KRaft",
        remedy="Set the password again, or give the controllers the brokers' secret.",
        find=_passwords_of_another_secret,
    ),
    Rule(
        id="config-type-unknown",
        what="There are configs of another kind than topic, broker, user, client or ip.",
        outcome=Outcome.LOST,
        effect="They are not read, and stay in ZooKeeper.",
        log="",
        remedy="Write down {where}; set client metrics again in KRaft.",
        find=_other_types,
        evidence=Evidence.LIVE,
    ),
)
