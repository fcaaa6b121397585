"""Every admin method of three released clients and of ours, with its expected results.

Each client has one file with one class. A method of the class calls the client's method of the same
name and checks its result. `OUT_OF_SCOPE` lists the client's other methods with the reason: the API
that they need is not served, or they send no request. `test_every_admin_method` fails for a client
method that is in neither.
"""

from __future__ import annotations

from typing import Final

from tests.integration.client_methods.aiokafka_ import Aiokafka
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython
from tests.integration.client_methods.ours import Ours, OursAsync

CLIENTS: Final = (KafkaPython, Aiokafka, Confluent, Ours, OursAsync)
