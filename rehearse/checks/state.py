"""Checks of the cluster's own znodes: controller, migration, brokers, producer ids, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from cluster_model.znodes.access import OPEN
from cluster_model.znodes.entity_names import desanitize
from cluster_model.znodes.layout import ClusterIdZnode
from cluster_model.znodes.values import INT32_MAX, INT64_MAX, ZnodeContentError
from rehearse.checks.clients import BAD_ESCAPE
from rehearse.checks.topics import some
from rehearse.cluster import (
    Cluster,
    ShapeError,
    UnreadableError,
    integer,
    java_int,
    object_in,
    string,
)
from rehearse.findings import Evidence, Outcome, Place, Rule
from rehearse.znodes import Hidden, Znode

_EPOCH: Final = "/controller_epoch"
_CONTROLLER: Final = "/controller"
_MIGRATION: Final = "/migration"
_PRODUCER_IDS: Final = "/latest_producer_id_block"
_TOKENS: Final = "/delegation_token/tokens"
_MIGRATION_KEYS: Final = (
    "kraft_controller_id",
    "kraft_controller_epoch",
    "kraft_metadata_offset",
    "kraft_metadata_epoch",
)
_NEVER_READ: Final = ("/cluster", "/feature", "/isr_change", "/log_dir_event", "/config/changes")
# ZooKeeper's server accepts requests of 1 MiB by default; Kafka's client replies of 4 MiB.
_REQUEST_BYTES_MAX: Final = 0xFFFFF
_REPLY_BYTES_MAX: Final = 4 << 20
_NEAR: Final = 0.8


def _epoch(cluster: Cluster) -> int | None:
    data = cluster.tree.data(_EPOCH)
    return java_int(data.decode("utf-8", "replace")) if data is not None else None


def _bad_epoch(cluster: Cluster) -> Iterator[Place]:
    znode = cluster.tree.znodes.get(_EPOCH)
    if znode is not None and znode.hidden is not None:
        return
    epoch = _epoch(cluster)
    if epoch is None:
        yield Place(_EPOCH, "it is not there" if znode is None else "it is not a number")
    elif epoch == INT32_MAX:
        yield Place(_EPOCH, "it has no successor")


def _kraft_epoch(cluster: Cluster) -> int:
    """Return the KRaft epoch in /controller; 0 or less if no KRaft controller wrote it."""
    znode = cluster.readable(_CONTROLLER)
    try:
        return integer(object_in(znode.data)["kraftControllerEpoch"]) if znode else 0
    except (KeyError, ShapeError, UnreadableError):
        return 0


def _kraft_owns(cluster: Cluster) -> Iterator[Place]:
    if (epoch := _kraft_epoch(cluster)) > 0:
        yield Place(_CONTROLLER, f"its KRaft epoch is {epoch}")


def _odd_controller(cluster: Cluster) -> Iterator[Place]:
    if (znode := cluster.readable(_CONTROLLER)) is None:
        return
    try:
        content = object_in(znode.data)
        integer(content.get("brokerid"))
        integer(content.get("kraftControllerEpoch", -1))
    except (ShapeError, UnreadableError) as error:
        yield Place(_CONTROLLER, str(error))


def _migration(cluster: Cluster) -> dict[str, Any] | None:
    """Return the content of /migration; None if there is no znode, no data, or no right.

    Raises:
        ShapeError, UnreadableError: Kafka cannot read it.
    """
    znode = cluster.readable(_MIGRATION)
    if znode is None or znode.data is None:
        return None
    content = object_in(znode.data)
    if integer(content.get("version")) != 0:
        raise ShapeError("its version is not 0")
    for key in _MIGRATION_KEYS:
        value = content.get(key)
        if key == "kraft_metadata_offset" and type(value) is int and abs(value) <= INT64_MAX:
            continue
        integer(value)
    return content


def _bad_migration(cluster: Cluster) -> Iterator[Place]:
    try:
        _migration(cluster)
    except (ShapeError, UnreadableError) as error:
        yield Place(_MIGRATION, str(error))


def _empty_migration(cluster: Cluster) -> Iterator[Place]:
    znode = cluster.readable(_MIGRATION)
    if znode is not None and znode.data is None:
        yield Place(_MIGRATION)


def _leftover_migration(cluster: Cluster) -> Iterator[Place]:
    try:
        content = _migration(cluster)
    except (ShapeError, UnreadableError):
        return
    if content is not None and content["kraft_metadata_offset"] > 0:
        offset, epoch = content["kraft_metadata_offset"], content["kraft_metadata_epoch"]
        yield Place(_MIGRATION, f"offset {offset}, KRaft epoch {epoch}")


def _epochs_above(cluster: Cluster) -> Iterator[Place]:
    epoch = _epoch(cluster)
    if epoch is None or _kraft_epoch(cluster) > 0:  # KRaft writes its own, lower epochs.
        return
    above = [
        (state.controller_epoch, cluster.state_path(topic, partition))
        for topic, partition, _, state in cluster.states
        if state.controller_epoch > epoch
    ]
    if above:
        highest, path = max(above)
        yield Place(path, f"{len(above):,} states; the highest epoch is {highest}, not {epoch}")


def _broker_names(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children("/brokers/ids"):
        if java_int(name) is None:
            yield Place(f"/brokers/ids/{name}")


def _stale_registrations(cluster: Cluster) -> Iterator[Place]:
    for name in cluster.tree.children("/brokers/ids"):
        if java_int(name) is not None and not cluster.tree.znodes[f"/brokers/ids/{name}"].ephemeral:
            yield Place(f"/brokers/ids/{name}")


def _listener_names(znode: Znode) -> frozenset[str] | None:
    """Return the names of a broker's listeners; None if they cannot be read."""
    try:
        endpoints = object_in(znode.data).get("endpoints")
    except (ShapeError, UnreadableError):
        return None
    if not isinstance(endpoints, list):
        return None
    return frozenset(str(endpoint).partition("://")[0] for endpoint in endpoints)


def _different_listeners(cluster: Cluster) -> Iterator[Place]:
    listeners = {
        path: names
        for _, path, znode in cluster.children("/brokers/ids")
        if (names := _listener_names(znode)) is not None
    }
    if listeners and not frozenset.intersection(*listeners.values()):
        yield Place(next(iter(listeners)), "no listener's name is the same on all brokers")


def _producer_ids(cluster: Cluster) -> Iterator[Place]:
    znode = cluster.readable(_PRODUCER_IDS)
    if znode is None or znode.data is None:
        return
    try:
        content = object_in(znode.data)
        integer(content.get("broker"))
        first, last = (_long(content.get(key)) for key in ("block_start", "block_end"))
        integer((last - first + 1 + 2**63) % 2**64 - 2**63)  # as Java's long, which wraps
    except (ShapeError, UnreadableError) as error:
        yield Place(_PRODUCER_IDS, str(error))


def _long(value: Any) -> int:
    if (number := java_int(string(value), INT64_MAX)) is None:
        raise ShapeError("it is not the number of a producer id")
    return number


def _lost_producer_ids(cluster: Cluster) -> Iterator[Place]:
    """Kafka creates the znode without data at its start, with version 0."""
    znode = cluster.tree.znodes.get(_PRODUCER_IDS)
    if znode is None:
        yield Place(_PRODUCER_IDS, "it is not there")
    elif znode.hidden is None and znode.data is None and znode.version > 0:
        yield Place(_PRODUCER_IDS, "it had data before")


def _token_problem(znode: Znode) -> UnreadableError | ShapeError | None:
    if not znode.data:
        return UnreadableError("it has no data")
    try:
        content = object_in(znode.data)
        if not 0 < (version := integer(content.get("version"))) <= 3:
            raise ShapeError("its version is unknown")
        principals = [content.get("owner")]
        principals += [content.get("tokenRequester")] if version == 3 else []
        renewers = content.get("renewers")
        if not isinstance(renewers, list):
            raise ShapeError("its renewers are not a JSON array")
        for stored in (*principals, *renewers):
            name = string(stored)
            if BAD_ESCAPE.search(name) or ":" not in (desanitize(name) or ""):
                raise ShapeError("a principal has no type")
        for key in ("issueTimestamp", "expiryTimestamp", "maxTimestamp"):
            if type(content.get(key)) is not int or abs(content[key]) > INT64_MAX:
                raise ShapeError(f"{key} is not a whole number")
        string(content.get("tokenId"))
    except (ShapeError, UnreadableError) as error:
        return error
    return None


def _unreadable_tokens(cluster: Cluster) -> Iterator[Place]:
    for _, path, znode in cluster.children(_TOKENS):
        if isinstance(problem := _token_problem(znode), UnreadableError):
            yield Place(path, str(problem))


def _odd_tokens(cluster: Cluster) -> Iterator[Place]:
    for _, path, znode in cluster.children(_TOKENS):
        if isinstance(problem := _token_problem(znode), ShapeError):
            yield Place(path, str(problem))


def _old_tokens(cluster: Cluster) -> Iterator[Place]:
    for _, path, znode in cluster.children(_TOKENS):
        if _token_problem(znode) is None and object_in(znode.data)["version"] < 3:
            yield Place(path)


def _renamed_tokens(cluster: Cluster) -> Iterator[Place]:
    for name, path, znode in cluster.children(_TOKENS):
        if _token_problem(znode) is None and object_in(znode.data)["tokenId"] != name:
            yield Place(path)


def _tokens_without_key(cluster: Cluster) -> Iterator[Place]:
    keys = ("delegation.token.secret.key", "delegation.token.master.key")
    files = list(cluster.controller_files())
    tokens = cluster.tree.children(_TOKENS)
    if tokens and not (files and all(any(map(file.get, keys)) for file in files)):
        yield Place(_TOKENS, f"{len(tokens):,} tokens")


def _no_cluster_id(cluster: Cluster) -> Iterator[Place]:
    znode = cluster.tree.znodes.get(ClusterIdZnode.path)
    if znode is not None and znode.hidden is not None:
        return
    try:
        ClusterIdZnode.decode(None if znode is None else znode.data)
    except ZnodeContentError:
        yield Place(ClusterIdZnode.path, "it is not there" if znode is None else "unreadable")


def _denied(cluster: Cluster) -> Iterator[Place]:
    paths = [path for path, znode in cluster.tree.znodes.items() if znode.hidden is Hidden.NO_AUTH]
    if paths:
        yield Place(paths[0], f"{len(paths):,} znodes cannot be read with these credentials")


def _restricted(cluster: Cluster) -> Iterator[Place]:
    """One place for each different ACL. A digest is not shown."""
    counts: Counter[tuple[Any, ...]] = Counter()
    first: dict[tuple[Any, ...], str] = {}
    for path, znode in cluster.tree.znodes.items():
        if znode.acls is not None and znode.acls != OPEN:
            counts[znode.acls] += 1
            first.setdefault(znode.acls, path)
    for acls, count in counts.most_common():
        who = [acl.scheme if acl.scheme == "digest" else f"{acl.scheme}:{acl.id}" for acl in acls]
        yield Place(first[acls], f"{count:,} znodes with an ACL of {some(who)}")


def _large(cluster: Cluster) -> Iterator[Place]:
    for path, znode in cluster.tree.znodes.items():
        size = len(znode.data or b"")
        if size > _REQUEST_BYTES_MAX * _NEAR and not path.startswith(_NEVER_READ):
            yield Place(path, f"{size:,} bytes")


def _long_lists(cluster: Cluster) -> Iterator[Place]:
    for path in cluster.tree.parents():
        size = sum(len(name.encode()) + 4 for name in cluster.tree.children(path))
        if size > _REPLY_BYTES_MAX * _NEAR:
            yield Place(path, f"a list of {size:,} bytes")


RULES: Final = (
    Rule(
        id="controller-epoch",
        what="/controller_epoch is missing or no usable number.",
        outcome=Outcome.WAITS,
        effect="The controller cannot take /controller, and tries again and again.",
        log="Unhandled error in BecomeZkControllerEvent",
        remedy="Write a number that is not below the last epoch into {where}.",
        find=_bad_epoch,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="controller-of-kraft",
        what="/controller belongs to a KRaft controller.",
        outcome=Outcome.WAITS,
        effect="A new controller waits until its own epoch is higher. If a migration is running, "
        "this is as it should be.",
        log="as the current controller register in ZK has the same or newer epoch",
        remedy="After a rollback: stop all KRaft controllers, then delete {where}.",
        find=_kraft_owns,
        issue="KAFKA-16101",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="controller-unreadable",
        what="/controller cannot be read.",
        outcome=Outcome.WAITS,
        effect="The controller cannot take /controller, and tries again and again.",
        log="Encountered zk migration fault: Unhandled error in BecomeZkControllerEvent",
        remedy="Delete {where}: a ZooKeeper broker is elected and writes it again.",
        find=_odd_controller,
    ),
    Rule(
        id="migration-unreadable",
        what="/migration cannot be read.",
        outcome=Outcome.WAITS,
        effect="The controller waits in its first state.",
        log="Encountered zk migration fault",
        remedy="Delete {where}.",
        find=_bad_migration,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="migration-empty",
        what="/migration has no data; zookeeper-security-migration.sh creates it so.",
        outcome=Outcome.WAITS,
        effect="Kafka 3.9.1 waits in its first state. Kafka 3.9.2 writes it again.",
        log="Encountered zk migration fault",
        remedy="Delete {where}.",
        find=_empty_migration,
        evidence=Evidence.LIVE,
        issue="KAFKA-19480",
        outcome_3_9_2=Outcome.KEPT,
    ),
    Rule(
        id="migration-leftover",
        what="/migration says that a migration has been done.",
        outcome=Outcome.DELETED,
        effect="A controller with a new log reads nothing from ZooKeeper, and deletes all topics "
        "and ACLs there. If a migration is running, this is as it should be.",
        log="when reconciling with KRaft state: {DeleteAcl=",
        remedy="After a rollback, delete {where} before the next attempt.",
        find=_leftover_migration,
        issue="KAFKA-17146",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="epoch-behind-states",
        what="The states of partitions have a higher epoch than /controller_epoch.",
        outcome=Outcome.KEPT,
        effect="The migration is not affected. But ZooKeeper controllers cannot elect leaders of "
        "these partitions, now and after a rollback.",
        log="since the LeaderAndIsr path was already written by another controller",
        remedy="Write a higher number into /controller_epoch, then delete /controller.",
        find=_epochs_above,
        issue="KAFKA-20488",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-id-odd",
        what="A znode in /brokers/ids is not a number.",
        outcome=Outcome.WAITS,
        effect="The controller fails at this name, again and again.",
        log="NumberFormatException: For input string",
        remedy="Delete {where}.",
        find=_broker_names,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-stale",
        what="A broker is registered, but by no session.",
        outcome=Outcome.WAITS,
        effect="The controller waits until this broker registers.",
        log="Still waiting for ZK brokers",
        remedy="Delete {where}, unless the broker is going to start.",
        find=_stale_registrations,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="broker-listeners-differ",
        what="The brokers have no listener name in common.",
        outcome=Outcome.WAITS,
        effect="The controller rejects brokers without its inter.broker.listener.name.",
        log="Broker does not have the current inter.broker.listener",
        remedy="Give all brokers one listener with the same name.",
        find=_different_listeners,
        issue="KAFKA-15670",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="producer-ids-unreadable",
        what="The last block of producer ids cannot be read.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Aborting the metadata migration from ZooKeeper to KRaft",
        remedy="Write the next block into {where}; without data, ids begin at 0 again.",
        find=_producer_ids,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="producer-ids-lost",
        what="The znode with the last block of producer ids was deleted or emptied.",
        outcome=Outcome.KEPT,
        effect="Producer ids begin at 0. If producers have ids already, two may have the same.",
        log="",
        remedy="If idempotent producers are in use, write the next block into {where}.",
        find=_lost_producer_ids,
        issue="KAFKA-15552",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="token-unreadable",
        what="A delegation token cannot be read.",
        outcome=Outcome.DELETED,
        effect="The token is not migrated, and is deleted in ZooKeeper.",
        log="DeleteDelegationToken=",
        remedy="Delete {where}, and create a new token.",
        find=_unreadable_tokens,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="token-odd",
        what="A delegation token has an unexpected content.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Aborting the metadata migration from ZooKeeper to KRaft",
        remedy="Delete {where}, and create a new token.",
        find=_odd_tokens,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="token-old",
        what="A delegation token has an old format.",
        outcome=Outcome.CHANGED,
        effect="Its owner becomes its requester, and it is written again in the new format.",
        log="",
        remedy="Nothing, or create a new token.",
        find=_old_tokens,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="token-renamed",
        what="A delegation token is stored under another id.",
        outcome=Outcome.CHANGED,
        effect="KRaft takes the id in the content; the znode is deleted and a new one is written.",
        log="DeleteDelegationToken=",
        remedy="Delete {where}, and create a new token.",
        find=_renamed_tokens,
    ),
    Rule(
        id="tokens-without-key",
        what="There are delegation tokens, and no controller is known to have the key.",
        outcome=Outcome.KEPT,
        effect="A controller without delegation.token.secret.key has the tokens, but no client "
        "can log in with them.",
        log="Invalid key to HMAC computation",
        remedy="Set delegation.token.secret.key on the controllers, and scan with their files.",
        find=_tokens_without_key,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="cluster-id",
        what="/cluster/id is missing or cannot be read.",
        outcome=Outcome.KEPT,
        effect="The controller does not read it, but its log must be formatted with this id.",
        log="",
        remedy="Take the id from meta.properties of a broker.",
        find=_no_cluster_id,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="access-denied",
        what="Some znodes cannot be read.",
        outcome=Outcome.WAITS,
        effect="A controller with these credentials cannot read them either.",
        log="NoAuth for",
        remedy="Scan with the brokers' identity, and give it to the controllers.",
        find=_denied,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="access-restricted",
        what="The ACLs of znodes allow only certain identities.",
        outcome=Outcome.KEPT,
        effect="The controllers must log in to ZooKeeper as the brokers do, else they fail.",
        log="Encountered ZooKeeper authentication in",
        remedy="Give the controllers the brokers' ZooKeeper identity (JAAS or TLS).",
        find=_restricted,
    ),
    Rule(
        id="znode-large",
        what="A znode is near the size that a ZooKeeper server accepts by default.",
        outcome=Outcome.KEPT,
        effect="It is copied. If it grows, the controller cannot write it back any more.",
        log="Packet len",
        remedy="Raise jute.maxbuffer on all servers and controllers, or split it up.",
        find=_large,
    ),
    Rule(
        id="children-large",
        what="A list of names is near the size that Kafka's client accepts by default.",
        outcome=Outcome.WAITS,
        effect="If it grows, the controller cannot read it: its connection breaks each time.",
        log="Packet len",
        remedy="Raise jute.maxbuffer on the controllers, or delete znodes.",
        find=_long_lists,
        warns_only=True,
    ),
)
