"""Every suite: its repository, its tests, and what it needs to use brokers that already run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_KAFKA: Final = "3.9.1"


@dataclass(frozen=True)
class Suite:
    """One suite."""

    name: str
    repository: str
    client: str
    """The client's distribution on PyPI. The suite tests the installed one, not the checkout."""
    tests: str
    """The tests' path in the repository."""
    plugin: str
    """Our pytest plugin, which replaces the suite's brokers."""
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite(
            "confluent-kafka-python",
            "https://github.com/confluentinc/confluent-kafka-python",
            "confluent-kafka",
            "tests/integration/admin",
            "confluent_kafka_clusters",
        ),
        Suite(
            "kafka-python",
            "https://github.com/dpkp/kafka-python",
            "kafka-python",
            "test/integration",
            "kafka_python_brokers",
            # The suite looks for a Kafka in KAFKA_ROOT before it uses a broker.
            environment={"KAFKA_VERSION": _KAFKA, "KAFKA_ROOT": "."},
        ),
        Suite(
            "aiokafka",
            "https://github.com/aio-libs/aiokafka",
            "aiokafka",
            "tests/test_admin.py",
            "aiokafka_server",
            # The suite reads Kafka's version from the name of the image.
            options=(f"--docker-image=kafka:2.13_{_KAFKA}", "--no-pull"),
        ),
    )
}
