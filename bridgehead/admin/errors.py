"""The errors that a call of the admin client raises, or returns for one element."""

from __future__ import annotations

from bridgehead.kafka_wire.errors import ErrorCode


class AdminError(Exception):
    """The base of every error of the admin client. Its text is for the user."""


class KafkaError(AdminError):
    """A broker answered with an error code.

    `code` is Kafka's code. `message` is the broker's reason, such as the text of a policy, or None
    if the response has no reason. `resent` is true if an earlier attempt of the same request got no
    definite response. In this case TOPIC_ALREADY_EXISTS may mean that the earlier attempt created
    the topic.
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, *, resent: bool = False
    ) -> None:
        text = message or code.default_text
        if resent:
            text += " (An earlier attempt got no definite response; it may have had an effect.)"
        super().__init__(text)
        self.code = code
        self.message = message
        self.resent = resent

    @property
    def retriable(self) -> bool:
        """True if Kafka's clients may repeat the call after this error."""
        return self.code.retriable


class KafkaTimeoutError(AdminError, TimeoutError):
    """No response arrived in time.

    If `sent` is true, the request was sent and may have had an effect.
    """

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class UnsupportedVersionError(AdminError):
    """The broker supports no version of the API that the call can use (KIP-97)."""


class AuthenticationError(AdminError):
    """The login failed, or the broker's certificate is not trusted.

    The client does not try this broker again for the same call.
    """


class ConnectionFailedError(AdminError):
    """A broker cannot be reached, is not in the metadata, or gave no usable response."""


class BrokerGoneError(ConnectionFailedError):
    """Metadata lacks a request's broker. If `sent`, that broker may have executed the request."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class InvalidCallError(AdminError, ValueError):
    """A call cannot be executed as it was made, for example because an argument is invalid."""


class AdminConfigError(AdminError, ValueError):
    """A property of the client is missing or invalid. Values of secrets are not shown."""


class ClientClosedError(AdminError):
    """The client was closed before or during the call."""
