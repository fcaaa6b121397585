"""DeleteTopics, key 20, versions 0 to 6 (docs/kafka/topics.md). KIP-4 §DeleteTopicsRequest.

An accepted deletion writes a marker; the controller removes the topic later, and the response waits
until the topic id is gone. Names are not validated. If a topic is given by name, a client without
DELETE gets the same error whether or not the topic exists.

In the drafted dialect a topic that is given by name gets INVALID_TOPIC_EXCEPTION if it does not
exist, or if the client has neither DELETE nor DESCRIBE on it. The response lists a duplicate once
(KIP-4). If one entry has a topic's name and another has its id, they are not duplicates: a client
that sends an id looks for the id in the response. In this dialect, from v2 on, the request has
validate_only and the response has error messages (KIP-201).

Version notes:
    5: error messages. Kafka never sets them; here policies do. 6: topics by name or by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar, Final, NamedTuple, Self

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from bridgehead.kafka_wire.messages.drafted import delete_topics as drafted
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.quirks import DELETE_BY_ID_TELLS_EXISTENCE, quirks_of
from cluster_model.records import DeletionMarkerRecord
from cluster_model.znodes.layout import encode_uuid
from controller.apis.base import (
    DONE,
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
    Wait,
    WaitFor,
)
from controller.apis.policy_check import deletion

NO_ID: Final = bytes(16)
_BY_ID_FROM: Final = 6
_DISABLED_FROM: Final = 3
_POLICY_VIOLATION_FROM: Final = 5
_KIP_201_FROM: Final = 2
# In the shipped dialect, only the first entry of a topic gets one of these errors; the others get
# NONE.
_ONCE_PER_TOPIC: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
# With these errors, an outcome's message is the text of a policy. Otherwise the message is the name
# of the topic if the request gives the topic by id.
_POLICY_ERRORS: Final = (ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR)


class _Deleted(NamedTuple):
    """The topics that this request has already deleted, under an earlier controller."""

    ids: Mapping[str, bytes]
    names: Mapping[bytes, str]

    @classmethod
    def of(cls, committed: Mapping[str, Outcome]) -> _Deleted:
        ids = {
            o.message or e: o.topic_id for e, o in committed.items() if o.succeeded and o.topic_id
        }
        return cls(ids, {topic_id: name for name, topic_id in ids.items()})


class DeleteTopics(AdminApi):
    """Decides DeleteTopics requests."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_TOPICS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(settings.config)

    def __init__(self, config: BrokerConfig) -> None:
        self._is_enabled = config.boolean("delete.topic.enable")
        # Without the quirk, a client without DESCRIBE gets the same error as for an unknown id.
        reveals = DELETE_BY_ID_TELLS_EXISTENCE in quirks_of(config.originals)
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._hidden = Outcome(denied if reveals else ErrorCode.UNKNOWN_TOPIC_ID)

    def decide(
        self,
        context: RequestContext,
        request: DeleteTopicsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        rejection = self._whole_rejection(context, request)
        dry = isinstance(request, drafted.DeleteTopicsRequest) and request.validate_only
        deleted = _Deleted.of(committed)
        elements: dict[str, Decided] = {}
        marked: set[str] = set()
        for element, name, topic_id in _requested(context, request):
            if element in committed or element in elements:
                continue
            outcome = rejection or self._outcome(context, name, topic_id, image, deleted)
            resolved = image.topic_names.get(topic_id) if name is None else name
            records: tuple[DeletionMarkerRecord, ...] = ()
            new = resolved not in image.deletions and resolved not in marked
            if outcome.succeeded and resolved in image.topics and new:
                assert resolved is not None
                records = () if dry else (DeletionMarkerRecord(resolved),)
                marked.add(resolved)
            charged = outcome.succeeded and not dry
            mutations = _partitions(image, resolved) if charged else None
            check = None
            if outcome.succeeded and resolved in image.topics:
                assert resolved is not None
                check = partial(deletion, context.client.principal, resolved)
            elements[element] = Decided(
                element, outcome, records, mutations=mutations, policy_check=check
            )
        outcomes = {**committed, **{e: decided.outcome for e, decided in elements.items()}}
        ids = {e: o.topic_id for e, o in outcomes.items() if o.succeeded and o.topic_id}
        wait = Wait() if dry else Wait(WaitFor.DELETION, ids, request.timeout_ms)
        has_code = context.api_version >= _POLICY_VIOLATION_FROM or _is_kip_201(context)
        violation = ErrorCode.POLICY_VIOLATION if has_code else ErrorCode.UNKNOWN_SERVER_ERROR
        return Decision(list(elements.values()), wait, violation)

    def _whole_rejection(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> Outcome | None:
        if not self._is_enabled:
            disabled = context.api_version >= _DISABLED_FROM
            error = ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
            return Outcome(error)
        if any(t.name is not None and t.topic_id != NO_ID for t in request.topics):
            # Kafka rejects the whole request, without a message.
            return Outcome(ErrorCode.INVALID_REQUEST)
        return None

    def _outcome(
        self,
        context: RequestContext,
        name: str | None,
        topic_id: bytes,
        image: MetadataImage,
        deleted: _Deleted,
    ) -> Outcome:
        if name is None:
            if topic_id == NO_ID:
                return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            name = image.topic_names.get(topic_id) or deleted.names.get(topic_id)
            if name is None:
                return Outcome(ErrorCode.UNKNOWN_TOPIC_ID)
            if not context.authorize("DESCRIBE", "TOPIC", name):
                return self._hidden
            known_as = name
        else:
            context.authorize("DESCRIBE", "TOPIC", name)  # For the log only, as in Kafka.
            known_as = None
        if not context.authorize("DELETE", "TOPIC", name):
            if context.is_drafted and not context.authorize("DESCRIBE", "TOPIC", name):
                return Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION)  # as for a missing topic
            return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, known_as)
        topic = image.topics.get(name)
        if topic is None and name in deleted.ids:
            return Outcome(ErrorCode.NONE, known_as, deleted.ids[name])
        if topic is None and context.is_drafted:
            return Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if topic is None:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        # Kafka sets no message here, so the outcome's message can store the name of a topic given
        # by id: the image no longer has the name when the response is built.
        return Outcome(ErrorCode.NONE, known_as, topic.topic_id)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict: the topic is already marked, which Kafka counts as success."""
        return DONE

    def response(
        self, context: RequestContext, request: DeleteTopicsRequest, results: Results
    ) -> DeleteTopicsResponse:
        rows: list[DeletableTopicResult] = []
        reported: set[str | None] = set()
        requested = _requested(context, request)
        for element, name, topic_id in (
            dict.fromkeys(requested) if context.is_drafted else requested
        ):
            outcome = results.outcomes[element]
            error = ErrorCode.REQUEST_TIMED_OUT if element in results.unfinished else outcome.error
            known_name, message = outcome.message, None
            if error in _ONCE_PER_TOPIC and not context.is_drafted:
                topic = known_name if name is None else name
                if topic is not None and topic in reported:
                    error = ErrorCode.NONE
                reported.add(topic)
            if outcome.error in _POLICY_ERRORS:
                known_name, message = results.image.topic_names.get(topic_id), outcome.message
            if _is_kip_201(context) and message is None and error is not ErrorCode.NONE:
                message = error.default_text
            rows.append(
                drafted.DeletableTopicResult(
                    name=known_name if name is None else name,
                    topic_id=topic_id,
                    error_code=error,
                    error_message=message,
                    error_message_tagged=message,
                )
            )
        return DeleteTopicsResponse(responses=rows)


def _is_kip_201(context: RequestContext) -> bool:
    return context.is_drafted and context.api_version >= _KIP_201_FROM


def _partitions(image: MetadataImage, name: str | None) -> int:
    """Return the mutations to charge. As in Kafka, a topic that is already marked counts too."""
    topic = image.topics.get(name) if name is not None else None
    return len(topic.assignment) if topic is not None else 0


def _requested(
    context: RequestContext, request: DeleteTopicsRequest
) -> Iterator[tuple[str, str | None, bytes]]:
    """Yield (element, name, id) of each entry. If it has an id, the element is `id:<base64>`."""
    if context.api_version < _BY_ID_FROM:
        for name in request.topic_names:
            yield name, name, NO_ID
        return
    for topic in request.topics:
        if topic.name is None:
            yield f"id:{encode_uuid(topic.topic_id)}", None, topic.topic_id
        else:
            yield topic.name, topic.name, topic.topic_id
