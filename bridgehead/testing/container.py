"""`BridgeheadContainer`: ZooKeeper and brokers in one container."""

from __future__ import annotations

from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from bridgehead.cluster.node_plan import LOOPBACK, Ports

IMAGE = "bridgehead-cluster:latest"
READY = "Ready: "
READY_WITHIN_S = 60


class BridgeheadContainer(DockerContainer):
    """One container with any number of brokers, each on a free port of the host's loopback.

    Inside, the brokers listen on the same port numbers: their advertised addresses are valid on the
    host.
    """

    def __init__(self, image: str = IMAGE, brokers: int = 1) -> None:
        super().__init__(image)
        self._brokers = brokers
        self._properties: dict[str, str] = {}
        self._first_port = 0

    def with_brokers(self, brokers: int) -> Self:
        """Set the number of brokers."""
        self._brokers = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """Set one of Kafka's server properties for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Start it; return when every broker serves and a controller is active."""
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
        """Return `host:port,...` of every broker."""
        ports = range(self._first_port, self._first_port + self._brokers)
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)


def publish(container: DockerContainer, inside: int, outside: int) -> None:
    """Publish a port on the host's loopback only; testcontainers has no method for this."""
    ports: dict[Any, Any] = container.ports
    ports[inside] = (LOOPBACK, outside)


def _free_row(count: int) -> int:
    """Return the first of `count` consecutive free ports."""
    ports = Ports()
    while True:
        first = ports.choose()
        try:
            for port in range(first + 1, first + count):
                ports.demand(LOOPBACK, port)
        except Exception:  # noqa: S112 - a port is taken
            continue
        return first
