"""The listener that a broker opens for other brokers if the properties name none.

In that case Kafka does not start unless `listeners` has a listener named PLAINTEXT. The listener
here uses SSL, a free port, the host of bridgehead.grpc.listener, and the certificates of the
channel between brokers. The authority of these certificates must sign nothing else: then only
brokers can connect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cluster_model.configs.broker_configs import BrokerConfig
from envelope.channel_security import ChannelFiles

NAME: Final = "REPLICATION"


def needs_listener(broker: BrokerConfig, names: Iterable[str], *, has_authorizer: bool) -> bool:
    """Return whether the node must open this listener, because brokers can use none of `names`.

    With an authorizer, a PLAINTEXT listener does not suffice. Followers need CLUSTER_ACTION, but on
    PLAINTEXT every broker and client is ANONYMOUS, so clients would get this right too.
    """
    settings = ("inter.broker.listener.name", "security.inter.broker.protocol")
    if any(broker.originals.get(setting) for setting in settings):
        return False
    return NAME not in names and (has_authorizer or "PLAINTEXT" not in names)


def listener_properties(files: ChannelFiles) -> Mapping[str, str]:
    """Return the listener's properties, for both ends of its connections.

    Raises:
        OSError: a file cannot be read.
    """
    chain, key, authority = (
        # As in TLS, text around the PEM blocks is ignored; it may contain any characters.
        Path(file).read_text(encoding="ascii", errors="ignore")
        for file in (files.certificate, files.key, files.authority)
    )
    return {
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*)$/$1/,DEFAULT",
        # The certificates name brokers, not hosts.
        "ssl.endpoint.identification.algorithm": "",
    }
