"""Creates topics with aiokafka, and repeats a request only when that is right.

aiokafka returns the error codes of CreateTopics in the response. It sends the request to the
controller that it knows, and waits for that broker as long as its `request_timeout_ms`, 40 s by
default. A shorter time makes it ask for the new controller sooner.
"""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    KafkaConnectionError,
    NodeNotReadyError,
    NotControllerError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    for_code,
)

# Not executed, or it does not matter: the next attempt finds the topic.
AGAIN = (
    KafkaConnectionError,
    NodeNotReadyError,
    NotControllerError,
    RequestTimedOutError,
    TimeoutError,
)


async def ensure_topic(admin: AIOKafkaAdminClient, topic: NewTopic, within_s: float = 30) -> None:
    """Create a topic unless it exists. Raises a KafkaError of aiokafka, or TimeoutError."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                response = await admin.create_topics([topic])
                ((_, code, *_),) = response.topic_errors
                if code:
                    raise for_code(code)
                return
            except TopicAlreadyExistsError:
                return
            except AGAIN:
                await asyncio.sleep(0.2)
