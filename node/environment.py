"""Reads properties from environment variables, in the spellings of three kinds of Docker images.

    apache/kafka          KAFKA_ + name, `.` as `_`, `_` as `__`, `-` as `___`
    confluentinc/cp-kafka KAFKA_ + name, `.` as `_`, `-` as `__`, `_` as `___`
    bitnami/kafka         KAFKA_CFG_ + name, `.` as `_`

The first two kinds give `__` and `___` opposite meanings. If exactly one of the two readings is an
existing property, that property is set. Otherwise the variable is ambiguous, which is an error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final

from cluster_model.configs.bridgehead_configs import BRIDGEHEAD_CONFIGS
from cluster_model.configs.broker_configs.table import LISTENER_PREFIX, config_key

PREFIX: Final = "KAFKA_"
BITNAMI_PREFIX: Final = "KAFKA_CFG_"
# Variables for the images themselves or for the JVM; they are not broker properties.
NOT_PROPERTIES: Final = re.compile(
    r"KAFKA_(HEAP_OPTS|OPTS|HOME|VERSION|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|DEBUG|"
    r"JMX_.*|LOG4J_.*|CLIENT_.*|INTER_BROKER_USER|INTER_BROKER_PASSWORD|KRAFT_CLUSTER_ID|"
    r"CERTIFICATE_PASSWORD|TLS_.*|ZOOKEEPER_(USER|PASSWORD|PROTOCOL|TLS_.*))"
)
_OURS: Final = frozenset(BRIDGEHEAD_CONFIGS)


class AmbiguousVariableError(Exception):
    """A variable does not name exactly one property. The text is one sentence."""


def properties_from(
    environment: Mapping[str, str], from_file: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the properties that the environment sets. `from_file` only supplies listener names.

    Raises:
        AmbiguousVariableError: a variable does not name exactly one property.
    """
    named = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    spelt = {name: _without_prefix(name) for name in named if not NOT_PROPERTIES.fullmatch(name)}
    plain = {name: text.replace("_", ".") for name, text in spelt.items() if "__" not in text}
    properties = {key: named[name] for name, key in plain.items()}
    listeners = _listener_names({**(from_file or {}), **properties})
    for name, text in spelt.items():
        if name not in plain:
            properties[_choose(name, text, listeners)] = named[name]
    if "node.id" in properties:
        properties.setdefault("broker.id", properties["node.id"])
    return properties


def _without_prefix(name: str) -> str:
    prefix = BITNAMI_PREFIX if name.startswith(BITNAMI_PREFIX) else PREFIX
    return name.removeprefix(prefix).lower()


def _choose(name: str, text: str, listeners: frozenset[str]) -> str:
    apache = _decode(text, two="_", three="-")
    confluent = _decode(text, two="-", three="_")
    usable = [image for image in (apache, confluent) if _exists(image, listeners)]
    if len(usable) != 1:
        raise AmbiguousVariableError(
            f"{name} means {apache} in apache/kafka and {confluent} in cp-kafka, and "
            f"{'both exist' if usable else 'neither is known'}: set the property in the properties "
            "file instead."
        )
    return usable[0]


def _decode(text: str, *, two: str, three: str) -> str:
    """Decode underscores. As in the images' scripts, a run of four is `___` and then `_`."""
    marks: Mapping[str, str] = {"___": three, "__": two, "_": "."}
    replace: Callable[[re.Match[str]], str] = lambda run: marks[run[0]]  # noqa: E731
    return re.sub("___|__|_", replace, text)


def _exists(name: str, listeners: frozenset[str]) -> bool:
    prefixed = LISTENER_PREFIX.fullmatch(name)
    if prefixed is not None and prefixed[1] not in listeners:
        return False
    base = prefixed[2] if prefixed is not None else name
    return base in _OURS or config_key(name) is not None


def _listener_names(properties: Mapping[str, str]) -> frozenset[str]:
    text = ",".join((properties.get("listeners", ""), properties.get("advertised.listeners", "")))
    return frozenset(part.partition("://")[0].strip().lower() for part in text.split(",") if part)


def main() -> int:
    """Print the properties of this process's environment as JSON, for `bridgehead up`."""
    try:
        sys.stdout.write(json.dumps(properties_from(os.environ)))
    except AmbiguousVariableError as ambiguous:
        sys.stderr.write(f"{ambiguous}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
