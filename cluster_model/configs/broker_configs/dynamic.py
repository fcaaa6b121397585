"""Validation of dynamic broker configs, before they are stored.

The checks have Kafka's order and Kafka's texts, which were recorded live
(docs/kafka/configs.md#dynamic-broker-configs). If a check fails, the receiving broker responds with
INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cluster_model.configs.broker_configs.effective import EffectiveBrokerConfig
from cluster_model.configs.broker_configs.table import (
    BROKER_CONFIGS,
    DYNAMIC_ONLY,
    LISTENER_PREFIX,
    UpdateMode,
    base_name,
)
from cluster_model.configs.types import ConfigException, in_properties_order

# These configs can only be changed with a listener prefix.
_STORE_CONFIGS: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)
# These configs can be set cluster-wide even with a listener prefix.
_CLUSTER_LISTENER_CONFIGS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_THREAD_COUNTS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "num.network.threads",
)
_MEBIBYTE: Final = 1 << 20


def validate_dynamic_configs(
    wanted: Mapping[str, str], current: EffectiveBrokerConfig, *, of_broker: bool
) -> None:
    """Validate the configs that a resource would have after a change; raises ConfigException.

    Args:
        wanted: all overrides of the resource after the change.
        current: the effective configs of this broker.
        of_broker: True for a broker; False for the cluster-wide default.
    """
    check_names_and_types(wanted, of_broker=of_broker)
    if of_broker:
        future = EffectiveBrokerConfig.of(current.static, current.cluster_default, wanted)
    else:
        future = EffectiveBrokerConfig.of(current.static, wanted, current.per_broker)
    _check_requirements(future)
    _check_listeners(future)
    _check_reconfigurations(current, future)


def check_names_and_types(wanted: Mapping[str, str], *, of_broker: bool) -> None:
    """Check what does not depend on the current configs: names, types and values.

    Raises:
        ConfigException: a check failed.
    """
    fixed = [
        name
        for name in wanted
        if name in BROKER_CONFIGS and BROKER_CONFIGS[name].update_mode is UpdateMode.READ_ONLY
    ]
    _reject("Cannot update these configs dynamically", "Set", fixed)
    stores = [name for name in wanted if name in _STORE_CONFIGS]
    _reject(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        "HashSet",
        stores,
    )
    by_base = {_unprefixed(name): value for name, value in wanted.items()}
    for name, key in (*DYNAMIC_ONLY.items(), *BROKER_CONFIGS.items()):
        if name in by_base and key.update_mode is not UpdateMode.READ_ONLY:
            key.parse(by_base[name])
    if not of_broker:
        local = [name for name in wanted if _per_broker_only(name)]
        _reject(
            "Cannot update these configs at default cluster level, broker id must be specified",
            "Set",
            local,
        )


def _unprefixed(name: str) -> str:
    prefixed = LISTENER_PREFIX.fullmatch(name)
    return prefixed[2] if prefixed else name


def _per_broker_only(name: str) -> bool:
    if base_name(name) != name or LISTENER_PREFIX.fullmatch(name):
        return _unprefixed(name) not in _CLUSTER_LISTENER_CONFIGS
    return name in BROKER_CONFIGS and BROKER_CONFIGS[name].update_mode is UpdateMode.PER_BROKER


def _reject(sentence: str, collection: str, names: Iterable[str]) -> None:
    offenders = in_properties_order(names)
    if offenders:
        # Scala prints larger sets as HashSet.
        word = "HashSet" if len(offenders) > 4 else collection
        raise ConfigException(f"{sentence}: {word}({', '.join(offenders)})")


def _number(config: EffectiveBrokerConfig, name: str) -> int | None:
    value = config.value(name)
    assert value is None or isinstance(value, int), name
    return value


def _check_requirements(future: EffectiveBrokerConfig) -> None:
    if (roll_ms := _number(future, "log.roll.ms")) is not None and roll_ms < 1:
        raise _requirement("log.roll.ms must be greater than or equal to 1")
    if (jitter_ms := _number(future, "log.roll.jitter.ms")) is not None and jitter_ms < 0:
        raise _requirement("log.roll.jitter.ms must be greater than or equal to 0")
    if _number(future, "log.retention.ms") == 0:
        raise _requirement("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    threads = _number(future, "log.cleaner.threads") or 0
    if threads == 0:
        raise ConfigException("/ by zero")
    buffer_bytes = _number(future, "log.cleaner.dedupe.buffer.size") or 0
    if buffer_bytes // threads <= _MEBIBYTE:
        raise _requirement(
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        )
    _check_overrides_per_ip(str(future.value("max.connections.per.ip.overrides") or ""))


def _requirement(text: str) -> ConfigException:
    return ConfigException(f"requirement failed: {text}")


def _check_overrides_per_ip(text: str) -> None:
    sentence = "Error parsing configuration property 'max.connections.per.ip.overrides': "
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = item.rpartition(":")
        if not colon:
            raise ConfigException(f"{sentence}begin 0, end -1, length {len(host + count)}")
        if not count.strip().isdecimal():
            raise ConfigException(f'{sentence}For input string: "{count.strip()}"')


def _check_listeners(future: EffectiveBrokerConfig) -> None:
    protocols: set[str] = set()
    for pair in str(future.value("listener.security.protocol.map")).split(","):
        listener, _, protocol = pair.strip().rpartition(":")
        if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise ConfigException(
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map"
            )
        protocols.add(listener.upper())
    for name in ("listeners", "advertised.listeners"):
        text = str(future.value(name) or "")
        sentence = f"Error creating broker listeners from '{text}': "
        for endpoint in filter(None, (part.strip() for part in text.split(","))):
            listener, separator, _ = endpoint.partition("://")
            if not separator:
                raise ConfigException(f"{sentence}Unable to parse {endpoint} to a broker endpoint")
            if listener.upper() not in protocols:
                raise ConfigException(
                    f"{sentence}No security protocol defined for listener {listener.upper()}"
                )


def _check_reconfigurations(current: EffectiveBrokerConfig, future: EffectiveBrokerConfig) -> None:
    """Check, as Kafka's reconfigurable components do, that each changed value is acceptable."""
    for name in _THREAD_COUNTS:
        names = [name, *(n for n in future.per_broker if n != name and base_name(n) == name)]
        for key in names:
            old, new = _number(current, name), _number(future, key)
            assert old is not None
            assert new is not None
            _check_thread_count(name, old, new)
    old_cleaners, new_cleaners = (
        _number(config, "log.cleaner.threads") or 0 for config in (current, future)
    )
    if new_cleaners < old_cleaners // 2:
        raise _wrapped(
            "Log cleaner threads cannot be reduced to less than half the current value "
            f"{old_cleaners}"
        )
    if new_cleaners > old_cleaners * 2:
        raise _wrapped(
            "Log cleaner threads cannot be increased to more than double the current value "
            f"{old_cleaners}"
        )
    if _number(future, "max.connection.creation.rate") == 0:
        raise _wrapped("Invalid max.connection.creation.rate 0")


def _check_thread_count(name: str, old: int, new: int) -> None:
    if new == old:
        return
    sentence = f"Dynamic thread count update validation failed for {name}={new}, value should "
    if new < 1:
        raise _wrapped(sentence + "be at least 1")
    if new < old // 2:
        raise _wrapped(sentence + f"be at least half the current value {old}")
    if new > old * 2:
        raise _wrapped(sentence + f"not be greater than double the current value {old}")


def _wrapped(text: str) -> ConfigException:
    return ConfigException(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {text} for configuration "
        "Invalid dynamic configuration"
    )
