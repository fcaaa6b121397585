"""Reads the part of the metadata that the decision of a direct write needs."""

from __future__ import annotations

from typing import cast

from immutables import Map

from bridgehead.kafka_wire.api_key import ApiKey
from cluster_model.direct_writes import ACL_WRITES, CONFIG_WRITES, TOKEN_WRITES
from cluster_model.image import MetadataImage, Topic, index_collisions
from cluster_model.records import ConfigResource
from cluster_model.topic_names import collision_key, has_valid_path, is_legal
from cluster_model.znodes.layout import DeletionMarkerZnode
from controller.apis.config_changes import BROKER, CLUSTER_DEFAULT, TOPIC, broker_id_of
from controller.requests.pending_request import PendingRequest
from controller.store.load import load, load_brokers, load_topics
from zookeeper_client.acl_reading import read_acls
from zookeeper_client.config_reading import read_configs, read_some_configs
from zookeeper_client.token_reading import read_tokens
from zookeeper_client.wire import ReadChildren, ReadMany


async def read_image(read: ReadMany, pending: PendingRequest, *, all_of_it: bool) -> MetadataImage:
    """Return the image for a decision. `all_of_it`: read everything, because policies may see it.

    Invalid znodes are skipped: the controller logs them. Raises ConnectionLostError.
    """
    if all_of_it:
        return (await load(read, 0)).image
    api_key = pending.header.api_key
    if api_key in ACL_WRITES:
        stored = await read_acls(read)
        return MetadataImage(acls=stored.acls, acl_versions=stored.versions)
    if api_key in TOKEN_WRITES:
        return MetadataImage(tokens=Map((await read_tokens(read)).tokens))
    if api_key in CONFIG_WRITES:
        return await _read_configs(read, pending)
    if api_key == ApiKey.CREATE_TOPICS:
        return await _read_topics(read, pending)
    configs = await read_configs(read, ("users", "clients", "ips"))
    return MetadataImage(
        configs=Map(configs.configs),
        config_versions=Map(configs.versions),
        user_clients=Map(configs.clients),
    )


async def _read_topics(read: ReadMany, pending: PendingRequest) -> MetadataImage:
    """Return an image with the brokers, and with the topics that the request may collide with.

    A creation depends on the names of these topics only, so their znodes are not read.
    """
    wanted = sorted({t.name for t in pending.request.topics if is_legal(t.name)})
    keys = {collision_key(name) for name in wanted}
    folders = await read(
        [ReadChildren("/brokers/topics"), ReadChildren(DeletionMarkerZnode.parent)]
    )
    names, markers = (cast(list[str], names or []) for names in folders)
    existing = [name for name in names if collision_key(name) in keys]
    # A topic that was deleted by hand may have left its configs.
    configs = await read_some_configs(read, [ConfigResource("topics", name) for name in wanted])
    return MetadataImage(
        brokers=await load_brokers(read, invalid=[]),
        topics=Map({name: Topic(name, b"", (), ()) for name in existing}),
        colliding=index_collisions(existing),
        deletions=frozenset(markers).intersection(wanted),
        configs=Map(configs.configs),
        config_versions=Map(configs.versions),
    )


async def _read_configs(read: ReadMany, pending: PendingRequest) -> MetadataImage:
    """Return an image with the topics of the request and the configs of its resources."""
    request = pending.request
    names = {r.resource_name for r in request.resources if r.resource_type == TOPIC}
    topics, _ = await load_topics(read, sorted(filter(has_valid_path, names)), invalid=[])
    entities = {CLUSTER_DEFAULT, str(pending.identity.broker_id)} | {
        str(broker_id_of(r.resource_name))
        for r in request.resources
        if r.resource_type == BROKER and r.resource_name
    }
    resources = [ConfigResource("topics", name) for name in topics]
    resources += [ConfigResource("brokers", entity) for entity in sorted(entities)]
    configs = await read_some_configs(read, resources)
    return MetadataImage(
        topics=topics, configs=Map(configs.configs), config_versions=Map(configs.versions)
    )
