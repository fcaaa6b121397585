"""Checks of the given server.properties files of brokers and controllers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from cluster_model.image import PROTOCOL_CODES
from cluster_model.inter_broker_protocol import LEVELS, level_of
from rehearse.checks.topics import some
from rehearse.cluster import Cluster, ServerProperties, ShapeError, UnreadableError, object_in
from rehearse.findings import Evidence, Outcome, Place, Rule

_FLAG: Final = "zookeeper.metadata.migration.enable"
_IBP: Final = "inter.broker.protocol.version"
_AUTHORIZER: Final = "authorizer.class.name"
_ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
_STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LISTENER: Final = "inter.broker.listener.name"
_PROTOCOL_MAP: Final = "listener.security.protocol.map"
_VOTERS: Final = "controller.quorum.voters"
_BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
_CONTROLLER_LISTENERS: Final = "controller.listener.names"
_CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
_DEFAULT_IBP: Final = "3.9-IV0"
_MIGRATING: Final = "3.4-IV0"
_CONTROLLERS_MIGRATE: Final = "3.6-IV0"
_DIRECTORIES: Final = "3.7-IV2"
_VOTER: Final = re.compile(r"([0-9]+)@")
_POLICIES: Final = ("alter.config.policy.class.name", "create.topic.policy.class.name")


def _is_true(file: ServerProperties, name: str) -> bool:
    return (file.get(name) or "").lower() == "true"


def _is_below(file: ServerProperties, least: str) -> bool:
    level = level_of(file.get(_IBP) or _DEFAULT_IBP)
    return level is not None and LEVELS.index(level) < LEVELS.index(least)


def _generated_ids(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        node_id = file.node_id
        if node_id is None or node_id < 0:
            yield Place(f"{file.file}: broker.id", "not set" if node_id is None else str(node_id))


def _low_levels(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if _is_below(file, _MIGRATING):
            yield Place(f"{file.file}: {_IBP}", str(file.get(_IBP)))


def _levels_of_old_controllers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if not _is_below(file, _MIGRATING) and _is_below(file, _CONTROLLERS_MIGRATE):
            yield Place(f"{file.file}: {_IBP}", str(file.get(_IBP)))


def _unknown_levels(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if level_of(file.get(_IBP) or _DEFAULT_IBP) is None:
            yield Place(f"{file.file}: {_IBP}", str(file.get(_IBP)))


def _different_levels(cluster: Cluster) -> Iterator[Place]:
    for one, other in pairwise(cluster.broker_files()):
        levels = [level_of(file.get(_IBP) or _DEFAULT_IBP) for file in (one, other)]
        if levels[0] != levels[1]:
            yield Place(f"{other.file}: {_IBP}", f"{levels[1]}, but {levels[0]} in {one.file}")


def _several_log_dirs(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        folders = file.words("log.dirs") or file.words("log.dir")
        if len(folders) > 1 and not _is_below(file, _MIGRATING) and _is_below(file, _DIRECTORIES):
            yield Place(f"{file.file}: log.dirs", f"{len(folders)} folders at {file.get(_IBP)}")


def _no_voters(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if _is_true(file, _FLAG) and not (file.get(_VOTERS) or file.get(_BOOTSTRAP)):
            yield Place(f"{file.file}: {_VOTERS}")


def _no_controller_listeners(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if _is_true(file, _FLAG) and not file.words(_CONTROLLER_LISTENERS):
            yield Place(f"{file.file}: {_CONTROLLER_LISTENERS}")


def _early_controller_listeners(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if not _is_true(file, _FLAG) and file.words(_CONTROLLER_LISTENERS):
            yield Place(f"{file.file}: {_CONTROLLER_LISTENERS}")


def _mapped(file: ServerProperties) -> frozenset[str]:
    """Return the names of listeners whose security protocol is known."""
    pairs = file.words(_PROTOCOL_MAP) or PROTOCOL_CODES
    return frozenset(pair.partition(":")[0].strip().upper() for pair in pairs)


def _unmapped_controllers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        names = file.words(_CONTROLLER_LISTENERS)
        if _is_true(file, _FLAG) and names and names[0].upper() not in _mapped(file):
            yield Place(f"{file.file}: {_PROTOCOL_MAP}", names[0])


def _unmapped_brokers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.properties:
        name = file.get(_LISTENER)
        if name is not None and name.upper() not in _mapped(file):
            yield Place(f"{file.file}: {_PROTOCOL_MAP}", name)


def _brokers_without_flag(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if not _is_true(file, _FLAG):
            yield Place(f"{file.file}: {_FLAG}")


def _controllers_without_flag(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.controller_files():
        if not _is_true(file, _FLAG):
            yield Place(f"{file.file}: {_FLAG}")


def _controllers_without_zookeeper(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.controller_files():
        if _is_true(file, _FLAG) and not file.get("zookeeper.connect"):
            yield Place(f"{file.file}: zookeeper.connect")


def _chroot(file: ServerProperties) -> str:
    return (file.get("zookeeper.connect") or "").partition("/")[2].strip("/")


def _different_chroots(cluster: Cluster) -> Iterator[Place]:
    for controller in cluster.controller_files():
        for broker in cluster.broker_files():
            if controller.get("zookeeper.connect") and _chroot(controller) != _chroot(broker):
                place = f"{controller.file}: zookeeper.connect"
                yield Place(place, f"not the chroot of {broker.file}")
                break


def _listener_of(file: ServerProperties) -> str:
    return file.get(_LISTENER) or file.get("security.inter.broker.protocol") or "PLAINTEXT"


def _controller_listeners(cluster: Cluster) -> Iterator[Place]:
    for controller in cluster.controller_files():
        for broker in cluster.broker_files():
            if _listener_of(controller) != _listener_of(broker):
                detail = f"{_listener_of(controller)}, but {_listener_of(broker)} in {broker.file}"
                yield Place(f"{controller.file}: {_LISTENER}", detail)
                break


def _missing_listeners(cluster: Cluster) -> Iterator[Place]:
    for controller in cluster.controller_files():
        wanted = _listener_of(controller)
        for _, path, znode in cluster.children("/brokers/ids"):
            try:
                endpoints = object_in(znode.data).get("endpoints")
            except (ShapeError, UnreadableError):
                continue
            names = [str(e).partition("://")[0] for e in endpoints or () if isinstance(e, str)]
            if names and wanted not in names:
                yield Place(path, f"it has {some(names)}, not {wanted} of {controller.file}")


def _shared_ids(cluster: Cluster) -> Iterator[Place]:
    voters = {
        int(voter[1])
        for file in cluster.properties
        for word in file.words(_VOTERS)
        if (voter := _VOTER.match(word)) is not None
    }
    voters |= {
        file.node_id
        for file in cluster.controller_files()
        if file.node_id is not None and not file.words("process.roles")[1:]
    }
    for file in cluster.broker_files():
        if file.node_id in voters:
            yield Place(f"{file.file}: broker.id", f"{file.node_id} is a controller")
    for broker_id in sorted(voters & cluster.registered):
        yield Place(f"/brokers/ids/{broker_id}", f"{broker_id} is a controller")


def _scram_controllers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.properties:
        if (file.get(_CONTROLLER_MECHANISM) or "").upper().startswith("SCRAM-"):
            yield Place(f"{file.file}: {_CONTROLLER_MECHANISM}")


def _controller_authorizers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.properties:
        if not file.is_zookeeper_broker and file.get(_AUTHORIZER) == _ACL_AUTHORIZER:
            yield Place(f"{file.file}: {_AUTHORIZER}")


def _broker_authorizers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        if file.get(_AUTHORIZER) == _ACL_AUTHORIZER:
            yield Place(f"{file.file}: {_AUTHORIZER}")


def _own_authorizers(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.properties:
        name = file.get(_AUTHORIZER)
        if name not in (None, _ACL_AUTHORIZER, _STANDARD_AUTHORIZER):
            yield Place(f"{file.file}: {_AUTHORIZER}", str(name))


def _no_authorizer(cluster: Cluster) -> Iterator[Place]:
    if any(file.get(_AUTHORIZER) for file in cluster.broker_files()):
        for file in cluster.controller_files():
            if not file.get(_AUTHORIZER):
                yield Place(f"{file.file}: {_AUTHORIZER}")


def _no_super_users(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.controller_files():
        is_open = file.get("super.users") or _is_true(file, "allow.everyone.if.no.acl.found")
        if file.get(_AUTHORIZER) == _STANDARD_AUTHORIZER and not is_open:
            yield Place(f"{file.file}: super.users")


def _control_planes(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.properties:
        if file.get("control.plane.listener.name"):
            yield Place(f"{file.file}: control.plane.listener.name")


def _policies(cluster: Cluster) -> Iterator[Place]:
    for file in cluster.broker_files():
        for name in _POLICIES:
            if file.get(name):
                yield Place(f"{file.file}: {name}")


RULES: Final = (
    Rule(
        id="file-generated-id",
        what="A broker has a generated id, or none.",
        outcome=Outcome.DIES,
        effect="A broker with the migration's flag does not start.",
        log="broker.id generation is incompatible with ZooKeeper migration",
        remedy="Set broker.id to the id in meta.properties of the broker.",
        find=_generated_ids,
        issue="KAFKA-17543",
    ),
    Rule(
        id="file-level-low",
        what="The inter.broker.protocol.version of a broker is below 3.4.",
        outcome=Outcome.DIES,
        effect="A broker with the migration's flag does not start.",
        log="Cannot enable ZooKeeper migration without setting 'inter.broker.protocol.version'",
        remedy="Raise it to the level of the release in a rolling restart first.",
        find=_low_levels,
    ),
    Rule(
        id="file-level-of-old-controllers",
        what="The inter.broker.protocol.version of a broker is 3.4 or 3.5.",
        outcome=Outcome.DIES,
        effect="A controller at this level ends at its start, and at another level it rejects "
        "these brokers.",
        log="does not support ZK migrations. Cannot continue with ZK migrations enabled.",
        remedy="Raise it to 3.6 or later in a rolling restart first.",
        find=_levels_of_old_controllers,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-level-unknown",
        what="The inter.broker.protocol.version of a broker is not one of Kafka 3.9.",
        outcome=Outcome.DIES,
        effect="The broker does not start.",
        log="is not a valid version",
        remedy="Set the level of the release, 3.9.",
        find=_unknown_levels,
    ),
    Rule(
        id="file-levels-differ",
        what="Brokers have different inter.broker.protocol.versions.",
        outcome=Outcome.WAITS,
        effect="The controller rejects brokers whose level is not its metadata.version.",
        log="does not support finalized version",
        remedy="Set the same level on all brokers, and as --release-version of the controllers.",
        find=_different_levels,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-log-dirs",
        what="A broker below level 3.7 has several log folders.",
        outcome=Outcome.DIES,
        effect="A broker with the migration's flag does not start.",
        log="Cannot enable ZooKeeper migration with multiple log directories (aka JBOD)",
        remedy="Raise inter.broker.protocol.version to 3.7-IV2 or later first.",
        find=_several_log_dirs,
    ),
    Rule(
        id="file-broker-voters",
        what="A broker has the migration's flag, and does not know the controllers.",
        outcome=Outcome.DIES,
        effect="The broker does not start.",
        log="must contain a parseable set of controllers",
        remedy="Set controller.quorum.voters as on the controllers.",
        find=_no_voters,
    ),
    Rule(
        id="file-broker-listener-names",
        what="A broker has the migration's flag, and no controller.listener.names.",
        outcome=Outcome.DIES,
        effect="The broker does not start.",
        log="must not be empty when running in ZooKeeper migration mode",
        remedy="Set controller.listener.names as on the controllers.",
        find=_no_controller_listeners,
    ),
    Rule(
        id="file-broker-early",
        what="A broker has controller.listener.names, and not the migration's flag.",
        outcome=Outcome.DIES,
        effect="The broker does not start.",
        log="must be empty when not running in KRaft mode",
        remedy="Set zookeeper.metadata.migration.enable=true in the same restart.",
        find=_early_controller_listeners,
    ),
    Rule(
        id="file-controller-listener-map",
        what="A broker has no security protocol for the controllers' listener.",
        outcome=Outcome.DIES,
        effect="A broker with the migration's flag does not start.",
        log="No enum constant org.apache.kafka.common.security.auth.SecurityProtocol.",
        remedy="Add the controllers' listener to listener.security.protocol.map.",
        find=_unmapped_controllers,
    ),
    Rule(
        id="file-listener-map",
        what="There is no security protocol for inter.broker.listener.name.",
        outcome=Outcome.DIES,
        effect="The controller or broker does not start.",
        log="defined in inter.broker.listener.name not found in listener.security.protocol.map",
        remedy="Add the listener to listener.security.protocol.map, also on controllers.",
        find=_unmapped_brokers,
    ),
    Rule(
        id="file-broker-flag",
        what="A broker does not have the migration's flag yet.",
        outcome=Outcome.WAITS,
        effect="The controller waits until every broker has restarted with the flag.",
        log="Still waiting for ZK brokers",
        remedy="Set it, with the controllers' properties, in the rolling restart.",
        find=_brokers_without_flag,
        issue="KAFKA-14448",
        evidence=Evidence.LIVE,
        warns_only=True,
    ),
    Rule(
        id="file-controller-flag",
        what="A controller does not have the migration's flag.",
        outcome=Outcome.WAITS,
        effect="No migration begins. A controller that has run without it never migrates: its log "
        "says that there is nothing to migrate.",
        log="Still waiting for all controller nodes ready to begin the migration",
        remedy="Set zookeeper.metadata.migration.enable=true before the first start.",
        find=_controllers_without_flag,
        issue="KAFKA-14909",
    ),
    Rule(
        id="file-controller-zookeeper",
        what="A controller has the migration's flag, and no zookeeper.connect.",
        outcome=Outcome.DIES,
        effect="The controller does not start.",
        log="If using `zookeeper.metadata.migration.enable` in KRaft mode",
        remedy="Set zookeeper.connect as the brokers have it.",
        find=_controllers_without_zookeeper,
    ),
    Rule(
        id="file-chroot",
        what="A controller's chroot in ZooKeeper is not the brokers'.",
        outcome=Outcome.WAITS,
        effect="The controller finds no brokers.",
        log="No brokers are registered in ZK, waiting for brokers to register.",
        remedy="Set zookeeper.connect as the brokers have it.",
        find=_different_chroots,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-listener",
        what="A controller's inter.broker.listener.name is not the brokers'.",
        outcome=Outcome.WAITS,
        effect="The controller rejects the brokers, or cannot find their addresses.",
        log="Broker does not have the current inter.broker.listener",
        remedy="Set inter.broker.listener.name and the protocol map as the brokers have them.",
        find=_controller_listeners,
        issue="KAFKA-15670",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-listener-missing",
        what="A broker has no listener with the controllers' inter.broker.listener.name.",
        outcome=Outcome.WAITS,
        effect="The controller rejects this broker.",
        log="Broker does not have the current inter.broker.listener",
        remedy="Add the listener to the broker, or correct the controller's file.",
        find=_missing_listeners,
        issue="KAFKA-16468",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-ids-shared",
        what="A broker and a controller have the same id.",
        outcome=Outcome.DIES,
        effect="The migration begins, but this broker cannot start as a KRaft broker.",
        log="must not be included in the set of voters",
        remedy="Give the controllers ids that no broker has, such as 3000.",
        find=_shared_ids,
    ),
    Rule(
        id="file-scram-controllers",
        what="Controllers log in to each other with SCRAM.",
        outcome=Outcome.WAITS,
        effect="No controller knows the credentials before they are migrated, so that no quorum "
        "forms.",
        log="Authentication failed during authentication due to invalid credentials",
        remedy="Use PLAIN, GSSAPI or TLS for sasl.mechanism.controller.protocol.",
        find=_scram_controllers,
        issue="cp-ansible#1795",
    ),
    Rule(
        id="file-authorizer-of-kraft",
        what="A KRaft node has the authorizer for ZooKeeper.",
        outcome=Outcome.DIES,
        effect="The node does not start.",
        log="AclAuthorizer.configure",
        remedy="Set authorizer.class.name to StandardAuthorizer there.",
        find=_controller_authorizers,
        issue="cp-ansible#1805",
    ),
    Rule(
        id="file-authorizer-to-change",
        what="A broker has the authorizer for ZooKeeper.",
        outcome=Outcome.KEPT,
        effect="It must keep it in ZooKeeper mode, and cannot start with it as a KRaft broker.",
        log="AclAuthorizer.configure",
        remedy="Set StandardAuthorizer in the restart that makes it a KRaft broker.",
        find=_broker_authorizers,
    ),
    Rule(
        id="file-authorizer-own",
        what="An authorizer is not one of Kafka's.",
        outcome=Outcome.KEPT,
        effect="ACLs are migrated, whatever the authorizer does with them. One that uses "
        "ZooKeeper fails in KRaft mode.",
        log="",
        remedy="Ask its authors from which restart on it must use KRaft.",
        find=_own_authorizers,
    ),
    Rule(
        id="file-authorizer-missing",
        what="The brokers have an authorizer, and a controller has none.",
        outcome=Outcome.CHANGED,
        effect="The controller allows everyone everything, and rejects changes of ACLs.",
        log="",
        remedy="Set authorizer.class.name to StandardAuthorizer on the controllers.",
        find=_no_authorizer,
    ),
    Rule(
        id="file-super-users",
        what="A controller has an authorizer, and no super users.",
        outcome=Outcome.WAITS,
        effect="Before the migration there are no ACLs in KRaft, so that it rejects the brokers "
        "and itself.",
        log="ClusterAuthorizationException",
        remedy="Name the brokers' and the controllers' principals in super.users.",
        find=_no_super_users,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="file-control-plane",
        what="A control plane listener is set.",
        outcome=Outcome.KEPT,
        effect="It works in ZooKeeper mode. A KRaft node does not start with it.",
        log="control.plane.listener.name is not supported in KRaft mode.",
        remedy="Remove it in the restart that makes the broker a KRaft broker.",
        find=_control_planes,
        issue="KAFKA-17788",
    ),
    Rule(
        id="file-policy",
        what="A broker has a policy.",
        outcome=Outcome.CHANGED,
        effect="In KRaft, the controllers check policies, and an AlterConfigPolicy gets other "
        "arguments. 3.9.2 can pass them to ZooKeeper brokers in the same way "
        "(alter.config.policy.kraft.compatibility.enable).",
        log="",
        remedy="Set the policy on the controllers, and test it with KRaft.",
        find=_policies,
        issue="KIP-1252",
        warns_only=True,
    ),
)
