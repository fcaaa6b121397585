"""DeleteTopics, key 20, versions 0 to 6 (kafka-semantics 3.4). KIP-4 §DeleteTopicsRequest.

Behaviour: accepting a deletion writes its marker; the controller removes the topic afterwards,
and the answer waits until its id is gone. Names are not validated; a topic without a right on it
is answered alike whether it exists or not.

Drafted: a missing topic is INVALID_TOPIC_EXCEPTION, also to who may not describe it; a name that
comes twice is answered once (KIP-4). v2 can only validate, and has error messages (KIP-201).

Version notes:
    5: error messages, which Kafka never sets; a policy's are. 6: topics by name or by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from bridgehead.kafka_wire.messages.drafted import delete_topics as drafted
from cluster_model.broker_configs import BrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.quirks import DELETE_BY_ID_TELLS_EXISTENCE, quirks_of
from cluster_model.records import DeletionMarkerRecord
from cluster_model.znodes import encode_uuid
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext, Wait, WaitFor
from controller.policy_questions import deletion

NO_ID: Final = bytes(16)
_BY_ID_FROM: Final = 6
_DISABLED_FROM: Final = 3
_KNOWS_POLICIES_FROM: Final = 5
_KIP_201_VERSION: Final = 2
# Told of a topic once, where a request names it twice; its other entries say NONE.
_OF_THE_DELETION: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
# With these an outcome's text is a policy's; else it is the name behind an id.
_POLICY_ERRORS: Final = (ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR)


class _Gone(NamedTuple):
    """The topics that this request has deleted already."""

    ids: Mapping[str, bytes]
    names: Mapping[bytes, str]

    @classmethod
    def of(cls, settled: Mapping[str, Outcome]) -> _Gone:
        ids = {o.message or e: o.topic_id for e, o in settled.items() if o.succeeded and o.topic_id}
        return cls(ids, {topic_id: name for name, topic_id in ids.items()})


class DeleteTopics:
    """See the module."""

    api_key: ClassVar[int] = 20

    def __init__(self, config: BrokerConfig) -> None:
        self._is_enabled = config.boolean("delete.topic.enable")
        # Who may not know of a topic cannot tell its id from one that nobody has.
        tells = DELETE_BY_ID_TELLS_EXISTENCE in quirks_of(config.originals)
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._hidden = Outcome(denied if tells else ErrorCode.UNKNOWN_TOPIC_ID)

    def decide(
        self,
        context: RequestContext,
        request: DeleteTopicsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        refused = self._refuse_all(context, request)
        dry = isinstance(request, drafted.DeleteTopicsRequest) and request.validate_only
        # Deleted by this very request, under another controller or by another of its entries.
        gone = _Gone.of(settled)
        elements: dict[str, Decided] = {}
        marked: set[str] = set()
        for element, name, topic_id in _asked(context, request):
            if element in settled or element in elements:
                continue
            outcome = refused or self._judge(context, name, topic_id, image, gone)
            resolved = image.topic_names.get(topic_id) if name is None else name
            records: tuple[DeletionMarkerRecord, ...] = ()
            new = resolved not in image.deletions and resolved not in marked
            if outcome.succeeded and resolved in image.topics and new:
                assert resolved is not None
                records = () if dry else (DeletionMarkerRecord(resolved),)
                marked.add(resolved)
            charged = outcome.succeeded and not dry
            mutations = _partitions(image, resolved) if charged else None
            judged = None
            if outcome.succeeded and resolved in image.topics:
                assert resolved is not None
                judged = partial(deletion, context.principal, resolved)
            elements[element] = Decided(
                element, outcome, records, mutations=mutations, question=judged
            )
        outcomes = {**settled, **{e: decided.outcome for e, decided in elements.items()}}
        ids = {e: o.topic_id for e, o in outcomes.items() if o.succeeded and o.topic_id}
        wait = Wait() if dry else Wait(WaitFor.DELETION, ids, request.timeout_ms)
        knows = context.api_version >= _KNOWS_POLICIES_FROM or _is_kip_201(context)
        violation = ErrorCode.POLICY_VIOLATION if knows else ErrorCode.UNKNOWN_SERVER_ERROR
        return Decision(list(elements.values()), wait, violation)

    def _refuse_all(self, context: RequestContext, request: DeleteTopicsRequest) -> Outcome | None:
        if not self._is_enabled:
            disabled = context.api_version >= _DISABLED_FROM
            error = ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
            return Outcome(error)
        if any(t.name is not None and t.topic_id != NO_ID for t in request.topics):
            # Kafka refuses the whole request; its answer has no room for the reason.
            return Outcome(ErrorCode.INVALID_REQUEST)
        return None

    def _judge(
        self,
        context: RequestContext,
        name: str | None,
        topic_id: bytes,
        image: MetadataImage,
        gone: _Gone,
    ) -> Outcome:
        if name is None:
            if topic_id == NO_ID:
                return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            name = image.topic_names.get(topic_id) or gone.names.get(topic_id)
            if name is None:
                return Outcome(ErrorCode.UNKNOWN_TOPIC_ID)
            if not context.authorize("DESCRIBE", "TOPIC", name):
                return self._hidden
            known_as = name
        else:
            context.authorize("DESCRIBE", "TOPIC", name)  # Told, without effect, as in Kafka.
            known_as = None
        if not context.authorize("DELETE", "TOPIC", name):
            if context.is_drafted and not context.authorize("DESCRIBE", "TOPIC", name):
                return Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION)  # As if there were none.
            return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, known_as)
        topic = image.topics.get(name)
        if topic is None and name in gone.ids:
            return Outcome(ErrorCode.NONE, known_as, gone.ids[name])
        if topic is None and context.is_drafted:
            return Outcome(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if topic is None:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        # Kafka sets no message here; the text of a success is therefore free to keep the name
        # behind an id, which is gone from the image when the answer is built.
        return Outcome(ErrorCode.NONE, known_as, topic.topic_id)

    def conflict(self, element: str) -> Outcome:
        """The marker was there: somebody else deletes the topic, which Kafka counts as success."""
        return DONE

    def answer(
        self,
        context: RequestContext,
        request: DeleteTopicsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> DeleteTopicsResponse:
        """See AdminApi.answer. An id asked for comes back with its name, where that may be said."""
        results = []
        told: set[str | None] = set()
        asked = _asked(context, request)
        for element, name, topic_id in dict.fromkeys(asked) if context.is_drafted else asked:
            outcome = outcomes[element]
            error = ErrorCode.REQUEST_TIMED_OUT if element in unfinished else outcome.error
            said, message = outcome.message, None
            if error in _OF_THE_DELETION and not context.is_drafted:
                topic = said if name is None else name
                if topic is not None and topic in told:
                    error = ErrorCode.NONE
                told.add(topic)
            if outcome.error in _POLICY_ERRORS:
                said, message = image.topic_names.get(topic_id), outcome.message
            if _is_kip_201(context) and message is None and error is not ErrorCode.NONE:
                message = error.default_text
            results.append(
                DeletableTopicResult(
                    name=said if name is None else name,
                    topic_id=topic_id,
                    error_code=error,
                    error_message=message,
                )
            )
        return DeleteTopicsResponse(responses=results)

    def refuse(
        self, request: DeleteTopicsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _is_kip_201(context: RequestContext) -> bool:
    return context.is_drafted and context.api_version == _KIP_201_VERSION


def _partitions(image: MetadataImage, name: str | None) -> int:
    """What Kafka charges: also for a topic that is marked already, nothing for one that is gone."""
    topic = image.topics.get(name) if name is not None else None
    return len(topic.assignment) if topic is not None else 0


def _asked(
    context: RequestContext, request: DeleteTopicsRequest
) -> Iterator[tuple[str, str | None, bytes]]:
    """Yield (element, name, id) of each entry; the element of an id is `id:` and its text."""
    if context.api_version < _BY_ID_FROM:
        for name in request.topic_names:
            yield name, name, NO_ID
        return
    for topic in request.topics:
        if topic.name is None:
            yield f"id:{encode_uuid(topic.topic_id)}", None, topic.topic_id
        else:
            yield topic.name, topic.name, topic.topic_id
