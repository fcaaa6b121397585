"""The properties of a broker that migrates are checked; each error says what to set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridgehead.cluster.properties import parse_properties
from broker_proxy.migration.lifecycle import Intervals
from cluster_model.inter_broker_protocol import feature_level
from cluster_model.znodes.layout import ControllerZnode, decode_uuid
from data_plane.log.meta_properties import Owner, directory_ids, write_owner
from envelope.principal_serde import DefaultPrincipalSerde
from node.assembly.migration import build_migration
from node.collaborators import PRODUCTION
from node.config import NodeConfigError, read_config
from node.migration_config import MigrationConfig

GOOD = (
    "broker.id=4\nzookeeper.connect=127.0.0.1:2181\nlisteners=PLAINTEXT://:0\n"
    "zookeeper.metadata.migration.enable=true\ncontroller.listener.names=QUORUM\n"
    "controller.quorum.voters=3001@127.0.0.1:9700, 3002@[::1]:9701\n"
    "inter.broker.protocol.version=3.6\nbroker.heartbeat.interval.ms=900\n"
    "broker.session.timeout.ms=4500\n"
)


def read(properties: str) -> MigrationConfig:
    migration = read_config(GOOD + properties).migration
    assert migration is not None
    return migration


def test_the_properties_are_kafkas() -> None:
    migration = read("listener.security.protocol.map=QUORUM:SASL_SSL,PLAINTEXT:PLAINTEXT\n")
    assert [str(voter) for voter in migration.voters] == ["3001@127.0.0.1:9700", "3002@[::1]:9701"]
    assert (migration.listener, migration.security_protocol) == ("QUORUM", "SASL_SSL")
    assert migration.feature_level == 14
    assert migration.intervals == Intervals(0.9, 4.5)


def test_without_the_property_a_broker_serves_no_controller() -> None:
    config = read_config(GOOD.replace("enable=true", "enable=false"))
    assert config.migration is None
    assert not {4, 5, 6} & set(config.routes["shipped"])
    assert {4, 5, 6} <= set(read_config(GOOD).routes["shipped"])


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("controller.quorum.voters=", "set controller.quorum.voters=ID@HOST:PORT"),
        ("controller.quorum.voters=3000@127.0.0.1", "3000@127.0.0.1' is not a controller"),
        ("controller.quorum.voters=3000@h:0", "is not a controller"),
        ("controller.quorum.voters=1@h:1,1@h:2", "names a controller twice"),
        ("controller.quorum.voters=4@h:9", "has this broker's id 4"),
        ("controller.listener.names=", "set controller.listener.names=CONTROLLER"),
        ("controller.listener.names=PLAINTEXT", "remove it from listeners"),
        ("inter.broker.protocol.version=3.3", "3.4-IV0 or higher; this broker has 3.3-IV3"),
        ("inter.broker.protocol.version=3.6\nlog.dirs=/a,/b", "only with .*=3.7-IV2 or higher"),
        ("broker.heartbeat.interval.ms=2300", "at most half of broker.session.timeout.ms"),
        ("bridgehead.metadata.blocking=cluster", "does not wait for brokers"),
        ("bridgehead.metadata.reads=controller", "does not wait for brokers"),
    ],
)
def test_an_error_says_what_to_set(properties: str, message: str) -> None:
    with pytest.raises(NodeConfigError, match=message):
        read_config(GOOD + properties)


def test_levels_have_kafkas_numbers() -> None:
    """From the table of metadata versions of Kafka 3.9."""
    numbers = {
        "3.0-IV1": 1,
        "3.3-IV3": 7,
        "3.4-IV0": 8,
        "3.6-IV2": 14,
        "3.7-IV4": 19,
        "3.9-IV0": 21,
    }
    assert {level: feature_level(level) for level in numbers} == numbers


@pytest.mark.parametrize(
    ("content", "is_krafts"),
    [
        (b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":0}', True),
        (b'{"version":2,"brokerid":3,"timestamp":"1","kraftControllerEpoch":-1}', False),
        (b'{"version":1,"brokerid":3,"timestamp":"1"}', False),
    ],
)
def test_the_znode_tells_a_kraft_controller(content: bytes, *, is_krafts: bool) -> None:
    assert ControllerZnode.is_krafts(content) is is_krafts


def test_a_log_directory_keeps_its_id(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    ids = directory_ids(folders, Owner("cluster", 4), os.urandom)
    assert len(set(ids)) == 2
    assert directory_ids(folders, Owner("cluster", 4), os.urandom) == ids
    stored = parse_properties((folders[1] / "meta.properties").read_text())
    assert stored.keys() == {"version", "broker.id", "cluster.id", "directory.id"}
    assert decode_uuid(stored["directory.id"]) == ids[1]


def test_an_id_is_no_option(tmp_path: Path) -> None:
    """Kafka avoids ids that begin with a hyphen, which a command would take for an option."""
    candidates = iter([b"\xf8" * 16, b"\x10" * 16])
    (directory,) = directory_ids([tmp_path], Owner("cluster", 4), lambda _: next(candidates))
    assert directory[0] == 0x10
    assert (directory[6] >> 4, directory[8] >> 6) == (4, 2), "a random UUID"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("broker.id=5\n", "broker.id is 4, but .* names broker 5"),
        ("broker.id=4\ncluster.id=other\n", "names cluster other"),
        ("directory.id=short\n", "invalid directory.id"),
    ],
)
def test_another_brokers_log_directory_is_rejected(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(OSError, match=message):
        directory_ids([tmp_path], Owner("cluster", 4), os.urandom)
    assert (tmp_path / "meta.properties").read_text() == content


def test_a_new_owner_of_a_log_directory_keeps_its_id(tmp_path: Path) -> None:
    ids = directory_ids([tmp_path], Owner("", 4), os.urandom)
    write_owner(tmp_path, Owner("cluster", 4))
    assert directory_ids([tmp_path], Owner("cluster", 4), os.urandom) == ids


JAAS = (
    "listener.name.quorum.plain.sasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="b4" password="a-secret";\n'
)
WITH_SASL = (
    "listener.security.protocol.map=QUORUM:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    "sasl.mechanism.controller.protocol=PLAIN\n"
)


def test_a_broker_logs_in_to_the_controllers_with_their_listeners_properties() -> None:
    serde = DefaultPrincipalSerde()
    with pytest.raises(NodeConfigError, match=r"listener.name.quorum.MECHANISM.sasl.jaas.config"):
        build_migration(read_config(GOOD + WITH_SASL), serde, PRODUCTION)
    config = read_config(GOOD + WITH_SASL + JAAS)
    assert build_migration(config, serde, PRODUCTION) is not None
    assert (
        build_migration(read_config("broker.id=4\nzookeeper.connect=h\n"), serde, PRODUCTION)
        is None
    )
