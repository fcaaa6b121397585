"""Every admin method of three released clients and of ours, with its expected results.

Each client library has one file. A method of a class in it calls the client's method of the same
name and checks its result. `OUT_OF_SCOPE` lists the client's other methods, each with the reason:
the key of an API that brokers do not serve, or a text. `test_every_admin_method` fails for a client
method that has no check and is not out of scope.
"""

from __future__ import annotations

from typing import Final

from tests.integration.client_methods.aiokafka_ import Aiokafka
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython
from tests.integration.client_methods.ours import Ours, OursAsync

CLIENTS: Final = (KafkaPython, Aiokafka, Confluent, Ours, OursAsync)
