"""Every admin method of three released clients, put to one cluster: what each is expected to say.

Read first: a file and a class for each client; a method of the class is called like the client's
own and exercises it. `OUT_OF_SCOPE` says why a method is not exercised: the API that it needs is
not served, or it asks nothing of a broker. `test_every_admin_method` holds both against the client.
"""

from __future__ import annotations

from typing import Final

from tests.integration.client_methods.aiokafka_ import Aiokafka
from tests.integration.client_methods.confluent_kafka_ import Confluent
from tests.integration.client_methods.kafka_python import KafkaPython

CLIENTS: Final = (KafkaPython, Aiokafka, Confluent)
