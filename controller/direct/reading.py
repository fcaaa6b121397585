"""What a direct write is decided on: of ZooKeeper's state, what the request is about."""

from __future__ import annotations

from immutables import Map

from cluster_model.direct_writes import ACL_WRITES, CONFIG_WRITES, TOKEN_WRITES
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigResource
from controller.apis.config_changes import BROKER, CLUSTER_DEFAULT, TOPIC, broker_id_of
from controller.store.load import load, load_topics
from controller.work import Work
from zookeeper_client.acl_reading import read_acls
from zookeeper_client.config_reading import read_configs, read_some_configs
from zookeeper_client.token_reading import read_tokens
from zookeeper_client.wire import ReadMany


async def read_image(read: ReadMany, work: Work, *, everything: bool) -> MetadataImage:
    """Return what is needed to decide `work`; `everything` where policies look at all there is.

    Raises:
        ConnectionLostError: nothing is known of it.
    """
    if everything:
        return (await load(read, 0)).image
    # What cannot be understood is said by whoever loads everything.
    api_key = work.context.api_key
    if api_key in ACL_WRITES:
        stored = await read_acls(read)
        return MetadataImage(acls=stored.acls, acl_versions=stored.versions)
    if api_key in TOKEN_WRITES:
        return MetadataImage(tokens=Map((await read_tokens(read)).tokens))
    if api_key in CONFIG_WRITES:
        return await _read_named(read, work)
    found = await read_configs(read, ("users", "clients", "ips"))
    return MetadataImage(
        configs=Map(found.configs),
        config_versions=Map(found.versions),
        user_clients=Map(found.clients),
    )


async def _read_named(read: ReadMany, work: Work) -> MetadataImage:
    request = work.request
    names = {r.resource_name for r in request.resources if r.resource_type == TOPIC}
    topics, _ = await load_topics(read, sorted(filter(_can_be_a_znode, names)), refused=[])
    entities = {CLUSTER_DEFAULT, str(work.identity.broker_id)} | {
        str(broker_id_of(r.resource_name))
        for r in request.resources
        if r.resource_type == BROKER and r.resource_name
    }
    resources = [ConfigResource("topics", name) for name in topics]
    resources += [ConfigResource("brokers", entity) for entity in sorted(entities)]
    found = await read_some_configs(read, resources)
    return MetadataImage(
        topics=topics, configs=Map(found.configs), config_versions=Map(found.versions)
    )


def _can_be_a_znode(name: str) -> bool:
    return bool(name) and "/" not in name and "\0" not in name and name not in (".", "..")
