"""Client quotas: their entities, their keys and how they are stored.

An entity is a user, a client id, a user with a client id, or an ip. A part without a name means the
default entity (docs/kafka/znodes.md#entity-names, docs/kafka/znodes.md#scram-and-quota-values,
docs/kafka/quotas.md#client-quota-apis; KIP-546).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

from bridgehead.kafka_wire.config_codes import ConfigType
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.java_order import hash_map_order, java_hash
from cluster_model.configs.types import ConfigException, java_double_text, parse
from cluster_model.mutation_rates import MUTATION_RATE
from cluster_model.records import ConfigResource
from cluster_model.scram import MECHANISM_NAMES
from cluster_model.znodes.entity_names import sanitize
from cluster_model.znodes.layout import DEFAULT_ENTITY

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
# Entity type to name; None is the default entity.
QuotaEntity = Mapping[str, str | None]

CLIENT_KEYS: Final[Mapping[str, ConfigType]] = {
    "producer_byte_rate": ConfigType.LONG,
    "consumer_byte_rate": ConfigType.LONG,
    "request_percentage": ConfigType.DOUBLE,
    MUTATION_RATE: ConfigType.DOUBLE,
}
IP_KEYS: Final[Mapping[str, ConfigType]] = {"connection_creation_rate": ConfigType.INT}
# A user's znode also has the user's SCRAM credentials.
USER_KEYS: Final[Mapping[str, ConfigType]] = {
    **CLIENT_KEYS,
    **dict.fromkeys(MECHANISM_NAMES.values(), ConfigType.STRING),
}
_KEYS: Final = {"users": USER_KEYS, "clients": CLIENT_KEYS, "ips": IP_KEYS}

_ROUNDING: Final = 1e-6
_MAX: Final = {ConfigType.LONG: 2**63 - 1, ConfigType.INT: 2**31 - 1}


def in_hash_order(entity: QuotaEntity, capacity: int) -> list[tuple[str, str | None]]:
    """Return an entity's parts in the order of a Java HashMap, as in Kafka's response.

    `capacity` is the initial capacity of Kafka's map.
    """
    return hash_map_order({part: java_hash(part[0]) for part in entity.items()}, capacity)


def quota_resource(
    parts: list[tuple[str, str | None]], resolvable: Container[str] = ()
) -> ConfigResource:
    """Return where an entity's quotas are stored. An ip may be a host name in `resolvable`.

    Raises:
        ApiError: INVALID_REQUEST with Kafka's text for the first invalid part;
            UNKNOWN_SERVER_ERROR for a name that no znode can have.
    """
    if not parts:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    stored: dict[str, str] = {}
    for entity_type, name in parts:
        if entity_type not in (USER, CLIENT_ID, IP):
            text = f"Unhandled client quota entity type: {entity_type}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Empty {entity_type} not supported")
        stored[entity_type] = sanitize(name)
    if IP in stored:
        return _ip_resource(stored, resolvable)
    if any(name in (".", "..") for name in stored.values()):
        # Kafka's ZooKeeper client rejects these names.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if USER not in stored:
        return ConfigResource("clients", stored[CLIENT_ID])
    client = stored.get(CLIENT_ID)
    return ConfigResource("users", stored[USER] + (f"/clients/{client}" if client else ""))


def host_name(parts: Iterable[tuple[str, str | None]]) -> str | None:
    """Return an entity's ip if it is a host name that must be resolved."""
    stored = {entity_type: sanitize(name) for entity_type, name in parts if name is not None}
    ip = stored.get(IP)
    return None if ip is None or _is_ip(ip) else ip


def _ip_resource(stored: Mapping[str, str], resolvable: Container[str]) -> ConfigResource:
    if len(stored) > 1:
        text = (
            "Invalid quota entity combination, IP entity should not be used with "
            "user/client ID entity."
        )
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    ip = stored[IP]
    if ip != DEFAULT_ENTITY and not _is_ip(ip) and ip not in resolvable:
        text = f"{ip} is not a valid IP or resolvable host."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    return ConfigResource("ips", ip)


def _is_ip(text: str) -> bool:
    """Return whether Java accepts a text as an IPv4 address; `10.1`, for example, is `10.0.0.1`."""
    parts = text.split(".")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return False
    *first, last = [int(part) for part in parts if len(part) <= 10] or [2**32]
    if len(first) + 1 != len(parts):
        return False
    return all(number <= 255 for number in first) and last < 256 ** (4 - len(first))


def set_quota(resource: ConfigResource, key: str, value: float) -> str:
    """Return the text to store for one key of an entity.

    Raises:
        ApiError: INVALID_REQUEST for an unknown key, or for a fraction where an integer is
            needed; UNKNOWN_SERVER_ERROR for the key of a SCRAM credential.
    """
    keys = _KEYS[resource.entity_type]
    match keys.get(key):
        case None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
        case ConfigType.DOUBLE:
            return java_double_text(value)
        case ConfigType.LONG | ConfigType.INT as kind:
            whole = _truncated(value + _ROUNDING, _MAX[kind])
            if abs(float(whole) - value) > _ROUNDING:
                text = f"Configuration {key} must be a {kind.name} value"
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
            return str(whole)
        case _:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _truncated(value: float, largest: int) -> int:
    """Cast a double to an integer as Java does."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return largest if value > 0 else -largest - 1
    return max(-largest - 1, min(largest, int(value)))


def check_stored(resource: ConfigResource, configs: Mapping[str, str]) -> None:
    """Validate stored configs before they are written again.

    Raises:
        ApiError: UNKNOWN_SERVER_ERROR for an unknown key or a value of the wrong type.
    """
    keys = _KEYS[resource.entity_type]
    if resource.entity_type == "users" and (
        resource.entity_name == DEFAULT_ENTITY or "/" in resource.entity_name
    ):
        keys = CLIENT_KEYS
    for key, value in configs.items():
        if key not in keys:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            parse(key, value, keys[key])
        except ConfigException:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def quotas_of(resource: ConfigResource, configs: Mapping[str, str]) -> dict[str, float]:
    """Return an entity's quotas as in DescribeClientQuotas, without credentials.

    Raises:
        ConfigException: a stored value is not a number.
    """
    keys = IP_KEYS if resource.entity_type == "ips" else CLIENT_KEYS
    quotas = {}
    for key, text in configs.items():
        if key in keys:
            value = parse(key, text, ConfigType.DOUBLE)
            assert isinstance(value, float)
            quotas[key] = value
    return quotas


class QuotaLevel(NamedTuple):
    """The clients that share one quota. Names are as stored.

    A part that the level does not use is empty. `client_id` is None if the client sends none.
    """

    user: str
    client_id: str | None


def governing_level(
    rates: Mapping[ConfigResource, float], user: str, client_id: str | None
) -> tuple[QuotaLevel, float | None]:
    """Return the level whose quota applies to a client, and its rate (None: unlimited).

    The first of these entities with a rate determines the level (KIP-55): the user with the client
    id or with the default client id; the user; the default user with the client id or with the
    default client id; the default user. If none has a rate, the client id is the level. The most
    specific entity of the level that has a rate determines the rate.
    """
    stored = sanitize(user)
    client = None if client_id is None else sanitize(client_id)
    for name in (stored, DEFAULT_ENTITY):
        pairs = (f"{name}/clients/{client}", f"{name}/clients/{DEFAULT_ENTITY}")
        if any(ConfigResource("users", pair) in rates for pair in pairs):
            return _limited(rates, QuotaLevel(stored, client))
        if ConfigResource("users", name) in rates:
            return _limited(rates, QuotaLevel(stored, ""))
    return _limited(rates, QuotaLevel("", client))


def _limited(
    rates: Mapping[ConfigResource, float], level: QuotaLevel
) -> tuple[QuotaLevel, float | None]:
    user, client = level
    candidates: tuple[ConfigResource, ...] = ()
    if user and client:
        candidates = tuple(
            ConfigResource("users", f"{entity}/clients/{below}")
            for entity in (user, DEFAULT_ENTITY)
            for below in (client, DEFAULT_ENTITY)
        )
    elif user and client is not None:  # Kafka does not limit requests without a client id.
        candidates = (ConfigResource("users", user), ConfigResource("users", DEFAULT_ENTITY))
    elif client:
        candidates = (ConfigResource("clients", client), ConfigResource("clients", DEFAULT_ENTITY))
    return level, next((rates[candidate] for candidate in candidates if candidate in rates), None)
