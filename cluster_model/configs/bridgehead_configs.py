"""Bridgehead's own configs, `bridgehead.*`; some can be set per listener.

bridgehead_configs.tsv describes them. DescribeConfigs does not list them. An unknown name or an
invalid value stops the broker at start-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from cluster_model.quirks import unknown_quirks

T = TypeVar("T")

BLOCKING: Final = "bridgehead.metadata.blocking"
ENVELOPE: Final = "bridgehead.envelope.supported"
ZOOKEEPER_WRITE: Final = "bridgehead.zookeeper.controller.credential"
ZOOKEEPER_READ: Final = "bridgehead.zookeeper.broker.credential"
# The built-in policies read and validate the configs with these prefixes.
POLICY_PREFIXES: Final = ("bridgehead.policy.limits.", "bridgehead.policy.naming.")

_LISTENER: Final = re.compile(r"listener\.name\.([^.]+)\.(bridgehead\..+)")
# Patterns of the valid values that the table describes in words.
_PATTERNS: Final = {
    "": ".*",
    "true or false": "(?i)true|false",
    "host:port": r".+:\d+",
    "host:port or empty": r"(.+:\d+)?",
    "a broker id or empty": r"\d*",
    "actual, random, self or a broker id": "actual|random|self|[0-9]+",
    "a number of milliseconds": "[0-9]{1,9}",
    "a number of milliseconds above 0": "(?=.*[1-9])[0-9]{1,7}",
}
_QUIRK_NAMES: Final = "names of quirks"


@dataclass(frozen=True, slots=True)
class BridgeheadKey:
    """A row of bridgehead_configs.tsv."""

    name: str
    default: str
    set_for: str  # broker, listener, or both
    valid_values: str  # [option, option], or words that `_PATTERNS` lists
    documentation: str

    def error(self, value: str) -> str | None:
        """Return why a value is invalid, as the end of a sentence; None for a valid one."""
        if self.valid_values == _QUIRK_NAMES:
            return unknown_quirks(value)
        if self.valid_values.startswith("["):
            options = self.valid_values[1:-1]
            return None if value in options.split(", ") else f"must be one of {options}"
        valid = re.fullmatch(_PATTERNS[self.valid_values], value, re.DOTALL)
        return None if valid else f"must be {self.valid_values}"


def _read_table() -> dict[str, BridgeheadKey]:
    path = Path(__file__).with_name("bridgehead_configs.tsv")
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    keys = {key.name: key for key in (BridgeheadKey(*line.split("\t")) for line in lines)}
    for key in keys.values():
        error = key.error(key.default)
        assert error is None, f"{path.name}: the default of {key.name} {error}"
    return keys


BRIDGEHEAD_CONFIGS: Final[Mapping[str, BridgeheadKey]] = _read_table()


def is_own(name: str) -> bool:
    """Return whether a name is a `bridgehead.*` config, with or without a listener prefix."""
    return name.startswith("bridgehead.") or _LISTENER.fullmatch(name) is not None


def bridgehead_config_errors(properties: Mapping[str, str]) -> list[str]:
    """Return one sentence for each `bridgehead.*` property with an invalid name or value."""
    errors: list[str] = []
    for name in sorted(properties):
        if not is_own(name) or name.startswith(POLICY_PREFIXES):
            continue
        listener = _LISTENER.fullmatch(name)
        key = BRIDGEHEAD_CONFIGS.get(listener[2] if listener else name)
        if key is None:
            errors.append(
                f"{name} is not a config; the configs are {', '.join(BRIDGEHEAD_CONFIGS)}."
            )
        elif listener and listener[1] != listener[1].lower():
            # As in Kafka, a listener prefix is looked up in lower case only.
            right = f"listener.name.{listener[1].lower()}.{listener[2]}"
            errors.append(f"{name} has no effect: write {right}.")
        elif listener and "listener" not in key.set_for:
            errors.append(f"{name} cannot be set per listener; set {key.name}.")
        elif not listener and "broker" not in key.set_for:
            errors.append(f"{name} can only be set per listener: listener.name.<listener>.{name}.")
        elif (problem := key.error(properties[name].strip())) is not None:
            errors.append(f"{name}={properties[name]} {problem}.")
    return errors


class _Value(Generic[T]):
    """An attribute of BridgeheadConfig that reads one config."""

    def __init__(self, name: str, convert: Callable[[str], T]) -> None:
        assert name in BRIDGEHEAD_CONFIGS, name
        self._name = name
        self._convert = convert

    def __get__(self, config: BridgeheadConfig, owner: type[BridgeheadConfig]) -> T:
        return self._convert(config.text(self._name))


def _is_true(text: str) -> bool:
    return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class BridgeheadConfig:
    """The `bridgehead.*` configs of one broker; its properties must be valid.

    See bridgehead_configs.tsv for the meaning of each value.
    """

    properties: Mapping[str, str]

    metadata_blocking = _Value(BLOCKING, str)
    metadata_reads = _Value("bridgehead.metadata.reads", str)
    metadata_delay_ms = _Value("bridgehead.metadata.delay.ms", int)
    faults_allowed = _Value("bridgehead.faults.allow", _is_true)
    grpc_listener = _Value("bridgehead.grpc.listener", str)
    grpc_advertised = _Value("bridgehead.grpc.advertised.listener", str)
    inter_broker_user = _Value("bridgehead.inter.broker.user", str)
    metrics_listener = _Value("bridgehead.metrics.listener", str)
    metrics_dialect = _Value("bridgehead.metrics.dialect", str)
    evidence_dir = _Value("bridgehead.evidence.dir", str)
    run_id = _Value("bridgehead.run.id", str)
    pinned_controller = _Value(
        "bridgehead.controller.pinned", lambda text: int(text) if text else None
    )
    forwarding_enabled = _Value("bridgehead.forwarding.enable", _is_true)
    envelope_supported = _Value(ENVELOPE, _is_true)
    remote_plaintext_allowed = _Value("bridgehead.allow.remote.plaintext", _is_true)
    request_log = _Value("bridgehead.request.log", str)
    authorizer_log = _Value("bridgehead.authorizer.log", str)
    policy_timeout_ms = _Value("bridgehead.policy.timeout.ms", int)
    data_plane_enabled = _Value("bridgehead.data.plane", _is_true)
    fake_principals = _Value("bridgehead.forwarding.principals", "fake".__eq__)

    def text(self, name: str, listener_name: str | None = None) -> str:
        """Return the text of the listener's value, else the broker's value, else the default."""
        if listener_name is not None:
            listener_key = f"listener.name.{listener_name.lower()}.{name}"
            if listener_key in self.properties:
                return self.properties[listener_key].strip()
        return self.properties.get(name, BRIDGEHEAD_CONFIGS[name].default).strip()

    def metadata_controller_id(self, listener_name: str) -> str:
        """Return `actual`, `random`, `self` or a broker id."""
        return self.text("bridgehead.metadata.controller.id", listener_name)

    def dialect(self, listener_name: str) -> str:
        """Return `shipped` or `drafted`."""
        return self.text("bridgehead.dialect", listener_name)

    @property
    def grpc_files(self) -> tuple[str, str, str]:
        """The paths of the certificate, the key and the authority; empty if not set."""
        certificate, key, authority = (
            self.text(f"bridgehead.grpc.{name}") for name in ("certificate", "key", "authority")
        )
        return certificate, key, authority

    @property
    def zookeeper_credentials(self) -> tuple[str, str]:
        """The `user:password` for metadata writes and for the broker session; empty if not set."""
        return self.text(ZOOKEEPER_WRITE), self.text(ZOOKEEPER_READ)
