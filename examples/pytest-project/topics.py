"""A small tool: it makes sure that a topic exists."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

# After these errors the same request may succeed. After _TRANSPORT it may have been executed.
AGAIN = {KafkaError.NOT_CONTROLLER, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT}


def ensure_topic(admin: AdminClient, name: str, partitions: int, within_s: float = 30) -> None:
    """Create a topic unless it exists. Raises KafkaException."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            admin.create_topics([NewTopic(name, partitions, 2)])[name].result()
            return
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if code not in AGAIN or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
