"""Configs of our own: names that begin with `bridgehead.`, some of them per listener.

Kafka has none of them. They are custom names to DescribeConfigs, which lists them only when set.
A value that this release cannot honour is refused at start, in a sentence that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cluster_model import bridgehead_config_checks as checks
from cluster_model.bridgehead_config_checks import BridgeheadKey
from cluster_model.quirks import QUIRKS, refuse_unknown

BLOCKING: Final = "bridgehead.metadata.blocking"
CONTROLLER_ID: Final = "bridgehead.metadata.controller.id"
READS: Final = "bridgehead.metadata.reads"
DELAY_MS: Final = "bridgehead.metadata.delay.ms"
DIALECT: Final = "bridgehead.dialect"
GRPC_LISTENER: Final = "bridgehead.grpc.listener"
GRPC_ADVERTISED: Final = "bridgehead.grpc.advertised.listener"
GRPC_TLS: Final = "bridgehead.grpc.tls"
GRPC_CERTIFICATE: Final = "bridgehead.grpc.certificate"
GRPC_KEY: Final = "bridgehead.grpc.key"
GRPC_AUTHORITY: Final = "bridgehead.grpc.authority"
ZOOKEEPER_WRITE: Final = "bridgehead.zookeeper.controller.credential"
ZOOKEEPER_READ: Final = "bridgehead.zookeeper.broker.credential"
INTER_BROKER_USER: Final = "bridgehead.inter.broker.user"
METRICS_LISTENER: Final = "bridgehead.metrics.listener"
METRICS_DIALECT: Final = "bridgehead.metrics.dialect"
EVIDENCE_DIR: Final = "bridgehead.evidence.dir"
RUN_ID: Final = "bridgehead.run.id"
PINNED: Final = "bridgehead.controller.pinned"
FORWARDING: Final = "bridgehead.forwarding.enable"
ENVELOPE: Final = "bridgehead.envelope.supported"
REQUEST_LOG: Final = "bridgehead.request.log"
REMOTE_PLAINTEXT: Final = "bridgehead.allow.remote.plaintext"
AUTHORIZER_LOG: Final = "bridgehead.authorizer.log"
POLICY_TIMEOUT_MS: Final = "bridgehead.policy.timeout.ms"
# What our own policies read themselves, and judge when they are configured.
POLICY_PREFIXES: Final = ("bridgehead.policy.limits.", "bridgehead.policy.naming.")
PRINCIPALS: Final = "bridgehead.forwarding.principals"


_LISTENER: Final = re.compile(r"listener\.name\.([^.]+)\.(bridgehead\..+)")
BRIDGEHEAD_CONFIGS: Final[tuple[BridgeheadKey, ...]] = (
    BridgeheadKey(
        BLOCKING,
        "controller",
        True,
        False,
        checks.blocking,
        "Whose knowledge a write waits for before it is answered: the controller's, as Kafka's "
        "does, or that of every live broker of the cluster (KIP-4), which then answers no read "
        "while it is out of touch with ZooKeeper.",
    ),
    BridgeheadKey(
        READS,
        "local",
        True,
        False,
        checks.reads,
        "How new a broker's answers are: what it knows (local), or not older than what the "
        "controller knows when the question comes (controller; KIP-590, future work).",
    ),
    BridgeheadKey(
        CONTROLLER_ID,
        "actual",
        True,
        True,
        checks.controller_id,
        "Which controller Metadata names: actual, random, self, or an id that may be a lie.",
    ),
    BridgeheadKey(
        DELAY_MS,
        "0",
        True,
        False,
        checks.delay_ms,
        "How long this broker waits before it believes new metadata.",
    ),
    BridgeheadKey(
        QUIRKS,
        "",
        True,
        False,
        refuse_unknown,
        "Misbehaviour of a real Kafka to bring back, by name.",
    ),
    BridgeheadKey(
        DIALECT,
        "shipped",
        False,
        True,
        checks.dialect,
        "What a listener speaks: as Kafka 3.9 shipped it, or as the KIPs drafted it.",
    ),
    BridgeheadKey(
        GRPC_LISTENER,
        "127.0.0.1:0",
        True,
        False,
        checks.listener,
        "Where this node listens for the Envelopes of other brokers; port 0 takes a free one.",
    ),
    BridgeheadKey(
        GRPC_ADVERTISED,
        "",
        True,
        False,
        lambda value: checks.listener(value) if value else None,
        "Where other brokers find this node's Envelope port, if not where it listens; port 0 is "
        "the one it got.",
    ),
    BridgeheadKey(
        GRPC_TLS,
        "true",
        True,
        False,
        checks.boolean,
        "Whether `up` makes certificates for Envelopes.",
    ),
    BridgeheadKey(
        GRPC_CERTIFICATE, "", True, False, checks.anything, "This broker's certificate, a PEM file."
    ),
    BridgeheadKey(GRPC_KEY, "", True, False, checks.anything, "The private key to it, a PEM file."),
    BridgeheadKey(
        GRPC_AUTHORITY,
        "",
        True,
        False,
        checks.anything,
        "Who signs all brokers' certificates: PEM.",
    ),
    BridgeheadKey(
        INTER_BROKER_USER,
        "broker",
        True,
        False,
        checks.anything,
        "Whom brokers act as among themselves.",
    ),
    BridgeheadKey(
        ZOOKEEPER_WRITE,
        "",
        True,
        False,
        checks.anything,
        "user:password of the session that writes metadata; with zookeeper.set.acl.",
    ),
    BridgeheadKey(
        ZOOKEEPER_READ,
        "",
        True,
        False,
        checks.anything,
        "user:password of the session that registers and reads; with zookeeper.set.acl.",
    ),
    BridgeheadKey(
        METRICS_LISTENER,
        "127.0.0.1:0",
        True,
        False,
        checks.listener,
        "Where this node serves /metrics and /health.",
    ),
    BridgeheadKey(
        METRICS_DIALECT,
        "confluent",
        True,
        False,
        checks.metrics_dialect,
        "How Kafka's own counters are spelt for Prometheus: confluent (requestspersec), strimzi "
        "(requests_total) or both.",
    ),
    BridgeheadKey(
        EVIDENCE_DIR, "", True, False, checks.anything, "Where this node writes its events."
    ),
    BridgeheadKey(RUN_ID, "", True, False, checks.anything, "The name of the run in every event."),
    BridgeheadKey(
        PINNED,
        "",
        True,
        False,
        checks.pinned,
        "The broker that shall be controller; others stand only while it is not registered.",
    ),
    BridgeheadKey(
        FORWARDING,
        "true",
        True,
        False,
        checks.boolean,
        "Whether this broker forwards; else it answers NOT_CONTROLLER away from the controller.",
    ),
    BridgeheadKey(
        ENVELOPE,
        "true",
        True,
        False,
        checks.boolean,
        "Whether this node knows the Envelope; else it plays a release from before the bridge.",
    ),
    BridgeheadKey(
        REQUEST_LOG,
        "DEBUG",
        True,
        False,
        checks.log_level,
        "How much goes to kafka-request.log: OFF, INFO (deprecated versions) or DEBUG.",
    ),
    BridgeheadKey(
        REMOTE_PLAINTEXT,
        "false",
        True,
        False,
        checks.boolean,
        "Whether a listener that asks for no proof may listen elsewhere than on loopback.",
    ),
    BridgeheadKey(
        AUTHORIZER_LOG,
        "INFO",
        True,
        False,
        checks.log_level,
        "How much goes to kafka-authorizer.log: OFF, INFO (denied), DEBUG (allowed, why) or TRACE.",
    ),
    BridgeheadKey(
        POLICY_TIMEOUT_MS,
        "5000",
        True,
        False,
        checks.timeout_ms,
        "How long a policy may think about one topic before it is refused.",
    ),
    BridgeheadKey(
        PRINCIPALS,
        "real",
        True,
        False,
        checks.principals,
        "Who travels in Envelopes: real principals or, to try the path without them, fake ones.",
    ),
)
_KEYS: Final = {key.name: key for key in BRIDGEHEAD_CONFIGS}


def bridgehead_config_errors(properties: Mapping[str, str]) -> list[str]:
    """Return one sentence for each of our names that is unknown or has a bad value."""
    errors: list[str] = []
    for name in sorted(properties):
        listener = _LISTENER.fullmatch(name)
        if listener is None and not name.startswith("bridgehead."):
            continue
        if name.startswith(POLICY_PREFIXES):
            continue
        key = _KEYS.get(listener[2] if listener else name)
        if key is None:
            errors.append(f"{name} is not a config; there are {', '.join(_KEYS)}.")
        elif listener and not key.per_listener:
            errors.append(f"{name} cannot be set per listener; set {key.name}.")
        elif not listener and not key.common:
            errors.append(f"{name} is set per listener: listener.name.<listener>.{name}.")
        elif (why := key.refuse(properties[name].strip())) is not None:
            errors.append(f"{name}={properties[name]} {why}.")
    return errors


@dataclass(frozen=True, slots=True)
class BridgeheadConfig:
    """Our configs of one broker, of properties that `bridgehead_config_errors` found good."""

    properties: Mapping[str, str]

    def _value(self, name: str, listener_name: str | None = None) -> str:
        if listener_name is not None:
            own = f"listener.name.{listener_name.lower()}.{name}"
            if own in self.properties:
                return self.properties[own].strip()
        return self.properties.get(name, _KEYS[name].default).strip()

    @property
    def metadata_blocking(self) -> str:
        """Return `controller` or `cluster`."""
        return self._value(BLOCKING)

    @property
    def metadata_reads(self) -> str:
        """Return `local` or `controller`."""
        return self._value(READS)

    @property
    def metadata_delay_ms(self) -> int:
        """How long this broker waits before it believes new metadata, in milliseconds."""
        return int(self._value(DELAY_MS))

    def metadata_controller_id(self, listener_name: str) -> str:
        """Return actual, random, self or a broker id as text; the listener's own value first."""
        return self._value(CONTROLLER_ID, listener_name)

    def dialect(self, listener_name: str) -> str:
        """Return what a listener speaks: `shipped` or `drafted`."""
        return self._value(DIALECT, listener_name)

    @property
    def grpc_listener(self) -> str:
        """Return host:port for Envelopes."""
        return self._value(GRPC_LISTENER)

    @property
    def grpc_advertised(self) -> str:
        """Return host:port that other brokers are told; empty: where it listens."""
        return self._value(GRPC_ADVERTISED)

    @property
    def grpc_files(self) -> tuple[str, str, str]:
        """Return the paths of certificate, key and authority; empty where not given."""
        return self._value(GRPC_CERTIFICATE), self._value(GRPC_KEY), self._value(GRPC_AUTHORITY)

    @property
    def zookeeper_credentials(self) -> tuple[str, str]:
        """Return user:password of the controller's and of the broker's session; or empty."""
        return self._value(ZOOKEEPER_WRITE), self._value(ZOOKEEPER_READ)

    @property
    def inter_broker_user(self) -> str:
        """Return the name of the principal that the brokers' certificates have."""
        return self._value(INTER_BROKER_USER)

    @property
    def metrics_listener(self) -> str:
        """Return host:port for /metrics."""
        return self._value(METRICS_LISTENER)

    @property
    def metrics_dialect(self) -> str:
        """Return confluent, strimzi or both."""
        return self._value(METRICS_DIALECT)

    @property
    def evidence_dir(self) -> str:
        """Return the folder for events; empty: the node's own."""
        return self._value(EVIDENCE_DIR)

    @property
    def run_id(self) -> str:
        """Return the run's name; empty: none was given."""
        return self._value(RUN_ID)

    @property
    def pinned_controller(self) -> int | None:
        """Return the broker that shall be controller, if one was named."""
        value = self._value(PINNED)
        return int(value) if value else None

    @property
    def forwarding_enabled(self) -> bool:
        """Tell whether this broker forwards."""
        return self._value(FORWARDING).lower() == "true"

    @property
    def envelope_supported(self) -> bool:
        """Tell whether this node's controller takes Envelopes of other brokers."""
        return self._value(ENVELOPE).lower() == "true"

    @property
    def remote_plaintext_allowed(self) -> bool:
        """Tell whether strangers may be served on other addresses than loopback."""
        return self._value(REMOTE_PLAINTEXT).lower() == "true"

    @property
    def authorizer_log(self) -> str:
        """Return the level of kafka-authorizer.log: OFF, INFO, DEBUG or TRACE."""
        return self._value(AUTHORIZER_LOG)

    @property
    def policy_timeout_ms(self) -> int:
        """How long a policy may think about one topic, in milliseconds."""
        return int(self._value(POLICY_TIMEOUT_MS))

    @property
    def request_log(self) -> str:
        """Return the level of kafka-request.log: OFF, INFO, DEBUG or TRACE."""
        return self._value(REQUEST_LOG)

    @property
    def fake_principals(self) -> bool:
        """Tell whether Envelopes carry fake principals, as in the draft's first stage."""
        return self._value(PRINCIPALS) == "fake"
