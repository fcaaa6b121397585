"""Every admin method of three released clients, with its expected results.

One file and one class per client; a method of the class has the name of the client's method and
exercises it. `OUT_OF_SCOPE` gives reasons for the others: an API that is not served, or no request
at all. `test_every_admin_method` compares both with the client.
"""

from __future__ import annotations

from typing import Final

from tests.integration.client_methods.aiokafka_ import Aiokafka
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython

CLIENTS: Final = (KafkaPython, Aiokafka, Confluent)
