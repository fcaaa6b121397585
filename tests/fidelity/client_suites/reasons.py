"""The suites' tests that do not apply to a system, each with the reason.

A test that the suite itself skips needs no row: the suite gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BRIDGEHEAD: Final = "Bridgehead"
KAFKA: Final = "Kafka 3.9.1"

_ONE_BROKER: Final = "The test expects a cluster of one broker."
_TRANSACTIONS: Final = "The test uses transactions, which Bridgehead does not advertise."


@dataclass(frozen=True)
class Row:
    """The reason why a test does not apply to these systems."""

    suite: str
    test: str
    systems: tuple[str, ...]
    reason: str


ROWS: Final = (
    Row("aiokafka", "test_admin.py::test_metadata", (BRIDGEHEAD, KAFKA), _ONE_BROKER),
    Row("aiokafka", "test_admin.py::test_describe_cluster", (BRIDGEHEAD, KAFKA), _ONE_BROKER),
    Row(
        "aiokafka", "test_admin.py::test_describe_configs_broker", (BRIDGEHEAD, KAFKA), _ONE_BROKER
    ),
    Row(
        "kafka-python",
        "test_admin_integration.py::test_create_partitions",
        (BRIDGEHEAD, KAFKA),
        "The test assigns partitions to a broker with the id 0; the brokers have the ids 1 to 3.",
    ),
    Row(
        "kafka-python",
        "test_producer_integration.py::test_transactional_producer_messages",
        (BRIDGEHEAD,),
        _TRANSACTIONS,
    ),
    Row(
        "kafka-python",
        "test_producer_integration.py::test_transactional_producer_offsets",
        (BRIDGEHEAD,),
        _TRANSACTIONS,
    ),
)
