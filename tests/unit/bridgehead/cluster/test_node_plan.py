"""The ports and properties of each node, from one server.properties."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_plan import NodePlan, parse_listeners, plan_nodes
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.settings import ClusterSettings


def plan(*, taken: tuple[int, ...] = (), **settings: object) -> tuple[NodePlan, ...]:
    ports = Ports(lambda _host, port, _use: None if port in taken else ExitStack())
    cluster_settings = ClusterSettings(data_dir=Path("/nowhere"), **settings)  # type: ignore[arg-type]
    return plan_nodes(cluster_settings, ports, zookeeper_connect="127.0.0.1:2181/c", run_id="r")


def values(plans: tuple[NodePlan, ...], key: str) -> list[str | None]:
    return [node_plan.properties.get(key) for node_plan in plans]


def test_three_brokers_have_consecutive_ports_ids_and_racks_by_default() -> None:
    plans = plan()
    assert values(plans, "listeners") == [f"PLAINTEXT://127.0.0.1:{9092 + n}" for n in range(3)]
    assert values(plans, "advertised.listeners") == [None] * 3
    assert values(plans, "broker.id") == ["1", "2", "3"]
    assert values(plans, "broker.rack") == ["rack-1", "rack-2", "rack-3"]
    assert values(plans, "zookeeper.session.timeout.ms") == ["6000"] * 3
    assert values(plans, "zookeeper.connect") == ["127.0.0.1:2181/c"] * 3
    assert values(plans, "bridgehead.controller.pinned") == [None] * 3


def test_listener_names_are_used_by_every_broker() -> None:
    """Only the ports differ between the brokers. For 0.0.0.0, a broker advertises 127.0.0.1."""
    plans = plan(
        brokers=2,
        base_port=19000,
        properties={
            "broker.id": "0",
            "broker.rack": "r",
            "listeners": "CLIENT://0.0.0.0:9092,DRAFT://:9192",
        },
    )
    assert values(plans, "listeners") == [
        "CLIENT://0.0.0.0:19000,DRAFT://127.0.0.1:19002",
        "CLIENT://0.0.0.0:19001,DRAFT://127.0.0.1:19003",
    ]
    assert values(plans, "advertised.listeners") == [
        "CLIENT://127.0.0.1:19000,DRAFT://127.0.0.1:19002",
        "CLIENT://127.0.0.1:19001,DRAFT://127.0.0.1:19003",
    ]
    assert values(plans, "broker.id") == ["1", "2"]
    assert values(plans, "broker.rack") == ["r", "r"]


def test_advertised_hosts_are_kept() -> None:
    (only,) = plan(
        brokers=1,
        properties={"listeners": "A://:1000", "advertised.listeners": "A://broker.example:1000"},
    )
    assert only.properties["advertised.listeners"] == "A://broker.example:1000"


def test_shared_advertised_listeners_do_not_apply_to_a_broker_with_its_own_listeners() -> None:
    plans = plan(
        brokers=2,
        properties={"listeners": "A://:1000", "advertised.listeners": "A://broker.example:1000"},
        node_properties={2: {"listeners": "X://127.0.0.1:7"}},
    )
    assert plans[1].properties["advertised.listeners"] == "X://127.0.0.1:7"


def test_error_for_a_port_in_use_names_the_option() -> None:
    with pytest.raises(ClusterError, match=r"Port 9093 is in use: .*--ports auto"):
        plan(taken=(9093,))


def test_chosen_ports_are_distinct_and_free() -> None:
    taken = tuple(range(20_000, 31_990))
    plans = plan(brokers=3, ports_auto=True, taken=taken)
    used = [parse_listeners(str(listener))[0].port for listener in values(plans, "listeners")]
    used += [
        int(str(listener).rpartition(":")[2])
        for listener in values(plans, "bridgehead.metrics.listener")
    ]
    assert len(set(used)) == 6
    assert not set(used) & set(taken)


def test_properties_of_one_broker_are_used_as_given() -> None:
    """Listeners that are set for one broker take no port of the sequence 9092, 9093, ..."""
    plans = plan(
        brokers=2, taken=(9093,), node_properties={2: {"listeners": "X://127.0.0.1:7", "a": "b"}}
    )
    assert plans[1].properties["listeners"] == "X://127.0.0.1:7"
    assert values(plans, "advertised.listeners") == [None, None]
    assert plans[1].properties["a"] == "b"
    assert "a" not in plans[0].properties


def test_every_broker_gets_the_pinned_controller() -> None:
    assert values(plan(controller=2), "bridgehead.controller.pinned") == ["2", "2", "2"]


@pytest.mark.parametrize("value", ["", "PLAINTEXT", "A://h", "A://:1,A://:2", "A://h:x"])
def test_malformed_listeners_are_rejected(value: str) -> None:
    with pytest.raises(ClusterError, match="listeners"):
        parse_listeners(value)


def test_log_directories_are_below_each_nodes_folder() -> None:
    """Brokers share no directory. A directory that is set for one broker is used as given."""
    plans = plan(brokers=2, properties={"log.dirs": "/var/kafka/a, /var/kafka/b"})
    assert values(plans, "log.dirs") == [
        f"/nowhere/nodes/{n}/var/kafka/a,/nowhere/nodes/{n}/var/kafka/b" for n in (1, 2)
    ]
    planned = plan(brokers=1, node_properties={1: {"log.dirs": "/var/kafka"}})
    assert values(planned, "log.dirs") == ["/var/kafka"]
