"""`BridgeheadCluster`: a container for ZooKeeper and one for each broker, on their own network.

Nodes can be killed, paused and disconnected like any container.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from bridgehead.cluster.cluster import StartStop
from bridgehead.cluster.node_plan import LOOPBACK, Ports
from bridgehead.testing.container import publish

NODE_IMAGE = "bridgehead-node:latest"
ZOOKEEPER_IMAGE = "bridgehead-zookeeper:latest"
READY_WITHIN_S = 60.0
_POLL_S = 0.05
_METRICS_PORT = 9404
_CONTROLLER = re.compile(r"broker (\d+) is controller")


class BridgeheadCluster(StartStop):
    """Use `with` or `start()` and `stop()`; stopping removes everything, even after a failure."""

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
        """Set the number of brokers; their ids start at 1."""
        self._count = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """Set one of Kafka's server properties for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Start the containers; return when every broker knows the active controller.

        Raises:
            TimeoutError: not within a minute.
        """
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
            # A node that starts before ZooKeeper exits with an error and is restarted.
            node.with_kwargs(restart_policy={"Name": "on-failure", "MaximumRetryCount": 30})
            node.start()
            self._nodes[broker] = node
        self._wait_for_controller(self._count)
        return self

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
        """Remove every container and the network; may be called twice."""
        for container in (*self._nodes.values(), self._zookeeper):
            if container is not None:
                container.stop(force=True, delete_volume=True)
        self._nodes, self._zookeeper = {}, None
        if self._network is not None:
            self._network.remove()
            self._network = None

    def get_bootstrap_server(self) -> str:
        """Return `host:port,...` of every broker, for clients on the host."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._ports.values())

    def get_internal_bootstrap_server(self) -> str:
        """Return `host:port,...` of every broker, for containers on the cluster's network."""
        return ",".join(f"kafka-{broker}:9092" for broker in self._ports)

    def get_metrics_url(self, broker: int) -> str:
        """Return the URL of a broker's Prometheus metrics."""
        return f"http://{LOOPBACK}:{self._metrics[broker]}/metrics"

    @property
    def network(self) -> Any:
        """The cluster's network, for your own containers."""
        return self._network

    def get_container(self, broker: int) -> Any:
        """Return a broker's container, with `kill()`, `pause()`, `unpause()` and `start()`."""
        container = self._nodes[broker].get_wrapped_container()
        container.reload()
        return container

    def controller_known_to(self, broker: int) -> int | None:
        """Return the controller that a broker knows; None if it knows none or does not answer."""
        found = _CONTROLLER.search(self._health(broker) or "")
        return int(found[1]) if found else None

    def _health(self, broker: int) -> str | None:
        """Return a broker's health text, healthy or not; None if it does not answer."""
        url = f"http://{LOOPBACK}:{self._metrics[broker]}/health"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as unhealthy:
            return str(unhealthy.read().decode())
        except (OSError, http.client.HTTPException):
            return None

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """Block until every broker that answers knows the same controller.

        Brokers that are paused, killed or disconnected do not answer.

        Raises:
            TimeoutError: they did not agree within a minute.
        """
        return self._wait_for_controller(1, other_than)

    def _wait_for_controller(self, answers_min: int, other_than: int | None = None) -> int:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            answers = [text for b in self._nodes if (text := self._health(b)) is not None]
            known = {_CONTROLLER.search(text) for text in answers}
            ids = {int(match[1]) if match else None for match in known}
            if len(answers) >= answers_min and len(ids) == 1:
                found = ids.pop()
                if found is not None and found != other_than:
                    return found
            time.sleep(_POLL_S)
        raise TimeoutError(f"the brokers did not agree on a controller within {READY_WITHIN_S:g} s")

    def kill_controller(self) -> int:
        """Kill the controller's container (SIGKILL); return the broker's id."""
        controller = self.wait_for_controller()
        # Docker must not restart it.
        self.get_container(controller).update(restart_policy={"Name": "no"})
        self.get_container(controller).kill()
        return controller

    def pause(self, broker: int) -> None:
        """Freeze a broker's container."""
        self.get_container(broker).pause()

    def unpause(self, broker: int) -> None:
        """Resume a paused container."""
        self.get_container(broker).unpause()

    def disconnect(self, broker: int) -> None:
        """Disconnect a broker from peers, ZooKeeper and clients."""
        self._client_network().disconnect(self.get_container(broker))

    def reconnect(self, broker: int) -> None:
        """Reconnect a broker."""
        self._client_network().connect(self.get_container(broker), aliases=[f"kafka-{broker}"])

    def _client_network(self) -> Any:
        client = self._zookeeper.get_docker_client().client
        return client.networks.get(self._network.id)
