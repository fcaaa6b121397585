"""`BridgeheadContainer`: ZooKeeper and brokers in one container."""

from __future__ import annotations

import json
import time
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.testing.engine import prepare, publish

IMAGE = "bridgehead:latest"
READY = "Ready: "
READY_WITHIN_S = 60
_POLL_S = 0.2


class BridgeheadContainer(DockerContainer):
    """One container with any number of brokers, each on a free port of the host's loopback.

    A broker has the same port number inside the container as on the host, so its advertised address
    is valid on the host.
    """

    def __init__(self, image: str = IMAGE, brokers: int = 1) -> None:
        super().__init__(image)
        self._brokers = brokers
        self._properties: dict[str, str] = {}
        self._first_port = 0
        self._free = Ports()

    def with_brokers(self, brokers: int) -> Self:
        """Set the number of brokers."""
        self._brokers = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """Set one of Kafka's server properties for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Start the container; return when every broker serves and a controller is active.

        Raises:
            ClusterError: no container engine answers, or the image is missing.
        """
        prepare(self.image)
        self._first_port = self._free.choose_row(self._brokers)
        for port in range(self._first_port, self._first_port + self._brokers):
            publish(self, port, port)
        self.with_env("BRIDGEHEAD_BROKERS", str(self._brokers))
        self.with_env("BRIDGEHEAD_BASE_PORT", str(self._first_port))
        self.with_env("BRIDGEHEAD_ADVERTISED", LOOPBACK)
        self.with_env("BRIDGEHEAD_CLUSTER", json.dumps({"properties": self._properties}))
        self.waiting_for(LogMessageWaitStrategy(READY).with_startup_timeout(READY_WITHIN_S))
        super().start()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Remove the container."""
        super().stop(force, delete_volume)
        self._free.close()

    def get_bootstrap_server(self) -> str:
        """Return `host:port,...` of every broker."""
        ports = range(self._first_port, self._first_port + self._brokers)
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)

    def get_controller(self) -> int | None:
        """Return the active controller's id if every broker that answers names it, else None."""
        controller: int | None = self._status()["controller_id"]
        return controller

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """Block until a controller is active and every broker that answers names it.

        Raises:
            TimeoutError: this took longer than a minute.
        """
        deadline = time.monotonic() + READY_WITHIN_S
        while (controller_id := self.get_controller()) is None or controller_id == other_than:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no controller became active within {READY_WITHIN_S:g} s")
            time.sleep(_POLL_S)
        return controller_id

    def kill_controller(self) -> int:
        """Kill the controller's process (SIGKILL); return the broker's id.

        `start_broker` starts the broker again.
        """
        controller = self.get_controller()
        if controller is None:
            raise ClusterError("There is no active controller to kill: wait for one.")
        self._bridgehead("node", "kill", str(controller))
        return controller

    def start_broker(self, broker: int) -> None:
        """Start a killed broker; return when it serves."""
        self._bridgehead("node", "start", str(broker))

    def _status(self) -> dict[str, Any]:
        return dict(json.loads(self._bridgehead("status", "--json")))

    def _bridgehead(self, *arguments: str) -> str:
        """Run `bridgehead` in the container and return its output."""
        status, output = self.exec(["bridgehead", *arguments])
        if status:
            raise ClusterError(output.decode().strip())
        return str(output.decode())
