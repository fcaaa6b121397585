"""Every admin method of three released clients and of ours, with its expected results.

One file and one class per client; a method of the class has the name of the client's method and
exercises it. `OUT_OF_SCOPE` says why the others are not exercised: their API is not served, or they
send no request. `test_every_admin_method` compares both with the client's methods.
"""

from __future__ import annotations

from typing import Final

from tests.integration.client_methods.aiokafka_ import Aiokafka
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython
from tests.integration.client_methods.ours import Ours, OursAsync

CLIENTS: Final = (KafkaPython, Aiokafka, Confluent, Ours, OursAsync)
