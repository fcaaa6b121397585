"""A broker in a thread. A script says how it handles each CreateTopics."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.framing import FrameBuffer, frame
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from bridgehead.kafka_wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from bridgehead.kafka_wire.messages.metadata import MetadataResponse, MetadataResponseBroker

Act = Callable[[socket.socket, bytes], object]  # gets the connection and a whole response


def respond(connection: socket.socket, response: bytes) -> None:
    connection.sendall(response)


def stay_silent(connection: socket.socket, response: bytes) -> None:
    pass


def end_the_connection(connection: socket.socket, response: bytes) -> None:
    connection.shutdown(socket.SHUT_RDWR)


class ScriptedBroker:
    """Handles each CreateTopics with the next function of `script`, or `response` if none is left.

    A second request for the same topic gets TOPIC_ALREADY_EXISTS.
    """

    def __init__(self, server: socket.socket) -> None:
        self.port = server.getsockname()[1]
        self.script: list[Act] = []
        self._topics: set[str] = set()

    def serve(self, connection: socket.socket) -> None:
        frames = FrameBuffer()
        with connection:
            while data := connection.recv(65_536):
                for payload in frames.receive_data(data):
                    self._respond(connection, payload)

    def _respond(self, connection: socket.socket, payload: bytes) -> None:
        header, at = decode_request_header(payload)
        key, version = header.api_key, header.api_version
        request = decode_request(key, version, payload, at)
        body = encode_response(key, version, self._response(ApiKey(key), request))
        act = self.script.pop(0) if key == ApiKey.CREATE_TOPICS and self.script else respond
        act(connection, frame(encode_response_header(key, version, header.correlation_id) + body))

    def _response(self, key: ApiKey, request: Any) -> Any:
        match key:
            case ApiKey.API_VERSIONS:
                served = ((ApiKey.API_VERSIONS, 3), (ApiKey.METADATA, 9), (ApiKey.CREATE_TOPICS, 7))
                return ApiVersionsResponse(
                    0, [ApiVersion(api_key, 0, newest) for api_key, newest in served]
                )
            case ApiKey.METADATA:
                brokers = [MetadataResponseBroker(1, "127.0.0.1", self.port)]
                return MetadataResponse(brokers=brokers, controller_id=1)
            case _:
                results = []
                for topic in request.topics:
                    exists = topic.name in self._topics
                    code = ErrorCode.TOPIC_ALREADY_EXISTS if exists else ErrorCode.NONE
                    results.append(CreatableTopicResult(topic.name, error_code=code, configs=[]))
                    self._topics.add(topic.name)
                return CreateTopicsResponse(topics=results)


@contextmanager
def scripted_broker() -> Iterator[ScriptedBroker]:
    """Serve until the block ends and the clients have closed their connections."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker = ScriptedBroker(server)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=broker.serve, args=(connection,)))
                threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield broker
        finally:
            server.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for thread in threads:
                thread.join()
