"""A ZooKeeper, from the embedded server's jars, that accepts only TLS with client certificates."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from kazoo.client import KazooClient

from bridgehead.cluster.child_process import die_with_parent, start_child, stop_child
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import MAIN_CLASS, class_path

_NETTY: Final = (
    *("handler", "transport", "buffer", "common", "codec-base", "resolver"),
    *("transport-native-unix-common", "transport-classes-epoll"),
)
STORE_PASSWORD: Final = "store-secret"


class TlsZooKeeper:
    """The server, and files for its clients: `ca.pem`, `client.pem`, `client.p12`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = Ports().choose()
        ca = trustme.CA()
        ca.cert_pem.write_to_path(folder / "ca.pem")
        self._store(ca.issue_cert("127.0.0.1"), folder / "server.p12")
        client = ca.issue_cert("broker@example.org", common_name="broker")
        client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
        self._store(client, folder / "client.p12")
        self.process = self._start()

    @staticmethod
    def _store(leaf: trustme.LeafCert, file: Path) -> None:
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
        lock = BestAvailableEncryption(STORE_PASSWORD.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(b"zk", key, certificate, None, lock)  # type: ignore[arg-type]
        )

    @property
    def connect(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    def properties(self, key_store: str = "client.pem") -> dict[str, str]:
        """Return Kafka's properties for brokers that use this server."""
        properties = {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.truststore.location": str(self.folder / "ca.pem"),
            "zookeeper.ssl.keystore.location": str(self.folder / key_store),
        }
        if key_store.endswith(".p12"):
            properties["zookeeper.ssl.keystore.password"] = STORE_PASSWORD
        return properties

    def _start(self) -> subprocess.Popen[bytes]:
        jars = class_path()
        folder = Path(jars.partition(":")[0]).parent
        netty = [str(next(folder.glob(f"netty-{name}-4*.jar"))) for name in _NETTY]
        configuration = self.folder / "zoo.cfg"
        configuration.write_text(
            f"dataDir={self.folder}/data\n"
            f"secureClientPort={self.port}\n"
            "secureClientPortAddress=127.0.0.1\n"
            "tickTime=500\nminSessionTimeout=1000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
            f"ssl.keyStore.location={self.folder}/server.p12\n"
            f"ssl.keyStore.password={STORE_PASSWORD}\n"
            f"ssl.trustStore.location={self.folder}/ca.pem\n"
            "ssl.clientAuth=need\n"
            "ssl.enabledProtocols=TLSv1.2,TLSv1.3\n"
        )
        java = [str(find_java()), "-Xmx512m", "-XX:+UseSerialGC", "-cp", ":".join([jars, *netty])]
        command = die_with_parent([*java, MAIN_CLASS, str(configuration)])
        return start_child(command, output=self.folder / "zookeeper.out")


@contextmanager
def tls_zookeeper(folder: Path) -> Iterator[TlsZooKeeper]:
    """Start a server; callers poll it until it answers."""
    server = TlsZooKeeper(folder)
    try:
        yield server
    finally:
        stop_child(server.process)


# ZooKeeper clients for tests, independent of the nodes.


@contextmanager
def kazoo_client(connect: str, **options: Any) -> Iterator[KazooClient]:
    """A connected client; it is closed after the block."""
    client = KazooClient(connect, **options)
    client.start(timeout=30)
    try:
        yield client
    finally:
        client.stop()
        client.close()
