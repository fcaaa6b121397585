"""A cluster with every kind of listener, its certificates, and helpers for its tests."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import trustme
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from bridgehead.cluster import Cluster
from tests.integration.login_clients import LOGINS, Login, RejectedLoginError
from tests.integration.processes import wait_until

PACKAGE: Final = "org.apache.kafka.common.security"
PASSWORDS: Final = {"admin": "admin-secret", "alice": "alice-secret"}
_SCRAMS: Final = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


def jaas(listener: str) -> dict[str, str]:
    """Return the properties with a listener's login modules."""
    users = " ".join(f'user_{user}="{word}"' for user, word in PASSWORDS.items())
    modules = {
        "plain": f"{PACKAGE}.plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{PACKAGE}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{PACKAGE}.scram.ScramLoginModule required;",
        "oauthbearer": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required;",
    }
    return {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": text
        for mechanism, text in modules.items()
    }


class Secured:
    """The running cluster."""

    def __init__(self, cluster: Cluster, folder: Path, ca: trustme.CA) -> None:
        self.cluster = cluster
        self._folder = folder
        self._ca = ca
        self.ca_file = folder / "ca.pem"
        ca.cert_pem.write_to_path(self.ca_file)

    @staticmethod
    @contextmanager
    def start(folder: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Secured]:
        """Start three brokers, with `more` properties."""
        ca = trustme.CA()
        broker = ca.issue_cert("127.0.0.1", "localhost")
        properties = {
            "listeners": ",".join(
                f"{name}://127.0.0.1:0"
                for name in ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            **jaas("sasl_plaintext"),
            **jaas("sasl_ssl"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": broker.cert_chain_pems[0].bytes().decode(),
            "ssl.keystore.key": broker.private_key_pem.bytes().decode(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": ca.cert_pem.bytes().decode(),
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/, DEFAULT",
            **more,
        }
        with Cluster(properties=properties) as cluster:
            yield Secured(cluster, folder, ca)

    def login(
        self,
        broker: int,
        protocol: str,
        mechanism: str = "",
        user: str = "",
        password: str = "",
        certificate: Path | None = None,
    ) -> Login:
        """Return a login at one broker's listener."""
        return Login(
            self.cluster.bootstrap_server(broker, protocol),
            protocol,
            mechanism,
            user,
            password,
            self.ca_file if protocol.endswith("SSL") else None,
            certificate,
        )

    def certificate(self, name: str) -> Path:
        """Return a file with a key and its certificate, issued by this cluster's authority."""
        return self._issue(self._ca, name, self._folder / f"{name}.pem")

    def strangers_certificate(self, name: str) -> Path:
        """Return a file with a key and its certificate, issued by another authority."""
        return self._issue(trustme.CA(), name, self._folder / f"{name}-stranger.pem")

    def _issue(self, ca: trustme.CA, name: str, file: Path) -> Path:
        leaf = ca.issue_cert(f"{name}@example.org", common_name=name)
        leaf.private_key_and_cert_chain_pem.write_to_path(file)
        return file

    def _admin(self) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": self.cluster.bootstrap_server(2, "SASL_PLAINTEXT"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": PASSWORDS["admin"],
            }
        )

    def set_password(self, user: str, password: str) -> None:
        """Set a user's password for both SCRAM mechanisms."""
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(scram, 4096), password.encode())
            for scram in _SCRAMS
        ]
        self._alter(changes)

    def delete_user(self, user: str) -> None:
        """Delete a user's credentials of both SCRAM mechanisms."""
        self._alter([UserScramCredentialDeletion(user, scram) for scram in _SCRAMS])

    def _alter(self, changes: list[UserScramCredentialAlteration]) -> None:
        admin = self._admin()
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(timeout=60)

    def until_it_works(self, login: Login) -> None:
        """Wait until the broker accepts the login, for example with a new password."""
        wait_until(lambda: self._may(login))

    def until_it_is_rejected(self, login: Login) -> None:
        """Wait until the broker rejects the login, for example of a deleted user."""
        wait_until(lambda: not self._may(login))

    @staticmethod
    def _may(login: Login) -> bool:
        try:
            LOGINS["aiokafka"](login)
        except RejectedLoginError:
            return False
        return True

    def metric(self, broker: int, name: str) -> float:
        """Return the value of the broker's metric whose name ends with `name`."""
        return self.metric_of(self.cluster, broker, name)

    @staticmethod
    def metric_of(cluster: Cluster, broker: int, name: str) -> float:
        """Like `metric`, but for a broker of any cluster."""
        with urllib.request.urlopen(cluster.brokers[broker].metrics_url) as page:
            lines = page.read().decode().splitlines()
        (value,) = [
            float(line.split()[-1])
            for line in lines
            if not line.startswith("#") and line.split()[0].endswith(name)
        ]
        return value

    def events(self, broker: int, kind: str) -> list[dict[str, object]]:
        """Return a broker's events of one kind."""
        return self.events_of(self.cluster, broker, kind)

    @staticmethod
    def events_of(cluster: Cluster, broker: int, kind: str) -> list[dict[str, object]]:
        """Like `events`, but for a broker of any cluster."""
        folder = cluster.data_dir / "evidence"
        return [
            event
            for file in sorted(folder.glob(f"run=*/node={broker}/*.jsonl"))
            for line in file.read_text().splitlines()
            if f'"{kind}"' in line and (event := json.loads(line))["kind"] == kind
        ]

    def principals(self, broker: int) -> set[object]:
        """Return every principal that authenticated at a broker."""
        return {event["principal"] for event in self.events(broker, "authenticated")}

    def client_tls(self, certificate: Path | None = None) -> ssl.SSLContext:
        """The TLS context of a client that trusts this cluster."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context
