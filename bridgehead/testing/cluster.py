"""`BridgeheadCluster`: a container for ZooKeeper and one for each broker, on a network of its own.

What can be done to a container can be done to a node: kill, pause, take off the network.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from bridgehead.cluster.plan import LOOPBACK, Ports
from bridgehead.testing.container import publish

NODE_IMAGE = "bridgehead-node:latest"
ZOOKEEPER_IMAGE = "bridgehead-zookeeper:latest"
READY_WITHIN_S = 60.0
_POLL_S = 0.05
_METRICS_PORT = 9404
_CONTROLLER = re.compile(r"broker (\d+) is controller")


class BridgeheadCluster:
    """Start with `with` or `start()`; everything is removed at the end, also after a failure."""

    def __init__(
        self, node_image: str = NODE_IMAGE, zookeeper_image: str = ZOOKEEPER_IMAGE
    ) -> None:
        self._images = node_image, zookeeper_image
        self._count = 3
        self._properties: dict[str, str] = {}
        self._network: Any = None
        self._zookeeper: Any = None
        self._ports: dict[int, int] = {}
        self._metrics: dict[int, int] = {}
        self._nodes: dict[int, Any] = {}

    def with_brokers(self, brokers: int) -> Self:
        """How many brokers; their ids are counted from 1."""
        self._count = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """One of Kafka's server properties, for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Returns when every broker knows a controller in office.

        Raises:
            TimeoutError: none was there within a minute.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        self._network = Network().create()
        node_image, zookeeper_image = self._images
        self._zookeeper = (
            DockerContainer(zookeeper_image)
            .with_env("ZOO_TICK_TIME", "500")
            .with_env("ZOO_MAX_CLIENT_CNXNS", "0")
            .with_env("ZOO_CFG_EXTRA", "minSessionTimeout=1000 maxSessionTimeout=120000")
            .with_env("JVMFLAGS", "-Xmx512m -XX:+UseSerialGC -Djute.maxbuffer=4194304")
            .with_network(self._network)
            .with_network_aliases("zookeeper")
        )
        self._zookeeper.start()
        free = Ports()
        for broker in range(1, self._count + 1):
            self._ports[broker], self._metrics[broker] = free.choose(), free.choose()
            node = DockerContainer(node_image)
            for name, value in self._environment(broker).items():
                node.with_env(name, value)
            node.with_network(self._network).with_network_aliases(f"kafka-{broker}")
            publish(node, self._ports[broker], self._ports[broker])
            publish(node, _METRICS_PORT, self._metrics[broker])
            # A node that comes before ZooKeeper says so and ends: it is started again.
            node.with_kwargs(restart_policy={"Name": "on-failure", "MaximumRetryCount": 30})
            node.start()
            self._nodes[broker] = node
        self._wait_for_controller(self._count)

    def _environment(self, broker: int) -> dict[str, str]:
        port = self._ports[broker]
        properties = {
            "broker.id": str(broker),
            "broker.rack": f"rack-{broker}",
            "zookeeper.connect": "zookeeper:2181",
            "zookeeper.session.timeout.ms": "6000",
            "listeners": f"HOST://0.0.0.0:{port},INTERNAL://0.0.0.0:9092",
            "advertised.listeners": f"HOST://{LOOPBACK}:{port},INTERNAL://kafka-{broker}:9092",
            "listener.security.protocol.map": "HOST:PLAINTEXT,INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "bridgehead.allow.remote.plaintext": "true",
            "bridgehead.metrics.listener": f"0.0.0.0:{_METRICS_PORT}",
            "bridgehead.grpc.listener": "0.0.0.0:9095",
            "bridgehead.grpc.advertised.listener": f"kafka-{broker}:9095",
            **self._properties,
        }
        return {
            "KAFKA_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper(): value
            for name, value in properties.items()
        }

    def stop(self) -> None:
        """Removes every container and the network; may be called twice."""
        for container in (*self._nodes.values(), self._zookeeper):
            if container is not None:
                container.stop(force=True, delete_volume=True)
        self._nodes, self._zookeeper = {}, None
        if self._network is not None:
            self._network.remove()
            self._network = None

    def __enter__(self) -> Self:
        """Starts the cluster."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Removes it."""
        self.stop()

    def get_bootstrap_server(self) -> str:
        """`host:port,...` of every broker, for clients on the host."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._ports.values())

    def get_internal_bootstrap_server(self) -> str:
        """`host:port,...` of every broker, for containers on the cluster's network."""
        return ",".join(f"kafka-{broker}:9092" for broker in self._ports)

    def get_metrics_url(self, broker: int) -> str:
        """Where a broker's Prometheus text is."""
        return f"http://{LOOPBACK}:{self._metrics[broker]}/metrics"

    @property
    def network(self) -> Any:
        """The cluster's network, for containers of your own."""
        return self._network

    def get_container(self, broker: int) -> Any:
        """The engine's container of a broker: `kill()`, `pause()`, `unpause()`, `start()`."""
        container = self._nodes[broker].get_wrapped_container()
        container.reload()
        return container

    def controller_known_to(self, broker: int) -> int | None:
        """The controller that a broker knows; None: none, or nobody answers there."""
        found = _CONTROLLER.search(self._health(broker) or "")
        return int(found[1]) if found else None

    def _health(self, broker: int) -> str | None:
        """What a broker says of its health, be it good or bad; None: nobody answers."""
        url = f"http://{LOOPBACK}:{self._metrics[broker]}/health"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as unwell:
            return str(unwell.read().decode())
        except (OSError, http.client.HTTPException):
            return None

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """Blocks until every broker that answers knows the same controller.

        Who is paused, killed or off the network does not answer.

        Raises:
            TimeoutError: they did not within a minute.
        """
        return self._wait_for_controller(1, other_than)

    def _wait_for_controller(self, answers_min: int, other_than: int | None = None) -> int:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            said = [text for b in self._nodes if (text := self._health(b)) is not None]
            known = {_CONTROLLER.search(text) for text in said}
            ids = {int(match[1]) if match else None for match in known}
            if len(said) >= answers_min and len(ids) == 1:
                found = ids.pop()
                if found is not None and found != other_than:
                    return found
            time.sleep(_POLL_S)
        raise TimeoutError(f"no controller was known to all brokers within {READY_WITHIN_S:g} s")

    def kill_controller(self) -> int:
        """SIGKILL for the controller's container; returns the broker that died."""
        controller = self.wait_for_controller()
        # Killed on purpose: the engine must not start it again.
        self.get_container(controller).update(restart_policy={"Name": "no"})
        self.get_container(controller).kill()
        return controller

    def pause(self, broker: int) -> None:
        """Freeze a broker's container."""
        self.get_container(broker).pause()

    def unpause(self, broker: int) -> None:
        """...and let it go on."""
        self.get_container(broker).unpause()

    def disconnect(self, broker: int) -> None:
        """Take a broker off the network: peers, ZooKeeper and clients lose it at once."""
        self._client_network().disconnect(self.get_container(broker))

    def reconnect(self, broker: int) -> None:
        """...and put it back."""
        self._client_network().connect(self.get_container(broker), aliases=[f"kafka-{broker}"])

    def _client_network(self) -> Any:
        client = self._zookeeper.get_docker_client().client
        return client.networks.get(self._network.id)
