"""`BridgeheadContainer`: ZooKeeper and brokers in one container."""

from __future__ import annotations

from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from bridgehead.cluster.plan import LOOPBACK, Ports

IMAGE = "bridgehead-cluster:latest"
READY = "Ready: "
READY_WITHIN_S = 60


class BridgeheadContainer(DockerContainer):
    """One container, any number of brokers, each at a free port of the host's loopback.

    The brokers listen at the same port numbers inside, so that what they advertise is true for
    clients on the host.
    """

    def __init__(self, image: str = IMAGE, brokers: int = 1) -> None:
        super().__init__(image)
        self._brokers = brokers
        self._properties: dict[str, str] = {}
        self._first_port = 0

    def with_brokers(self, brokers: int) -> Self:
        """How many brokers."""
        self._brokers = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """One of Kafka's server properties, for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Returns when every broker serves and a controller is in office."""
        self._first_port = _free_row(self._brokers)
        for port in range(self._first_port, self._first_port + self._brokers):
            publish(self, port, port)
        properties = {
            "listeners": "PLAINTEXT://0.0.0.0:0",
            "bridgehead.allow.remote.plaintext": "true",
            **self._properties,
        }
        overrides = [f"--override={name}={value}" for name, value in properties.items()]
        self.with_command(
            [
                "bridgehead",
                "up",
                f"--brokers={self._brokers}",
                f"--base-port={self._first_port}",
                *overrides,
            ]
        )
        self.with_kwargs(init=True)
        self.waiting_for(LogMessageWaitStrategy(READY).with_startup_timeout(READY_WITHIN_S))
        super().start()
        return self

    def get_bootstrap_server(self) -> str:
        """`host:port,...` of every broker."""
        ports = range(self._first_port, self._first_port + self._brokers)
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)


def publish(container: DockerContainer, inside: int, outside: int) -> None:
    """At the host's loopback alone, for which testcontainers has no method but the engine has."""
    ports: dict[Any, Any] = container.ports
    ports[inside] = (LOOPBACK, outside)


def _free_row(count: int) -> int:
    """The first of `count` free ports in a row."""
    ports = Ports()
    while True:
        first = ports.choose()
        try:
            for port in range(first + 1, first + count):
                ports.demand(LOOPBACK, port)
        except Exception:  # noqa: S112 - one of the row is taken: another row
            continue
        return first
