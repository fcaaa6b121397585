"""The client of a request. One class represents it, from the connection to the decision."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from bridgehead.authorizer import Requester
from cluster_model.principal import ANONYMOUS, KafkaPrincipal


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: its address, listener, principal, protocol dialect and software.

    The broker builds it when the connection opens. Login sets `principal`, ApiVersions sets the
    software, and each request header sets `client_id`. The controller rebuilds it from an Envelope,
    without the software, which Kafka does not forward either.
    """

    host: str  # its address, as Java formats it
    listener_name: str
    security_protocol: str
    principal: KafkaPrincipal = ANONYMOUS
    dialect: str = "shipped"
    client_id: str | None = None
    software_name: str = "unknown"
    software_version: str = "unknown"

    @property
    def address(self) -> bytes:
        """The host's 4 or 16 bytes, in network order."""
        return _packed(self.host)

    def requester(self, api_key: int, api_version: int) -> Requester:
        """Return this client as an authorizer sees it."""
        return Requester(
            principal=self.principal,
            host=self.host,
            api_key=api_key,
            api_version=api_version,
            client_id=self.client_id,
            listener_name=self.listener_name,
            security_protocol=self.security_protocol,
        )


@lru_cache(maxsize=1024)
def _packed(host: str) -> bytes:
    return ipaddress.ip_address(host).packed
