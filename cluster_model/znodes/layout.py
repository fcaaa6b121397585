"""The znodes: their paths and contents (docs/kafka/znodes.md).

One class per kind of znode; most have `path`, `encode` and `decode`. JSON has no spaces, and its
keys are in the order of Kafka 3.9.1; decoders accept any order and spaces. Because other processes
write to ZooKeeper too, every decoder raises `ZnodeContentError` for invalid content.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from cluster_model.image import BrokerRegistration, Endpoint
from cluster_model.records import (
    PRODUCER_IDS_PER_BLOCK,
    ConfigResource,
    PartitionState,
    ProducerIds,
    Replicas,
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


class ZnodeContentError(Exception):
    """The content of a znode is invalid."""


@contextmanager
def _decoding(path: str) -> Iterator[None]:
    """Convert the exceptions of decoding into ZnodeContentError with the path."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, ZnodeContentError) as error:
        raise ZnodeContentError(f"{path}: {error!r}") from None


def _json(data: bytes | None, path: str) -> dict[str, Any]:
    with _decoding(path):
        value = orjson.loads(data or b"")
        if not isinstance(value, dict):
            raise TypeError("not a JSON object")
    return value


def encode_uuid(uuid: bytes) -> str:
    """Return a UUID as Kafka's text: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """Return the 16 bytes of a UUID's text."""
    with _decoding(f"the UUID {text!r}"):
        uuid = base64.urlsafe_b64decode(text + "==")
        if len(uuid) != 16:
            raise ValueError("not 16 bytes")
    return uuid


class ControllerZnode:
    """/controller: ephemeral, the active controller."""

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
        value = _json(data, "/controller").get("brokerid")
        if not isinstance(value, int):
            raise ZnodeContentError("/controller has no brokerid")
        return value


class ControllerEpochZnode:
    """/controller_epoch: a decimal number; multis are fenced by the znode's version."""

    path: Final = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        """Return the epoch as decimal text."""
        return b"%d" % epoch

    @staticmethod
    def decode(data: bytes | None) -> int:
        """Return the epoch."""
        with _decoding("/controller_epoch"):
            if not (data or b"").isdigit():
                raise ValueError(f"{data!r} is not an epoch")
            return int(data or b"")


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


class FloorZnode:
    """/bridgehead/floors/<broker>-<incarnation>: the sequence below which all requests are done."""

    @staticmethod
    def path(broker_id: int, incarnation: str) -> str:
        """Return the path of one incarnation."""
        return f"/bridgehead/floors/{broker_id}-{incarnation}"


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
    def decode(data: bytes | None) -> NodeAddress:
        """Return the address."""
        value = _json(data, "/bridgehead/nodes")
        return NodeAddress(str(value.get("grpc", "")), str(value.get("incarnation", "")))


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
        return str(_json(data, "/cluster/id").get("id", ""))


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
        value = _json(data, path)
        endpoints = []
        with _decoding(path):
            protocols = value.get("listener_security_protocol_map") or {}
            plain = f"PLAINTEXT://{value.get('host')}:{value.get('port')}"
            for text in value.get("endpoints") or [plain]:
                name, _, address = text.partition("://")
                host, _, port = address.rpartition(":")
                endpoints.append(
                    Endpoint(name, protocols.get(name, name), host.strip("[]"), int(port))
                )
        return BrokerRegistration(
            broker_id, epoch, tuple(endpoints), value.get("rack"), incarnation
        )


class TopicContent(NamedTuple):
    """The content of /brokers/topics/<topic>. `topic_id` is None if there is none."""

    assignment: tuple[Replicas, ...]
    topic_id: bytes | None
    adding: Mapping[int, Replicas]
    removing: Mapping[int, Replicas]


# A controller loads up to 100,000 lists of replicas, and few of them differ.
@lru_cache(maxsize=1024)
def _replicas(*broker_ids: int) -> Replicas:
    return tuple(map(int, broker_ids))


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
        value = _json(data, f"/brokers/topics/{topic}")
        with _decoding(f"/brokers/topics/{topic}"):
            stored = value["partitions"]
            assignment = tuple([_replicas(*stored[str(p)]) for p in range(len(stored))])
            adding, removing = (
                {int(p): _replicas(*r) for p, r in (value.get(key) or {}).items()}
                for key in ("adding_replicas", "removing_replicas")
            )
            if not all(p in range(len(assignment)) for p in (*adding, *removing)):
                raise ValueError("a reassigned partition does not exist")
            text = value.get("topic_id")
            topic_id = decode_uuid(text) if text else None
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
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            path = PartitionZnode.path(topic, partition)
            raise ZnodeContentError(f"{path}: {error!r}") from None


# A controller loads and writes up to 100,000 states, and few of them differ.
@lru_cache(maxsize=1024)
def _partition_state(data: bytes | None, version: int) -> PartitionState:
    value = orjson.loads(data or b"")
    return PartitionState(
        int(value["leader"]),
        int(value["leader_epoch"]),
        tuple(map(int, value["isr"])),
        int(value["controller_epoch"]),
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
        configs = _json(data, path).get("config") or {}
        if not isinstance(configs, dict):
            raise ZnodeContentError(f"{path}: config is not an object")
        return {str(key): str(value) for key, value in configs.items()}


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
        value = _json(data, "/config/changes")
        if value.get("version") == 1:
            return ConfigResource(str(value.get("entity_type")), str(value.get("entity_name")))
        entity_type, _, entity_name = str(value.get("entity_path", "")).partition("/")
        if not entity_name:
            raise ZnodeContentError("a config change has no entity_path")
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
        value = _json(data, ProducerIdBlockZnode.path)
        with _decoding(ProducerIdBlockZnode.path):
            return ProducerIds(int(value["block_end"]) + 1, version)


class FeatureZnode:
    """/feature: the finalized features; none in ZooKeeper mode."""

    path: Final = "/feature"
    content: Final = b'{"features":{},"version":2,"status":1}'
