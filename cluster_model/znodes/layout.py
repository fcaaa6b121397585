"""The znodes: their paths and contents (docs/kafka/znodes.md).

One class per kind of znode; most have `path`, `encode` and `decode`. JSON has no spaces, and its
keys are in the order of Kafka 3.9.1; decoders accept any order and spaces. Because other processes
write to ZooKeeper too, every decoder raises `ZnodeContentError` for invalid content
(`cluster_model.znodes.values`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from cluster_model.image import PROTOCOL_CODES, BrokerRegistration, Endpoint
from cluster_model.records import (
    NO_LEADER,
    PRODUCER_IDS_PER_BLOCK,
    ConfigResource,
    PartitionState,
    ProducerIds,
    Replicas,
)
from cluster_model.topic_names import has_valid_path, is_legal
from cluster_model.znodes.values import (
    INT32_MAX,
    INT64_MAX,
    TEXT_BYTES_MAX,
    ZnodeContentError,
    decimal,
    decoding,
    int32,
    json_object,
    list_of,
    number_of,
    object_of,
    shortened,
    string,
    text,
)

# Kafka creates these at start-up, in this order, with their parents.
START_UP_PATHS: Final = (
    "/consumers",
    "/brokers/ids",
    "/brokers/topics",
    "/config/changes",
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)
# Bridgehead's own: node addresses, and the state for exactly-once execution.
BRIDGEHEAD_PATHS: Final = (
    *("/bridgehead", "/bridgehead/nodes", "/bridgehead/outcomes", "/bridgehead/floors"),
)
DEFAULT_ENTITY: Final = "<default>"
CONFIG_TYPES: Final = ("topics", "brokers", "users", "clients", "ips")


# A controller increments leader epochs and epochs. A stored one leaves room for that.
LEADER_EPOCH_MAX: Final = INT32_MAX - 1_000_000
CONTROLLER_EPOCH_MAX: Final = INT32_MAX - 1
_PORT_MAX: Final = 65_535
_REPLICAS_MAX: Final = 32_767  # the replication factor is INT16
_INCARNATION: Final = re.compile(r"[A-Za-z0-9_-]{0,64}\Z")


def encode_uuid(uuid: bytes) -> str:
    """Return a UUID as Kafka's text: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def decode_uuid(encoded: str) -> bytes:
    """Return the 16 bytes of a UUID's text. Raises ValueError."""
    uuid = base64.urlsafe_b64decode(text(encoded) + "==")
    if len(uuid) != 16:
        raise ValueError("a UUID that has not 16 bytes")
    return uuid


class ControllerZnode:
    """/controller: the active controller. Ephemeral, unless a KRaft controller wrote it."""

    path: Final = "/controller"

    @staticmethod
    def encode(broker_id: int, timestamp_ms: int) -> bytes:
        """Return the content, as a broker of Kafka 3.4 or later writes it."""
        return b'{"version":2,"brokerid":%d,"timestamp":"%d","kraftControllerEpoch":-1}' % (
            broker_id,
            timestamp_ms,
        )

    @staticmethod
    def decode(data: bytes | None) -> int:
        """Return the broker id of the controller."""
        value = json_object(data, ControllerZnode.path)
        with decoding(ControllerZnode.path):
            return int32(value["brokerid"])

    @staticmethod
    def is_krafts(data: bytes | None) -> bool:
        """Return whether a KRaft controller wrote the znode. Its id is then no broker's."""
        value = json_object(data, ControllerZnode.path)
        with decoding(ControllerZnode.path):
            return int32(value.get("kraftControllerEpoch", -1), -1) >= 0


class ControllerEpochZnode:
    """/controller_epoch: a decimal number; multis are fenced by the znode's version."""

    path: Final = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        """Return the epoch as decimal text."""
        return b"%d" % epoch

    @staticmethod
    def decode(data: bytes | None) -> int:
        """Return the epoch. No controller can be elected after a higher one."""
        try:
            return decimal(data or b"", CONTROLLER_EPOCH_MAX)
        except ValueError:
            raise ZnodeContentError(
                f"{ControllerEpochZnode.path} is invalid, so no controller can be elected: write a "
                f"number from 0 to {CONTROLLER_EPOCH_MAX}, not below the last epoch"
            ) from None


class CommitZnode:
    """/bridgehead/commit: the number of the last metadata multi (docs/adr/0003)."""

    path: Final = "/bridgehead/commit"


class OutcomeZnode:
    """/bridgehead/outcomes/<commit>: the outcomes that the metadata multi <commit> wrote."""

    parent: Final = "/bridgehead/outcomes"

    @staticmethod
    def path(commit: int) -> str:
        """Return the path of one commit."""
        return f"/bridgehead/outcomes/{commit:010}"

    @staticmethod
    def commit_of(name: str) -> int | None:
        """Return the commit of a znode's name; None if no commit has this name."""
        return int(name) if re.fullmatch("[0-9]{10}|[1-9][0-9]{10,14}", name) else None


class FloorZnode:
    """/bridgehead/floors/<broker>-<incarnation>: the sequence below which all requests are done."""

    @staticmethod
    def path(broker_id: int, incarnation: str) -> str:
        """Return the path of one incarnation."""
        return f"/bridgehead/floors/{broker_id}-{incarnation}"

    @staticmethod
    def decode(name: str, data: bytes | None) -> tuple[tuple[int, str], int]:
        """Return broker id and incarnation, and the floor."""
        broker_id, _, incarnation = name.partition("-")
        with decoding(f"/bridgehead/floors/{name}"):
            if (number := number_of(broker_id)) is None:
                raise ValueError("the name has no broker id")
            return (number, decode_incarnation(incarnation)), decimal(data or b"")


def decode_incarnation(value: Any) -> str:
    """Return an incarnation, which is part of the names of znodes. Raises ValueError."""
    if not isinstance(value, str) or not _INCARNATION.match(value):
        raise ValueError("the incarnation is not a short word")
    return value


class NodeAddress(NamedTuple):
    """The gRPC address and the incarnation of a node."""

    grpc: str  # host:port
    incarnation: str


class NodeZnode:
    """/bridgehead/nodes/<id>: ephemeral, the address of a node."""

    @staticmethod
    def path(broker_id: int) -> str:
        """Return the path of one node."""
        return f"/bridgehead/nodes/{broker_id}"

    @staticmethod
    def encode(address: NodeAddress) -> bytes:
        """Return the content."""
        return orjson.dumps(
            {"version": 1, "grpc": address.grpc, "incarnation": address.incarnation}
        )

    @staticmethod
    def decode(path: str, data: bytes | None) -> NodeAddress:
        """Return the address."""
        value = json_object(data, path)
        with decoding(path):
            address = text(value["grpc"])
            _host_and_port(address)
            return NodeAddress(address, decode_incarnation(value["incarnation"]))


class ClusterIdZnode:
    """/cluster/id: created by the first broker."""

    path: Final = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        """Return the content; here Kafka writes the version as a string."""
        return b'{"version":"1","id":"%s"}' % cluster_id.encode()

    @staticmethod
    def decode(data: bytes | None) -> str:
        """Return the cluster id."""
        value = json_object(data, ClusterIdZnode.path)
        with decoding(ClusterIdZnode.path):
            return text(value["id"])


class BrokerIdZnode:
    """/brokers/ids/<id>: ephemeral, a live broker. Its czxid is the broker epoch."""

    @staticmethod
    def path(broker_id: int) -> str:
        """Return the path of one broker."""
        return f"/brokers/ids/{broker_id}"

    @staticmethod
    def encode(registration: BrokerRegistration, timestamp_ms: int) -> bytes:
        """Return the content, version 5."""
        plaintext = next(
            (e for e in registration.endpoints if e.security_protocol == "PLAINTEXT"), None
        )
        value: dict[str, Any] = {
            "features": {},
            "listener_security_protocol_map": {
                e.listener_name: e.security_protocol for e in registration.endpoints
            },
            "endpoints": [f"{e.listener_name}://{e.host}:{e.port}" for e in registration.endpoints],
        }
        if registration.rack is not None:
            value["rack"] = registration.rack
        value |= {
            "jmx_port": -1,
            "port": plaintext.port if plaintext else -1,
            "host": plaintext.host if plaintext else None,
            "version": 5,
            "timestamp": str(timestamp_ms),
        }
        return orjson.dumps(value)

    @staticmethod
    def decode(
        broker_id: int, epoch: int, data: bytes | None, incarnation: str = ""
    ) -> BrokerRegistration:
        """Read versions 1 to 5; version 1 has only a host and a port."""
        path = BrokerIdZnode.path(broker_id)
        value = json_object(data, path)
        with decoding(path):
            protocols = object_of(value.get("listener_security_protocol_map"))
            plain = f"PLAINTEXT://{value.get('host')}:{value.get('port')}"
            stored = list_of(value.get("endpoints") or [plain])
            endpoints = tuple(_endpoint(text(endpoint), protocols) for endpoint in stored)
            rack = value.get("rack")
            return BrokerRegistration(
                broker_id, epoch, endpoints, None if rack is None else text(rack), incarnation
            )


def _endpoint(stored: str, protocols: Mapping[str, Any]) -> Endpoint:
    name, _, address = stored.partition("://")
    protocol = protocols.get(name, name)
    if text(protocol) not in PROTOCOL_CODES:
        raise ValueError(f"{protocol!r} is not a security protocol")
    host, port = _host_and_port(address)
    return Endpoint(name, protocol, host.strip("[]"), port)


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host:
        raise ValueError(f"{address!r} is not of the form host:port")
    return host, decimal(port, _PORT_MAX)


class TopicContent(NamedTuple):
    """The content of /brokers/topics/<topic>. `topic_id` is None if there is none."""

    assignment: tuple[Replicas, ...]
    topic_id: bytes | None
    adding: Mapping[int, Replicas]
    removing: Mapping[int, Replicas]


# A controller loads up to 100,000 lists of replicas, and few of them differ.
@lru_cache(maxsize=1024, typed=True)  # 1, 1.0 and true are different in JSON
def _replicas(*broker_ids: Any) -> Replicas:
    if len(broker_ids) > _REPLICAS_MAX:
        raise ValueError(f"{len(broker_ids)} replicas")
    return tuple(map(int32, broker_ids))


class TopicZnode:
    """/brokers/topics/<topic>: replicas, topic id and reassignments."""

    @staticmethod
    def path(topic: str) -> str:
        """Return the path of one topic."""
        return f"/brokers/topics/{topic}"

    @staticmethod
    def encode(
        assignment: Sequence[Replicas],
        topic_id: bytes,
        adding: Mapping[int, Replicas],
        removing: Mapping[int, Replicas],
    ) -> bytes:
        """Return the content, version 3."""
        return orjson.dumps(
            {
                "partitions": {str(p): replicas for p, replicas in enumerate(assignment)},
                "topic_id": encode_uuid(topic_id),
                "adding_replicas": {str(p): replicas for p, replicas in adding.items()},
                "removing_replicas": {str(p): replicas for p, replicas in removing.items()},
                "version": 3,
            }
        )

    @staticmethod
    def decode(topic: str, data: bytes | None) -> TopicContent:
        """Read versions 1 to 3. Partition numbers must be 0 to n-1."""
        path = f"/brokers/topics/{topic}"
        value = json_object(data, path)
        with decoding(path):
            if not is_legal(topic):
                raise ValueError("not a valid topic name")
            stored = object_of(value["partitions"])
            assignment = tuple([_replicas(*list_of(stored[str(p)])) for p in range(len(stored))])
            if not all(assignment):
                raise ValueError("a partition has no replicas")
            adding, removing = (
                {decimal(p): _replicas(*list_of(r)) for p, r in object_of(value.get(key)).items()}
                for key in ("adding_replicas", "removing_replicas")
            )
            if not all(p < len(assignment) for p in (*adding, *removing)):
                raise ValueError("a reassigned partition does not exist")
            encoded = value.get("topic_id")
            topic_id = decode_uuid(encoded) if encoded else None
        return TopicContent(assignment, topic_id, adding, removing)


class PartitionZnode:
    """/brokers/topics/<topic>/partitions/<p>/state: leader and ISR."""

    @staticmethod
    def parent(topic: str) -> str:
        """Return the parent path of the partitions of a topic."""
        return f"/brokers/topics/{topic}/partitions"

    @staticmethod
    def path(topic: str, partition: int) -> str:
        """Return the path of one partition's state."""
        return f"/brokers/topics/{topic}/partitions/{partition}/state"

    @staticmethod
    @lru_cache(maxsize=1024)
    def encode(state: PartitionState) -> bytes:
        """Return the content; the recovery state is omitted unless the leader is recovering."""
        recovery = b',"leader_recovery_state":1' if state.recovering else b""
        return b'{"controller_epoch":%d,"leader":%d,"version":1,"leader_epoch":%d,"isr":[%s]%s}' % (
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            ",".join(map(str, state.isr)).encode(),
            recovery,
        )

    @staticmethod
    def decode(topic: str, partition: int, data: bytes | None, version: int) -> PartitionState:
        """Read the state; `version` is the znode's data version, the partition epoch."""
        try:
            return _partition_state(data, version)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Only an error needs the path. Entering `decoding` takes longer than a cached state.
            with decoding(PartitionZnode.path(topic, partition)):
                return _partition_state(data, version)


# A controller loads and writes up to 100,000 states, and few of them differ.
@lru_cache(maxsize=1024)
def _partition_state(data: bytes | None, version: int) -> PartitionState:
    value = object_of(orjson.loads(data or b""))
    epoch = int32(value["leader_epoch"])
    if epoch > LEADER_EPOCH_MAX:
        raise ValueError(f"the leader epoch {epoch} leaves no room for elections")
    return PartitionState(
        int32(value["leader"], NO_LEADER),
        epoch,
        _replicas(*list_of(value["isr"])),
        int32(value["controller_epoch"]),
        version,
        value.get("leader_recovery_state", 0) == 1,
    )


class ConfigZnode:
    """/config/<type>/<entity>: the config overrides of one entity."""

    @staticmethod
    def path(resource: ConfigResource) -> str:
        """Return the path of one entity."""
        return f"/config/{resource.entity_type}/{resource.entity_name}"

    @staticmethod
    def encode(configs: Mapping[str, str]) -> bytes:
        """Return the content, version 1."""
        return orjson.dumps({"version": 1, "config": dict(configs)})

    @staticmethod
    def decode(path: str, data: bytes | None) -> dict[str, str]:
        """Read the overrides; a znode without data or without `config` has none."""
        if not data:
            return {}
        configs = json_object(data, path).get("config")
        with decoding(path):
            return {key: _config_text(value) for key, value in object_of(configs).items()}

    @staticmethod
    def name_error(resource: ConfigResource) -> str | None:
        """Return why no entity has this name; None if it is valid."""
        if len(resource.entity_name.encode()) > TEXT_BYTES_MAX:
            return f"{shortened(ConfigZnode.path(resource))}: the name is too long"
        return None


def _config_text(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else string(value)


def notification_number(name: str, word: str) -> int | None:
    """Return the number of a change notification, such as `config_change_0000000007`.

    None: the name is foreign. ZooKeeper's numbers become negative after 31 bits.
    """
    digits = name.removeprefix(word)
    is_ours = digits != name and re.fullmatch("-?[0-9]{1,19}", digits) is not None
    return int(digits) if is_ours else None


class ConfigChangeZnode:
    """/config/changes/config_change_<n>: notifies brokers of a changed entity."""

    parent: Final = "/config/changes"
    prefix: Final = "/config/changes/config_change_"

    @staticmethod
    def encode(resource: ConfigResource) -> bytes:
        """Return the content, version 2."""
        return orjson.dumps(
            {"version": 2, "entity_path": f"{resource.entity_type}/{resource.entity_name}"}
        )

    @staticmethod
    def decode(data: bytes | None) -> ConfigResource:
        """Read versions 1 and 2."""
        path = ConfigChangeZnode.parent
        value = json_object(data, path)
        with decoding(path):
            if value.get("version") == 1:
                entity_type, entity_name = text(value["entity_type"]), text(value["entity_name"])
            else:
                entity_type, _, entity_name = text(value["entity_path"]).partition("/")
            if entity_type not in CONFIG_TYPES or not has_valid_path(entity_name):
                raise ValueError(f"{entity_type}/{entity_name} cannot have configs")
        return ConfigResource(entity_type, entity_name)


class DeletionMarkerZnode:
    """/admin/delete_topics/<topic>: marks a topic for deletion."""

    parent: Final = "/admin/delete_topics"

    @staticmethod
    def path(topic: str) -> str:
        """Return the path of one marker."""
        return f"/admin/delete_topics/{topic}"


class ProducerIdBlockZnode:
    """/latest_producer_id_block: the last allocated block of producer ids, or empty."""

    path: Final = "/latest_producer_id_block"

    @staticmethod
    def encode(broker_id: int, first_id: int) -> bytes:
        """Return the content."""
        last_id = first_id + PRODUCER_IDS_PER_BLOCK - 1
        text = '{"version":1,"broker":%d,"block_start":"%d","block_end":"%d"}'
        return (text % (broker_id, first_id, last_id)).encode()

    @staticmethod
    def decode(data: bytes | None, version: int) -> ProducerIds:
        """Read the last block; `version` is the znode's data version."""
        if not data:
            return ProducerIds(0, version)
        value = json_object(data, ProducerIdBlockZnode.path)
        with decoding(ProducerIdBlockZnode.path):
            return ProducerIds(decimal(text(value["block_end"]), INT64_MAX - 1) + 1, version)


class FeatureZnode:
    """/feature: the finalized features; none in ZooKeeper mode."""

    path: Final = "/feature"
    content: Final = b'{"features":{},"version":2,"status":1}'
