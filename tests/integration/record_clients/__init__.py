"""Three released clients behind one interface: producers, group members and admin calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.integration.record_clients.aiokafka_ import Aiokafka
from tests.integration.record_clients.client import RecordClient
from tests.integration.record_clients.confluent_kafka_ import Confluent
from tests.integration.record_clients.kafka_python import KafkaPython

RECORD_CLIENTS: Final[Mapping[str, type[RecordClient]]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}
