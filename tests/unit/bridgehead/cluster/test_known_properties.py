"""Properties that nothing reads are named, with a suggestion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridgehead.cli.up import _check_properties
from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.known_properties import unknown_properties
from cluster_model.acls.authorizer import ALLOW_EVERYONE, SUPER_USERS

KNOWN = (
    *("num.partitions", "bridgehead.faults.allow", "zookeeper.connect", "broker.id"),
    *("listener.name.clients.bridgehead.dialect", "bridgehead.policy.limits.partitions.max"),
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
    *(SUPER_USERS, ALLOW_EVERYONE),
)
MISSPELLED = {
    "num.partition": "num.partitions",
    "zookeeper.session.timeout": "zookeeper.session.timeout.ms",
    "bridgehead.fault.allow": "bridgehead.faults.allow",
    "listener.name.clients.bridgehead.dialekt": "bridgehead.dialect",
}


def test_properties_that_kafka_and_bridgehead_read_are_known() -> None:
    assert unknown_properties(KNOWN) == []


@pytest.mark.parametrize(("name", "meant"), MISSPELLED.items())
def test_a_misspelled_property_is_named_with_the_one_that_was_meant(name: str, meant: str) -> None:
    (sentence,) = unknown_properties([name])
    assert sentence == f"Nothing reads the property {name!r}. Did you mean {meant}?"


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert unknown_properties(["acme.colour"]) == ["Nothing reads the property 'acme.colour'."]


def test_up_warns_and_with_strict_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(tmp_path, overrides=["num.partition=4", "2:acme.colour=red"])
    _check_properties(settings, strict=False)
    assert re.findall(r"^Warning: .* '(.*)'", capsys.readouterr().err, re.MULTILINE) == [
        "num.partition",
        "acme.colour",
    ]
    with pytest.raises(ClusterError, match=r"'num\.partition'\. Did .* 'acme\.colour'"):
        _check_properties(settings, strict=True)


def test_an_unknown_key_of_the_file_is_named_with_a_suggestion(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("brokrs: 2\nxyzzy: 1\n")
    with pytest.raises(ClusterError, match=r"`brokrs`: .*\. Did you mean brokers\? `xyzzy`") as bad:
        load_settings(tmp_path, config=file)
    assert str(bad.value).count("Did you mean") == 1
